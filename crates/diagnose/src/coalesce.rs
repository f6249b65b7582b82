//! Decides whether `weir run --coalesce` helps a stream, so that no fix offers it in vain.

use weir_model::trace::{RuntimeId, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;
use crate::language::SourceLanguage;

/// Devices on which a later call has the same effect.
const PASSIVE_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"];

impl RuleContext<'_> {
    /// Returns whether `weir run --coalesce` combines the tiny calls of a stream. The program must have one thread, call
    /// libc, and leave SIGSYS alone (Ruby does not); and its other input must not reveal that output is late.
    pub fn can_coalesce(&self, stream: &StreamCounts) -> bool {
        let language = self.language(stream.pid, stream.first_s);
        let bypasses_libc = matches!(
            language,
            SourceLanguage::Go | SourceLanguage::Java | SourceLanguage::Node | SourceLanguage::Ruby
        );
        let threads = self.process(stream.pid).is_some_and(|process| process.threads > 1);
        let reads = stream.direction == Direction::In;
        // Bytes read ahead from a pipe, terminal or socket cannot be given back.
        let may_read_ahead = !reads || self.kind(stream.file) == StreamKind::File;
        !bypasses_libc
            && !threads
            && may_read_ahead
            && !self.is_musl_stream(stream)
            && (reads || !self.alternates_with_device(stream))
    }

    /// Returns the coalescing command and the words that join it to a fix in code, or nothing if it does not help.
    pub fn coalesce_command(&self, stream: &StreamCounts) -> String {
        if !self.can_coalesce(stream) {
            return String::new();
        }
        format!("{}   or in code: ", self.weir_run("--coalesce", stream.pid))
    }

    /// Returns whether the stream is one of musl's stdio, whose system calls cannot be interposed.
    fn is_musl_stream(&self, stream: &StreamCounts) -> bool {
        let mut buffers = self.snapshots(stream.pid).iter().flat_map(|snapshot| snapshot.buffers);
        buffers.any(|buffer| buffer.walker == RuntimeId::MUSL && buffer.fd == stream.fd)
    }

    /// Returns whether the process reads from a device about once for every two calls of the stream. The device may react to
    /// the output.
    fn alternates_with_device(&self, stream: &StreamCounts) -> bool {
        self.streams_of(stream.pid).iter().any(|other| {
            other.direction != Direction::Out
                && other.calls * 2 >= stream.calls
                && matches!(self.kind(other.file), StreamKind::Device | StreamKind::Other)
                && !self.is_passive_device(other.file)
        })
    }

    /// Returns whether an open file is a device on which a later call has the same effect.
    pub fn is_passive_device(&self, file: u32) -> bool {
        PASSIVE_DEVICES.contains(&self.file(file).map_or("", |file| file.path.as_str()))
    }
}
