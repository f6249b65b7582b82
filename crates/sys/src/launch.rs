//! Starts a command behind a gate: its process exists, but calls execve(2) only when a backend has attached.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::seccomp::{self, SeccompFilter};
use crate::{Error, command, foreign_reads, inherited};

/// The exit status of the child if weir ends before the gate opens: env(1) uses 125 for its own failures.
const NOT_STARTED: i32 = 125;

/// A child process that has not called execve(2) yet. Dropping it before the gate is open ends and reaps the child.
#[derive(Debug)]
pub struct GatedCommand {
    /// The PID of the child, which the command keeps.
    pub pid: u32,
    /// A seccomp filter stops its calls for a tracer: see [`start_filtered`].
    pub filtered: bool,
    command: String,
    gate: Option<OwnedFd>,
    /// Closed by execve(2), or delivers an errno.
    exec_status: Option<OwnedFd>,
}

/// Forks a child that will execute `command`, searched in PATH. It inherits weir's standard descriptors, terminal and
/// process group, and the signal mask and dispositions with which weir was started. Fails with [`Error::Command`] if
/// `command` is empty, with [`Error::NoProcess`] if fork(2) fails; a missing file is reported by [`GatedCommand::release`].
pub fn start(command: &[OsString]) -> Result<GatedCommand, Error> {
    fork_gated(command, None)
}

/// Forks a child like [`start`], under the filter of [`seccomp`]. From its execve(2) on, filtered calls of the command and
/// its descendants fail with ENOSYS without a tracer, so only the ptrace backend may use it.
pub fn start_filtered(command: &[OsString]) -> Result<GatedCommand, Error> {
    fork_gated(command, Some(&SeccompFilter::new()?))
}

fn fork_gated(command: &[OsString], filter: Option<&SeccompFilter>) -> Result<GatedCommand, Error> {
    let name = command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let failed = |source| Error::Command { command: name.clone(), source };
    let arguments = arguments(command).map_err(failed)?;
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::NoProcess(errno.into()));
    let ((gate, open_gate), (exec_status, report_status)) = (pipe()?, pipe()?);
    // SAFETY: the child makes only async-signal-safe calls and execvp(3), which allocates nothing and takes no lock in glibc
    // and musl (see `run_child`), as required after fork(2) in a process with threads, and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(Error::NoProcess(io::Error::last_os_error())),
        0 => run_child(&pointers, [&gate, &open_gate, &exec_status, &report_status], filter),
        pid => Ok(GatedCommand {
            pid: pid as u32,
            filtered: filter.is_some(),
            command: name,
            gate: Some(open_gate),
            exec_status: Some(exec_status),
        }),
    }
}

/// Executes `command` in this process, with the inherited state that [`start`] would give it. Returns only on failure.
pub fn exec(command: &[OsString]) -> Error {
    let name = command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let arguments = match arguments(command) {
        Ok(arguments) => arguments,
        Err(source) => return Error::Command { command: name, source },
    };
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    inherited::restore();
    foreign_reads::end();
    // SAFETY: `pointers` ends with a null pointer, and its strings live as long as `arguments`.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    Error::Command { command: name, source: io::Error::last_os_error() }
}

fn arguments(command: &[OsString]) -> io::Result<Vec<CString>> {
    if command.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    command.iter().map(|argument| Ok(CString::new(argument.as_bytes())?)).collect()
}

/// Waits at the gate and executes the command. The pipes are closed by execve(2). On failure, sends an errno through
/// the second pipe: that of execve(2), or the negated one of installing the filter.
fn run_child(
    arguments: &[*const libc::c_char],
    [gate, open_gate, exec_status, report_status]: [&OwnedFd; 4],
    filter: Option<&SeccompFilter>,
) -> ! {
    let mut byte = 0u8;
    // SAFETY: descriptors and buffers are valid; `arguments` ends with a null pointer and its strings live in this copy
    // of the parent's memory; `_exit` runs no handlers of the parent.
    unsafe {
        // The child's copy of one end would keep it from seeing weir's death, and that of the other weir from seeing
        // that execve(2) succeeded.
        libc::close(open_gate.as_raw_fd());
        libc::close(exec_status.as_raw_fd());
        loop {
            match libc::read(gate.as_raw_fd(), (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(NOT_STARTED),
            }
        }
        inherited::restore();
        let errno = match filter.map_or(0, SeccompFilter::install) {
            0 => {
                libc::execvp(arguments[0], arguments.as_ptr());
                *libc::__errno_location()
            }
            refused => -refused,
        };
        libc::write(report_status.as_raw_fd(), (&raw const errno).cast(), size_of::<i32>());
        libc::_exit(if errno == libc::ENOENT { 127 } else { 126 })
    }
}

impl GatedCommand {
    /// Opens the gate and waits until execve(2) has succeeded. Fails with [`Error::Command`] if it fails, with ENOENT if
    /// PATH has no such file; the child has then exited with status 127 or 126 and is reaped.
    pub fn release(mut self) -> Result<(), Error> {
        let result = self.open_gate().and_then(|()| self.wait_for_exec());
        if result.is_err() {
            reap(self.pid);
        }
        result
    }

    /// Returns the file that the command will execute, as execvp(3) finds it.
    pub fn executable(&self) -> Option<PathBuf> {
        command::find(&self.command)
    }

    /// Opens the gate without waiting, for a tracer that must handle the child's stops before execve(2) succeeds.
    pub fn open_gate(&mut self) -> Result<(), Error> {
        let Some(gate) = self.gate.take() else { return Ok(()) };
        File::from(gate).write_all(&[1]).map_err(|source| self.failed(source))
    }

    /// Waits for the end of execve(2) in the child. Its success, and the end of the child, close a pipe; a failure sends an errno
    /// through the pipe, and becomes the error.
    pub fn wait_for_exec(&mut self) -> Result<(), Error> {
        let Some(exec_status) = self.exec_status.take() else { return Ok(()) };
        let mut errno = Vec::new();
        File::from(exec_status).read_to_end(&mut errno).map_err(|source| self.failed(source))?;
        match errno.try_into() {
            Ok(errno) => Err(self.exec_error(i32::from_ne_bytes(errno))),
            Err(_) => Ok(()),
        }
    }

    fn exec_error(&self, errno: i32) -> Error {
        let source = io::Error::from_raw_os_error(errno.abs());
        if errno < 0 { seccomp::unusable(&source) } else { self.failed(source) }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Command { command: self.command.clone(), source }
    }
}

impl Drop for GatedCommand {
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            reap(self.pid);
        }
    }
}

/// Waits for a child to end. Returns its wait status, or 0 if it was already reaped.
pub fn reap(child: u32) -> u32 {
    reap_after(child, || {})
}

/// Waits until a child has ended, or with `or_stop` until it has stopped, and leaves its status to the next wait, which reaps it. Returns
/// whether it has ended; true if there is no such child.
pub fn await_end(child: u32, or_stop: bool) -> bool {
    let stops = if or_stop { libc::WSTOPPED } else { 0 };
    // SAFETY: zero bytes are a valid siginfo_t, which the call fills; errno may be read.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOWAIT | stops;
        while libc::waitid(libc::P_PID, child, &mut info, how) != 0 {
            if *libc::__errno_location() != libc::EINTR {
                return true;
            }
        }
        info.si_code != libc::CLD_STOPPED && info.si_code != libc::CLD_TRAPPED
    }
}

/// Waits for a child to end like [`reap`]. Calls `meanwhile` first if the child has not ended yet.
pub fn reap_after(child: u32, meanwhile: impl FnOnce()) -> u32 {
    let wait = |how| retry_on_intr(|| waitpid(Pid::from_raw(child as i32), how)).ok().flatten();
    let ended = wait(WaitOptions::NOHANG).or_else(|| {
        meanwhile();
        wait(WaitOptions::empty())
    });
    ended.map_or(0, |(_, status)| status.as_raw() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals;

    /// A signal that is held at the command's end must not reach another process with its PID.
    #[test]
    fn an_ended_child_gets_no_signal_before_it_is_reaped() {
        #[expect(clippy::zombie_processes, reason = "it is reaped by its number")]
        let child = std::process::Command::new("true").spawn().expect("a child");
        assert!(await_end(child.id(), true) && await_end(child.id(), false));
        let status = reap(child.id()) as i32;
        assert!(libc::WIFEXITED(status), "its status was left: {status}");
        assert!(await_end(child.id(), true), "there is no such child");
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("a child");
        let forwarding = signals::forward(child.id(), &[]);
        signals::forget_command();
        signals::send_to_command(libc::SIGKILL);
        drop(forwarding);
        assert!(child.wait().expect("its end").success());
    }
}
