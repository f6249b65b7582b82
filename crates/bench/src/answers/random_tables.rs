//! Property test: draws random tables, from quiet to very noisy, and checks each sentence against its table.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use weir_model::Size;
use weir_model::bench::{BenchAnswer, BenchDocument, BenchRow, RowGroup};

use crate::axes::{CacheState, Workload};
use crate::directory::{BenchDirectory, DirectoryRequest};
use crate::document::{Started, document};
use crate::fixture;
use crate::plan::Axes;
use crate::rows::ratio;
use crate::run::Measurement;

/// Number of tables. Each takes a few milliseconds.
const TABLES: u64 = 120;

#[test]
fn each_sentence_agrees_with_its_table() {
    let outer = tempfile::tempdir().unwrap();
    let directories = [BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1).unwrap()];
    let mut asked = std::collections::BTreeMap::<String, u32>::new();
    for seed in 0..TABLES {
        let mut random = StdRng::seed_from_u64(seed);
        let measurement = random_measurement(&mut random);
        let started = Started { command: vec!["weir".into()], at: std::time::SystemTime::now() };
        let document = document(&measurement, &directories, &[], started);
        for answer in &document.answers {
            *asked.entry(answer.question.clone()).or_default() += 1;
            check(&document, answer, seed);
        }
        check_ratios(&document, seed);
    }
    assert!(asked.len() >= 7 && asked.values().all(|&count| count > 5), "{asked:?}");
}

/// Returns a factor around 1; its logarithm has about this standard deviation.
fn factor(random: &mut StdRng, deviation: f64) -> f64 {
    let sum: f64 = (0..6).map(|_| random.random_range(-1.0..1.0)).sum();
    (sum / 2.0_f64.sqrt() * deviation).exp()
}

/// Returns a run with random prices, a drift from round to round, noise in each sample, and samples that are missing.
fn random_measurement(random: &mut StdRng) -> Measurement {
    let copy = Axes {
        methods: ["syscall", "stdio", "stdio-char", "mmap"].map(String::from).into(),
        records: [1, 64, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20].into(),
        caches: vec![CacheState::Warm, CacheState::Cold],
        ..fixture::axes()
    };
    let syncs = ["none", "end", "o_sync", "sync_file_range"].map(|name| name.parse().unwrap());
    let write = Axes {
        workloads: vec![Workload::Write],
        syncs: syncs.into(),
        bytes: 1_000_000,
        records: [512, 4096, 65536].into(),
        ..fixture::axes()
    };
    let mut measurement = fixture::measurement(&[copy, write], random.random_range(1..12));
    let [of_cells, of_rounds, of_samples] = [[0.0, 0.05, 0.5], [0.0, 0.1, 0.5], [0.005, 0.05, 0.5]];
    let [cells, rounds, samples] =
        [of_cells, of_rounds, of_samples].map(|choice| choice[random.random_range(0..3usize)]);
    let drift: Vec<f64> = measurement.rounds.iter().map(|_| factor(random, rounds)).collect();
    for track in &mut measurement.tracks {
        let price = factor(random, cells);
        for sample in track.samples.iter_mut().chain(&mut track.twins) {
            let slow = price * drift[sample.round] * factor(random, samples);
            sample.figures.elapsed_s *= slow;
            sample.figures.cpu_s *= slow;
        }
        // The run gives more rounds to some cells than to others.
        let first = random.random_range(0..3usize).min(track.samples.len() - 1);
        let removed = if random.random_bool(0.5) { first } else { 0 };
        track.samples.drain(..removed);
    }
    measurement
}

fn check(document: &BenchDocument, answer: &BenchAnswer, seed: u64) {
    let (group, text) = (&document.groups[answer.group], answer.answer.as_str());
    let rows: Vec<&BenchRow> =
        document.rows.iter().filter(|row| row.group == group.key && row.elapsed_s.is_some()).collect();
    let context = || format!("table {seed}, {}: {text}", answer.question);
    for (value, low, high) in intervals(text) {
        assert!(low <= value && value <= high, "{}", context());
        let contains_1 = low <= 1.0 && high >= 1.0;
        assert!(!contains_1 || text.contains("noise") || text.contains("ties"), "{}", context());
    }
    match answer.question.as_str() {
        "Does stdio always win?" => check_sizes(document, &rows, text, &context),
        "Where do gains stop?" => check_knee(group, &rows, text, &context),
        "What does durability cost?" => {
            let row = &document.rows[answer.evidence[0].row.unwrap()];
            let elapsed = row.elapsed_s.unwrap();
            let a_record = text.split(" a record").next().unwrap();
            let is_wide = (elapsed.ci95[1] - elapsed.ci95[0]) / 2.0 > 0.1 * elapsed.median;
            assert_eq!(a_record.contains(" to "), is_wide, "{}", context());
        }
        _ => {}
    }
}

/// Returns each `N× [LOW, HIGH]` of a text.
fn intervals(text: &str) -> Vec<(f64, f64, f64)> {
    let number = |text: &str| text.parse::<f64>().ok();
    let each = text.match_indices("× [").filter_map(|(at, mark)| {
        let value = number(text[..at].rsplit(' ').next()?)?;
        let (low, rest) = text[at + mark.len()..].split_once(", ")?;
        Some((value, number(low)?, number(rest.split_once(']')?.0)?))
    });
    each.collect()
}

/// Checks that each record size is in the one list that its interval and the noise put it in.
fn check_sizes(document: &BenchDocument, rows: &[&BenchRow], text: &str, context: &dyn Fn() -> String) {
    let of = |method: &str| rows.iter().filter(|row| row.method == method).copied().collect::<Vec<_>>();
    let stdio = of("stdio");
    let mut sizes: Vec<u64> = stdio.iter().map(|row| row.record_bytes).collect();
    sizes.sort_unstable();
    for plain in of("syscall") {
        let Some(other) = stdio.iter().find(|row| row.record_bytes == plain.record_bytes) else { continue };
        let Some(ratio) = ratio(other, plain) else { continue };
        let expected = match ratio.value {
            _ if ratio.is_tie(document.noise.floor()) => "ties at ",
            value if value < 1.0 => "wins at ",
            _ => "loses at ",
        };
        for list in ["wins at ", "ties at ", "loses at "] {
            let listed = text.split(list).nth(1).map(|rest| listed(rest, &sizes)).unwrap_or_default();
            assert_eq!(
                listed.contains(&plain.record_bytes),
                list == expected,
                "{} {list}: {}",
                plain.record_bytes,
                context()
            );
        }
    }
}

/// Returns the sizes at the beginning of a text: `1 B, 4 KiB to 64 KiB and 1 MiB; …`.
fn listed(text: &str, all: &[u64]) -> Vec<u64> {
    let end = [text.find("; "), text.find(", most"), text.find(", where"), text.rfind('.')];
    let text = &text[..end.into_iter().flatten().min().unwrap_or(text.len())];
    let size = |text: &str| *all.iter().find(|bytes| Size(**bytes).to_string() == text.trim()).expect(text);
    let parts = text.split(", ").flat_map(|part| part.split(" and "));
    let range = |part: &str| match part.split_once(" to ") {
        Some((first, last)) => (size(first), size(last)),
        None => (size(part), size(part)),
    };
    parts
        .map(range)
        .flat_map(|(first, last)| all.iter().copied().filter(move |bytes| (first..=last).contains(bytes)))
        .collect()
}

fn check_knee(group: &RowGroup, rows: &[&BenchRow], text: &str, context: &dyn Fn() -> String) {
    let method = group.model_method.as_deref();
    let own = rows.iter().filter(|row| Some(row.method.as_str()) == method);
    let largest = own.map(|row| row.record_bytes).max();
    let Some(knee) = group.knee.and_then(|knee| knee.within(largest?)) else {
        assert!(
            text.starts_with("Not within the records measured") && !text.contains("stop"),
            "{}",
            context()
        );
        return;
    };
    assert!(text.contains(&format!("stop at {}", Size(knee.bytes))), "{}", context());
    let is_open = knee.ci95[1] >= largest.unwrap();
    assert_eq!(text.contains("may gain more"), is_open, "{}", context());
    assert_eq!(text.contains("win less than 5 %"), !is_open, "{}", context());
}

/// Checks that ratios agree with the medians beside them: rows of equal times have equal ratios.
fn check_ratios(document: &BenchDocument, seed: u64) {
    for group in &document.groups {
        let rows = || document.rows.iter().filter(|row| row.group == group.key);
        let Some(best) = rows().find(|row| row.is_best()) else { continue };
        for row in rows() {
            let (Some(vs), Some(elapsed)) = (row.vs_best, row.elapsed_s) else { continue };
            let expected = elapsed.median / best.elapsed_s.unwrap().median;
            assert!((vs.value / expected - 1.0).abs() < 1e-9 && vs.value >= 1.0, "table {seed}: {row:?}");
            assert!(vs.ci95[0] <= vs.value && vs.value <= vs.ci95[1], "table {seed}: {vs:?}");
        }
    }
}
