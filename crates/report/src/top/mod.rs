//! What `weir top` shows of a [`Survey`]: the live screen, the table of one look, JSON.

mod frame;
mod keys;
mod list;
mod once;
mod order;
mod words;

#[cfg(test)]
mod tests;

use weir_model::top::{SCHEMA, Survey, TopDocument};

use crate::style::Style;

pub use frame::draw;
pub use once::blocks;
pub use order::{Selection, Sort};

/// All that the live screen shows.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What was seen last.
    pub survey: &'a Survey,
    /// Which processes, in which order.
    pub selection: &'a Selection,
    /// The process that the keys are about.
    pub selected: Option<u32>,
    /// What the lowest line says or asks.
    pub foot: Foot<'a>,
    /// No new look is taken.
    pub paused: bool,
    /// The keys are explained.
    pub help: bool,
    /// Between two looks.
    pub interval_s: f64,
    /// What the terminal can show.
    pub style: Style,
}

/// The lowest line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foot<'a> {
    /// The keys.
    Keys,
    /// A filter is being typed.
    Typing(&'a str),
    /// A question that y answers.
    Question(&'a str),
    /// Something to know.
    Message(&'a str),
}

/// Makes the document of a survey with at most `rows` processes.
pub fn document<'a>(survey: &'a Survey, selection: &'a Selection, rows: Option<usize>) -> TopDocument<'a> {
    let mut processes = selection.of(survey);
    let found = processes.len();
    processes.truncate(rows.unwrap_or(usize::MAX));
    TopDocument {
        schema: SCHEMA,
        elapsed_s: survey.elapsed_s,
        cost_s: survey.cost_s,
        sort: selection.sort.name(),
        filter: &selection.filter,
        found,
        processes,
    }
}
