//! What lab.toml says of an experiment.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use weir_model::lab::ProgramVersion;

/// An experiment, as its lab.toml describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name, which is that of the folder.
    #[serde(skip)]
    pub name: String,
    /// Where its files are, if they are not in the binary.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// To which part of the book it belongs.
    pub theme: Theme,
    /// What happens, in one line of the list.
    pub about: String,
    /// What most people would expect.
    pub expect: String,
    /// Why it is otherwise.
    pub why: String,
    /// What to do about it.
    #[serde(default)]
    pub fix: String,
    /// The finding of `weir trace` that the broken program shows, and the fixed one does not.
    pub finding: Option<String>,
    /// The engine of `weir trace` without which the finding is not judged: the run is too short beside what others cost.
    pub finding_engine: Option<String>,
    /// Commands without which it cannot be run.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A device without which it cannot be run.
    pub device: Option<String>,
    /// Whether it needs root.
    #[serde(default)]
    pub root: bool,
    /// The verb that is the whole fix and is not built yet.
    pub later: Option<String>,
    /// Whether it measures, and so runs beside nothing else.
    #[serde(default)]
    pub alone: bool,
    /// Published tables that it measures too, as `weir bench --list` names them; a full run then has them whole.
    #[serde(default)]
    pub published: Vec<String>,
    /// Flags for the compiler beside `-O1`.
    #[serde(default)]
    pub cflags: Vec<String>,
    /// How long one version may take, seconds.
    #[serde(default = "limit_s")]
    pub limit_s: u64,
    /// The shell line that `--step` goes through, where it is not `"$PROGRAM" >file`.
    pub step: Option<String>,
    /// What the check sees, and what that should be.
    pub outcome: Vec<Outcome>,
}

fn limit_s() -> u64 {
    20
}

impl Experiment {
    /// Whether it says anything of this version.
    pub fn has(&self, version: ProgramVersion) -> bool {
        self.outcome.iter().any(|outcome| match version {
            ProgramVersion::Broken => outcome.broken.is_some(),
            ProgramVersion::Fixed => outcome.fixed.is_some(),
        })
    }
}

/// One thing that the check of both versions says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The quantity, as check.sh prints it before the tab.
    pub what: String,
    /// The value that most people expect; empty if there is no common expectation.
    #[serde(default)]
    pub expect: String,
    /// What the broken program brings, a pattern of [`crate::judge`].
    pub broken: Option<String>,
    /// What the fixed one brings.
    pub fixed: Option<String>,
}

/// The parts of the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Theme {
    /// The cost of a call.
    A,
    /// Where the bytes are: loss and order.
    B,
    /// Several programs writing to one file.
    C,
    /// The kernel and the device.
    D,
    /// Sensors and other devices.
    E,
    /// How to choose a method.
    F,
}

impl Theme {
    /// Returns the heading of the theme.
    pub fn title(self) -> &'static str {
        match self {
            Theme::A => "what a call costs",
            Theme::B => "where the bytes are",
            Theme::C => "several programs, one file",
            Theme::D => "past the C library",
            Theme::E => "devices",
            Theme::F => "choosing",
        }
    }
}

impl fmt::Display for Theme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}
