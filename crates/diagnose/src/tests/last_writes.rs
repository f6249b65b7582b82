//! Tests of lost-at-kill where the last write failed or was interrupted.

use weir_model::trace::{Buffer, Exit, RuntimeId, SnapshotMoment};

use crate::testing::*;

const LINE: &[u8] = b"temperature 21.5\n";

#[test]
fn a_write_that_the_kill_interrupts_has_not_failed() {
    for (result, lost) in [(-512, true), (-4, true), (-28, false)] {
        let mut builder = recording(1.0);
        let file = builder.file("pipe:[4]", Pipe);
        builder.root().exit = Some(Exit::Signal(9));
        builder.write(0.8, 1, 1, file, LINE).result = result;
        builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(1, LINE)]);
        assert_eq!(builder.findings("lost-at-kill").len(), usize::from(lost), "{result}");
    }
}

/// "Nothing is wrong" was said of a program that the limit of the file size killed.
#[test]
fn bytes_of_a_write_beyond_the_limit_are_lost_if_it_ends_the_process() {
    for (end, lost) in [(Exit::Signal(25), true), (Exit::Code(1), false)] {
        let mut builder = recording(1.0);
        let file = builder.file("/d/out", File);
        builder.root().exit = Some(end);
        builder.write(0.8, 1, 3, file, LINE).result = -27;
        builder.snapshot(0.9, 1, SnapshotMoment::Signal, &[pending(3, LINE)]);
        assert_eq!(builder.findings("lost-at-kill").len(), usize::from(lost));
    }
}

/// CPython removes the bytes of a flush from the stream before it writes them, here to a full pipe.
#[test]
fn bytes_of_a_flush_of_python_that_the_kill_interrupts_are_lost() {
    for (walker, number, result, lost) in [
        (RuntimeId::CPYTHON, 9, -512, Some(17.0)),
        (RuntimeId::CPYTHON, 15, 7, Some(10.0)),
        (RuntimeId::CPYTHON, 9, 17, None),
        (RuntimeId::CPYTHON, 13, -32, None),
        (RuntimeId::PERL, 9, -512, None),
    ] {
        let mut builder = recording(1.0);
        let file = builder.file("pipe:[4]", Pipe);
        builder.root().exit = Some(Exit::Signal(number));
        builder.snapshot(0.7, 1, SnapshotMoment::Sample, &[Buffer { walker, ..pending(1, b"") }]);
        builder.write(0.8, 1, 1, file, LINE).result = result;
        let found = builder.findings("lost-at-kill");
        let bytes = found.first().map(|finding| finding.evidence["lost_bytes"]);
        assert_eq!(bytes, lost, "{walker:?} {number} {result}: {found:#?}");
    }
}
