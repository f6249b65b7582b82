//! Findings: problems of a program's input and output that `weir trace` reports.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Untrusted;
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

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Costs little and loses nothing.
    Info,
    /// Costs time or invites loss.
    Warn,
    /// Bytes are lost, doubled or torn, or most of the time is wasted.
    High,
}

/// Estimated savings of a fix.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Saved wall-clock time in seconds.
    pub elapsed_s: f64,
    /// Number of system calls that the fix saves.
    pub calls: u64,
}

/// A problem and its evidence. A rule never reports one from the name of a program alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    /// Process; 0 for none.
    pub pid: u32,
    /// Descriptor; -1 for none.
    pub fd: i32,
    /// Path of the file; may be empty.
    pub path: Untrusted,
    /// Figures that prove the finding, by name.
    pub evidence: BTreeMap<String, f64>,
    /// The problem, in a sentence.
    pub why: String,
    /// The fix, in a sentence or a command.
    pub fix: String,
    /// The `weir run` command of the fix; `None` if weir cannot help this program.
    #[serde(default)]
    pub command: Option<String>,
    /// Savings of the fix, if they can be estimated.
    pub gain: Option<Gain>,
    /// Savings of `command`, if they are estimated apart from those of a change of the code.
    #[serde(default)]
    pub command_gain: Option<Gain>,
    /// Call site that wrote the pending or lost bytes, or that makes most of the sampled small calls, if known.
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
