//! What the screen says, and that the document obeys its schema.

use weir_model::trace::Exit;

use super::*;

fn why() -> Why {
    let row = |wish: &str, effect: &str, technique: &str, text: &str| Row {
        wish: wish.into(),
        effect: effect.into(),
        technique: technique.into(),
        text: text.into(),
    };
    Why {
        command: vec!["./tool".into(), "-x".into()],
        program: Program {
            path: Some("./tool".into()),
            runtime: "C".into(),
            script: false,
            linked_statically: true,
            musl: false,
            foreign: false,
            privileged: false,
        },
        rows: vec![
            row("--stdout line", "stand-in", "outside", "it is linked statically: what waits is brought out"),
            row("--fix-order", "not", "nothing", "it is linked statically"),
        ],
    }
}

#[test]
fn each_wish_is_a_paragraph() {
    let text = screen(&why(), &Style::default());
    assert!(text.starts_with("./tool -x · C · linked statically\n"), "{text}");
    assert!(text.contains("--stdout line something else stands in, from outside: it is linked"), "{text}");
    assert!(text.contains("--fix-order cannot be done: it is linked statically."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = screen(&Why { rows: Vec::new(), ..why() }, &Style::default());
    assert!(text.contains("runs as it is"), "{text}");
}

#[test]
fn the_document_obeys_its_schema() {
    let schema = include_str!("../../../../docs/schemas/weir-run-1.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let saved = Saved { path: "weir-rescue-4-1.bin".into(), why: "ENOSPC".into() };
    let rescued = |saved| Rescued {
        pid: 4,
        comm: "tool".into(),
        fd: 1,
        path: "pipe:[7]".into(),
        bytes: 12,
        exit: Exit::Signal(9),
        saved,
    };
    let ended = Ended {
        exit: Exit::Code(0),
        emitted_bytes: 3,
        rescued: vec![rescued(None), rescued(Some(saved))],
        unable: vec!["a sentence".into()],
    };
    for ended in [None, Some(ended)] {
        let document = Document { schema: SCHEMA.into(), why: why(), ended };
        let value = serde_json::to_value(&document).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{value:#}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema": "weir-run/1"})));
}
