//! Cells of one column, padded to align.

use super::{Align, TableCell};
use crate::style::Style;
use crate::text::{clean, width};

/// Splits a number before its decimal point.
fn at_point(number: &str) -> (&str, &str) {
    number.split_at(number.find('.').unwrap_or(number.len()))
}

/// Returns the texts of a column's cells. Texts aligned right or at the decimal point get padding after the digits.
pub(super) fn texts<'a>(
    cells: impl Iterator<Item = &'a TableCell>,
    align: Align,
    style: &Style,
) -> Vec<String> {
    let cells: Vec<(String, String)> =
        cells.map(|cell| (clean(&cell.text, style), clean(&cell.marks, style))).collect();
    let most = |length: fn(&(String, String)) -> usize| cells.iter().map(length).max().unwrap_or(0);
    let decimals = if align == Align::Decimal { most(|(text, _)| width(at_point(text).1)) } else { 0 };
    let marks = if matches!(align, Align::Left | Align::Path) { 0 } else { most(|(_, marks)| width(marks)) };
    cells
        .iter()
        .map(|(text, marks_of)| {
            let shown = if align == Align::Decimal { width(at_point(text).1) } else { decimals };
            let padding = " ".repeat(decimals - shown);
            format!("{text}{padding}{marks_of}{}", " ".repeat(marks.saturating_sub(width(marks_of))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_points_and_marks_are_aligned() {
        let cells = [
            TableCell::from("61.2").marked(" ~"),
            TableCell::from("0.0213"),
            TableCell::from("–"),
            TableCell::from("120"),
        ];
        let texts = texts(cells.iter(), Align::Decimal, &Style::default());
        assert_eq!(texts, ["61.2    ~", "0.0213  ", "–       ", "120       "]);
    }

    #[test]
    fn left_aligned_cells_are_not_padded() {
        let cells = [TableCell::from("a b"), TableCell::from("c").marked("*")];
        assert_eq!(texts(cells.iter(), Align::Left, &Style::default()), ["a b", "c*"]);
    }
}
