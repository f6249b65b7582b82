mod export;
mod headline;
mod screen;

use crate::style::Style;

fn at(width: usize) -> Style {
    Style { width, ..Style::default() }
}
