//! Tests of what the screen says about calls that were not seen, about sizes that are only known roughly, and about losses in
//! many files.

use weir_model::trace::{Histogram, StreamCounts, StreamTable, trace_streams};
use weir_model::{Finding, FindingId, Severity};

use super::super::table;
use super::{Style, clean, of, screen, screen_at};
use crate::block::Block;
use crate::trace::fixture::pipeline;

/// Returns findings that differ in the file.
pub(super) fn equal_losses(number: i32) -> Vec<Finding> {
    let (_, findings, _) = pipeline();
    let finding = |at: i32| Finding {
        id: FindingId::new("lost-at-exit"),
        severity: Severity::High,
        pid: 4711,
        fd: 3 + at,
        path: format!("/tmp/f{at}").into(),
        why: format!("390 bytes for /tmp/f{at} are lost."),
        evidence: [("lost_bytes".to_string(), 390.0)].into(),
        ..findings[0].clone()
    };
    (0..number).map(finding).collect()
}

#[test]
fn equal_losses_in_many_files_are_one_finding() {
    let recording = clean();
    let findings = equal_losses(30);
    let trace = of(&recording, &findings, "x");
    let text = screen_at(&trace, 80);
    assert_eq!(text.matches("HIGH").count(), 1, "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("also 29 more files, 11.4 KiB in all: /tmp/f1, /tmp/f2, /tmp/f3 …"), "{text}");
    let all = screen(&trace, true, &Style { rows: 200, ..Style::default() });
    assert!(all.contains("/tmp/f29") && !all.contains('…'), "{all}");
    let two = screen_at(&of(&recording, &findings[..2], "x"), 120);
    assert!(two.contains("also  1 more file, 780 B in all: /tmp/f1\n"), "{two}");
}

#[test]
fn a_loss_is_told_once() {
    let (mut recording, findings, _) = pipeline();
    let dropped =
        "3 events dropped: ring buffer full; reads and writes are counted exactly, other calls too low";
    recording.blind.push(dropped.into());
    let text = screen_at(&of(&recording, &findings, "x"), 80);
    assert!(text.contains("ring buffer full") && !text.contains("dropped: buffer full"), "{text}");
}

#[test]
fn a_size_that_is_only_a_bound_is_marked() {
    let (mut recording, findings, _) = pipeline();
    let counts = &mut recording.counts[0];
    (counts.sizes, counts.calls) = (Histogram::default(), 101);
    counts.sizes.add(5, 60);
    counts.sizes.add(5000, 41);
    counts.bytes = 60 * 5 + 41 * 5000;
    let text = screen_at(&of(&recording, &findings, "x"), 120);
    assert!(text.contains("≥4 B"), "{text}");
}

#[test]
fn calls_of_no_known_stream_are_not_counted_as_streams() {
    let (mut recording, ..) = pipeline();
    recording.counts.truncate(1);
    recording.counts[0].fd = StreamCounts::UNKNOWN;
    (recording.counts[0].calls, recording.counts[0].bytes) = (2, 9);
    let streams = trace_streams(&StreamTable::of(&recording));
    let blocks = table::rest(&streams.iter().collect::<Vec<_>>(), true);
    let Some(Block::Aside(text)) = blocks.first() else { panic!("no sentence") };
    assert!(text.starts_with("and calls whose stream is not known: 2 calls, 9 B"), "{text}");
}
