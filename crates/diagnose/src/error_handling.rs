//! A program's answer to an error: it reported it, tried again, or ignored it.

use weir_model::Direction;
use weir_model::trace::Exit;

use crate::context::{RuleContext, TimedCall};

impl RuleContext<'_> {
    /// Returns whether a process exited with status 0 and wrote nothing to standard error from a time on.
    pub fn exited_silently(&self, pid: u32, from_s: f64) -> bool {
        let succeeded = self.process(pid).and_then(|process| process.exit) == Some(Exit::Code(0));
        let reported = self.streams_of(pid).iter().any(|stream| {
            let written = stream.direction != Direction::In && stream.bytes > 0 && stream.last_s >= from_s;
            stream.fd == 2 && written && !self.is_null(stream.file)
        });
        succeeded && !reported
    }

    /// Returns whether a later call wrote the bytes of a failed write.
    pub fn retried(&self, failed: &TimedCall) -> bool {
        self.calls(failed.pid).iter().any(|timed| {
            let call = timed.call;
            let same_bytes = call.head == failed.call.head && call.args[1] == failed.call.args[1];
            let wrote = call.fd == failed.call.fd && call.op.writes() && call.result > 0;
            timed.at_s > failed.at_s && wrote && same_bytes
        })
    }
}
