//! The fix of small writes for streams of the C library that have a large buffer already: a larger one changes nothing.

use weir_model::Mode;
use weir_model::trace::{RuntimeId, StreamCounts};

use crate::code_fix::{CodeFix, CodeText};
use crate::context::RuleContext;

/// The part of a buffer that the mean write fills at least if the buffer is used.
const MIN_FILLED: f64 = 0.25;

/// glibc writes the bytes of a wide stream in pieces of MB_LEN_MAX, whatever its buffer is.
const WIDE_PIECE: u64 = 16;

const WIDE: CodeText = CodeText {
    code: "printf(\"%ls\", line);",
    note: " for each line (fprintf for a file), and no putwchar, fputws or wprintf on the stream: glibc writes a wide stream \
           16 bytes at a time, whatever its buffer. If the stream is not wide: no fflush in the loop",
};

const FLUSHED: CodeText = CodeText {
    code: "",
    note: "no fflush or write(2) in the loop: the stream has a large buffer, which each of these calls empties or passes by",
};

impl RuleContext<'_> {
    /// Returns the fix of a stream with small writes as code.
    pub fn output_fix(&self, stream: &StreamCounts) -> CodeText {
        let object = (stream.fd, Some(stream.file));
        let fix = self.code_fix(stream.pid, stream.first_s, object, CodeFix::BufferOutput);
        match fix.code.contains("setvbuf(") && self.has_unused_buffer(stream) {
            true if self.may_be_wide(stream) => WIDE,
            true => FLUSHED,
            false => fix,
        }
    }

    /// Returns whether a stream of the C library is fully buffered, and its writes are much smaller than the buffer.
    fn has_unused_buffer(&self, stream: &StreamCounts) -> bool {
        let snapshots = self.snapshots(stream.pid).iter();
        let of_image = snapshots.filter(|snapshot| {
            let image = self.image_at(stream.pid, snapshot.at_s);
            image.is_none_or(|(image, _)| image == stream.image as usize)
        });
        let buffers = of_image.flat_map(|snapshot| snapshot.buffers);
        let is_stdio = |walker| matches!(walker, RuntimeId::GLIBC | RuntimeId::MUSL);
        let mut own = buffers.filter(|buffer| buffer.fd == stream.fd && is_stdio(buffer.walker));
        own.any(|buffer| {
            let filled = stream.mean_bytes() / buffer.buffer_bytes.max(1) as f64;
            buffer.mode == Some(Mode::Full) && filled < MIN_FILLED
        })
    }

    fn may_be_wide(&self, stream: &StreamCounts) -> bool {
        stream.max_requested_bytes <= WIDE_PIECE && stream.mean_bytes() > WIDE_PIECE as f64 / 2.0
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::SnapshotMoment;

    use crate::testing::*;

    /// Returns the fix of a C program that writes to standard output with calls of this size, in this mode.
    fn fix(size: u64, buffer_bytes: u64, mode: weir_model::Mode) -> String {
        let mut builder = recording(1.0);
        builder.root().system_s = 0.4;
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 125_000, size);
        let buffer = weir_model::trace::Buffer { mode: Some(mode), buffer_bytes, ..pending(1, b"") };
        builder.snapshot(0.5, 1, SnapshotMoment::Sample, &[buffer]);
        builder.finding("tiny-writes").fix
    }

    #[test]
    fn a_stream_with_an_unused_buffer_gets_no_larger_one() {
        use weir_model::Mode::{Full, None};
        let wide = fix(16, 4096, Full);
        assert!(wide.contains("printf(\"%ls\", line); for each line") && !wide.contains("setvbuf"), "{wide}");
        let flushed = fix(30, 4096, Full);
        assert!(flushed.contains("in code: no fflush or write(2) in the loop"), "{flushed}");
        assert!(!flushed.contains("setvbuf"), "{flushed}");
        assert!(fix(16, 1, None).contains("setvbuf(stdout, buffer"));
        assert!(fix(64, 64, Full).contains("setvbuf(stdout, buffer"), "its buffer is too small");
    }
}
