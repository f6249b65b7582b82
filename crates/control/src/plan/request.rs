//! The options of `weir run`.

use std::fmt;
use std::time::Duration;

use weir_model::Size;

/// The buffering of a stream. Its text is the argument of `--stdout` and the library's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BufferMode {
    None,
    Line,
    /// The size; None: the runtime's choice.
    Full(Option<Size>),
}

impl fmt::Display for BufferMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Line => f.write_str("line"),
            Self::Full(None) => f.write_str("full"),
            Self::Full(Some(size)) => write!(f, "full:{}", size.0),
        }
    }
}

/// A standard stream. Its number is the descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StandardStream {
    Input,
    Output,
    Error,
}

impl StandardStream {
    /// Returns the name in options and in the library's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "stdin",
            Self::Output => "stdout",
            Self::Error => "stderr",
        }
    }
}

/// The files whose tiny calls are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoalesceScope {
    /// Regular files, pipes, terminals and sockets.
    All,
    #[allow(missing_docs)]
    Files,
}

/// The options of one `weir run`. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRequest {
    /// A later mode of the same stream wins.
    pub modes: Vec<(StandardStream, BufferMode)>,
    /// A glob of file names and the mode of streams that the program opens on such files.
    pub files: Vec<(String, BufferMode)>,
    /// A stream's mode is `auto`: without other options the plan changes nothing.
    pub auto: bool,
    /// The modes hold even if the program calls setvbuf(3).
    pub force: bool,
    /// The longest time that a byte stays in the program.
    pub max_delay: Option<Duration>,
    #[allow(missing_docs)]
    pub coalesce: Option<CoalesceScope>,
    /// Write the pending bytes when the program dies or calls execve(2).
    pub rescue: bool,
    /// Write the bytes that are pending at a fork once.
    pub fix_fork: bool,
    /// Keep the program's order of stdio and write(2) on one descriptor.
    pub fix_order: bool,
    /// Children find standard input at its end.
    pub private_stdin: bool,
    /// Terminals replace standard output and standard error.
    pub pty: bool,
}

impl RunRequest {
    /// Returns whether there are no options, so that the recommended delay applies. `--force` alone changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self { force: self.force, ..Self::default() }
    }

    /// Returns the mode of a standard stream.
    pub fn mode(&self, stream: StandardStream) -> Option<BufferMode> {
        self.modes.iter().rev().find(|(of, _)| *of == stream).map(|(_, mode)| *mode)
    }
}
