//! Answers questions with sentences made from figures. Each question has one file, and answers for a group whose rows
//! suffice.

mod cache;
mod choose;
mod durability;
mod gains;
mod lines;
#[cfg(test)]
mod random_tables;
mod smallest;
mod stdio_always;
mod user_buffer;

use weir_model::Size;
use weir_model::number::thousands;

use weir_model::bench::{BenchAnswer, BenchDocument, BenchRow, Evidence, Gains, RowGroup, plain_calls};

/// The questions in the order of the document.
const QUESTIONS: &[fn(&View) -> Option<BenchAnswer>] = &[
    smallest::answer,
    gains::answer,
    stdio_always::answer,
    user_buffer::answer,
    durability::answer,
    cache::answer,
    choose::answer,
    lines::answer,
];

/// Returns every answer that the figures of `document` support.
pub fn answers(document: &BenchDocument) -> Vec<BenchAnswer> {
    let views = (0..document.groups.len()).map(|group| View::of(document, group));
    views
        .flat_map(|view| QUESTIONS.iter().filter_map(|question| question(&view)).collect::<Vec<_>>())
        .collect()
}

/// Largest error of the cost model, as a share, for a sentence about the price of a call.
const MAX_FIT_ERROR: f64 = 0.25;

/// A row with its number in the document.
type Numbered<'a> = (usize, &'a BenchRow);

/// One group, as input of a question.
struct View<'a> {
    document: &'a BenchDocument,
    index: usize,
    group: &'a RowGroup,
    /// Measured rows with their numbers in the document, in table order.
    rows: Vec<Numbered<'a>>,
    /// Relative difference up to which two figures count as equal.
    noise: f64,
}

impl<'a> View<'a> {
    fn of(document: &'a BenchDocument, index: usize) -> Self {
        let group = &document.groups[index];
        let of_group = |(_, row): &(usize, &BenchRow)| row.group == group.key && row.elapsed_s.is_some();
        let rows = document.rows.iter().enumerate().filter(of_group).collect();
        Self { document, index, group, rows, noise: document.noise.floor() }
    }

    fn answer(&self, question: &str, answer: String, evidence: Vec<Evidence>) -> Option<BenchAnswer> {
        Some(BenchAnswer { group: self.index, question: question.into(), answer, evidence })
    }

    /// Returns the rows of a method with the default buffer and mode.
    fn plain(&self, method: &'a str) -> impl Iterator<Item = (usize, &'a BenchRow)> + '_ {
        self.rows
            .iter()
            .copied()
            .filter(move |(_, row)| row.method == method && row.buffer_bytes.is_none() && row.mode.is_none())
    }

    fn at(&self, method: &'a str, record_bytes: u64) -> Option<(usize, &'a BenchRow)> {
        self.plain(method).find(|(_, row)| row.record_bytes == record_bytes)
    }

    fn fastest(&self) -> Option<(usize, &'a BenchRow)> {
        self.rows.iter().copied().find(|(_, row)| row.is_best())
    }

    /// Returns the rows that sync as often as the best one: the others have another durability.
    fn comparable(&self) -> Vec<Numbered<'a>> {
        let Some(best) = self.fastest() else { return self.rows.clone() };
        let is_alike = |(_, row): &Numbered| row.syncs_as(best.1);
        self.rows.iter().copied().filter(is_alike).collect()
    }

    /// Returns the name of plain system calls in a sentence.
    fn plain_calls(&self) -> &'static str {
        plain_calls(&self.group.key.workload)
    }

    /// Returns the rows of the knee's curve, and where its gains stop.
    fn gains(&self) -> Option<(Vec<&'a BenchRow>, Gains)> {
        let curve = self.group.curve(self.rows.iter().map(|(_, row)| *row));
        let gains = Gains::of(&curve, self.group.knee, self.noise)?;
        Some((curve, gains))
    }

    /// Returns a row with its number.
    fn numbered(&self, row: &BenchRow) -> Option<Numbered<'a>> {
        self.rows.iter().copied().find(|(_, known)| std::ptr::eq(*known, row))
    }

    /// Returns the first group for which `matches` is true.
    fn sibling(&self, matches: impl Fn(&RowGroup) -> bool) -> Option<View<'a>> {
        let found = self.document.groups.iter().position(matches)?;
        Some(View::of(self.document, found))
    }
}

fn seconds(row: &BenchRow) -> f64 {
    row.elapsed_s.map_or(f64::NAN, |elapsed| elapsed.median)
}

fn elapsed((index, row): (usize, &BenchRow)) -> Evidence {
    Evidence { row: Some(index), figure: "elapsed_s".into(), value: seconds(row) }
}

fn figure(row: Option<usize>, name: &str, value: f64) -> Evidence {
    Evidence { row, figure: name.into(), value }
}

/// Returns some of `all` sizes as text, both ascending: `1 B`, `1 B and 2 B`, and `64 B to 4 KiB` for three and more that
/// follow each other in `all`.
fn list_sizes(sizes: &[u64], all: &[u64]) -> String {
    let mut runs: Vec<Vec<u64>> = Vec::new();
    for (number, size) in all.iter().enumerate().filter(|(_, size)| sizes.contains(size)) {
        let follows = number > 0 && runs.last().is_some_and(|run| run.last() == Some(&all[number - 1]));
        match runs.last_mut().filter(|_| follows) {
            Some(run) => run.push(*size),
            None => runs.push(vec![*size]),
        }
    }
    let mut parts: Vec<String> = Vec::new();
    for run in &runs {
        match run.as_slice() {
            [first, _, .., last] => parts.push(format!("{} to {}", Size(*first), Size(*last))),
            few => parts.extend(few.iter().map(|size| Size(*size).to_string())),
        }
    }
    joined(&parts)
}

/// Joins texts: `a`, `a and b`, `a, b and c`.
fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the name of a method in a sentence.
fn name(row: &BenchRow) -> String {
    let mut name = match row.method.as_str() {
        "syscall" => plain_calls(&row.group.workload).into(),
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

/// Returns the number of a row's system calls that move bytes.
fn moving_calls(row: &BenchRow) -> u64 {
    row.calls.iter().filter(|(name, _)| crate::figures::moves_bytes(name)).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{CacheState, Workload};
    use crate::fixture;
    use crate::plan::Axes;

    #[test]
    fn sizes_in_a_list_are_joined_only_without_gaps() {
        const K: u64 = 1024;
        let all = [4 * K, 16 * K, 64 * K, 256 * K, 1024 * K];
        let text = |sizes: &[u64]| list_sizes(sizes, &all);
        assert_eq!(text(&all), "4 KiB to 1 MiB");
        assert_eq!(text(&[4 * K, 256 * K, 1024 * K]), "4 KiB, 256 KiB and 1 MiB");
        assert_eq!(text(&[16 * K, 64 * K]), "16 KiB and 64 KiB");
        assert_eq!(text(&[4 * K, 16 * K, 64 * K, 1024 * K]), "4 KiB to 64 KiB and 1 MiB");
        assert_eq!((text(&[]), text(&[4 * K])), (String::new(), "4 KiB".into()));
    }

    fn answer_to(document: &BenchDocument, question: &str) -> String {
        let found = document.answers.iter().find(|answer| answer.question.contains(question));
        found.unwrap_or_else(|| panic!("{question}: {:#?}", document.answers)).answer.clone()
    }

    #[test]
    fn the_five_questions_are_answered_from_the_figures() {
        let document = fixture::run(&[fixture::axes()], 7);
        assert_eq!(document.answers.len(), 5, "{:#?}", document.answers);
        // 2 × 10^8 calls of 500 ns against 10^8 passes of 20 ns and the buffer's calls.
        let smallest = answer_to(&document, "smallest record");
        assert!(
            smallest.starts_with("At 1 B stdio wins: read/write takes 48.")
                && smallest.contains("200,000,000"),
            "{smallest}"
        );
        let gains = answer_to(&document, "gains stop");
        assert!(gains.contains("64 KiB"), "{gains}");
        let always = answer_to(&document, "stdio always");
        assert!(always == "No: it wins at 1 B to 1 KiB; ties at 4 KiB to 64 KiB.", "{always}");
        let buffer = answer_to(&document, "user-space buffer");
        assert!(
            buffer.contains("200,000,000 requests of 1 B into 48,830 system calls of about 4"),
            "{buffer}"
        );
        assert!(
            answer_to(&document, "choose").contains("read/write with 64 KiB"),
            "{}",
            answer_to(&document, "choose")
        );
        for answer in &document.answers {
            assert!(!answer.evidence.is_empty(), "{answer:?}");
            for evidence in answer.evidence.iter().filter(|e| e.figure == "elapsed_s") {
                let row = &document.rows[evidence.row.unwrap()];
                assert_eq!(evidence.value, row.elapsed_s.unwrap().median, "evidence is a figure of its row");
            }
        }
    }

    #[test]
    fn durability_has_a_price_and_a_policy_without_it_says_so() {
        let policies = ["none", "o_sync", "sync_file_range"].map(|name| name.parse().unwrap());
        let write = Axes {
            workloads: vec![Workload::Write],
            syncs: policies.into(),
            bytes: 1_000_000,
            ..fixture::axes()
        };
        let document = fixture::run(&[write], 7);
        let all: Vec<&str> = document
            .answers
            .iter()
            .filter(|a| a.question.contains("durability"))
            .map(|a| a.answer.as_str())
            .collect();
        assert_eq!(all.len(), 2);
        assert!(
            all[0].starts_with("o_sync")
                && all[0].contains("One sync costs 600 µs")
                && all[0].contains("waiting"),
            "{}",
            all[0]
        );
        assert!(all[1].contains("makes nothing durable"), "{}", all[1]);
    }

    #[test]
    fn a_single_method_has_answers_too() {
        let document = fixture::run(&[Axes { methods: vec!["syscall".into()], ..fixture::axes() }], 7);
        let smallest = answer_to(&document, "smallest record");
        assert!(smallest.contains("a call costs 500 ns"), "{smallest}");
        assert!(document.answers.len() >= 3, "{:#?}", document.answers);
    }

    #[test]
    fn a_published_table_that_is_flat_earlier_has_another_shape() {
        let cold =
            Axes { caches: vec![CacheState::Cold], methods: vec!["syscall".into()], ..fixture::axes() };
        let document = fixture::run(&[cold], 5);
        let table = &document.published[0];
        assert!(table.rows.iter().all(|row| row.ours_s.is_some()), "{table:#?}");
        let said = &table.verdict;
        assert!(said[0].starts_with("the same order, but another shape: "), "{said:?}");
        let stops = "gains of syscall beyond 5 % stop at 256 B there, but do not stop up to 64 KiB here";
        assert_eq!(said[1], stops);
        let warm = fixture::run(&[fixture::axes()], 5);
        assert!(warm.published[0].verdict[0].contains("too few to compare"), "a warm run is not its row");
    }
}
