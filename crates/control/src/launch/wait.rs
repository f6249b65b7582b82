//! Waits for a command that nothing follows.

use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use weir_model::trace::Exit;
use weir_sys::launch::GatedCommand;

use super::signals;
use crate::supervise::RunOutcome;

/// Starts it, passes signals on, and stops with it.
pub(super) fn until_ended(gated: GatedCommand) -> Result<RunOutcome, weir_sys::Error> {
    let pid = gated.pid;
    let _passed_on = signals::pass_on(pid);
    gated.release()?;
    loop {
        match waitpid(Pid::from_raw(pid as i32), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                // Continued with weir before weir knew: nothing is to be stopped any more.
                if let (true, Some(signal)) = (signals::still_stopped(pid), status.stopping_signal()) {
                    signals::stop_with(pid, signal);
                }
            }
            Ok(Some((_, status))) => return Ok(outcome(exit(status))),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // Somebody else has waited for it: nothing is known of its end.
            Err(_) => return Ok(outcome(Exit::Code(0))),
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match status.terminating_signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.exit_status().unwrap_or(0)),
    }
}

fn outcome(exit: Exit) -> RunOutcome {
    RunOutcome { exit, rescued: Vec::new(), emitted_bytes: 0, unable: Vec::new() }
}
