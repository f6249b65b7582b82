//! The pictures of a group of rows.

mod curves;
mod figures;
mod heat;
mod rounds;
mod stacked;

pub(super) use curves::{per_call, published, residuals, sweep};
pub(super) use figures::{compared, forest, samples};
pub(super) use heat::heat;
pub(super) use rounds::drift;
pub(super) use stacked::stacked;

use super::section::Section;
use crate::scale::{Axis, Spacing, Unit};

/// Rows of a picture with one line for each row. More do not fit on a screen; the table has all.
const MAX_ROWS: usize = 60;

const LOG_BYTES: Axis = Axis { spacing: Spacing::Log, unit: Unit::Bytes };
const LOG_SECONDS: Axis = Axis { spacing: Spacing::Log, unit: Unit::Seconds };
const LOG_NUMBER: Axis = Axis { spacing: Spacing::Log, unit: Unit::Number };
const COUNT: Axis = Axis { spacing: Spacing::Linear, unit: Unit::Count };
const NUMBER: Axis = Axis { spacing: Spacing::Linear, unit: Unit::Number };

/// Returns the legend of a group: its curves by series number.
fn legend(section: &Section) -> Vec<(usize, String)> {
    section.variants.iter().cloned().enumerate().collect()
}

/// Returns a clause for a picture that lacks rows.
fn left_out(rows: usize) -> String {
    match rows.saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => format!(" {more} more rows are in the table only."),
    }
}
