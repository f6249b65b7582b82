use super::*;
use crate::bench::fixture;

fn source(text: &str) -> PageSource<'_> {
    PageSource { name: "a \"b\" <c>.json", text }
}

fn page_of(text: &str) -> String {
    page("t", &Body::default(), &[source(text)])
}

/// Returns the page of a document.
fn shown(document: Document) -> String {
    let (title, body) = body(&[document]);
    page(&title, &body, &[])
}

#[test]
fn results_are_given_back_byte_for_byte() {
    let tricky =
        "{\"a\":\"</pre></script><div class=\\\"weir-data\\\" \r\n\t&amp;&#60;\u{7f}é\u{2028}\u{feff}\"}";
    let large = tricky.repeat(3000);
    for text in ["", "\n{}", tricky, &large] {
        let page = page_of(text);
        assert_eq!(extract(&page, 0), Ok(("a \"b\" <c>.json".into(), text.into())));
    }
    assert!(page_of(&large).len() < large.len() / 4, "a large result is compressed");
    let two = page("t", &Body::default(), &[source("{}"), source("[1]")]);
    assert_eq!(extract(&two, 1).map(|(_, text)| text), Ok("[1]".into()));
    assert_eq!(extract(&two, 2), Err(ExtractError::NoSuchResult { results: 2 }));
}

#[test]
fn a_changed_page_gives_nothing_back() {
    let page = page_of("{\"rows\":[1]}");
    assert_eq!(extract(&page.replace("[1]", "[2]"), 0), Err(ExtractError::Damaged));
    assert_eq!(extract(&page[..page.find("[1]").unwrap()], 0), Err(ExtractError::Damaged));
    assert_eq!(extract(&page[..page.find("<style>").unwrap()], 0), Err(ExtractError::Damaged));
    assert_eq!(extract("<html></html>", 0), Err(ExtractError::NoPage));
}

#[test]
fn the_policy_forbids_all_loads_and_names_the_style_and_the_script() {
    let page = page_of("{}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    for unwanted in ["unsafe-inline", " style=\"", " onclick", "http://", "https://", "<link", "<img", "url("]
    {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(unwanted), "{unwanted}");
    }
    // The style and the script must not end their own elements.
    assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
}

#[test]
fn documents_that_no_page_can_show_are_refused_with_the_reason() {
    let summary = |figures: &str| {
        format!(
            "{{\"schema\":\"weir-bench/1\",\"rows\":[{{\"elapsed_s\":{{\"n\":3,{figures},\"sd\":0.1}}}}]}}"
        )
    };
    let negative =
        summary("\"min\":-3,\"q1\":-2,\"median\":-2,\"mean\":-2,\"q3\":-1,\"max\":-1,\"ci95\":[-3,-1]");
    let outside = summary("\"min\":1,\"q1\":2,\"median\":9,\"mean\":2,\"q3\":2,\"max\":3,\"ci95\":[1,3]");
    let long = format!("{{\"schema\":\"weir-bench/1\",\"x\":[\"{}\"]}}", "x".repeat(10_000_000));
    for (text, expected) in [
        ("", "cut off"),
        ("{\"schema\":\"weir-bench/1\",\"rows\":[", "cut off"),
        ("hello", "not JSON"),
        ("{\"schema\":\"weir-bench/1\",\"took_s\":NaN}", "not JSON"),
        ("{\"context\":{},\"benchmarks\":[]}", "not a result of weir: it has no 'schema'"),
        ("[1]", "no 'schema'"),
        ("{\"schema\":\"weir-bench/2\"}", "does not know (known: weir-bench/1"),
        ("{\"schema\":\"weir-top/1\"}", "its schema is 'weir-top/1'"),
        ("{\"schema\":\"weir-lab/2\",\"experiments\":[]}", "does not know (known: weir-bench/1"),
        ("{\"schema\":\"weir-lab/1\"}", "missing field"),
        ("{\"schema\":\"weir-run/1\",\"command\":1}", "the fields are not those of its schema"),
        ("{\"schema\":\"weir-copy/1\",\"elapsed_s\":1e999}", "not JSON"),
        ("{\"schema\":\"weir-log-check/1\",\"records\":-1}", "the fields are not those of its schema"),
        ("{\"schema\":\"weir-trace/1\"}", "missing field"),
        (&negative, "'elapsed_s' has figures that no measurement gives"),
        (&outside, "'elapsed_s' has figures that no measurement gives"),
        (&long, "'x' has a text of 10000000 bytes"),
    ] {
        let error = parse(text).unwrap_err().0;
        assert!(error.contains(expected), "{error}");
        assert!(error.len() < 400, "{error}");
    }
}

#[test]
fn a_bench_page_has_the_conclusions_and_a_mark_for_each_row() {
    let document = fixture::everything();
    let page = shown(Document::Bench(Box::new(document.clone())));
    for answer in &document.answers {
        assert!(page.contains(&escape(&answer.answer)), "{}", answer.answer);
    }
    for warning in &document.warnings {
        assert!(page.contains(&escape(warning)), "{warning}");
    }
    let marks = page.matches("class=\"mark\"").count();
    assert!(marks >= document.rows.iter().filter(|row| row.elapsed_s.is_some()).count(), "{marks}");
    assert!(!page.contains("NaN"), "a coordinate that is no number");
    let (_, body) = body(&[Document::Bench(Box::new(document))]);
    let mut ids: Vec<&str> = body.pictures().iter().map(|picture| picture.id.as_str()).collect();
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all, "identifiers are unique");
}

#[test]
fn pages_of_bench_and_compare_name_command_seed_and_machine() {
    let run = fixture::textbook();
    let alone = shown(Document::Bench(Box::new(run.clone())));
    assert!(alone.contains("Seed") && alone.contains("20260"), "{alone}");
    let other = weir_model::bench::BenchDocument { seed: Some(77_123), ..run.clone() };
    let compared = weir_model::bench::compare::compare(["a.json", "b.json"], &run, &other);
    let page = shown(Document::Compare(Box::new(compared.clone())));
    for text in ["Run A: a.json", "Run B: b.json", "weir bench copy", "20260", "77123", "Example CPU 3000"] {
        assert!(page.contains(text), "{text}");
    }
    let runs = [("a.json".to_string(), run.clone()), ("b.json".into(), run), ("c.json".into(), other)];
    let trend = shown(Document::Trend(Box::new(weir_model::bench::trend::trend(runs.into()))));
    assert!(trend.contains("The last run") && trend.contains("77123"), "{trend}");
    let older = weir_model::bench::compare::BenchComparison { runs: Vec::new(), ..compared };
    assert!(shown(Document::Compare(Box::new(older))).contains("a.json"));
}

#[test]
fn only_the_commands_of_a_verdict_are_in_boxes() {
    let mut body = Body::default();
    let lines = ["weir rescued 13 B of k.", "weir run -- k", "cd /tmp && weir run -- k"];
    body.blocks(&[crate::Block::Verdict(lines.map(String::from).into())]);
    assert!(body.html.contains("<p>weir rescued 13 B of k.</p>"), "{}", body.html);
    for command in &lines[1..] {
        let boxed = format!("<pre class=\"command\"><code>{}</code></pre>", escape(command));
        assert!(body.html.contains(&boxed), "{}", body.html);
    }
}

#[test]
fn the_textbook_has_every_picture() {
    let (_, body) = body(&[Document::Bench(Box::new(fixture::textbook()))]);
    let ids: Vec<&str> = body.pictures().iter().map(|picture| picture.id.as_str()).collect();
    for id in ["sweep", "per-call", "parts", "ratios", "samples", "model", "drift"] {
        assert!(ids.contains(&id), "{id} is not in {ids:?}");
    }
    let sweep = &body.pictures()[0];
    assert!(sweep.wide.contains("page, block") && sweep.wide.contains("within 5 % of the best"));
    assert!(sweep.wide.matches("class=\"band\"").count() >= 2 && sweep.narrow.contains("class=\"band\""));
}

#[test]
fn the_verdict_on_a_published_table_is_on_the_page_once() {
    let document = fixture::textbook();
    let page = shown(Document::Bench(Box::new(document.clone())));
    for sentence in &document.published[0].verdict {
        assert_eq!(page.matches(&escape(sentence)).count(), 1, "{sentence}");
    }
}

#[test]
fn methods_that_take_turns_in_a_published_table_are_two_series_each() {
    let mut document = fixture::textbook();
    let rows = document.published[0].rows.iter_mut().enumerate();
    rows.for_each(|(number, row)| row.method = ["syscall", "stdio"][number % 2].into());
    let (_, body) = body(&[Document::Bench(Box::new(document))]);
    let picture = body.pictures().iter().find(|picture| picture.id.ends_with("published-tlpi-13-1"));
    let legend = &picture.expect("a picture").legend;
    let names: Vec<&str> = legend.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        names,
        ["syscall, this machine", "syscall, published", "stdio, this machine", "stdio, published"]
    );
}

#[test]
fn a_hundred_rows_fit_in_a_megabyte() {
    let mut document = fixture::textbook();
    let rows = document.rows.clone();
    document.rows = rows.iter().cycle().take(100).cloned().collect();
    let text = crate::json::pretty(&document).unwrap();
    let (title, body) = body(&[parse(&text).unwrap()]);
    let page = page(&title, &body, &[source(&text)]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_trace_of_100000_bins_fits_in_five_megabytes() {
    use weir_model::trace::{
        StreamTable, StreamTimeline, TimelineBin, TraceDocument, TraceResult, trace_streams,
    };
    let (recording, findings) = crate::trace::fixture::bytewise();
    let table = StreamTable::of(&recording);
    let result = TraceResult {
        recording: &recording,
        findings: &findings,
        verdict: "x".into(),
        pipelines: &[],
        streams: trace_streams(&table),
    };
    let mut value = serde_json::to_value(TraceDocument::new(&result)).unwrap();
    let first = value["streams"][0].clone();
    value["streams"] = (0..50).map(|_| first.clone()).collect();
    let bins = |stream: u64| {
        (0..2000).map(move |bin| TimelineBin {
            bin,
            calls: 1 + (bin as u64 * 7919 + stream) % 97,
            bytes: (bin as u64 * 104_729 + stream) % 65_536,
            pending: Some((bin as u64 * 31 + stream) % 4096),
            gap: bin % 9 == 0,
        })
    };
    let timeline = |stream: usize| StreamTimeline {
        stream,
        first_s: 0.0,
        last_s: 3.0,
        bin_s: 0.0015,
        bins: bins(stream as u64).collect(),
    };
    value["timeline"] = serde_json::to_value((0..50).map(timeline).collect::<Vec<_>>()).unwrap();
    let text = crate::json::pretty(&value).unwrap();
    let (title, body) = body(&[parse(&text).unwrap()]);
    let page = page(&title, &body, &[source(&text)]);
    assert!(text.len() > 5_000_000 && page.len() < 5_000_000, "{} bytes of {}", page.len(), text.len());
}

#[test]
fn texts_of_other_programs_are_shown_and_not_obeyed() {
    let mut document = fixture::textbook();
    document.machine.cpu = "<script>alert(1)</script>\u{202e}".into();
    document.warnings = vec!["<img src=x onerror=alert(1)>".into()];
    let page = shown(Document::Bench(Box::new(document)));
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert!(page.contains("&lt;img src=x") && !page.contains('\u{202e}'));
}

/// Returns a lab document of one experiment with a run of three frames.
fn lab() -> weir_model::lab::LabDocument {
    use weir_model::lab::{FrameBox, FrameLine, LabDocument, LabFrame, LabOutcome, LabRow};
    use weir_model::lab::{ProgramVersion, SteppedRun};
    let outcome = |version, seen: &str, as_expected| LabOutcome {
        version,
        what: "in a file".into(),
        expected: "3 lines".into(),
        stated: seen.into(),
        seen: seen.into(),
        agrees: true,
        as_expected,
    };
    let line = FrameLine { text: "buffered <in> 812\\n".into(), new: true };
    let a_box = |header: &str| FrameBox {
        header: header.into(),
        title: "stdout → file: 17 of 4096 B".into(),
        lines: vec![line.clone()],
        changed: true,
    };
    let frame = |number: u32| LabFrame {
        text: format!("call {number}"),
        note: "the bytes are in the buffer".into(),
        moved: "812: 17 bytes to file".into(),
        processes: vec![a_box("812 broken"), a_box("813 broken, child of 812")],
        files: vec![a_box("file: 17 B, 1 line")],
    };
    let mut document = LabDocument::new(true);
    document.experiments.push(LabRow {
        name: "doubled-at-fork".into(),
        theme: "B".into(),
        about: "printf, fork, printf".into(),
        expected: "3 lines".into(),
        agrees: Some(true),
        outcomes: vec![
            outcome(ProgramVersion::Broken, "4 lines", false),
            outcome(ProgramVersion::Fixed, "3 lines", true),
        ],
        steps: vec![SteppedRun {
            version: ProgramVersion::Broken,
            steps: 5,
            frames: (1..4).map(frame).collect(),
        }],
        ..LabRow::default()
    });
    document
}

#[test]
fn a_lab_page_has_what_is_expected_seen_and_fixed_and_its_frames() {
    let text = crate::json::pretty(&lab()).unwrap();
    let document = parse(&text).unwrap();
    assert!(document == Document::Lab(Box::new(lab())), "the JSON has the whole document");
    let (_, body) = body(std::slice::from_ref(&document));
    assert_eq!(body.pictures().len(), 3, "one for each frame");
    let frame = &body.pictures()[1];
    assert!(frame.title == "2 of 5: call 2" && frame.wide.contains("812: 17 bytes to file"), "{frame:?}");
    assert!(frame.wide.contains("class=\"code new\"") && frame.wide.contains("buffered &lt;in&gt; 812"));
    let page = shown(document);
    assert!(page.contains("<strong>4 lines ✗</strong>") && page.contains("3 lines ✓"), "{page}");
    assert!(page.contains("the first 3 of 5 steps"), "{page}");

    let mut several = lab();
    several.experiments.push(weir_model::lab::LabRow {
        name: "gpio-read".into(),
        reason: Some("no /dev/gpiochip0".into()),
        ..lab().experiments.remove(0)
    });
    several.experiments[1].agrees = None;
    let page = shown(Document::Lab(Box::new(several)));
    let lead = "1 experiment agrees with what it states; 1 could not run here (";
    assert!(page.contains(lead), "{page}");
    assert!(page.contains("href=\"#lab-gpio-read\"") && page.contains("<h2 id=\"lab-gpio-read\">"));
}

#[test]
fn cpu_time_shorter_than_a_tick_is_not_divided() {
    let copy = |user_s: &str| {
        let text = r#"{"schema":"weir-copy/1","elapsed_s":1.5,"user_s":USER,"system_s":0,"sync_s":0.5,"files":2,
        "directories":1,"symbolic_links":0,"hard_links":0,"special_files":0,"skipped":0,"copied_bytes":1048576,
        "shared_bytes":0,"hole_bytes":4096,"methods":{"copy_file_range":{"files":2,"bytes":1048576}},
        "calls":{"copy_file_range":3},"dropped_attributes":0,"verified_bytes":0,"sync":"full","synced_files":2,
        "cached_bytes":null,"errors":0,"power_cut":"a power cut now costs nothing"}"#;
        shown(parse(&text.replace("USER", user_s)).unwrap())
    };
    assert!(copy("0.5").contains("user: 500 ms") && !copy("0.5").contains("cannot be divided"));
    let short = copy("0.004");
    assert!(short.contains("CPU time: 4.00 ms") && !short.contains("user: 4.00 ms"));
    assert!(short.contains("cannot be divided into user and system (shorter than 10 ms)"));
}

#[test]
fn pages_of_run_copy_and_log_check_say_what_their_documents_say() {
    let run = r#"{"schema":"weir-run/1","command":["./p","<x>"],"program":{"path":"/p","runtime":"glibc",
        "script":false,"linked_statically":false,"musl":false,"foreign":false,"privileged":false},
        "plan":[{"wish":"--rescue","effect":"whole","technique":"outside","text":"pending bytes are written"},
                {"wish":"--fix-fork","effect":"not","technique":"nothing","text":"it is static"}],
        "ended":{"exit":{"signal":9},"emitted_bytes":10,"rescued":[{"pid":7,"comm":"p","fd":1,"path":"out",
        "bytes":40,"exit":{"signal":9},"saved":null}],"unable":["one limit"]}}"#;
    let copy = r#"{"schema":"weir-copy/1","elapsed_s":1.5,"user_s":0.5,"system_s":0.25,"sync_s":0.5,"files":2,
        "directories":1,"symbolic_links":0,"hard_links":0,"special_files":0,"skipped":0,"copied_bytes":1048576,
        "shared_bytes":0,"hole_bytes":4096,"methods":{"copy_file_range":{"files":2,"bytes":1048576}},
        "calls":{"copy_file_range":3},"dropped_attributes":0,"verified_bytes":0,"sync":"full","synced_files":2,
        "cached_bytes":null,"errors":0,"power_cut":"a power cut now costs nothing"}"#;
    let check = r#"{"schema":"weir-log-check/1","log":"a.log","bytes":100,"records":10,"whole":9,"torn":1,
        "interleaved":0,"unfinished_bytes":0,"nul_bytes":0,"writers":[{"name":"web1","records":9,"runs":2,
        "missing":3,"repeated":0}],"bad":[{"record":4,"offset":40,"bytes":9,"kind":"torn","excerpt":"ab"}]}"#;
    for (text, pictures, sentences) in [
        (
            run,
            vec!["effects", "bytes"],
            vec!["Signal 9 ended the command.", "weir rescued 40 B of p (7)", "one limit"],
        ),
        (
            copy,
            vec!["contents", "methods", "calls", "time"],
            vec!["2 files, 1 MiB in 1.50 s", "A power cut now costs nothing."],
        ),
        (check, vec!["kinds", "damage", "by-writer"], vec!["9 of 10 records are whole; 1 torn, 3 missing."]),
    ] {
        let document = parse(text).unwrap();
        let (_, body) = body(std::slice::from_ref(&document));
        let ids: Vec<&str> = body.pictures().iter().map(|picture| picture.id.as_str()).collect();
        assert_eq!(ids, pictures);
        let page = shown(document);
        for sentence in sentences {
            assert!(page.contains(sentence), "{sentence} is not in {page}");
        }
        assert!(!page.contains("NaN"), "a coordinate that is no number");
    }
}
