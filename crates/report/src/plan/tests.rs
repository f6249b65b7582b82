//! Tests of the screen, and of the document against its schema.

use weir_model::run::{ProgramProperties, RescuedBytes, RunDocument, RunOutcome, SCHEMA, SavedFile};
use weir_model::trace::Exit;

use super::*;

fn plan() -> RunPlan {
    let row = |option: &str, effect, technique, text: &str| PlanRow {
        option: option.into(),
        effect,
        technique,
        text: text.into(),
        unreached: None,
    };
    RunPlan {
        command: vec!["./tool".into(), "-x".into()],
        program: ProgramProperties {
            path: Some("./tool".into()),
            runtime: "C".into(),
            script: false,
            linked_statically: true,
            musl: false,
            foreign: false,
            privileged: false,
        },
        rows: vec![
            row(
                "--stdout line",
                Effect::StandIn,
                Technique::Outside,
                "it is linked statically: bytes older than 100 ms are written",
            ),
            row("--fix-order", Effect::Not, Technique::Nothing, "it is linked statically"),
        ],
    }
}

/// Joins the lines of a text.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_option_is_a_paragraph() {
    let text = screen(&plan(), &Style::default());
    assert!(text.starts_with("./tool -x · C · linked statically\n"), "{text}");
    assert!(text.contains("--stdout line a substitute is used, from outside: it is linked"), "{text}");
    assert!(text.contains("--fix-order cannot be honoured: it is linked statically."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let row = PlanRow::honoured("--stdout line", Technique::Nothing, "os.Stdout has no buffer");
    let row = row.with_effect(Effect::Already).without(Some("a bufio.Writer".into()));
    let text = screen(&RunPlan { rows: vec![row], ..plan() }, &Style::default());
    let want = "--stdout line has no effect: os.Stdout has no buffer; out of reach: a\nbufio.Writer.";
    assert!(flat(&text).contains(&flat(want)), "{text}");
    let text = screen(&RunPlan { rows: Vec::new(), ..plan() }, &Style::default());
    assert!(text.contains("runs unchanged"), "{text}");
}

#[test]
fn the_document_obeys_its_schema() {
    let schema = include_str!("../../../../docs/schemas/weir-run-1.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let saved = SavedFile { path: "weir-rescue-4-1.bin".into(), why: "ENOSPC".into() };
    let rescued = |saved| RescuedBytes {
        pid: 4,
        comm: "tool".into(),
        fd: 1,
        path: "pipe:[7]".into(),
        bytes: 12,
        exit: Exit::Signal(9),
        saved,
    };
    let outcome = RunOutcome {
        exit: Exit::Code(0),
        emitted_bytes: 3,
        rescued: vec![rescued(None), rescued(Some(saved))],
        limitations: vec!["a sentence".into()],
    };
    for outcome in [None, Some(outcome)] {
        let document =
            RunDocument { schema: SCHEMA.into(), plan: plan(), outcome, environment: Default::default() };
        let value = serde_json::to_value(&document).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{value:#}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema": "weir-run/1"})));
}
