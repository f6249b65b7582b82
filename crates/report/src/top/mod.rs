//! The live screen, the table and the document of `weir top`.

mod frame;
mod keys;
mod labels;
mod list;
mod once;
mod order;

#[cfg(test)]
mod tests;

use weir_model::top::{SCHEMA, Survey, TopDocument};

use crate::style::Style;

pub use frame::draw;
pub use once::blocks;
pub use order::{Selection, Sort};

/// State of the live screen.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct TopView<'a> {
    /// The last survey of all processes.
    pub survey: &'a Survey,
    pub selection: &'a Selection,
    /// PID that the keys act on.
    pub selected: Option<u32>,
    pub foot: Foot<'a>,
    pub paused: bool,
    /// Show the help from this line on, instead of the list.
    pub help: Option<usize>,
    /// Seconds between two surveys.
    pub interval_s: f64,
    pub style: Style,
}

/// Content of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Foot<'a> {
    Keys,
    /// The filter that the user is typing.
    Typing(&'a str),
    /// A question that the key y confirms.
    Question(&'a str),
    Message(&'a str),
}

/// Makes the document of a survey with at most `rows` processes.
pub fn document<'a>(survey: &'a Survey, selection: &'a Selection, rows: Option<usize>) -> TopDocument<'a> {
    let mut processes = selection.select(survey);
    let found = processes.len();
    let unanswered = processes.iter().filter(|one| one.unanswered).count();
    processes.truncate(rows.unwrap_or(usize::MAX));
    TopDocument {
        schema: SCHEMA,
        elapsed_s: survey.elapsed_s,
        cost_s: survey.cost_s,
        sort: selection.sort.name(),
        filter: &selection.filter,
        found,
        unanswered,
        left_out: survey.left_out,
        lacks_threads: survey.lacks_threads,
        hides_others: survey.hides_others,
        processes,
    }
}
