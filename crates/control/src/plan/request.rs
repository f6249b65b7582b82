//! What the user of `weir run` asks for.

use std::fmt;
use std::time::Duration;

use weir_model::Size;

/// How a stream is to be buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferMode {
    /// Not at all.
    None,
    /// Out at each end of a line.
    Line,
    /// Out when the buffer is full; its size, where one is asked for.
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

/// One of the three streams that every program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

impl StandardStream {
    /// As in the options and in the library's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "stdin",
            Self::Output => "stdout",
            Self::Error => "stderr",
        }
    }
}

/// Which tiny calls are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoalesceScope {
    /// Those on everything.
    All,
    /// Those on regular files.
    Files,
}

/// All that was asked for; nothing by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRequest {
    /// Modes of standard streams.
    pub modes: Vec<(StandardStream, BufferMode)>,
    /// Modes of files that the program opens, by a pattern of their names.
    pub files: Vec<(String, BufferMode)>,
    /// The modes hold also against a program that sets its own.
    pub force: bool,
    /// No byte waits longer than this in the program.
    pub max_delay: Option<Duration>,
    /// Gather tiny calls.
    pub coalesce: Option<CoalesceScope>,
    /// What waits when the program dies, or becomes another, gets to where it was meant for.
    pub rescue: bool,
    /// What waits at a fork is written once.
    pub fix_fork: bool,
    /// A stream and write(2) on one descriptor keep the program's order.
    pub fix_order: bool,
    /// Children do not read the program's standard input.
    pub private_stdin: bool,
    /// Terminals for standard output and standard error.
    pub pty: bool,
}

impl RunRequest {
    /// Nothing at all was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self { force: self.force, ..Self::default() }
    }

    /// The mode of a standard stream, the last one that was asked for.
    pub fn mode(&self, stream: StandardStream) -> Option<BufferMode> {
        self.modes.iter().rev().find(|(of, _)| *of == stream).map(|(_, mode)| *mode)
    }
}
