//! The result of `weir lab` (schema weir-lab/1).
//!
//! Field names are the interface (docs/schemas/weir-lab-1.schema.json).

pub mod check;
mod frame;
mod page;
pub mod published;
pub mod step;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use frame::{FrameBox, FrameLine, LabFrame, SteppedRun};
pub use page::{JudgedPrediction, LabLine, LabPage, ObservedValue, PageOutcome};
pub use published::{PublishedFigure, PublishedTable};

/// Value of [`LabDocument::schema`].
pub const SCHEMA: &str = "weir-lab/1";

/// The themes of the experiments: letter and title.
pub const THEMES: [(&str, &str); 6] = [
    ("A", "what a call costs"),
    ("B", "where the bytes are"),
    ("C", "several programs, one file"),
    ("D", "past the C library"),
    ("E", "devices"),
    ("F", "choosing"),
];

/// The document that `weir lab --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run used `--quick`.
    pub quick: bool,
    /// Machine and settings, by name; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// One row for each experiment.
    pub experiments: Vec<LabRow>,
}

impl LabDocument {
    /// Makes a document without experiments.
    pub fn new(quick: bool) -> Self {
        Self { schema: SCHEMA.into(), quick, environment: BTreeMap::new(), experiments: Vec::new() }
    }
}

/// One experiment and its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabRow {
    /// Name of the experiment's folder.
    pub name: String,
    /// Letter of the theme, `A` to `F`.
    pub theme: String,
    /// One-line description in the list.
    pub about: String,
    /// The result that most people expect.
    pub expected: String,
    /// Outcomes of the broken program, or of the only one, in one line.
    pub seen: String,
    /// The cause of the result; empty in a document of an older weir.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The change that removes the fault; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// The outcomes are as lab.toml states; `None` if this machine cannot run the experiment.
    pub agrees: Option<bool>,
    /// The difference, or the reason why the experiment did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Wall-clock seconds of the whole experiment.
    pub elapsed_s: f64,
    /// Outcomes of both programs.
    pub outcomes: Vec<LabOutcome>,
    /// Published tables beside this machine's figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PublishedTable>,
    /// Documents of schema weir-trace/1 that the check made, by `VERSION/FILE`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub trace: Map<String, Value>,
    /// Documents of schema weir-bench/1 that the check made, by `VERSION/FILE`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub bench: Map<String, Value>,
    /// Runs of the programs, call by call (`--step`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<SteppedRun>,
}

/// One of the two programs of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramVersion {
    /// The program with the fault.
    Broken,
    /// The program without the fault.
    Fixed,
}

impl ProgramVersion {
    /// Returns the stem of the version's file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Fixed => "fixed",
        }
    }
}

/// One observation of one version beside the statement of lab.toml.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabOutcome {
    /// The version that the check observed.
    pub version: ProgramVersion,
    /// Name of the observed quantity.
    pub what: String,
    /// The value that most people expect; empty if there is no expectation.
    pub expected: String,
    /// Value or pattern that lab.toml states.
    pub stated: String,
    /// Value that the check printed.
    pub seen: String,
    /// `seen` fits `stated`.
    pub agrees: bool,
    /// `seen` fits `expected`, or there is no expectation.
    #[serde(default = "yes")]
    pub as_expected: bool,
}

fn yes() -> bool {
    true
}

/// Result of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabVerdict {
    /// All outcomes are as stated.
    Agrees,
    /// An outcome differs from its statement; the text names it.
    Differs(String),
    /// This machine cannot run the experiment; the text says why.
    Absent(String),
}

impl LabVerdict {
    /// Returns whether the outcomes are as stated; `None` if the experiment did not run.
    pub fn agrees(&self) -> Option<bool> {
        match self {
            Self::Agrees => Some(true),
            Self::Differs(_) => Some(false),
            Self::Absent(_) => None,
        }
    }

    /// Returns the difference, or why the experiment did not run.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Agrees => None,
            Self::Differs(reason) | Self::Absent(reason) => Some(reason),
        }
    }
}

/// Result of the last run of an experiment on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousRun {
    /// Time of the run in seconds since 1970.
    pub at_s: u64,
    /// The run used `--quick`.
    pub quick: bool,
    /// As in [`LabRow::agrees`].
    pub agrees: Option<bool>,
}

impl PreviousRun {
    /// Returns the seconds from the run to `now_s`; 0 if the clock was set back.
    pub fn age_s(&self, now_s: u64) -> u64 {
        now_s.saturating_sub(self.at_s)
    }
}
