//! What `weir run --json` writes: schema weir-run/1, described in docs/schemas.

use serde::{Deserialize, Serialize};
use weir_model::trace::Exit;

/// The name of the schema.
pub const SCHEMA: &str = "weir-run/1";

/// A run of `weir run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was done about each wish.
    #[serde(flatten)]
    pub why: Why,
    /// What came of it; None: the command was not run.
    pub ended: Option<Ended>,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The command, with options that were added.
    pub command: Vec<String>,
    /// What it was found to be.
    pub program: Program,
    /// Every wish.
    #[serde(rename = "plan")]
    pub rows: Vec<Row>,
}

/// What a command was found to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its file; None: it was not found.
    pub path: Option<String>,
    /// What runs it.
    pub runtime: String,
    /// It is a script.
    pub script: bool,
    /// No library can be loaded into it.
    pub linked_statically: bool,
    /// Its C library is musl.
    pub musl: bool,
    /// It is for another architecture, or of 32 bits.
    pub foreign: bool,
    /// It runs with another user's rights.
    pub privileged: bool,
}

/// A wish and what becomes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// As an option.
    pub wish: String,
    /// whole, stand-in, part, already, not.
    pub effect: String,
    /// library, outside, environment, option, terminal, nothing.
    pub technique: String,
    /// What is done, or why nothing can be.
    pub text: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// How the command ended.
    pub exit: Exit,
    /// Bytes that were written ahead of their programs.
    pub emitted_bytes: u64,
    /// What outlived its process.
    pub rescued: Vec<Rescued>,
    /// What could not be done, a sentence each.
    pub unable: Vec<String>,
}

/// Bytes of a stream that outlived their process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rescued {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// The descriptor.
    pub fd: i32,
    /// Where it led.
    pub path: String,
    /// How many.
    pub bytes: u64,
    /// How the process ended.
    pub exit: Exit,
    /// Where they are; None: where they were meant for.
    pub saved: Option<Saved>,
}

/// A file with bytes that had nowhere to go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// The file.
    pub path: String,
    /// Why the target did not take them.
    pub why: String,
}
