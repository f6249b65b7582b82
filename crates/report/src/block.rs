//! What a report is made of, before anyone has decided how it is drawn.

use weir_model::Severity;

use crate::plot::Plot;
use crate::table::Table;

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the following is about.
    Title(String),
    /// What to read if only one line is read.
    Lead(String),
    /// What all comes to, a sentence or command a line: with weir's name, as it stands among others' output.
    Verdict(Vec<String>),
    /// A sentence.
    Text(String),
    /// A sentence for those who want to know.
    Aside(String),
    /// Short facts for those who want to know, one behind the other.
    Facts(Vec<String>),
    /// A question and what the figures answer.
    Answer {
        /// What one would ask.
        question: String,
        /// What the figures say.
        answer: String,
    },
    /// Something that could not be had, and why.
    Missing {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
    /// What to know before trusting the figures.
    Warning(String),
    /// Something that is wrong, with what to do about it.
    Finding(Finding),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
    /// Lines that are drawn as they are.
    Picture(Vec<String>),
}

/// What a finding shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Its identifier.
    pub name: String,
    /// The stream it is about.
    pub place: String,
    /// What there is to say: names (`why`, `fix`, `gain` …) with their texts.
    pub facts: Vec<(&'static str, String)>,
}

impl Finding {
    /// The word for how much it matters: loud only where bytes are lost or most of the time.
    pub fn level(&self) -> &'static str {
        match self.severity {
            Severity::High => "HIGH",
            Severity::Warn => "WARN",
            Severity::Info => "info",
        }
    }

    /// Is the fact to be typed or pasted as it is? Code in one line may be a sentence about it.
    pub(crate) fn is_verbatim(&self, name: &str, text: &str) -> bool {
        name == "run" || name == "code" && text.contains('\n')
    }
}

/// Blocks that follow each other without a blank line share a number.
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
