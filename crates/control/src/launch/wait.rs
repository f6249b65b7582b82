//! Waits for a command that is not supervised.

use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use weir_model::run::RunOutcome;
use weir_model::trace::Exit;
use weir_sys::launch::GatedCommand;

use super::signals;

/// Releases the command, forwards signals to it, stops when it stops, and returns its exit.
pub(super) fn until_ended(gated: GatedCommand) -> Result<RunOutcome, weir_sys::Error> {
    let pid = gated.pid;
    let _forwarding = signals::forward(pid);
    gated.release()?;
    loop {
        match waitpid(Pid::from_raw(pid as i32), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                // SIGCONT can have continued both processes before this wait returned.
                if let (true, Some(signal)) = (signals::is_stopped(pid), status.stopping_signal()) {
                    signals::stop_with(pid, signal);
                }
            }
            Ok(Some((_, status))) => return Ok(outcome(exit(status))),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // The child was reaped elsewhere, so its status is unknown.
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
    RunOutcome { exit, rescued: Vec::new(), emitted_bytes: 0, limitations: Vec::new() }
}
