//! The contents of lab.toml.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use weir_model::lab::{ProgramVersion, THEMES};

/// An experiment, as its lab.toml describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the experiment and of its folder.
    #[serde(skip)]
    pub name: String,
    /// The folder, for an experiment that is not in the binary.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// The part of the documentation to which the experiment belongs.
    pub theme: Theme,
    /// The result in one line, for the list.
    pub about: String,
    /// The result that most people expect.
    pub expect: String,
    /// The cause of the result.
    pub why: String,
    /// The change that removes the fault.
    #[serde(default)]
    pub fix: String,
    /// The finding of `weir trace` for the broken program; the fixed program must not have it.
    pub finding: Option<String>,
    /// The engine of `weir trace` that the finding needs, because the run is short compared with the start-up of other
    /// engines. With another engine the finding is not judged.
    pub finding_engine: Option<String>,
    /// Commands that must be installed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A device that must exist.
    pub device: Option<String>,
    /// Whether the experiment needs root.
    #[serde(default)]
    pub root: bool,
    /// Whether the experiment measures times, and therefore must not run in parallel with others.
    #[serde(default)]
    pub alone: bool,
    /// Published tables that a full run measures completely, named as in `weir bench --list`.
    #[serde(default)]
    pub published: Vec<String>,
    /// Flags of the compiler in addition to `-O1`.
    #[serde(default)]
    pub cflags: Vec<String>,
    /// Time limit of one version in seconds.
    #[serde(default = "limit_s")]
    pub limit_s: u64,
    /// The shell command for `--step`; the default is `"$PROGRAM" >file`.
    pub step: Option<String>,
    /// The quantities that the check reports, with their stated values.
    pub outcome: Vec<Outcome>,
}

fn limit_s() -> u64 {
    20
}

impl Experiment {
    /// Returns whether the experiment states a value for this version.
    pub fn has(&self, version: ProgramVersion) -> bool {
        self.outcome.iter().any(|outcome| match version {
            ProgramVersion::Broken => outcome.broken.is_some(),
            ProgramVersion::Fixed => outcome.fixed.is_some(),
        })
    }
}

/// One quantity that the check reports for both versions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The quantity, as check.sh prints it before the tab.
    pub what: String,
    /// The commonly expected value; empty if there is none.
    #[serde(default)]
    pub expect: String,
    /// The stated value of the broken program, a pattern of [`crate::judge`].
    pub broken: Option<String>,
    /// The stated value of the fixed program, a pattern of [`crate::judge`].
    pub fixed: Option<String>,
}

/// The themes under which the experiments are listed.
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
        THEMES[self as usize].1
    }

    /// Returns letter and title: `B · where the bytes are`.
    pub fn heading(self) -> String {
        format!("{self} · {}", self.title())
    }
}

impl fmt::Display for Theme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}
