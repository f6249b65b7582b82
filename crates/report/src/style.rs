//! What the reader's terminal can show, and emphasis within that.

use anstyle::AnsiColor;

/// What a screen may use. The caller finds it out; nothing here looks at the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Escape sequences for colour and weight; `false`: not one escape byte is written.
    pub colour: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
    /// Columns of the terminal; 80 when unknown.
    pub width: usize,
}

impl Default for Style {
    /// What every terminal and file can take.
    fn default() -> Self {
        Self { colour: false, unicode: true, width: 80 }
    }
}

/// Why a text stands out. It never carries meaning alone: a reader without colour sees the same facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emphasis {
    /// It does not.
    #[default]
    Plain,
    /// To be read first.
    Strong,
    /// To be read last.
    Faint,
    /// The best of its kind.
    Good,
    /// To be doubted.
    Bad,
    /// Belongs to the series of that number, in the plot as in the table.
    Series(usize),
    /// The line between the points of a series.
    Between(usize),
}

/// Told apart on dark and light grounds; red is left to warnings.
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
    /// `text` with `emphasis`. Spaces around it stay bare, so that a line can still be trimmed.
    pub fn paint(&self, emphasis: Emphasis, text: &str) -> String {
        let core = text.trim_matches(' ');
        if !self.colour || emphasis == Emphasis::Plain || core.is_empty() {
            return text.into();
        }
        let start = text.len() - text.trim_start_matches(' ').len();
        let (ansi, end) = (emphasis.ansi(), start + core.len());
        format!("{}{ansi}{core}{ansi:#}{}", &text[..start], &text[end..])
    }

    /// The sign that this terminal can show.
    pub fn sign<T>(&self, unicode: T, ascii: T) -> T {
        if self.unicode { unicode } else { ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_there_is_no_escape_byte() {
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
