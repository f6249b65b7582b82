//! The plan and the result of `weir run` (schema weir-run/1).
//!
//! Field names are the interface (docs/schemas/weir-run-1.schema.json).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Untrusted;
use crate::trace::Exit;

/// Value of [`RunDocument::schema`].
pub const SCHEMA: &str = "weir-run/1";

/// The document that `weir run --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The plan; flattened: `command`, `program`, `plan`.
    #[serde(flatten)]
    pub plan: RunPlan,
    /// The result; `None` if the command did not run (`--why=only`).
    #[serde(rename = "ended")]
    pub outcome: Option<RunOutcome>,
    /// Machine and settings, by name; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The plan for a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The command with the options that weir adds.
    pub command: Vec<String>,
    /// Properties of the command's program.
    pub program: ProgramProperties,
    /// One row for each option.
    #[serde(rename = "plan")]
    pub rows: Vec<PlanRow>,
}

/// Properties of a program that decide how weir can change its buffering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramProperties {
    /// Path of the file; `None` if there is no such file.
    pub path: Option<String>,
    /// Name of the runtime.
    pub runtime: String,
    /// The file is a script.
    pub script: bool,
    /// The file is a static executable, which loads no library.
    pub linked_statically: bool,
    /// The C library is musl.
    pub musl: bool,
    /// The file is for another architecture or a 32-bit one.
    pub foreign: bool,
    /// The file has set-user-ID or set-group-ID bits or capabilities.
    pub privileged: bool,
}

/// Means by which an option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Technique {
    /// The library that is loaded into the program.
    Library,
    /// The supervising parent, from outside of the process.
    Outside,
    /// An environment variable of the runtime.
    Environment,
    /// A command-line option of the program.
    Option,
    /// A pseudo-terminal instead of the file or pipe.
    Terminal,
    /// Nothing is needed, or nothing is possible.
    Nothing,
}

/// Degree to which an option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The option takes full effect.
    Whole,
    /// A substitute with a similar effect.
    StandIn,
    /// Part of the program only.
    Part,
    /// The program already behaves so.
    Already,
    /// The option cannot be honoured.
    Not,
}

/// An option and its effect on the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The option as on the command line.
    #[serde(rename = "wish")]
    pub option: String,
    /// Degree of the effect.
    pub effect: Effect,
    /// Means of the effect.
    pub technique: Technique,
    /// The action of weir, or the reason for none: a sentence without its full stop.
    pub text: String,
    /// The buffers of the program that the option does not reach: a noun phrase, for example `a bufio.Writer`. `None`
    /// if there are none.
    #[serde(default)]
    pub unreached: Option<String>,
}

impl PlanRow {
    /// Makes the row of an option that takes full effect.
    pub fn honoured(option: &str, technique: Technique, text: impl Into<String>) -> Self {
        Self { option: option.into(), effect: Effect::Whole, technique, text: text.into(), unreached: None }
    }

    /// Returns the row with another effect.
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Returns the row of an option that does not reach these buffers. A full effect becomes a partial one.
    pub fn without(mut self, unreached: Option<String>) -> Self {
        if unreached.is_some() && matches!(self.effect, Effect::Whole | Effect::Already) {
            self.effect = Effect::Part;
        }
        Self { unreached, ..self }
    }

    /// Makes the row of an option that cannot be honoured.
    pub fn refused(option: &str, text: impl Into<String>) -> Self {
        Self::honoured(option, Technique::Nothing, text).with_effect(Effect::Not)
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Exit of the command.
    pub exit: Exit,
    /// Bytes that weir wrote ahead of the program (`--max-delay`).
    pub emitted_bytes: u64,
    /// Bytes written after the death of their process, in the order of the deaths.
    pub rescued: Vec<RescuedBytes>,
    /// Sentences about options that weir could not honour.
    #[serde(rename = "unable")]
    pub limitations: Vec<String>,
}

/// Pending bytes of a stream that weir wrote after the process had died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedBytes {
    /// PID of the dead process.
    pub pid: u32,
    /// Name of the process.
    pub comm: Untrusted,
    /// Descriptor of the stream.
    pub fd: i32,
    /// Target of the descriptor's link in /proc.
    pub path: Untrusted,
    /// Number of bytes that weir wrote.
    pub bytes: u64,
    /// Exit of the process.
    pub exit: Exit,
    /// The file with the bytes if the target did not accept them; `None`: the target has them.
    pub saved: Option<SavedFile>,
}

/// A file with rescued bytes that their target did not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Path of the file. A report lies beside it, with `.txt` after the name.
    pub path: String,
    /// Why the target did not accept the bytes.
    pub why: String,
}
