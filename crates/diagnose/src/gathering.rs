//! Whether `weir run --coalesce` does anything for a stream. What it cannot do is not offered.

use weir_model::trace::{RuntimeId, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::Context;
use crate::language::Language;

/// Devices that give or take bytes without doing anything for each call: nobody notices who is late at them.
const HARMLESS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"];

impl Context<'_> {
    /// Whether tiny calls of this stream are gathered: of programs with one thread that call a C library and leave SIGSYS
    /// alone (Ruby does not), where what they take in between does not let others see what they gave.
    pub fn gathers(&self, flow: &StreamCounts) -> bool {
        let language = self.language(flow.pid, flow.first_s);
        let itself = matches!(language, Language::Go | Language::Java | Language::Node | Language::Ruby);
        let threads = self.process(flow.pid).is_some_and(|process| process.threads > 1);
        let reads = flow.direction == Direction::In;
        // A pipe, terminal or socket cannot take bytes back: nothing is read ahead there.
        let ahead = !reads || self.kind(flow.file) == StreamKind::File;
        !itself && !threads && ahead && !self.musl_stream(flow) && (reads || !self.interrupted(flow))
    }

    /// The command with which a stream's calls are gathered, in front of a cure as code; nothing where they are not.
    pub fn gathering(&self, flow: &StreamCounts) -> String {
        if !self.gathers(flow) {
            return String::new();
        }
        format!("{}   or in code: ", self.weir_run("--coalesce", flow.pid))
    }

    /// musl's stdio makes its calls where no library sees them.
    fn musl_stream(&self, flow: &StreamCounts) -> bool {
        let mut buffers = self.looks(flow.pid).iter().flat_map(|look| look.buffers);
        buffers.any(|buffer| buffer.walker == RuntimeId::MUSL && buffer.fd == flow.fd)
    }

    /// Whether about every other call takes something from a device that may wait, or that may look.
    fn interrupted(&self, flow: &StreamCounts) -> bool {
        self.flows(flow.pid).iter().any(|other| {
            other.direction != Direction::Out
                && other.calls * 2 >= flow.calls
                && matches!(self.kind(other.file), StreamKind::Device | StreamKind::Other)
                && !self.harmless(other.file)
        })
    }

    /// Whether a file is a device that does nothing for each call.
    pub fn harmless(&self, file: u32) -> bool {
        HARMLESS.contains(&self.file(file).map_or("", |file| file.path.as_str()))
    }
}
