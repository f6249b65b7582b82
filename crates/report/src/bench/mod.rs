//! The reports of `weir bench` and `weir bench compare`.

mod answers;
mod compare;
mod csv;
mod curves;
mod export;
mod header;
mod labels;
mod lead;
mod lines;
mod notes;
mod overview;
mod page;
mod pictures;
mod published;
mod rows;
mod section;
mod trend;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use weir_model::bench::BenchDocument;
use weir_model::bench::compare::BenchComparison;

use crate::block::Block;
use crate::style::Style;
use crate::{markdown, terminal};

pub use compare::{blocks_compare, csv_compare};
pub use csv::csv;
pub use export::{ExportFormat, export, export_compare};
pub use page::{page, page_compare, page_title};
pub use trend::{blocks_trend, csv_trend, markdown_trend, page_trend, screen_trend, trend_title};

/// Number of groups that fit on about one screen; more groups get an overview table at the end.
const GROUPS_WITHOUT_OVERVIEW: usize = 3;

/// Returns all blocks of a run in reading order.
pub fn blocks(document: &BenchDocument) -> Vec<Block> {
    let sections = section::sections(document);
    let mut blocks = Vec::new();
    let alone = sections.len() == 1;
    if !alone {
        blocks.push(Block::Title(header::command(document)));
        blocks.extend(header::blocks(document));
    }
    for (number, section) in sections.iter().enumerate() {
        blocks.push(Block::Title(labels::title(section.key())));
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
    if sections.len() > GROUPS_WITHOUT_OVERVIEW {
        blocks.extend(overview::blocks(&sections));
    }
    blocks.extend(document.published.iter().flat_map(published::blocks));
    blocks.extend(document.warnings.iter().cloned().map(Block::Warning));
    blocks
}

/// Returns a run as text for a terminal.
pub fn screen(document: &BenchDocument, style: &Style) -> String {
    terminal::text(&blocks(document), style)
}

/// Returns a run as GitHub-flavoured Markdown.
pub fn markdown(document: &BenchDocument) -> String {
    markdown::text(&blocks(document))
}

/// Returns a comparison as text for a terminal.
pub fn screen_compare(comparison: &BenchComparison, style: &Style) -> String {
    terminal::text(&blocks_compare(comparison), style)
}

/// Returns a comparison as GitHub-flavoured Markdown.
pub fn markdown_compare(comparison: &BenchComparison) -> String {
    markdown::text(&blocks_compare(comparison))
}
