//! Tests of CSV, Markdown and comparison.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_model::Summary;
use weir_model::bench::BenchDocument;
use weir_model::bench::compare::{compare, label};
use weir_model::bench::trend::trend;

use super::at;
use crate::bench::fixture::{everything, textbook};
use crate::bench::{csv, csv_compare, markdown, markdown_compare, screen, screen_compare};
use crate::style::Style;
use crate::text::width;

#[test]
fn a_hostile_name_stays_a_name() {
    let mut document = textbook();
    let evil = "/tmp/\u{1b}]0;x\u{7}\u{202e}|`<b>\n";
    document.groups[0].key.dir = evil.into();
    document.rows.iter_mut().for_each(|row| row.group.dir = evil.into());
    document.answers[0].answer = "\u{1b}[31m".into();
    let text = screen(&document, &at(80));
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    let markdown = markdown(&document);
    assert!(
        !markdown.contains("<b>") && markdown.lines().next().unwrap().contains("\\|\\`&lt;b&gt;"),
        "{markdown}"
    );
}

#[test]
fn csv_comes_back_with_every_row() {
    let document = everything();
    let text = csv(&document);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let records: Vec<BTreeMap<String, String>> = reader
        .records()
        .map(|record| head.iter().map(String::from).zip(record.unwrap().iter().map(String::from)).collect())
        .collect();
    assert_eq!(records.len(), document.rows.len());
    for (record, row) in records.iter().zip(&document.rows) {
        assert_eq!(record["record_bytes"], row.record_bytes.to_string());
        assert_eq!(record["elapsed_s"].parse().ok(), row.elapsed_s.map(|summary| summary.median));
        assert_eq!(record["elapsed_ci95_high_s"].parse().ok(), row.elapsed_s.map(|summary| summary.ci95[1]));
        assert_eq!(record["cannot"], row.cannot.clone().unwrap_or_default());
    }
    assert_eq!(records[0]["calls_by_name"], "read=100000000 write=100000000");
    assert_eq!((records[0]["calls"].as_str(), records[0]["buffer_bytes"].as_str()), ("200000000", ""));
    let one = csv(&textbook());
    assert_eq!(one.lines().next(), text.lines().next());
}

#[test]
fn a_row_that_only_the_second_run_could_measure_is_its_own() {
    let b = textbook();
    let mut a = b.clone();
    let row = &mut a.rows[0];
    (row.cannot, row.elapsed_s) = (Some("no room".into()), None);
    row.samples_s.clear();
    let comparison = compare(["a.json", "b.json"], &a, &b);
    assert_eq!(comparison.only_b, [label(&b.rows[0])]);
    assert_eq!((comparison.only_a.len(), comparison.rows.len()), (0, b.rows.len() - 1));
}

#[test]
fn a_row_that_the_last_run_could_not_measure_has_no_trend() {
    let whole = textbook();
    let mut last = whole.clone();
    last.started = "2999-01-01T00:00:00Z".into();
    let row = &mut last.rows[0];
    (row.cannot, row.elapsed_s) = (Some("no room".into()), None);
    row.samples_s.clear();
    let missing = label(row);
    let runs = [("a.json", whole.clone()), ("b.json", whole.clone()), ("c.json", last)];
    let trend = trend(runs.map(|(name, run)| (name.to_string(), run)).into());
    assert_eq!(trend.rows.len(), whole.rows.len() - 1);
    assert!(trend.rows.iter().all(|row| row.label != missing && row.points.len() == 3));
}

#[test]
fn markdown_tables_are_whole() {
    let text = markdown(&everything());
    let mut columns = 0;
    let mut rows = 0;
    for line in text.lines() {
        let bars = line.replace("\\|", "").matches('|').count();
        match line.starts_with('|') {
            true if columns == 0 => columns = bars,
            true => assert_eq!(bars, columns, "{line}"),
            false => columns = 0,
        }
        rows += usize::from(line.starts_with("| syscall |") || line.starts_with("| stdio"));
    }
    let document = everything();
    let plain = document.rows.iter().filter(|row| row.elapsed_s.is_some());
    assert_eq!(rows, plain.filter(|row| row.method == "syscall" || row.method.starts_with("stdio")).count());
    assert!(
        text.contains(
            "| syscall | 1 B | 60.8 \\~ | 0.7 | 60.8 | 9.1 | 51.7 | 2097152 | 200 M | 60.6 | 2668× |"
        )
    );
    assert_eq!(text.matches("```").count(), 6);
    assert!(text.contains("- **Where do gains stop?** At 16 KiB") && text.contains("> [!WARNING]"));
}

fn slower(mut document: BenchDocument) -> BenchDocument {
    for row in document.rows.iter_mut().filter(|row| row.record_bytes == 4096) {
        row.samples_s.iter_mut().for_each(|seconds| *seconds *= 1.5);
        row.elapsed_s = Summary::of(&row.samples_s);
    }
    document.rows.retain(|row| row.method != "stdio-char");
    document
}

#[test]
fn two_runs_side_by_side() {
    let comparison = compare(["a.json", "b.json"], &textbook(), &slower(textbook()));
    let text = screen_compare(&comparison, &at(80));
    assert!(text.contains("B against A, 28 rows: 0 faster, 2 slower, 26 tied."), "{text}");
    let row = text.lines().find(|line| line.contains("syscall") && line.contains("4 KiB")).unwrap();
    assert!(row.contains("1.50×") && row.ends_with("slower"), "{row}");
    assert!(text.contains("only in A") && text.contains("stdio-char 1 B"), "{text}");
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    let lines = csv_compare(&comparison);
    assert_eq!(lines.lines().count(), 29);
    assert!(
        lines.lines().any(|line| line.starts_with("copy,stdio,4096,") && line.ends_with(",slower")),
        "{lines}"
    );
    assert!(markdown_compare(&comparison).contains("| 1.50× |"));
}

#[test]
fn one_round_gives_no_interval_and_no_verdict() {
    let mut after = slower(textbook());
    after.rows.iter_mut().for_each(|row| row.samples_s.truncate(1));
    let comparison = compare(["a.json", "b.json"], &textbook(), &after);
    let text = screen_compare(&comparison, &at(100));
    assert!(text.contains("0 faster, 0 slower, 0 tied, 28 not judged"), "{text}");
    let row = text.lines().find(|line| line.contains("syscall") && line.contains("4 KiB")).unwrap();
    assert!(row.contains("one round: no interval") && row.ends_with("not judged"), "{row}");
    assert!(text.contains("--rounds 5"), "{text}");
    let lines = csv_compare(&comparison);
    assert!(lines.lines().skip(1).all(|line| line.ends_with(",,,1,not judged")), "{lines}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_figures_it_is_drawn(
        figures in prop::collection::vec((any::<f64>(), any::<f64>(), any::<u64>()), 29),
        word in ".{0,40}",
        width in 20usize..150,
        flags in any::<[bool; 2]>(),
    ) {
        let mut document = textbook();
        for (row, (a, b, bytes)) in document.rows.iter_mut().zip(figures) {
            let summary = Summary { n: 3, min: a, q1: a, median: a, mean: b, q3: b, max: b, sd: b, ci95: [a, b] };
            (row.elapsed_s, row.cpu_s, row.user_s) = (Some(summary), Some(summary), None);
            (row.record_bytes, row.dirty_bytes, row.calls_per_mib, row.predicted_s) = (bytes, Some(bytes), Some(b), Some(a));
            row.remark = Some(word.clone());
        }
        document.rows[3].method = word;
        let style = Style { colour: flags[0], unicode: flags[1], width, ..Style::default() };
        let text = screen(&document, &style);
        let escape = char::from(27);
        let steers = |c: char| c.is_control() && c != '\n' && !(flags[0] && c == escape);
        prop_assert!(!text.contains(steers), "{}", text);
        prop_assert!(flags[1] || text.is_ascii());
        markdown(&document);
        prop_assert_eq!(::csv::Reader::from_reader(csv(&document).as_bytes()).records().count(), 29);
    }
}
