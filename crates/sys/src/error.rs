//! The error type of the crates that observe other processes.

use std::io;

use weir_model::Untrusted;

use crate::limits;

/// An error of observing a process. Its message names the operation, the object, the reason and a remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// A system call on a process failed.
    #[error("{} of process {pid}: {}{}", call_on(.call, *.pid), errno_text(.source), advice(.source))]
    Process {
        /// The system call, or the operation with its file in /proc.
        call: &'static str,
        pid: u32,
        source: io::Error,
    },
    /// /proc does not show the process, or the process does not answer. Holds the reason and a remedy.
    #[error("{0}")]
    Hidden(String),
    /// A file could not be read or written.
    #[error("{}: {call}: {}", Untrusted::from(.path.as_str()), errno_text(.source))]
    File { path: String, call: &'static str, source: io::Error },
    /// The command could not be started.
    #[error("{}: {}", Untrusted::from(.command.as_str()), errno_text(.source))]
    Command {
        /// The first word of the command.
        command: String,
        /// ENOENT if PATH has no such file.
        source: io::Error,
    },
    /// No process or pipe could be made for a command.
    #[error("no process can be started: {}{}", errno_text(.0), limits::advice(.0))]
    NoProcess(io::Error),
    /// A backend does not work on this system.
    #[error("the {backend} engine cannot work here: {reason}")]
    Backend {
        /// The value of `--engine`.
        backend: &'static str,
        /// The reason and a remedy.
        reason: String,
    },
}

/// Returns a call whose file in /proc has the number of the process, not "PID".
fn call_on(call: &str, pid: u32) -> String {
    call.replace("/PID", &format!("/{pid}"))
}

/// Returns the name and text of an errno, as in "ENOENT: No such file or directory".
pub fn errno_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => match weir_model::errno::name(number) {
            Some(name) => format!("{name}: {}", message(error)),
            None => message(error),
        },
        None => error.to_string(),
    }
}

/// Returns the error's text without the "(os error N)" that std appends.
fn message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// Returns a remedy for common errors; empty for others.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " – it belongs to another user, or kernel.yama.ptrace_scope forbids it: run weir as root"
        }
        Some(libc::ESRCH) if !crate::proc::is_mounted() => " – /proc is not mounted here, and weir reads it",
        Some(libc::ESRCH) => " – it has ended",
        _ => limits::advice(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_command_is_reported_with_the_name_of_errno() {
        let source = io::Error::from_raw_os_error(2);
        let error = Error::Command { command: "./nothing".into(), source };
        assert_eq!(error.to_string(), "./nothing: ENOENT: No such file or directory");
        let source = io::Error::from_raw_os_error(2);
        let error = Error::Command { command: "odd\n\u{1b}[2J".into(), source };
        assert_eq!(error.to_string(), "odd\\n\\x1b[2J: ENOENT: No such file or directory");
        let source = io::Error::from_raw_os_error(1);
        let error = Error::Process { call: "read of /proc/PID/status", pid: 7, source }.to_string();
        assert!(error.starts_with("read of /proc/7/status of process 7: EPERM"), "{error}");
        let unknown = io::Error::from_raw_os_error(77);
        assert!(!errno_text(&unknown).contains("os error"), "{}", errno_text(&unknown));
    }
}
