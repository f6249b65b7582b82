//! Runs a program under stdbuf, unbuffer or weir and observes when its output arrives.

pub mod set;
pub mod watch;

use set::{Cell, Mode};

/// The tool that makes a program's output timely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Bare,
    Stdbuf,
    Unbuffer,
    Weir,
}

/// The fate of the first line, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    Timely,
    Late,
    Lost,
    DoesNotStart,
}

impl Arrival {
    pub fn word(self) -> &'static str {
        match self {
            Self::Timely => "timely",
            Self::Late => "late",
            Self::Lost => "lost",
            Self::DoesNotStart => "does not start",
        }
    }
}

/// Returns the shell command for a cell.
pub fn command(cell: &Cell, tool: Tool) -> String {
    let argument = match cell.mode {
        _ if cell.program.filter => "",
        Mode::None => " n",
        Mode::Kill => " k",
        Mode::Line | Mode::Delay | Mode::Force => "",
    };
    let program = format!("{}{argument}", cell.program.run);
    let prefix = match (tool, cell.mode) {
        (Tool::Bare, _) => String::new(),
        (Tool::Stdbuf, Mode::None) => "stdbuf -o0 ".into(),
        // Line buffering is the nearest mode that stdbuf has.
        (Tool::Stdbuf, _) => "stdbuf -oL ".into(),
        (Tool::Unbuffer, _) if cell.program.filter => "unbuffer -p ".into(),
        (Tool::Unbuffer, _) => "unbuffer ".into(),
        (Tool::Weir, mode) => {
            let options = match mode {
                Mode::Line => "-oL ",
                Mode::None => "-o0 ",
                Mode::Delay => "",
                Mode::Kill => "--rescue ",
                Mode::Force => "--line ",
            };
            format!("{} run --quiet {options}-- ", super::common::WEIR)
        }
    };
    format!("exec {prefix}{program}")
}
