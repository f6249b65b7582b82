//! Tests that the load by other programs does not change a severity.

use weir_model::Severity::{self, *};

use crate::testing::*;

/// Returns the severities of tiny writes and of reads after seeks for a process that waited for a processor for a time.
fn severities_when_queued(queued_s: f64) -> (Severity, Severity) {
    let severity = |stream: &dyn Fn(&mut RecordingBuilder), id: &str| {
        let mut builder = recording(0.5 + queued_s);
        stream(&mut builder);
        (builder.root().user_s, builder.root().system_s) = (0.1, 0.3);
        builder.root().queued_s = Some(queued_s);
        builder.severity(id)
    };
    let tiny = |builder: &mut RecordingBuilder| {
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 300_000, 1);
    };
    let seeking = |builder: &mut RecordingBuilder| {
        let file = builder.file("/d/table", File);
        builder.open_file(file).size_bytes = Some(4_800_000);
        let stream = builder.stream(1, 3, file, In, 400_000, 4096);
        (stream.jumps, stream.seeks, stream.again_bytes) = (399_982, 399_982, 1_634_000_000);
    };
    (severity(&tiny, "tiny-writes"), severity(&seeking, "seek-and-reread"))
}

#[test]
fn the_load_by_others_does_not_change_a_severity() {
    assert_eq!(severities_when_queued(0.0), (High, High));
    assert_eq!(severities_when_queued(9.0), (High, High));
}
