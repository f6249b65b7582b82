//! Prints a made-up recording: `trace [pipeline|clean] [WIDTH] [colour] [ascii] [json] [timeline] [recording]`.

#[path = "../src/trace/fixture.rs"]
#[allow(missing_docs)]
mod fixture;

use weir_model::trace::{TraceDocument, TraceResult};
use weir_report::trace::{screen, timeline};
use weir_report::{Style, json};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let width = words.iter().find_map(|word| word.parse().ok()).unwrap_or(80);
    let style = Style { colour: has("colour"), unicode: !has("ascii"), width, ..Style::default() };
    let (recording, findings, pipelines) = match (has("pipeline"), has("clean")) {
        (true, _) => fixture::pipeline(),
        (_, true) => (fixture::clean(), vec![], vec![]),
        _ => {
            let (recording, findings) = fixture::bytewise();
            (recording, findings, vec![])
        }
    };
    let verdict = match (has("pipeline"), has("clean")) {
        (true, _) => "41 bytes were lost when signal 9 ended python3.",
        (_, true) => "",
        _ => fixture::VERDICT,
    };
    let trace = TraceResult::new(&recording, &findings, verdict, &pipelines);
    let text = match (has("json"), has("timeline"), has("recording")) {
        (true, ..) => json::pretty(&TraceDocument::new(&trace)),
        (_, true, _) => json::pretty(&timeline(&recording)),
        (_, _, true) => json::pretty(&recording),
        _ => Ok(screen(&trace, has("all"), &style)),
    };
    print!("{}", text.expect("keys are strings"));
}
