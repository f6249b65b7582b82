//! Property test: draws random tables and checks that the headline agrees with their intervals.

use proptest::prelude::*;
use weir_model::bench::{BenchDocument, BenchRow, ratio};
use weir_model::{Knee, Size, Summary};

use super::at;
use crate::bench::fixture::{everything, key, textbook};
use crate::bench::screen;

/// Gives a row new samples.
fn measure(row: &mut BenchRow, samples: Vec<f64>) {
    row.elapsed_s = Summary::of(&samples);
    row.rounds_of = (0..samples.len()).collect();
    row.samples_s = samples;
}

/// Returns the headline of the first group, on one line.
fn headline(document: &BenchDocument) -> String {
    let text = screen(document, &at(2000));
    let is_lead = |line: &&str| line.contains("Smallest record, ") || line.contains("Lines of ");
    text.lines().find(is_lead).unwrap_or_else(|| panic!("{text}")).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn gains_go_on_only_if_no_smaller_record_ties(
        factors in prop::collection::vec(0.5..2.0f64, 5),
        noise in prop::sample::select(vec![0.0, 0.02, 0.3]),
    ) {
        let mut document = textbook();
        let key = document.groups[0].key.clone();
        document.groups[0].knee = Some(Knee { bytes: 65536, ci95: [65536; 2] });
        let is_own = |row: &BenchRow| row.group == key && row.method == "syscall";
        for row in document.rows.iter_mut().filter(|row| is_own(row)) {
            let median = row.elapsed_s.unwrap().median;
            let samples = factors.iter().enumerate().map(|(round, factor)| {
                let own = if (round as u32 + row.record_bytes.ilog2()).is_multiple_of(2) { *factor } else { 1.0 };
                median * (1.0 + noise * (own - 1.0))
            });
            measure(row, samples.collect());
        }
        let floor = document.noise.floor();
        let curve = document.groups[0].curve(&document.rows);
        let (last, smaller) = curve.split_last().unwrap();
        let median_s = |row: &BenchRow| row.elapsed_s.unwrap().median;
        let is_fastest = smaller.iter().all(|row| median_s(row) >= median_s(last));
        let tie = smaller.iter().find(|row| ratio(row, last).is_some_and(|ratio| ratio.is_tie(floor)));
        let text = headline(&document);
        prop_assert_eq!(text.contains("gains of syscall go on up to 64 KiB"), is_fastest && tie.is_none(), "{}", text);
        let level = tie.map(|tie| format!("syscall: no gain from {} to 64 KiB", Size(tie.record_bytes)));
        prop_assert_eq!(text.contains("no gain from"), is_fastest && tie.is_some(), "{}", text);
        prop_assert!(!is_fastest || level.is_none_or(|level| text.contains(&level)), "{}", text);
    }

    #[test]
    fn lines_of_a_log_are_compared_at_equal_lengths(
        factors in prop::collection::vec(0.5..2.0f64, 4),
        spread in prop::sample::select(vec![0.0, 0.02, 0.3]),
    ) {
        let mut document = textbook();
        let log = key("log", "ext4", "/home", "warm", "none");
        let first = document.groups[0].key.clone();
        document.rows.retain(|row| row.method != "stdio-char" && [64, 4096].contains(&row.record_bytes));
        document.groups[0].key = log.clone();
        for (row, factor) in document.rows.iter_mut().filter(|row| row.group == first).zip(&factors) {
            row.group = log.clone();
            measure(row, [1.0, 1.3, 0.7, 1.1, 0.9].map(|round| factor * (1.0 + spread * (round - 1.0))).into());
        }
        let text = headline(&document);
        for bytes in [64, 4096] {
            let own: Vec<&BenchRow> = document.rows.iter().filter(|row| row.record_bytes == bytes).collect();
            let tie = ratio(own[0], own[1]).unwrap().is_tie(document.noise.floor());
            let said = text.contains(&format!("Lines of {}: all 2 tie", Size(bytes)));
            prop_assert_eq!(said, tie, "{}", text);
        }
        prop_assert!(!text.contains("ains of") && !text.contains("Best: "), "{}", text);
    }
}

#[test]
fn rows_that_sync_less_often_are_not_the_best() {
    let mut document = everything();
    let group = document.groups.iter().position(|group| group.key.workload == "write").unwrap();
    let mut group = document.groups.remove(group);
    document.rows.retain(|row| row.group == group.key);
    group.key.sync = "o_sync".into();
    document.groups = vec![group.clone()];
    for row in &mut document.rows {
        row.group = group.key.clone();
        row.calls = [("write".to_string(), row.group.bytes.div_ceil(row.record_bytes))].into();
    }
    let mut buffered = document.rows[0].clone();
    buffered.method = "stdio".into();
    buffered.calls = [("write".to_string(), 245)].into();
    buffered.vs_best = None;
    measure(&mut buffered, vec![1e-6; 8]);
    document.rows.push(buffered);
    let text = headline(&document);
    assert!(text.contains("Best: syscall 4 KiB") && !text.contains("stdio"), "{text}");
}
