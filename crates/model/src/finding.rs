//! Findings: what `weir trace` reports as wrong with a program's input and output.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::CallSite;

/// Identifier of a kind of finding in JSON, in the labelled set and on the screen, for example `tiny-writes`. The rules of
/// `weir-diagnose` define the known identifiers; a document may hold one of another version of weir.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FindingId(Cow<'static, str>);

impl FindingId {
    /// Returns the identifier with this text, without a copy.
    pub const fn new(id: &'static str) -> Self {
        Self(Cow::Borrowed(id))
    }

    /// Returns the text of the identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialEq<str> for FindingId {
    fn eq(&self, id: &str) -> bool {
        self.0 == id
    }
}

impl PartialEq<&str> for FindingId {
    fn eq(&self, id: &&str) -> bool {
        self.0 == *id
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs time or invites loss.
    Warn,
    /// Bytes are lost, doubled or torn, or most of the time is wasted.
    High,
}

/// What following the fix would save.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Seconds.
    pub elapsed_s: f64,
    /// System calls.
    pub calls: u64,
}

/// One thing found, with its evidence; never made from a name alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// The process.
    pub pid: u32,
    /// The descriptor.
    pub fd: i32,
    /// Where it leads.
    pub path: String,
    /// The figures that prove it, by name.
    pub evidence: BTreeMap<String, f64>,
    /// What happens, in a sentence.
    pub why: String,
    /// What to do, in a sentence or a command.
    pub fix: String,
    /// What that saves, where it can be told.
    pub gain: Option<Gain>,
    /// Where the program wrote last what waited or was lost, where that is known.
    #[serde(default)]
    pub wrote: Option<CallSite>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_its_text_in_json() {
        let id = FindingId::new("tiny-writes");
        assert_eq!(serde_json::to_value(&id).unwrap(), "tiny-writes");
        assert_eq!(serde_json::from_str::<FindingId>("\"tiny-writes\"").unwrap(), id);
    }
}
