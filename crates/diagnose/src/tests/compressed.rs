//! Tests of lost bytes of a compressed file.

use weir_model::trace::{Op, SnapshotMoment};

use crate::testing::*;

/// Returns the recording of a program that ends by _exit(2) with these pending bytes, after it has written `first`.
fn ended(first: &[u8], last: &[u8]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/out", File);
    builder.call(0.0, 1, Op::Openat, -1, file, b"").result = 3;
    if !first.is_empty() {
        builder.write(0.1, 1, 3, file, first);
    }
    builder.snapshot(0.9, 1, SnapshotMoment::Exit, &[pending(3, last)]);
    builder
}

#[test]
fn the_compressor_may_have_more_bytes() {
    let (gzip, xz): (&[u8], &[u8]) = (b"\x1f\x8b\x08\x08abc\0", b"\xfd7zXZ\0\0");
    for (first, last, format) in [(&b""[..], gzip, "gzip"), (gzip, b"later", "gzip"), (b"", xz, "xz")] {
        let finding = ended(first, last).finding("lost-at-exit");
        let said =
            format!("They are {format} data: the compressor may have more bytes, which weir cannot read.");
        assert!(finding.why.ends_with(&said), "{}", finding.why);
        assert_eq!(finding.command, None, "what is rescued cannot be unpacked");
        assert!(finding.fix.starts_with("close the compressed file"), "{}", finding.fix);
    }
    let finding = ended(b"plain\n", b"later\n").finding("lost-at-exit");
    assert!(!finding.why.contains("compressor") && finding.command.is_some(), "{finding:#?}");
}
