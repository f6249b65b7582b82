//! What a program's stream is: where it leads, which way, how it is buffered, what a kill costs.

use serde::{Deserialize, Serialize};

/// What is behind a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKind {
    /// A regular file.
    File,
    /// A pipe or FIFO.
    Pipe,
    /// A socket of any family.
    Socket,
    /// A terminal or pseudo-terminal.
    Terminal,
    /// Another character or block device.
    Device,
    /// Anything else the kernel numbers: eventfd, epoll, …
    Other,
}

/// Which way bytes flow, seen from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Into the program.
    In,
    /// Out of the program.
    Out,
    /// Both.
    Both,
}

/// When a stream hands its bytes to the kernel; setvbuf(3) has the first three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// At once (`_IONBF`).
    None,
    /// At each newline, or when the buffer is full (`_IOLBF`).
    Line,
    /// When the buffer is full (`_IOFBF`).
    Full,
    /// At the end of each record, never in the middle of one.
    Record,
    /// Seen to do more than one of these.
    Mixed,
}

impl Mode {
    /// The word on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Line => "line",
            Self::Full => "full",
            Self::Record => "record",
            Self::Mixed => "mixed",
        }
    }
}

/// What written bytes outlive; each rung includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// In the process's own memory: a kill loses them.
    Process,
    /// In memory that a SIGKILL leaves to somebody else.
    Kill,
    /// In the kernel's page cache: the end of the process does not matter, a power cut does.
    Kernel,
    /// On the device, readable after a power cut: fdatasync(2), O_DSYNC.
    Data,
    /// The same with all metadata and the directory entry: fsync(2) of file and directory.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_is_ordered() {
        use Durability::*;
        assert!(Process < Kill && Kill < Kernel && Kernel < Data && Data < Full);
    }

    #[test]
    fn words_in_json_are_the_words_on_the_command_line() {
        for mode in [Mode::None, Mode::Line, Mode::Full, Mode::Record, Mode::Mixed] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
    }
}
