//! How `weir trace` ends: as the command did, unless something is to be said about weir itself.

use clap::ValueEnum;
use weir_model::Severity;
use weir_model::trace::Exit;

use crate::FAILED;

/// weir itself failed; env(1) has the same three.
pub(crate) const OWN: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The severity from which a finding makes the status 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Bytes are lost, or most of the time is.
    High,
    /// Or time is wasted, or loss invited.
    Warn,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::High => Self::High,
            FailOn::Warn => Self::Warn,
        }
    }
}

/// Why there is no recording.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// What to say.
    pub text: String,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    /// weir itself failed.
    pub fn own(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: OWN }
    }
}

impl From<weir_sys::Error> for Failure {
    fn from(error: weir_sys::Error) -> Self {
        let status = match &error {
            weir_sys::Error::Command { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                NOT_FOUND
            }
            weir_sys::Error::Command { .. } => NOT_EXECUTABLE,
            _ => OWN,
        };
        Self { text: error.to_string(), status }
    }
}

impl From<weir_control::launch::LaunchError> for Failure {
    fn from(error: weir_control::launch::LaunchError) -> Self {
        use weir_control::{launch::LaunchError, supervise::SuperviseError};
        match error {
            LaunchError::Start(error) | LaunchError::Follow(SuperviseError::Probe(error)) => error.into(),
            other => Self::own(other.to_string()),
        }
    }
}

/// The exit status after a recording: a command that did not end well has the say.
pub fn status(ended: Option<Exit>, weir_failed: bool, finding_fails: bool) -> u8 {
    match ended {
        Some(Exit::Code(code)) if code & 0xff != 0 => (code & 0xff) as u8,
        Some(Exit::Signal(number)) => 128u8.saturating_add(number.clamp(0, 127) as u8),
        _ if weir_failed => OWN,
        _ if finding_fails => FAILED,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_command_has_the_say() {
        assert_eq!(status(Some(Exit::Code(0)), false, false), 0);
        assert_eq!(status(Some(Exit::Code(3)), true, true), 3);
        assert_eq!(status(Some(Exit::Signal(9)), true, true), 137);
        assert_eq!(status(Some(Exit::Code(0)), false, true), 1);
        assert_eq!(status(Some(Exit::Code(0)), true, true), 125);
        assert_eq!(status(None, false, true), 1);
        assert_eq!(status(None, true, false), 125);
    }

    #[test]
    fn what_cannot_be_started_ends_as_with_env() {
        let of = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            Failure::from(weir_sys::Error::Command { command: "x".into(), source }).status
        };
        assert_eq!([of(2), of(13), of(8)], [127, 126, 126]);
        let error = weir_sys::Error::Backend { backend: "ebpf", reason: "no".into() };
        assert_eq!(Failure::from(error).status, 125);
    }
}
