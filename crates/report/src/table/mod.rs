//! Tables as data: columns that know how dearly they are wanted, rows that may stand under headings.
//!
//! [`Table::lines`] draws one for a terminal, [`crate::markdown`] for GitHub.

mod cells;
mod draw;
mod fit;

use crate::style::Emphasis;

/// How the cells of a column stand under each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Paths: as words, but what has no room goes from their beginning, and much of it may.
    Path,
    /// Numbers that stand alone.
    Right,
    /// Numbers of one unit, with their decimal points under each other.
    Decimal,
}

/// When a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Always.
    Always,
    /// While there is room: low numbers are taken first, equal numbers together.
    Rank(u8),
    /// Where the rows stand under no headings that say the same.
    UnlessHeaded,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub head: String,
    /// Second line of the head: the unit.
    pub unit: String,
    /// How its cells stand.
    pub align: Align,
    /// When it is shown.
    pub keep: Keep,
}

impl Column {
    /// A column that is always shown.
    pub fn new(head: &str, unit: &str, align: Align) -> Self {
        Self { head: head.into(), unit: unit.into(), align, keep: Keep::Always }
    }

    /// The same, shown as `keep` says.
    pub fn keep(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// The word or number.
    pub text: String,
    /// Marks behind it, in a place of their own, so that numbers stay aligned.
    pub marks: String,
    /// Why it stands out.
    pub emphasis: Emphasis,
}

impl Cell {
    /// A cell with `emphasis`.
    pub fn new(text: impl Into<String>, emphasis: Emphasis) -> Self {
        Self { text: text.into(), marks: String::new(), emphasis }
    }

    /// The same with `marks` behind it.
    pub fn marked(self, marks: impl Into<String>) -> Self {
        Self { marks: marks.into(), ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Emphasis::Plain)
    }
}

/// What rows stand under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Its text.
    pub text: String,
    /// The series of a plot that the rows belong to.
    pub series: Option<usize>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Index of [`Table::headings`].
    pub heading: Option<usize>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// What its bar stands for.
    pub bar: Option<f64>,
    /// The series that gives the bar its colour.
    pub series: Option<usize>,
    /// Said behind the row: the same from long to short; the longest that fits is shown.
    pub remarks: Vec<String>,
}

/// Bars behind the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bars {
    /// What they show.
    pub head: String,
    /// As [`Keep::Rank`].
    pub rank: u8,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// What groups of rows stand under; empty: nothing.
    pub headings: Vec<Heading>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The bars behind the rows.
    pub bars: Option<Bars>,
}

impl Table {
    /// Is `column` one that may be shown?
    pub(crate) fn may_show(&self, column: &Column) -> bool {
        self.headings.is_empty() || column.keep != Keep::UnlessHeaded
    }
}
