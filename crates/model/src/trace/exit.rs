//! The exit of a process.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// The process called exit(2) with this status.
    Code(i32),
    /// The process was killed by this signal.
    Signal(i32),
}

/// Returns the name of a usual signal, else its number.
pub fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.into()
}

impl fmt::Display for Exit {
    /// Writes `exit status 3` or `SIGKILL`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(status) => write!(out, "exit status {status}"),
            Exit::Signal(number) => out.write_str(&signal_name(*number)),
        }
    }
}

impl Exit {
    /// Decodes the status of wait(2) for a process that has terminated.
    pub fn of_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code(status >> 8 & 0xff),
            signal => Self::Signal(signal),
        }
    }
}
