//! The first stop of the command: its C library is initialized, its own code has not run, and nothing has been written, so
//! the walkers can find its streams. The command is then detached, unless its buffers need more stops.
//!
//! If the executable is plain, the BPF program on_sys_exit stops the command by a signal; another command is stopped at
//! its execve(2) and then by a breakpoint at its entry point. Processes that the command starts have no such stop: they run past
//! their entry point before the tracer can seize them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weir_sys::executable;
use weir_trace_api::breakpoint_traps::BreakpointTraps;
use weir_walkers::begins_with_streams;

use super::load::ProcessMap;

/// Programs that only start another one, which may end before the tracer can seize it.
const LAUNCHERS: [&str; 9] =
    ["env", "nice", "nohup", "timeout", "setsid", "stdbuf", "ionice", "chrt", "taskset"];

/// Returns whether an executable is one of the programs that only start another one.
pub(super) fn is_launcher(executable: &Path) -> bool {
    executable.file_name().is_some_and(|name| LAUNCHERS.iter().any(|launcher| name == *launcher))
}

/// Returns whether a process runs such a program. The process stays traced, so that the program that it starts stops at its execve(2).
pub(super) fn runs_launcher(pid: u32) -> bool {
    std::fs::read_link(executable::link(pid)).is_ok_and(|path| is_launcher(&path))
}

/// Whether the command has reached its first stop.
#[derive(Default)]
pub(super) struct CommandStart {
    /// The command, while it is traced only for this stop.
    pid: Option<u32>,
    /// The kernel's map, if a BPF program stops the command.
    processes: Option<ProcessMap>,
    reached: bool,
}

/// Returns false for set-user-ID programs: execve(2) of a tracee ignores the bit unless its tracer is privileged.
pub(super) fn may_be_traced(executable: &Path) -> bool {
    let mode = std::fs::metadata(executable).map(|file| file.permissions().mode());
    mode.is_ok_and(|mode| mode & (libc::S_ISUID | libc::S_ISGID) == 0)
}

/// Sets a breakpoint at the entry point. Returns None if the executable has no streams there, or the kernel refuses the breakpoint.
pub(super) fn trap_at_entry(pid: u32) -> Option<BreakpointTraps> {
    let exe = format!("/proc/{pid}/exe");
    Some(Path::new(&exe)).filter(|exe| begins_with_streams(exe)).and_then(|_| BreakpointTraps::at_entry(pid))
}

impl CommandStart {
    /// Starts to wait for the stop of a command that is traced only for it. `processes` is given if a BPF program stops it.
    pub fn expect(&mut self, pid: u32, processes: Option<ProcessMap>) {
        *self = Self { pid: Some(pid), processes, reached: false };
    }

    /// Returns the address of the list of streams of a command that a BPF program has stopped.
    pub fn stream_list(&self, pid: u32) -> Option<u64> {
        let state = self.processes.as_ref().filter(|_| self.pid == Some(pid))?.get(&pid, 0).ok()?;
        Some(state.list).filter(|&list| list != 0)
    }

    /// Records that a process, perhaps another one, is at its first stop.
    pub fn reached(&mut self, pid: u32) {
        self.reached |= self.pid == Some(pid);
    }

    /// Returns whether to detach the process now, once.
    pub fn take_reached(&mut self, pid: u32) -> bool {
        let reached = self.reached && self.pid == Some(pid);
        if reached {
            *self = Self::default();
        }
        reached
    }

    /// Forgets a process that has exited.
    pub fn remove(&mut self, pid: u32) {
        if self.pid == Some(pid) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_at_its_first_stop_is_detached_once() {
        let mut start = CommandStart::default();
        start.reached(7);
        assert!(!start.take_reached(7), "traced for another reason");
        start.expect(7, None);
        start.reached(8);
        assert!(!start.take_reached(7) && !start.take_reached(8));
        start.reached(7);
        assert!(start.take_reached(7) && !start.take_reached(7));
    }

    #[test]
    fn the_stop_of_an_exited_process_is_not_expected() {
        let mut start = CommandStart::default();
        start.expect(7, None);
        start.remove(8);
        assert_eq!(start.pid, Some(7));
        start.remove(7);
        assert_eq!(start.pid, None);
    }
}
