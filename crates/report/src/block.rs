//! The parts of a report, independent of how they are drawn.

use weir_model::Severity;

use crate::plot::Plot;
use crate::table::Table;

/// One part of a report.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Block {
    Title(String),
    /// The most important sentence.
    Lead(String),
    /// The conclusion, one sentence or command a line. A terminal shows it with the prefix `weir: `, because it may
    /// appear among the output of the traced program.
    Verdict(Vec<String>),
    Text(String),
    /// A sentence of detail, drawn faint.
    Aside(String),
    /// Short details on one line, drawn faint.
    Facts(Vec<String>),
    Answer {
        question: String,
        answer: String,
    },
    /// A row that could not be measured, and the reason.
    Missing {
        what: String,
        why: String,
    },
    /// A reason to doubt the figures.
    Warning(String),
    Finding(FindingBlock),
    Table(Table),
    Plot(Plot),
    /// Lines that are drawn without wrapping.
    Picture(Vec<String>),
}

/// A finding as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FindingBlock {
    pub severity: Severity,
    /// Identifier of the finding.
    pub name: String,
    /// Process, descriptor and path of the stream.
    pub stream: String,
    /// Labels (`why`, `fix`, `gain` …) with their texts.
    pub facts: Vec<(&'static str, String)>,
    /// Other files with the same finding, which a page lists in a closed part.
    pub files: Vec<String>,
}

impl FindingBlock {
    /// Returns the word for the severity; in capitals for the two that need action.
    pub fn level(&self) -> &'static str {
        match self.severity {
            Severity::High => "HIGH",
            Severity::Warn => "WARN",
            Severity::Info => "info",
        }
    }

    /// Returns whether the reader copies the text, so that it must not be wrapped. Code of one line may be a sentence.
    pub(crate) fn is_verbatim(&self, name: &str, text: &str) -> bool {
        name == "run" || name == "code" && text.contains('\n')
    }
}

/// Returns whether two blocks follow each other without a blank line.
pub(crate) fn belongs_to(previous: &Block, next: &Block) -> bool {
    use Block::{Answer, Aside, Facts, Lead, Missing, Table, Text, Title, Verdict, Warning};
    matches!(
        (previous, next),
        (Title(_) | Verdict(_) | Aside(_) | Facts(_) | Missing { .. }, Aside(_) | Facts(_))
            | (Lead(_), Lead(_))
            | (Text(_), Text(_) | Aside(_) | Facts(_))
            | (Answer { .. }, Answer { .. })
            | (Table(_) | Missing { .. }, Missing { .. })
            | (Table(_), Aside(_) | Facts(_))
            | (Warning(_), Warning(_))
    )
}

/// Returns whether a line of the verdict is the command to type, also in another directory.
pub(crate) fn is_command(line: &str) -> bool {
    line.starts_with("weir run ") || line.starts_with("cd ") && line.contains(" && weir run ")
}
