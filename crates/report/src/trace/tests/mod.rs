//! Tests of the screen of a recording.

mod certainty;
mod documents;
mod losses;
mod modes;
mod other_calls;

use super::fixture::{VERDICT, bytewise, clean, pipeline};
use weir_model::Finding;
use weir_model::trace::{Recording, StreamCounts, StreamTable, TraceDocument, trace_streams};

use super::*;
use crate::text::width;

fn screen_at(trace: &TraceResult, width: usize) -> String {
    // Tall, so that the verdict is not repeated.
    screen(trace, false, &Style { width, rows: 200, ..Style::default() })
}

fn of<'a>(recording: &'a Recording, findings: &'a [Finding], verdict: &'a str) -> TraceResult<'a> {
    TraceResult::new(recording, findings, verdict, &[])
}

#[test]
fn the_verdict_comes_first_and_the_engine_last() {
    let (recording, findings) = bytewise();
    let text = screen_at(&of(&recording, &findings, VERDICT), 80);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("weir: 4,999,998 of 5,000,000 bytes"), "{text}");
    assert!(lines[1].contains("weir run --coalesce -- ./tr2u a w"), "{text}");
    let last = lines[lines.len() - 2..].join(" ");
    for words in ["engine ebpf", "calls sampled, 40 % of the time", "totals exact", "cost about 7.1 %"] {
        assert!(last.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_report_longer_than_the_terminal_ends_with_the_verdict() {
    let (recording, findings) = bytewise();
    let trace = of(&recording, &findings, VERDICT);
    let at = |rows| screen(&trace, false, &Style { rows, ..Style::default() });
    let whole = at(200);
    assert_eq!(whole.matches("weir: 4,999,998").count(), 1, "{whole}");
    let lines = whole.lines().count();
    assert_eq!(at(lines + 1), whole, "with the prompt it fits");
    let text = at(lines);
    assert!(
        text.starts_with(&whole) && text.trim_end().ends_with("weir run --coalesce -- ./tr2u a w"),
        "{text}"
    );
    let last: Vec<&str> = text.lines().rev().take(24).collect();
    assert!(last.iter().any(|line| line.starts_with("weir: 4,999,998")), "{text}");
}

#[test]
fn totals_are_exact_only_if_no_stream_is_estimated() {
    let (mut recording, findings) = bytewise();
    recording.counts[1].estimated = true;
    let other = weir_model::trace::StreamCounts { fd: 5, file: 2, ..recording.counts[1].clone() };
    recording.counts.push(other);
    let text = screen_at(&of(&recording, &findings, VERDICT), 120);
    assert!(text.contains("sum of each process exact, its streams estimated"), "{text}");
    assert!(!text.contains("totals exact"), "{text}");
}

#[test]
fn the_table_has_calls_bytes_and_typical_size() {
    let (recording, findings) = bytewise();
    for width in [80, 120] {
        let text = screen_at(&of(&recording, &findings, VERDICT), width);
        let row = text.lines().find(|line| line.contains(">") && line.contains("out")).unwrap();
        for cell in ["tr2u 4711", "5,000,000", "4.78 MiB", "1 B", "none"] {
            assert!(row.contains(cell), "{cell} at {width}: {text}");
        }
        assert_eq!(row.contains("/home/user/data/out "), width == 120, "{text}");
    }
}

#[test]
fn important_streams_get_a_histogram() {
    let (recording, findings) = bytewise();
    let text = screen_at(&of(&recording, &findings, VERDICT), 80);
    assert!(text.contains("4 – <8 KiB") && text.contains("1 B     "), "{text}");
}

/// Returns the lines of the histograms.
fn histogram(text: &str) -> Vec<&str> {
    text.lines()
        .skip_while(|line| !line.contains("bytes a call"))
        .take_while(|line| !line.is_empty())
        .collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (recording, findings, pipelines) = pipeline();
    let trace = TraceResult { pipelines: &pipelines, ..of(&recording, &findings, "one\ntwo") };
    for columns in [67, 72, 80, 100, 120] {
        for line in screen_at(&trace, columns).lines() {
            assert!(width(line) <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn the_most_severe_finding_is_first() {
    let (recording, findings, _) = pipeline();
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(
        at("HIGH  lost-at-kill") < at("WARN  stuck-output") && at("stuck-output") < at("info  small-pipe")
    );
    assert!(text.contains("run   weir run --max-delay 100ms -- python3 worker.py"), "{text}");
    assert!(text.contains("code  print(line, flush=True)"), "{text}");
    assert!(text.contains("pending bytes 41 B · since 1.40 s"), "{text}");
}

#[test]
fn levels_are_coloured_on_terminals_only() {
    let (recording, findings, _) = pipeline();
    let trace = of(&recording, &findings, "x");
    let colour = screen(&trace, false, &Style { colour: true, ..Style::default() });
    assert!(
        colour.contains("\u{1b}[31mHIGH\u{1b}[0m") && colour.contains("\u{1b}[33mWARN\u{1b}[0m"),
        "{colour:?}"
    );
    assert!(!colour.contains("\u{1b}[31mlog"), "a path steers the terminal");
    assert!(!screen_at(&trace, 80).contains('\u{1b}'));
}

#[test]
fn small_input_streams_are_summed() {
    let (recording, findings, _) = pipeline();
    let trace = of(&recording, &findings, "x");
    let rows = |text: &str| text.lines().filter(|line| line.contains("module")).count();
    let text = screen_at(&trace, 80);
    assert_eq!(rows(&text), 0, "little input is not worth a line: {text}");
    assert!(text.contains("and 20 more streams: 40 calls"), "{text}");
    let everything = screen(&trace, true, &Style::default());
    assert_eq!(rows(&everything), 20);
    assert!(!everything.contains("--all"));
}

#[test]
fn many_similar_outputs_are_summed() {
    let (mut recording, findings, _) = pipeline();
    recording.counts.iter_mut().skip(3).for_each(|counts| counts.direction = weir_model::Direction::Out);
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    let lines = |text: &str| text.lines().filter(|line| line.contains("module")).count();
    assert_eq!(lines(&text), 0, "{text}");
    assert!(text.contains("and 20 more streams: 40 calls"), "{text}");
    // A few output streams beside many input streams get a row each.
    recording.counts.iter_mut().skip(6).for_each(|counts| counts.direction = weir_model::Direction::In);
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    assert_eq!(lines(&text), 3, "{text}");
    // Expensive streams get a row each, up to twelve in total.
    recording.counts.iter_mut().skip(3).for_each(|counts| counts.calls = 100_000);
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    assert_eq!(lines(&text), 11, "{text}");
}

#[test]
fn the_ends_of_a_pipeline_are_shown_before_other_output() {
    let (mut recording, _, pipelines) = pipeline();
    for counts in recording.counts.iter_mut().skip(2) {
        (counts.direction, counts.fd, counts.bytes) = (weir_model::Direction::Out, 2, 1 << 20);
    }
    (recording.counts[0].bytes, recording.counts[1].bytes) = (6, 6);
    let trace = TraceResult { pipelines: &pipelines, ..of(&recording, &[], "x") };
    let text = screen_at(&trace, 120);
    assert_eq!(text.matches("pipe:[88123]").count(), 2, "{text}");
}

#[test]
fn small_streams_are_summed() {
    let (recording, findings) = bytewise();
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    assert!(
        !text.contains("libc") && text.contains("start-up: 1 stream of the loader: 1 call, 832 B"),
        "{text}"
    );
}

#[test]
fn a_snapshots_mode_precedes_the_deduced_one() {
    let (recording, ..) = pipeline();
    let streams = trace_streams(&StreamTable::of(&recording));
    let python = streams.iter().find(|stream| stream.counts.fd == 1).unwrap().mode.unwrap();
    assert_eq!((python.walked, python.buffer_bytes), (true, Some(8192)));
    let tee = streams.iter().find(|stream| stream.comm == "tee" && stream.writes()).unwrap().mode.unwrap();
    assert_eq!((tee.walked, tee.mode), (false, weir_model::Mode::Full));
}

#[test]
fn a_pipeline_marks_the_hop_that_delays_lines() {
    let (recording, findings, pipelines) = pipeline();
    let text = screen_at(&TraceResult { pipelines: &pipelines, ..of(&recording, &findings, "x") }, 80);
    let row = text.lines().find(|line| line.contains('→')).unwrap();
    let at = |word: &str| row.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(
        at("python3 4712") < at("full 8 KiB") && at("full 8 KiB") < at("41 B") && at("41 B") < at("tee 4713")
    );
    assert!(row.ends_with("delayed here"), "{text}");
}

#[test]
fn gaps_of_the_recording_are_reported() {
    let (recording, findings, _) = pipeline();
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    assert!(text.contains("set-user-ID program") && text.contains("3 events dropped: buffer full"), "{text}");
    assert!(text.contains("killed by signal 9") && text.contains("needs root or CAP_BPF"), "{text}");
}

#[test]
fn uncounted_calls_are_not_said_to_be_counted() {
    let mut recording = clean();
    (recording.exact, recording.overhead.observed_s, recording.overhead.uncounted_calls) = (false, 3.0, 144);
    let text = screen_at(&of(&recording, &[], ""), 80);
    assert!(text.contains("at most 144 calls not counted") && !text.contains("every call"), "{text}");
    assert!(!text.contains("totals exact"), "{text}");
}

#[test]
fn a_run_without_findings_has_one_line() {
    let recording = clean();
    let text = screen_at(&of(&recording, &[], ""), 80);
    let first = text.lines().next().unwrap();
    assert_eq!(first, "weir: no problems found in 2 streams: 160 calls, 20 MiB in 3.00 s.");
    assert!(!text.contains("HIGH") && text.contains("every call counted"));
}

#[test]
fn openings_of_one_path_are_one_stream_and_images_are_not() {
    let mut recording = clean();
    let again = recording.counts[0].clone();
    recording.counts.push(again);
    recording.processes[0]
        .images
        .push(weir_model::trace::Image { comm: "next".into(), ..Default::default() });
    let mut next = recording.counts[0].clone();
    next.image = 1;
    recording.counts.push(next);
    let streams = trace_streams(&StreamTable::of(&recording));
    let calls: Vec<_> = streams.iter().map(|stream| (stream.comm.exact(), stream.counts.calls)).collect();
    assert_eq!(calls, [("cp", 160), ("cp", 80), ("next", 80)]);
}

#[test]
fn streams_of_syncs_or_bytes_only_are_shown() {
    let mut recording = clean();
    recording.prices.sync_ns = 1e7;
    (recording.counts[1].calls, recording.counts[1].bytes, recording.counts[1].syncs) = (0, 0, 60);
    recording.counts[0].calls = 0;
    recording.counts.iter_mut().for_each(|counts| counts.sizes = Default::default());
    let text = screen_at(&of(&recording, &[], ""), 80);
    let row = |path: &str| {
        let line = text.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path}: {text}"));
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("/tmp/b")[5..], ["file", "0", "0", "B", "–", "–", "20"], "{text}");
    assert!(text.contains("including 60 syncs that waited for the device"), "{text}");
    assert_eq!(row("/tmp/a")[5..9], ["file", "–", "10", "MiB"], "how many calls is not known: {text}");
    assert!(text.contains("no problems found in 2 streams"), "{text}");
}

#[test]
fn several_paths_of_a_file_are_one_stream() {
    let mut recording = clean();
    for path in ["/tmp/link", "/tmp/sub/../b"] {
        let id = recording.files.len() as u32;
        let other = super::fixture::file(id, path, weir_model::StreamKind::File);
        recording.files.push(weir_model::trace::OpenFile { ino: 1, same_as: Some(1), ..other });
        let again = StreamCounts { file: id, calls: 5, ..recording.counts[1].clone() };
        recording.counts.push(again);
    }
    let reader =
        StreamCounts { fd: 7, file: 2, direction: weir_model::Direction::In, ..recording.counts[0].clone() };
    recording.counts.push(reader);
    let streams = trace_streams(&StreamTable::of(&recording));
    let listed: Vec<_> =
        streams.iter().map(|one| (one.path.exact(), one.counts.calls, one.openings.len())).collect();
    assert_eq!(
        listed,
        [("/tmp/a", 80, 1), ("/tmp/b", 90, 3), ("/tmp/link", 80, 1)],
        "each with its own path"
    );
    assert_eq!(streams[1].also, ["/tmp/link", "/tmp/sub/../b"]);
    let text = screen_at(&of(&recording, &[], ""), 80);
    assert_eq!(text.matches("one file: /tmp/b = /tmp/link = /tmp/sub/../b").count(), 1, "{text}");
    // A finding has the path of the opening that it is about.
    let finding = Finding { path: "/tmp/link".into(), fd: 4, ..bytewise().1.remove(0) };
    assert!(listed_stream::ListedStream::from(&streams[1]).is_found(&[finding]));
}

#[test]
fn files_without_a_row_are_summed_by_directory() {
    let (mut recording, findings, _) = pipeline();
    for number in 0..700 {
        let id = recording.files.len() as u32;
        let path = format!("/home/u/src/part{}/file{number}.c", number % 9);
        recording.files.push(super::fixture::file(id, &path, weir_model::StreamKind::File));
        recording.counts.push(super::fixture::counts(4713, 5, id, weir_model::Direction::In, 2, 100));
    }
    let trace = of(&recording, &findings, "x");
    for width in [80, 120] {
        let text = screen_at(&trace, width);
        let row = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name));
            let words = line.unwrap_or_else(|| panic!("{name}: {text}")).split_whitespace();
            words.map(str::to_string).collect::<Vec<_>>()
        };
        assert!(row("the 720 other streams").len() > 4, "{text}");
        let found = row("/usr/lib/python3.11");
        assert!(found.starts_with(&["/usr/lib/python3.11".into(), "20".into(), "20".into()]), "{text}");
        let all = row("all of these");
        assert_eq!(all[3], "720", "{text}");
        assert!(all.contains(&"1,440".to_string()), "{text}");
        let parts: u64 = ["/home/u/src/", "/usr/lib/python3.11"]
            .iter()
            .flat_map(|start| text.lines().filter(move |line| line.trim_start().starts_with(start)))
            .map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(parts, 720, "{text}");
    }
    let document = TraceDocument::new(&trace);
    assert_eq!(document.streams.len(), 723, "each has its row for programs");
}

#[test]
fn stops_are_part_of_the_cost_of_tracing() {
    let (mut recording, findings) = bytewise();
    let cost = |recording: &Recording| {
        let text = crate::markdown::text(&blocks(&of(recording, &findings, VERDICT), false));
        let (_, after) = text.split_once("· cost ").expect("the cost");
        after.lines().next().unwrap_or_default().split(" · ").next().unwrap_or_default().to_owned()
    };
    recording.elapsed_s = 5.0;
    (recording.overhead.cost_s, recording.overhead.stopped_s) = (0.05, 0.0);
    assert_eq!(cost(&recording), "about 1.0 %");
    recording.overhead.stopped_s = 2.0;
    assert_eq!(cost(&recording), "at least 67 %");
    // More than the run without it; two processes can be stopped for longer than the run.
    recording.overhead.stopped_s = 3.0;
    assert_eq!(cost(&recording), "most of the time of the run");
}

#[test]
fn streams_cost_no_more_than_the_processor_time_of_their_process() {
    let (mut recording, _) = bytewise();
    let cost = |recording: &Recording| {
        trace_streams(&StreamTable::of(recording)).iter().map(|stream| stream.cost_s).sum::<f64>()
    };
    assert!(cost(&recording) > 6.0, "by the default prices");
    recording.overhead.cost_s = 0.0;
    (recording.processes[0].user_s, recording.processes[0].system_s) = (0.3, 2.5);
    assert!((cost(&recording) - 2.5).abs() < 1e-9, "the kernel's part of it");
    recording.counts[1].syncs = 1000;
    recording.processes[0].ended_s = Some(recording.processes[0].started_s + 4.0);
    assert!((cost(&recording) - 3.1).abs() < 1e-9, "syncs wait, and take no processor");
    recording.processes[0].ended_s = Some(recording.processes[0].started_s + 3.0);
    assert!((cost(&recording) - 2.7).abs() < 1e-9, "no longer than the process was without it");
}

#[test]
fn calls_dearer_than_their_price_cost_the_kernels_time() {
    let (mut recording, _) = bytewise();
    let cost = |recording: &Recording| {
        trace_streams(&StreamTable::of(recording)).iter().map(|stream| stream.cost_s).sum::<f64>()
    };
    let priced = cost(&recording);
    recording.overhead.cost_s = 0.0;
    (recording.processes[0].user_s, recording.processes[0].system_s) = (1.0, priced * 1.2);
    assert!((cost(&recording) - priced * 1.2).abs() < 1e-6, "as the findings have it");
}

#[test]
fn markdown_keeps_commands_and_code() {
    let (recording, findings) = bytewise();
    let text = crate::markdown::text(&blocks(&of(&recording, &findings, VERDICT), false));
    assert!(text.contains("  - run: `weir run --coalesce -- ./tr2u a w`"), "{text}");
}
