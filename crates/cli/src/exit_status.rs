//! The exit statuses of weir, and how `weir trace` and `weir run` derive theirs from the command's.

use weir_model::trace::Exit;

/// The requested operation failed.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// weir itself failed while a command was to be run. 125 to 127 are the statuses of env(1).
pub const WEIR_FAILED: u8 = 125;
/// The command exists but cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command does not exist.
pub const NOT_FOUND: u8 = 127;
/// Base of the status of a process that a signal ended; the signal's number is added, as shells do.
pub const SIGNAL_BASE: u8 = 128;
/// Stopped by Ctrl-C, that is SIGINT.
pub const INTERRUPTED: u8 = SIGNAL_BASE + 2;

/// An error before or instead of a run of the command, with the exit status that it causes.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The message for the user, without the prefix `weir: `.
    pub text: String,
    pub status: u8,
}

impl CommandFailure {
    /// Returns a failure of weir itself, with status 125.
    pub fn of_weir(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: WEIR_FAILED }
    }
}

impl From<weir_sys::Error> for CommandFailure {
    fn from(error: weir_sys::Error) -> Self {
        let status = match &error {
            weir_sys::Error::Command { source, .. } => of_start_failure(source.kind()),
            _ => WEIR_FAILED,
        };
        Self { text: error.to_string(), status }
    }
}

impl From<weir_control::launch::LaunchError> for CommandFailure {
    fn from(error: weir_control::launch::LaunchError) -> Self {
        use weir_control::{launch::LaunchError, supervise::SuperviseError};
        match error {
            LaunchError::Start(error) | LaunchError::Supervise(SuperviseError::Probe(error)) => error.into(),
            other => Self::of_weir(other.to_string()),
        }
    }
}

/// Returns the exit status after an execve(2) of the command that failed.
pub fn of_start_failure(error: std::io::ErrorKind) -> u8 {
    if error == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// Returns the exit status after a run of the command. A command that failed determines the status; otherwise
/// a failure of weir itself does, then a finding of `--fail-on`.
pub fn after_command(exit: Option<Exit>, weir_failed: bool, finding_fails: bool) -> u8 {
    match exit {
        Some(Exit::Code(code)) if code & 0xff != 0 => (code & 0xff) as u8,
        Some(Exit::Signal(number)) => SIGNAL_BASE.saturating_add(number.clamp(0, 127) as u8),
        _ if weir_failed => WEIR_FAILED,
        _ if finding_fails => FAILED,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_status_of_a_failed_command_comes_first() {
        assert_eq!(after_command(Some(Exit::Code(0)), false, false), 0);
        assert_eq!(after_command(Some(Exit::Code(3)), true, true), 3);
        assert_eq!(after_command(Some(Exit::Signal(9)), true, true), 137);
        assert_eq!(after_command(Some(Exit::Code(0)), false, true), 1);
        assert_eq!(after_command(Some(Exit::Code(0)), true, true), 125);
        assert_eq!(after_command(None, false, true), 1);
        assert_eq!(after_command(None, true, false), 125);
    }

    #[test]
    fn a_command_that_cannot_start_has_the_status_of_env() {
        let status_of = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            CommandFailure::from(weir_sys::Error::Command { command: "x".into(), source }).status
        };
        assert_eq!([status_of(2), status_of(13), status_of(8)], [127, 126, 126]);
        let error = weir_sys::Error::Backend { backend: "ebpf", reason: "no".into() };
        assert_eq!(CommandFailure::from(error).status, 125);
    }
}
