//! Properties of a stream: kind of file, direction, buffering mode, durability.

use serde::{Deserialize, Serialize};

/// Kind of file behind a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKind {
    /// A regular file (`S_IFREG`).
    File,
    /// A pipe or FIFO.
    Pipe,
    /// A socket of any family.
    Socket,
    /// A terminal or pseudo-terminal.
    Terminal,
    /// Another character or block device.
    Device,
    /// Anything else that has a descriptor: eventfd, epoll …
    Other,
}

/// Direction of the bytes, seen from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The program reads the bytes.
    In,
    /// The program writes the bytes.
    Out,
    /// The program reads and writes.
    Both,
}

/// Buffering mode: when a stream gives its bytes to the kernel. setvbuf(3) has the first three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Immediately (`_IONBF`).
    None,
    /// At each newline, or when the buffer is full (`_IOLBF`).
    Line,
    /// When the buffer is full (`_IOFBF`).
    Full,
    /// At the end of each record, never in the middle of one.
    Record,
    /// Several of these were observed.
    Mixed,
}

impl Mode {
    /// Returns the name on the command line and in JSON.
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

/// Events that written bytes survive. Each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// In the process's own memory: lost if the process is killed.
    Process,
    /// In shared memory, from which another process can recover them after a SIGKILL.
    Kill,
    /// In the kernel's page cache: survive the process, but not a power cut.
    Kernel,
    /// On the device and readable after a power cut: fdatasync(2), O_DSYNC.
    Data,
    /// On the device with all metadata and the directory entry: fsync(2) of file and directory.
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
    fn json_names_equal_command_line_names() {
        for mode in [Mode::None, Mode::Line, Mode::Full, Mode::Record, Mode::Mixed] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
    }
}
