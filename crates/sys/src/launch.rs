//! Starts a command that waits at a gate until an engine is ready to watch it.

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
use crate::{Error, command, inherited};

/// What the child leaves with when weir is gone before the gate opens.
const NOT_STARTED: i32 = 125;

/// A child process that has not called execve(2) yet. Dropped without [`GatedCommand::release`], it ends.
#[derive(Debug)]
pub struct GatedCommand {
    /// Its number, which the command keeps.
    pub pid: u32,
    /// Its calls need a tracer: see [`start_filtered`].
    pub filtered: bool,
    command: String,
    gate: Option<OwnedFd>,
    answer: Option<OwnedFd>,
}

/// Forks a child that will run `command`, found along PATH. It has weir's standard descriptors, terminal and
/// process group, and the signal mask and dispositions that weir was started with.
pub fn start(command: &[OsString]) -> Result<GatedCommand, Error> {
    begin(command, None)
}

/// The same under the filter of [`seccomp`], for the ptrace engine only: from its execve(2) on, and for all that it
/// starts, calls fail where no tracer follows them.
pub fn start_filtered(command: &[OsString]) -> Result<GatedCommand, Error> {
    begin(command, Some(&SeccompFilter::new()?))
}

fn begin(command: &[OsString], filter: Option<&SeccompFilter>) -> Result<GatedCommand, Error> {
    let name = command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let failed = |source| Error::Command { command: name.clone(), source };
    let arguments = arguments(command).map_err(failed)?;
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let (gate, open_gate) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let (answer, give_answer) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    // SAFETY: the child makes async-signal-safe calls only (see `child`), as is needed after fork in a
    // program with threads, and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(failed(io::Error::last_os_error())),
        0 => child(&pointers, [&gate, &open_gate, &answer, &give_answer], filter),
        pid => Ok(GatedCommand {
            pid: pid as u32,
            filtered: filter.is_some(),
            command: name,
            gate: Some(open_gate),
            answer: Some(answer),
        }),
    }
}

/// This process becomes `command`, found along PATH, as [`start`] would have started it. It returns only why it
/// could not.
pub fn replace(command: &[OsString]) -> Error {
    let name = command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let arguments = match arguments(command) {
        Ok(arguments) => arguments,
        Err(source) => return Error::Command { command: name, source },
    };
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(std::ptr::null());
    inherited::restore();
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

/// The child's life until it is the command. The pipes close themselves at execve(2). What comes through the
/// second one is errno: of execve(2), or negative of the filter.
fn child(
    arguments: &[*const libc::c_char],
    [gate, open_gate, answer, give_answer]: [&OwnedFd; 4],
    filter: Option<&SeccompFilter>,
) -> ! {
    let mut byte = 0u8;
    // SAFETY: descriptors and buffers are valid; `arguments` ends with a null pointer and its strings live
    // in this copy of the parent's memory; `_exit` runs nothing of the parent's.
    unsafe {
        // Its own copies would hide from it that weir has died, and from weir that execve(2) succeeded.
        libc::close(open_gate.as_raw_fd());
        libc::close(answer.as_raw_fd());
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
        libc::write(give_answer.as_raw_fd(), (&raw const errno).cast(), size_of::<i32>());
        libc::_exit(if errno == libc::ENOENT { 127 } else { 126 })
    }
}

impl GatedCommand {
    /// Opens the gate and waits until the command runs. The error is [`Error::Command`] when it cannot: with
    /// ENOENT when there is none of this name; the child has then ended, with 127 or 126, and was waited for.
    pub fn release(mut self) -> Result<(), Error> {
        self.open()?;
        let answer = self.answer();
        if answer.is_err() {
            reap(self.pid);
        }
        answer
    }

    /// The file that it will execute, as execvp(3) finds it.
    pub fn executable(&self) -> Option<PathBuf> {
        command::find(&self.command)
    }

    /// Opens the gate and does not wait: for a tracer, whose stops the child will have to pass.
    pub fn open(&mut self) -> Result<(), Error> {
        let Some(gate) = self.gate.take() else { return Ok(()) };
        File::from(gate).write_all(&[1]).map_err(|source| self.failed(source))
    }

    /// Waits until execve(2) has succeeded (the pipe closes itself) or failed (errno comes through it).
    pub fn answer(&mut self) -> Result<(), Error> {
        let Some(answer) = self.answer.take() else { return Ok(()) };
        let mut errno = Vec::new();
        File::from(answer).read_to_end(&mut errno).map_err(|source| self.failed(source))?;
        match errno.try_into() {
            Ok(errno) => Err(self.refused(i32::from_ne_bytes(errno))),
            Err(_) => Ok(()),
        }
    }

    fn refused(&self, errno: i32) -> Error {
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

/// Waits for the end of a child; its wait status, or 0 if somebody else was first.
pub fn reap(child: u32) -> u32 {
    reap_after(child, || {})
}

/// The same; what there is time for if it has not ended yet is done first.
pub fn reap_after(child: u32, meanwhile: impl FnOnce()) -> u32 {
    let wait = |how| retry_on_intr(|| waitpid(Pid::from_raw(child as i32), how)).ok().flatten();
    let ended = wait(WaitOptions::NOHANG).or_else(|| {
        meanwhile();
        wait(WaitOptions::empty())
    });
    ended.map_or(0, |(_, status)| status.as_raw() as u32)
}
