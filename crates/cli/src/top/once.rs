//! One look: two samples with an interval between them.

use std::path::Path;
use std::time::Duration;

use weir_bench::Error;
use weir_model::survey::Survey;
use weir_probe::survey::{Scope, Surveyor};
use weir_report::top::{Selection, blocks};

use crate::screen;

/// Rows of the table, if nothing else is asked for.
const ROWS: usize = 20;

/// What happened within the interval.
pub fn run(scope: Scope, interval: Duration) -> Survey {
    let mut surveyor = Surveyor::new(scope);
    surveyor.sample();
    std::thread::sleep(interval);
    surveyor.sample()
}

/// The table.
pub fn print(survey: &Survey, selection: &Selection, rows: Option<usize>) -> Result<(), String> {
    let blocks = blocks(survey, selection, rows.unwrap_or(ROWS));
    let text = weir_report::terminal::text(&blocks, &screen::style());
    screen::print(&text).map_err(|error| {
        Error::system("write", Path::new("standard output"), &error, "choose another file").to_string()
    })
}
