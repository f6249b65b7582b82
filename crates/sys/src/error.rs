//! What can go wrong when looking into another process, with what to do about it.

use std::io;

/// An error that says what failed, on what, why and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on a process failed.
    #[error("{call} of process {pid}: {}{}", errno_text(.source), advice(.source))]
    Process {
        /// The call.
        call: &'static str,
        /// The process.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{path}: {call}: {}", errno_text(.source))]
    File {
        /// The file.
        path: String,
        /// The call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The command could not be started.
    #[error("{command}: {}", errno_text(.source))]
    Command {
        /// Its name.
        command: String,
        /// Why: ENOENT when it was not found.
        source: io::Error,
    },
    /// An engine cannot work here.
    #[error("the {backend} engine cannot work here: {reason}")]
    Backend {
        /// The value of `--engine`.
        backend: &'static str,
        /// Why, and what would help.
        reason: String,
    },
}

/// errno's name and meaning, as in "ENOENT: No such file or directory".
pub fn errno_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => match weir_model::errno::name(number) {
            Some(name) => format!("{name}: {}", plain(error)),
            None => plain(error),
        },
        None => error.to_string(),
    }
}

fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " – it belongs to another user, or kernel.yama.ptrace_scope forbids it: run weir as root"
        }
        Some(libc::ESRCH) => " – it has ended",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_is_said_with_errnos_name() {
        let source = io::Error::from_raw_os_error(2);
        let error = Error::Command { command: "./nothing".into(), source };
        assert_eq!(error.to_string(), "./nothing: ENOENT: No such file or directory");
        let unknown = io::Error::from_raw_os_error(77);
        assert!(!errno_text(&unknown).contains("os error"), "{}", errno_text(&unknown));
    }
}
