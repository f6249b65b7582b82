//! Tests of the document and of the timeline.

use super::*;
use serde_json::Value;
use weir_model::trace::stream_timelines;

fn check(value: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/weir-trace-1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Checks that the page has the verdict, the findings with links to their streams, and two marks for each stream.
fn check_page(document: &TraceDocument) {
    let mut body = crate::page::Body::default();
    page(document, &mut body, "");
    let html = crate::page::page("t", &body, &[]);
    for line in document.verdict.lines() {
        assert!(html.contains(&crate::svg::escape(line.trim())), "{line}");
    }
    for finding in &document.findings {
        assert!(html.contains(&crate::svg::escape(&finding.why)), "{}", finding.why);
    }
    for target in html.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(html.contains(&format!("id=\"{target}\"")), "{target} is no place in the page");
    }
    check_links(&html);
    let marks = html.matches("class=\"bar ").count() + html.matches("class=\"span\"").count();
    assert!(marks >= 2 * document.streams.len(), "{marks}");
    assert_eq!(html.matches("class=\"box\"").count(), 2 * boxes(document), "wide and narrow");
}

/// Checks that each link to a lane is visible where the drawing with the lane is.
fn check_links(html: &str) {
    let mut links = [0, 0];
    for (at, width) in ["wide", "narrow"].into_iter().enumerate() {
        let begin = format!("<p class=\"link {width}\"><a href=\"#");
        for target in html.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let before = &html[..html.find(&format!("id=\"{target}\"")).unwrap()];
            let is_narrow = before.rfind("<div class=\"narrow\">") > before.rfind("<div class=\"wide\">");
            assert_eq!(is_narrow, width == "narrow", "{target}");
            links[at] += 1;
        }
    }
    assert_eq!(links[0], links[1]);
    assert_eq!(html.matches("Its stream in the timeline").count(), 2 * links[0]);
}

fn boxes(document: &TraceDocument) -> usize {
    document.pipelines.iter().map(|pipeline| pipeline.hops.len() + 1).sum()
}

#[test]
fn documents_obey_the_schema_and_can_be_read() {
    let (bytewise, tiny) = bytewise();
    let (piped, found, pipelines) = pipeline();
    let mut clean = clean();
    // A text equal to the empty list of streams.
    clean.command.push("\n  \"streams\": []".into());
    clean.other_calls.push(weir_model::trace::OtherCalls {
        pid: 4711,
        image: 0,
        op: weir_model::trace::Op::Openat,
        calls: 3,
        errors: [(2, 1)].into(),
        submitted: 0,
        exact: true,
    });
    let traces = [
        of(&bytewise, &tiny, VERDICT),
        TraceResult { pipelines: &pipelines, ..of(&piped, &found, "x") },
        of(&clean, &[], ""),
    ];
    for trace in traces {
        let document = TraceDocument::new(&trace);
        let text = crate::json::pretty(&document).unwrap();
        check(&serde_json::from_str(&text).unwrap());
        assert_eq!(serde_json::from_str::<TraceDocument>(&text).unwrap(), document);
        check_page(&document);
        let streams = streams_text(&trace.streams).unwrap();
        assert_eq!(document_text(&trace, streams).unwrap().concat(), text, "in two parts as in one");
    }
}

/// Returns the page of a document, and the same page without its closed parts.
fn page_and_visible_part(document: &TraceDocument) -> (String, String) {
    let mut body = crate::page::Body::default();
    page(document, &mut body, "");
    let html = crate::page::page("t", &body, &[]);
    let (mut visible, mut depth) = (String::new(), 0usize);
    for part in html.split_inclusive('\n') {
        depth += part.matches("<details").count();
        if depth == 0 {
            visible += part;
        }
        depth -= part.matches("</details>").count();
    }
    (html, visible)
}

#[test]
fn a_page_folds_the_streams_that_the_screen_folds() {
    let (recording, findings) = bytewise();
    let document = TraceDocument::new(&of(&recording, &findings, VERDICT));
    let (html, visible) = page_and_visible_part(&document);
    assert!(html.contains("<summary>start-up: 1 stream of the loader: 1 call, 832 B"), "{html}");
    assert!(html.contains("libc.so.6") && !visible.contains("libc.so.6"), "{visible}");
    let (recording, findings, _) = pipeline();
    let document = TraceDocument::new(&of(&recording, &findings, "x"));
    let (html, visible) = page_and_visible_part(&document);
    assert!(html.contains("<summary>20 more streams: 40 calls"), "{html}");
    assert!(html.contains("module7.py") && !visible.contains("module7.py"), "{visible}");
}

#[test]
fn the_streams_of_findings_come_first_in_a_page() {
    let (recording, findings) = bytewise();
    let document = TraceDocument::new(&of(&recording, &findings, VERDICT));
    let (_, visible) = page_and_visible_part(&document);
    let at = |stream: usize| visible.find(&format!("id=\"stream-{stream}\"")).unwrap();
    assert_eq!((document.streams[0].fd, document.streams[1].fd), (0, 1));
    assert!(at(1) < at(0), "the finding is about descriptor 1");
}

#[test]
fn a_page_lists_the_other_files_of_a_finding_in_a_closed_part() {
    let recording = clean();
    let findings = super::losses::equal_losses(30);
    let document = TraceDocument::new(&of(&recording, &findings, "x"));
    assert_eq!(document.findings.len(), 30);
    let (html, visible) = page_and_visible_part(&document);
    assert!(
        visible.contains(">Findings: 1<") && visible.contains("29 more files, 11.4 KiB in all"),
        "{visible}"
    );
    assert!(visible.contains("/tmp/f3") && !visible.contains("/tmp/f4"), "{visible}");
    assert!(html.contains("390 bytes for /tmp/f29 are lost."), "{html}");
    check_page(&document);
}

#[test]
fn two_threads_write_the_same_text_as_one() {
    let (recording, findings) = bytewise();
    let mut trace = of(&recording, &findings, VERDICT);
    let few = trace.streams.clone();
    for many in [499, 500, 501] {
        trace.streams = few.iter().cycle().take(many).cloned().collect();
        let text = crate::json::pretty(&TraceDocument::new(&trace)).unwrap();
        let streams = streams_text(&trace.streams).unwrap();
        assert_eq!(streams.len(), 1 + usize::from(many >= 500));
        assert_eq!(document_text(&trace, streams).unwrap().concat(), text, "{many}");
    }
}

#[test]
fn sizes_are_keyed_by_the_smallest_of_their_slot() {
    let (recording, findings) = bytewise();
    let value = serde_json::to_value(TraceDocument::new(&of(&recording, &findings, VERDICT))).unwrap();
    let output = &value["streams"][1];
    assert_eq!(output["sizes"], serde_json::json!({"1": 4_999_998, "4096": 2}));
    assert_eq!(
        (&output["mode"], &output["direction"], &output["fd"]),
        (&"none".into(), &"out".into(), &1.into())
    );
    assert_eq!(value["exit"], serde_json::json!({"code": 0}));
    assert_eq!(value["findings"][0]["gain"]["calls"], 4_999_923);
}

#[test]
fn an_invalid_document_fails_the_schema() {
    let clean = clean();
    let mut value = serde_json::to_value(TraceDocument::new(&of(&clean, &[], ""))).unwrap();
    value["more"] = 1.into();
    assert!(std::panic::catch_unwind(|| check(&value)).is_err());
}

#[test]
fn the_timeline_has_slices_instants_and_counters() {
    let (recording, ..) = pipeline();
    let value = timeline(&recording);
    let events = value["traceEvents"].as_array().unwrap();
    let with = |ph: &str| events.iter().filter(|event| event["ph"] == ph).collect::<Vec<_>>();
    assert!(with("M").iter().any(|event| event["args"]["name"] == "python3"));
    let instants: Vec<_> =
        with("i").iter().map(|event| event["name"].as_str().unwrap().to_string()).collect();
    for name in ["fork 4712", "exec /usr/bin/python3", "buffers", "signal 9", "ended by signal 9"] {
        assert!(instants.iter().any(|instant| instant == name), "{name}: {instants:?}");
    }
    assert_eq!(with("C")[0]["args"]["bytes"], 41);
    assert_eq!(with("b").len(), with("e").len());
    let (recording, _) = bytewise();
    let value = timeline(&recording);
    let call = value["traceEvents"].as_array().unwrap().iter().find(|event| event["cat"] == "call").unwrap();
    assert_eq!(
        (&call["name"], &call["args"]["asked"], &call["ts"]),
        (&"write".into(), &1.into(), &10000.0.into())
    );
}

#[test]
fn a_timeline_has_the_recorded_calls_in_at_most_2000_bins() {
    use weir_model::trace::{Call, Event, EventKind, Op};
    let (mut recording, findings) = bytewise();
    recording.elapsed_s = 10.0;
    let (fd, file) = recording
        .counts
        .iter()
        .find(|counts| counts.direction == weir_model::Direction::Out)
        .map(|counts| (counts.fd, counts.file))
        .unwrap();
    let write = |at_s: f64| Event {
        at_s,
        pid: 4711,
        tid: 4711,
        kind: EventKind::Call(Call { requested_bytes: 3, ..Call::new(Op::Write, fd, Some(file), [0; 6], 3) }),
    };
    recording.events = (0..100_000).map(|number| write(number as f64 / 10_000.0)).collect();
    recording.events.push(Event { kind: EventKind::Gap { until_s: 5.0 }, ..write(4.0) });
    let trace = of(&recording, &findings, VERDICT);
    let timelines = stream_timelines(&recording, &trace.streams);
    let out = timelines.iter().find(|one| !one.bins.is_empty()).expect("the written stream");
    let stream = &trace.streams[out.stream];
    assert_eq!((stream.counts.fd, stream.writes()), (fd, true));
    assert_eq!(out.bins.len(), 2000);
    assert_eq!(
        out.bins.iter().map(|bin| (bin.calls, bin.bytes)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (100_000, 300_000)
    );
    let in_gap = |bin: &&weir_model::trace::TimelineBin| bin.gap;
    assert_eq!(out.bins.iter().filter(in_gap).count(), 200, "from 4 s to 5 s");
    let document = TraceDocument::new(&trace);
    check(&serde_json::to_value(&document).unwrap());
    check_page(&document);
}
