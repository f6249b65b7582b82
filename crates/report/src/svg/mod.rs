//! Pictures as SVG. A picture is drawn twice, for a wide screen and for a phone, because text in a scaled picture is too
//! small to read. Colours are classes, so that the page's style decides them for light, dark and print.

mod bars;
mod chart;
mod markup;
mod rows;

pub use bars::{BarRow, BarsText, bars};
pub use chart::{Chart, VerticalMark};
pub use markup::{Svg, escape};
pub use rows::RowChart;
pub(crate) use rows::shortened;

/// Width of the wide drawing in CSS pixels: a laptop's column of text.
pub const WIDE: f64 = 760.0;
/// Width of the narrow drawing: a phone of 390 pixels without the page's margins.
pub const NARROW: f64 = 350.0;
/// Width of a digit of a figure in pixels. Figures have 12 pixels.
pub const DIGIT: f64 = 7.7;
/// Series with a colour and a shape of their own; further series repeat them.
pub const SERIES_COLOURS: usize = 8;

/// One picture of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Name in file names and links: letters, digits and hyphens.
    pub id: String,
    /// Heading of the picture.
    pub title: String,
    /// Sentences that say what the picture shows and how to read it.
    pub description: String,
    /// Series and their names; empty for a picture without series.
    pub legend: Vec<(usize, String)>,
    /// The drawing for [`WIDE`].
    pub wide: String,
    /// Height of `wide` in pixels.
    pub wide_height: f64,
    /// The drawing for [`NARROW`].
    pub narrow: String,
}

impl Picture {
    /// Draws a picture with `draw`, which gets the width and returns the drawing.
    pub fn new(
        id: &str,
        title: &str,
        description: &str,
        legend: Vec<(usize, String)>,
        draw: impl Fn(f64) -> Svg,
    ) -> Self {
        let [wide, narrow] = [WIDE, NARROW].map(draw);
        Self {
            id: id.into(),
            title: title.into(),
            description: description.into(),
            legend,
            wide_height: wide.height,
            wide: wide.finish(title, description),
            narrow: narrow.finish(title, description),
        }
    }
}

/// Returns the class of a series: its colour.
pub fn series_class(series: usize) -> String {
    format!("s{}", series % SERIES_COLOURS)
}

#[cfg(test)]
mod tests;
