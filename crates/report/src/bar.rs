//! Horizontal bars of text on a log scale.

use crate::style::Style;

/// Blocks of one eighth of a cell to a whole cell.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// The range of values that the bars of one table show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarRange {
    least: f64,
    most: f64,
}

impl BarRange {
    /// Returns the range of the positive, finite `values`; `None` if there are none.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let positive = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        (most > 0.0).then_some(Self { least, most })
    }

    /// Returns the bar of `value`: one cell for the smallest value, `cells` for the largest, log in between. Empty for a
    /// value that is not positive or not finite.
    pub fn bar(&self, value: f64, cells: usize, style: &Style) -> String {
        if !value.is_finite() || value <= 0.0 || cells == 0 {
            return String::new();
        }
        let decades = self.most.ln() - self.least.ln();
        let share =
            if decades > 0.0 { ((value.ln() - self.least.ln()) / decades).clamp(0.0, 1.0) } else { 0.0 };
        let eighths = (8.0 * (1.0 + share * (cells - 1) as f64)).round() as usize;
        if !style.unicode {
            return "#".repeat((eighths + 4) / 8);
        }
        let mut bar = EIGHTHS[7].to_string().repeat(eighths / 8);
        if !eighths.is_multiple_of(8) {
            bar.push(EIGHTHS[eighths % 8 - 1]);
        }
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_logarithm() {
        let range = BarRange::new([1.0, 100.0, 10.0, f64::NAN, -3.0]).unwrap();
        let bars = |style: Style| [1.0, 10.0, 100.0].map(|value| range.bar(value, 4, &style));
        assert_eq!(bars(Style::default()), ["█", "██▌", "████"]);
        assert_eq!(bars(Style { unicode: false, ..Style::default() }), ["#", "###", "####"]);
    }

    #[test]
    fn equal_values_have_one_cell_and_invalid_ones_none() {
        let range = BarRange::new([5.0, 5.0]).unwrap();
        assert_eq!(range.bar(5.0, 9, &Style::default()), "█");
        assert_eq!(range.bar(f64::NAN, 9, &Style::default()), "");
        assert_eq!(BarRange::new([0.0, f64::INFINITY]), None);
    }
}
