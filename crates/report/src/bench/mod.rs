//! What `weir bench` shows of a [`BenchDocument`], and `weir bench compare` of a [`BenchComparison`].

mod answers;
mod compare;
mod csv;
mod curves;
mod header;
mod lead;
mod notes;
mod overview;
mod published;
mod rows;
mod section;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use weir_model::bench::BenchDocument;
use weir_model::bench::compare::BenchComparison;

use crate::block::Block;
use crate::style::Style;
use crate::{markdown, terminal};

pub use compare::{blocks_compare, csv_compare};
pub use csv::csv;

/// More groups than this are put side by side at the end.
const GROUPS_AT_A_GLANCE: usize = 3;

/// Everything that is to be said of a run, in the order of reading.
pub fn blocks(document: &BenchDocument) -> Vec<Block> {
    let sections = section::sections(document);
    let mut blocks = Vec::new();
    let alone = sections.len() == 1;
    if !alone {
        blocks.push(Block::Title(header::command(document)));
        blocks.extend(header::blocks(document));
    }
    for (number, section) in sections.iter().enumerate() {
        blocks.push(Block::Title(words::title(section.key())));
        if alone {
            blocks.extend(header::blocks(document));
        }
        blocks.extend(lead::lead(section).map(Block::Lead));
        let table = rows::table(section);
        blocks.extend((!table.rows.is_empty()).then_some(Block::Table(table)));
        blocks.extend(notes::missing(section));
        blocks.extend(notes::asides(section));
        blocks.extend(curves::plot(section).map(Block::Plot));
        blocks.extend(answers::model(section));
        blocks.extend(answers::answers(document, number));
    }
    blocks.extend(answers::strays(document, sections.len()));
    if sections.len() > GROUPS_AT_A_GLANCE {
        blocks.extend(overview::blocks(&sections));
    }
    blocks.extend(document.published.iter().flat_map(published::blocks));
    blocks.extend(document.warnings.iter().cloned().map(Block::Warning));
    blocks
}

/// The run as a terminal shows it.
pub fn screen(document: &BenchDocument, style: &Style) -> String {
    terminal::text(&blocks(document), style)
}

/// The run as GitHub shows it.
pub fn markdown(document: &BenchDocument) -> String {
    markdown::text(&blocks(document))
}

/// Two runs as a terminal shows them.
pub fn screen_compare(comparison: &BenchComparison, style: &Style) -> String {
    terminal::text(&blocks_compare(comparison), style)
}

/// Two runs as GitHub shows them.
pub fn markdown_compare(comparison: &BenchComparison) -> String {
    markdown::text(&blocks_compare(comparison))
}
