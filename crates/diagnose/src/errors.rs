//! What a program did about an error: told somebody, tried again, or nothing.

use weir_model::Direction;
use weir_model::trace::Exit;

use crate::context::{Context, Seen};

impl Context<'_> {
    /// Whether a process ended well by its own account and said nothing on standard error from that time on.
    pub fn said_nothing(&self, pid: u32, from_s: f64) -> bool {
        let well = self.process(pid).and_then(|process| process.exit) == Some(Exit::Code(0));
        let told = self.flows(pid).iter().any(|flow| {
            let written = flow.direction != Direction::In && flow.bytes > 0 && flow.last_s >= from_s;
            flow.fd == 2 && written && !self.is_null(flow.file)
        });
        well && !told
    }

    /// Whether the same bytes went out later after all.
    pub fn tried_again(&self, failed: &Seen) -> bool {
        let same = |seen: &Seen| {
            let call = seen.call;
            let here = call.fd == failed.call.fd && call.op.writes() && call.result > 0;
            here && seen.at_s > failed.at_s
                && call.head == failed.call.head
                && call.args[1] == failed.call.args[1]
        };
        self.calls(failed.pid).iter().any(same)
    }
}
