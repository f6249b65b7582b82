//! Waits for a command that is not supervised.

use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use weir_model::run::RunOutcome;
use weir_model::trace::Exit;
use weir_sys::hang_guard::{GuardedWork, HangGuard};
use weir_sys::launch::{self, GatedCommand};
use weir_sys::signals as forwarded;

use super::signals;
use crate::coalesce::ticker::ArenaTicker;

/// Releases the command, forwards signals to it, stops when it stops, and returns its exit. `ticker` drains the arena of
/// gathered calls meanwhile.
pub(super) fn until_ended(
    gated: GatedCommand,
    ticker: Option<ArenaTicker>,
) -> Result<RunOutcome, weir_sys::Error> {
    let exit = exit_of(gated)?;
    let limitations = ticker.map(ArenaTicker::finish).unwrap_or_default();
    Ok(RunOutcome { exit, rescued: Vec::new(), emitted_bytes: 0, limitations })
}

fn exit_of(gated: GatedCommand) -> Result<Exit, weir_sys::Error> {
    let pid = gated.pid;
    let _forwarding = signals::forward(pid);
    let _guard = HangGuard::start(GuardedWork::Run, Some(pid), None);
    gated.release()?;
    loop {
        if launch::await_end(pid, true) {
            forwarded::forget_command();
        }
        match waitpid(Pid::from_raw(pid as i32), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                // SIGCONT can have continued both processes before this wait returned.
                if let (true, Some(signal)) = (signals::is_stopped(pid), status.stopping_signal()) {
                    signals::stop_with(pid, signal);
                }
            }
            Ok(Some((_, status))) => return Ok(exit(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // The child was reaped elsewhere, so its status is unknown.
            Err(_) => return Ok(Exit::Code(0)),
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match status.terminating_signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.exit_status().unwrap_or(0)),
    }
}
