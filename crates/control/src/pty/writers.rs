//! Finds the processes that wait for room in a terminal.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::pty::ptsname;
use weir_sys::pidfd::open_process;
use weir_sys::proc::{self, ThreadState};
use weir_sys::syscalls;

/// Returns those of a command and its descendants that wait in a write to the terminal of `master`.
pub(super) fn waiting(command: u32, master: BorrowedFd) -> Vec<OwnedFd> {
    let Ok(name) = ptsname(master, Vec::new()) else { return Vec::new() };
    let name = name.to_string_lossy();
    let waiting = |pid: u32| {
        // Opened before the check, so that the signal goes to the process that was checked.
        let process = open_process(pid).ok()?;
        proc::threads(pid).into_iter().any(|tid| writes_to(tid, &name)).then_some(process)
    };
    proc::with_descendants(command).into_iter().filter_map(waiting).collect()
}

fn writes_to(tid: u32, name: &str) -> bool {
    let ThreadState::Waiting { number, args } = proc::thread_state(tid) else { return false };
    let output = syscalls::op(number).filter(|op| op.writes()).and_then(|op| syscalls::output(op, &args));
    output.and_then(|fd| proc::descriptor(tid, fd)).is_some_and(|target| target.exact() == name)
}
