//! What a report is made of, before anyone has decided how it is drawn.

use crate::plot::Plot;
use crate::table::Table;

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the following is about.
    Title(String),
    /// What to read if only one line is read.
    Lead(String),
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
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
}

/// Blocks that follow each other without a blank line share a number.
pub(crate) fn belongs_to(previous: &Block, next: &Block) -> bool {
    use Block::{Answer, Aside, Facts, Lead, Missing, Table, Text, Title, Warning};
    matches!(
        (previous, next),
        (Title(_) | Aside(_) | Facts(_) | Missing { .. }, Aside(_) | Facts(_))
            | (Lead(_), Lead(_))
            | (Text(_), Text(_) | Aside(_))
            | (Answer { .. }, Answer { .. })
            | (Table(_) | Missing { .. }, Missing { .. })
            | (Table(_), Aside(_) | Facts(_))
            | (Warning(_), Warning(_))
    )
}
