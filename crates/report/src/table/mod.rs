//! Tables as data: columns with a priority, rows under optional headings.
//!
//! [`Table::lines`] draws a table for a terminal, [`crate::markdown`] for GitHub.

mod cells;
mod draw;
mod fit;

use crate::style::Emphasis;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Align {
    Left,
    /// Left, for paths: a path that is too long loses its beginning, and columns of lower priority are shown first.
    Path,
    Right,
    /// Decimal points under each other, for numbers of one unit.
    Decimal,
}

/// Condition for showing a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ColumnPriority {
    Always,
    /// Shown if there is room. Low numbers come first; columns with equal numbers are shown together or not at all.
    Rank(u8),
    /// Shown if the table has no headings, which would repeat the column.
    UnlessHeaded,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Column {
    pub head: String,
    /// Second line of the head: the unit.
    pub unit: String,
    pub align: Align,
    pub priority: ColumnPriority,
}

impl Column {
    /// Makes a column that is always shown.
    pub fn new(head: &str, unit: &str, align: Align) -> Self {
        Self { head: head.into(), unit: unit.into(), align, priority: ColumnPriority::Always }
    }

    /// Returns the column with another priority.
    pub fn priority(self, priority: ColumnPriority) -> Self {
        Self { priority, ..self }
    }
}

/// A cell of a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct TableCell {
    pub text: String,
    /// Marks after the text, in their own columns, so that numbers stay aligned.
    pub marks: String,
    pub emphasis: Emphasis,
}

impl TableCell {
    /// Makes a cell without marks.
    pub fn new(text: impl Into<String>, emphasis: Emphasis) -> Self {
        Self { text: text.into(), marks: String::new(), emphasis }
    }

    /// Returns the cell with `marks`.
    pub fn marked(self, marks: impl Into<String>) -> Self {
        Self { marks: marks.into(), ..self }
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::new(text, Emphasis::Plain)
    }
}

/// A line above a group of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Heading {
    pub text: String,
    /// Series of the plot that the rows belong to.
    pub series: Option<usize>,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableRow {
    /// Index of [`Table::headings`].
    pub heading: Option<usize>,
    /// One cell for each column.
    pub cells: Vec<TableCell>,
    /// Value of the row's bar.
    pub bar: Option<f64>,
    /// Series of the plot that gives the bar its colour.
    pub series: Option<usize>,
    /// A remark after the row, in several forms from long to short; the longest form that fits is shown.
    pub remarks: Vec<String>,
}

/// Bars after the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bars {
    /// Text above the bars.
    pub head: String,
    /// As in [`ColumnPriority::Rank`].
    pub rank: u8,
}

/// A table, independent of the terminal's width.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)]
pub struct Table {
    pub columns: Vec<Column>,
    /// Lines above groups of rows; may be empty.
    pub headings: Vec<Heading>,
    pub rows: Vec<TableRow>,
    pub bars: Option<Bars>,
}

impl Table {
    /// Returns whether the headings leave `column` necessary.
    pub(crate) fn may_show(&self, column: &Column) -> bool {
        self.headings.is_empty() || column.priority != ColumnPriority::UnlessHeaded
    }
}
