//! Capabilities of the reader's terminal, and emphasis.

use anstyle::AnsiColor;

/// Capabilities of a terminal. The caller detects them; this crate does not read the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Allows escape sequences for colour and weight; without it no escape byte is written.
    pub colour: bool,
    /// Allows characters beyond ASCII.
    pub unicode: bool,
    /// Columns of the terminal; 80 if unknown.
    pub width: usize,
    /// Lines of the terminal; 24 if unknown.
    pub rows: usize,
}

impl Default for Style {
    /// Returns the style for files and unknown terminals.
    fn default() -> Self {
        Self { colour: false, unicode: true, width: 80, rows: 24 }
    }
}

/// Emphasis of a text. The same fact is always visible without colour too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Emphasis {
    #[default]
    Plain,
    Strong,
    Faint,
    /// The best row, a met requirement, new content.
    Good,
    /// A loss, a failure, a reason for doubt.
    Bad,
    /// Colour of a series: its index, the same in plot and table.
    Series(usize),
    /// The line between the points of the series with this index.
    Between(usize),
}

/// Colours that differ on dark and light backgrounds. Red is reserved for warnings.
const SERIES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::BrightBlack,
];

impl Emphasis {
    fn ansi(self) -> anstyle::Style {
        let series = |number: usize| SERIES[number % SERIES.len()].on_default();
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Strong => anstyle::Style::new().bold(),
            Self::Faint => anstyle::Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Series(number) => series(number),
            Self::Between(number) => series(number).dimmed(),
        }
    }
}

impl Style {
    /// Returns `text` with the escape sequences of `emphasis`. Spaces at both ends stay outside of them, so that a line
    /// can still be trimmed.
    pub fn paint(&self, emphasis: Emphasis, text: &str) -> String {
        let core = text.trim_matches(' ');
        if !self.colour || emphasis == Emphasis::Plain || core.is_empty() {
            return text.into();
        }
        let start = text.len() - text.trim_start_matches(' ').len();
        let (ansi, end) = (emphasis.ansi(), start + core.len());
        format!("{}{ansi}{core}{ansi:#}{}", &text[..start], &text[end..])
    }

    /// Returns the variant that this terminal can show.
    pub fn sign<T>(&self, unicode: T, ascii: T) -> T {
        if self.unicode { unicode } else { ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_style_writes_no_escape_byte() {
        let plain = Style::default();
        for emphasis in [Emphasis::Strong, Emphasis::Bad, Emphasis::Series(9)] {
            assert_eq!(plain.paint(emphasis, " a "), " a ");
        }
    }

    #[test]
    fn colour_surrounds_the_text_and_is_ended() {
        let colour = Style { colour: true, ..Style::default() };
        assert_eq!(colour.paint(Emphasis::Strong, "  a b "), "  \u{1b}[1ma b\u{1b}[0m ");
        assert_eq!(colour.paint(Emphasis::Plain, "a"), "a");
        assert_eq!(colour.paint(Emphasis::Bad, "   "), "   ");
    }
}
