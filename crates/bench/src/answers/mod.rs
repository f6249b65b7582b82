//! Sentences made from figures. One file a question; each looks at one group and answers if it can.

mod cache;
mod choose;
mod durability;
mod gains;
mod smallest;
mod stdio_always;
mod user_buffer;

use weir_model::duration::three_digits;
use weir_model::{Ratio, Size};

use crate::result::{Answer, Document, Evidence, Group, Row};

/// The questions, in the order in which they are asked.
const QUESTIONS: &[fn(&View) -> Option<Answer>] = &[
    smallest::answer,
    gains::answer,
    stdio_always::answer,
    user_buffer::answer,
    durability::answer,
    cache::answer,
    choose::answer,
];

/// Every answer that the figures of `document` give.
pub fn answers(document: &Document) -> Vec<Answer> {
    let views = (0..document.groups.len()).map(|group| View::of(document, group));
    views
        .flat_map(|view| QUESTIONS.iter().filter_map(|question| question(&view)).collect::<Vec<_>>())
        .collect()
}

/// One group as a question sees it.
struct View<'a> {
    document: &'a Document,
    index: usize,
    group: &'a Group,
    /// Measured rows with their numbers in the document, in table order.
    rows: Vec<(usize, &'a Row)>,
    /// Share within which two figures are one.
    noise: f64,
}

impl<'a> View<'a> {
    fn of(document: &'a Document, index: usize) -> Self {
        let group = &document.groups[index];
        let of_group = |(_, row): &(usize, &Row)| row.group == group.key && row.elapsed_s.is_some();
        let rows = document.rows.iter().enumerate().filter(of_group).collect();
        Self { document, index, group, rows, noise: document.noise.wall.unwrap_or(0.0) }
    }

    fn answer(&self, question: &str, answer: String, evidence: Vec<Evidence>) -> Option<Answer> {
        Some(Answer { group: self.index, question: question.into(), answer, evidence })
    }

    /// Rows of a method with its own buffer and mode left alone.
    fn plain(&self, method: &'a str) -> impl Iterator<Item = (usize, &'a Row)> + '_ {
        self.rows
            .iter()
            .copied()
            .filter(move |(_, row)| row.method == method && row.buffer_bytes.is_none() && row.mode.is_none())
    }

    fn at(&self, method: &'a str, record_bytes: u64) -> Option<(usize, &'a Row)> {
        self.plain(method).find(|(_, row)| row.record_bytes == record_bytes)
    }

    fn fastest(&self) -> Option<(usize, &'a Row)> {
        self.rows.iter().copied().min_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)))
    }

    /// The same work in another group that differs only as `differs` says.
    fn sibling(&self, differs: impl Fn(&Group) -> bool) -> Option<View<'a>> {
        let found = self.document.groups.iter().position(differs)?;
        Some(View::of(self.document, found))
    }
}

fn seconds(row: &Row) -> f64 {
    row.elapsed_s.map_or(f64::NAN, |elapsed| elapsed.median)
}

fn elapsed((index, row): (usize, &Row)) -> Evidence {
    Evidence { row: Some(index), figure: "elapsed_s".into(), value: seconds(row) }
}

fn figure(row: Option<usize>, name: &str, value: f64) -> Evidence {
    Evidence { row, figure: name.into(), value }
}

/// `12.3× [12.1, 12.6]`.
fn times(ratio: &Ratio) -> String {
    let [low, high] = ratio.ci95.map(three_digits);
    format!("{}× [{low}, {high}]", three_digits(ratio.value))
}

/// What to call a method in a sentence.
fn name(row: &Row) -> String {
    let mut name = match row.method.as_str() {
        "syscall" => "read/write".into(),
        other => other.to_string(),
    };
    if let Some(mode) = &row.mode {
        name += &format!(" in {mode} mode");
    }
    if let Some(bytes) = row.buffer_bytes {
        name += &format!(" with a buffer of {}", Size(bytes));
    }
    name
}

/// 1,234,567.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// System calls of a row that move bytes.
fn moving_calls(row: &Row) -> u64 {
    row.calls.iter().filter(|(name, _)| crate::figures::moves_bytes(name)).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(times(&Ratio { n: 3, value: 12.34, ci95: [12.1, 12.6] }), "12.3× [12.1, 12.6]");
    }
}
