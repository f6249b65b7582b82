//! Errors, as sentences for the user: the call, the file, the errno and what to do.

use std::io;

use rustix::io::Errno;
use weir_model::number::counted;

/// An error of the collector.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
    start_failure: Option<io::ErrorKind>,
}

impl Error {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), start_failure: None }
    }

    /// Returns why the command behind `--` did not start, if this is the error.
    pub fn start_failure(&self) -> Option<io::ErrorKind> {
        self.start_failure
    }

    /// Marks the error of an execve(2) of the command behind `--`.
    pub(crate) fn of_start(self, error: &io::Error) -> Self {
        Self { start_failure: Some(error.kind()), ..self }
    }

    /// Returns the error of a system call on something with a name.
    pub(crate) fn call(call: &str, name: &str, error: &io::Error, advice: &str) -> Self {
        Self::text(format!("{call} {name}: {}; {advice}", weir_sys::errno_text(error)))
    }

    pub(crate) fn write(name: &str, error: &io::Error, lost: u64) -> Self {
        Self::text(format!(
            "write {name}: {}; {} accepted but not in the log",
            weir_sys::errno_text(error),
            bytes_are(lost)
        ))
    }
}

/// Returns a path or a word as text for a message: on one line, with escapes for what a terminal would obey and for bytes that are no
/// UTF-8.
pub(crate) fn shown(path: impl AsRef<std::ffi::OsStr>) -> String {
    weir_model::Untrusted::of_os(path).to_string()
}

/// Returns a number of bytes with its verb: `1 byte is`, `2 bytes are`.
pub(crate) fn bytes_are(bytes: u64) -> String {
    format!("{} {}", counted(bytes, "byte"), if bytes == 1 { "is" } else { "are" })
}

/// Returns what to do about a write that failed.
pub(crate) fn write_advice(error: &io::Error) -> String {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull => "free space on the file system".into(),
        QuotaExceeded => "your quota is used up: remove files, or ask for a larger quota".into(),
        ReadOnlyFilesystem => "mount the file system writable".into(),
        FileTooLarge => format!("raise its limit: prlimit --pid {} --fsize=unlimited", std::process::id()),
        _ => "check the device (dmesg)".into(),
    }
}

/// Returns an errno as the standard library's error.
pub(crate) fn io_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw_os_error())
}
