//! Tests of what the screen says about calls that were not seen, and of sizes that are only known roughly.

use weir_model::trace::{Histogram, StreamCounts, StreamTable, trace_streams};

use super::super::table;
use super::{of, screen_at};
use crate::block::Block;
use crate::trace::fixture::pipeline;

#[test]
fn a_loss_is_told_once() {
    let (mut recording, findings, _) = pipeline();
    recording.blind.push("3 events dropped: ring buffer full; the counters are exact".into());
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
