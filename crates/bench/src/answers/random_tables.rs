//! Property test: draws random tables, from quiet to very noisy, and checks each sentence against its table.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use weir_model::bench::{BenchAnswer, BenchDocument, BenchRow, RowGroup, ratio};
use weir_model::{Mode, Size};

use crate::axes::{CacheState, Workload};
use crate::directory::{BenchDirectory, DirectoryRequest};
use crate::document::{Started, document};
use crate::fixture;
use crate::plan::Axes;
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
        let tables = crate::published::select(&["tlpi-13-1".into()]).unwrap();
        let document = document(&measurement, &directories, &tables, started);
        for answer in &document.answers {
            *asked.entry(answer.question.clone()).or_default() += 1;
            check(&document, answer, seed);
        }
        check_ratios(&document, seed);
        check_published(&document, seed);
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
    let mut methods: Vec<String> = ["syscall", "stdio", "stdio-char", "mmap"].map(String::from).into();
    if random.random_bool(0.5) {
        methods.push("copy_file_range".into());
    }
    let copy = Axes {
        methods,
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
    let log = Axes {
        workloads: vec![Workload::Log],
        modes: vec![Some(Mode::None), Some(Mode::Line), Some(Mode::Full)],
        bytes: 1_000_000,
        records: [64, 256, 4096].into(),
        ..fixture::axes()
    };
    let mut measurement = fixture::measurement(&[copy, write, log], random.random_range(1..12));
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
    check_names(group, text, &context);
    check_prices(group, text, &context);
    check_syncs(document, answer, group, &context);
    match answer.question.as_str() {
        "What to choose here?" if group.key.workload == "log" => {
            check_lines(document, &rows, text, &context);
        }
        "What to choose here?" if text.starts_with("For a copying tool here") => {
            check_kernel(document, answer, &rows, &context);
        }
        "Does stdio always win?" => check_sizes(document, &rows, text, &context),
        "Where do gains stop?" => check_knee(document, group, &rows, text, &context),
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
        if other.syncs_per_record() != plain.syncs_per_record() {
            continue;
        }
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

/// Checks the sentence about the gains of larger records: with a knee, with ties of the largest record, and without both.
fn check_knee(
    document: &BenchDocument,
    group: &RowGroup,
    rows: &[&BenchRow],
    text: &str,
    context: &dyn Fn() -> String,
) {
    let method = group.model_method.as_deref();
    let mut own: Vec<&BenchRow> =
        rows.iter().copied().filter(|row| Some(row.method.as_str()) == method).collect();
    own.sort_by_key(|row| row.record_bytes);
    let (last, smaller) = own.split_last().unwrap();
    let largest = last.record_bytes;
    let Some(knee) = group.knee.unwrap().within(largest) else {
        let median_s = |row: &BenchRow| row.elapsed_s.unwrap().median;
        assert!(smaller.iter().all(|row| median_s(row) >= median_s(last)), "{}", context());
        let is_tie = |row: &&&BenchRow| ratio(row, last).is_some_and(|r| r.is_tie(document.noise.floor()));
        let go_on = text.starts_with("Not within the records measured") && text.contains("may gain more");
        match smaller.iter().find(is_tie) {
            Some(tie) => {
                let level = format!(": no gain from {} to {}", Size(tie.record_bytes), Size(largest));
                assert!(text.contains(&level) && !go_on && !text.contains("may gain"), "{}", context());
            }
            None => assert!(go_on && !text.contains("noise"), "{}", context()),
        }
        assert!(!text.contains("stop"), "{}", context());
        return;
    };
    assert!(text.contains(&format!("stop at {}", Size(knee.bytes))), "{}", context());
    let is_open = knee.ci95[1] >= largest;
    assert_eq!(text.contains("may gain more"), is_open, "{}", context());
    assert_eq!(text.contains("win less than 5 %"), !is_open, "{}", context());
}

/// Checks that a price whose interval is wide does not stand alone, and one without an interval is called an estimate.
fn check_prices(group: &RowGroup, text: &str, context: &dyn Fn() -> String) {
    let is_wide = |ns: f64, [low, high]: [f64; 2]| (high - low) / 2.0 > 0.1 * ns;
    let (model, ci95) = (group.model, group.model_ci95);
    let prices = [
        ("a call costs ", model.map(|model| model.call_ns), ci95.map(|prices| prices.call_ns)),
        ("One sync costs ", model.map(|model| model.sync_ns), ci95.map(|prices| prices.sync_ns)),
        (
            "without a system call costs ",
            group.pass_ns.get("stdio").copied(),
            group.pass_ns_ci95.get("stdio").copied(),
        ),
    ];
    for (words, ns, ci95) in prices {
        let Some(said) = text.split(words).nth(1) else { continue };
        let ns = ns.unwrap();
        assert_eq!(said.starts_with("about "), ci95.is_none(), "{}", context());
        let is_range = said.split_whitespace().nth(2) == Some("to");
        assert_eq!(is_range, ci95.is_some_and(|ends| is_wide(ns, ends)), "{ns} {ci95:?} {}", context());
        assert!(ci95.is_none_or(|[low, high]| low <= ns && ns <= high), "{}", context());
    }
}

/// Checks that the sentences name only the calls that the workload makes, and choose no length of a line.
fn check_names(group: &RowGroup, text: &str, context: &dyn Fn() -> String) {
    let workload = group.key.workload.as_str();
    assert!(workload == "copy" || !text.contains("read/write"), "{}", context());
    let chooses = ["Gains of", "no gain from", "For a program that must log", "is fastest with"];
    assert!(workload != "log" || chooses.iter().all(|words| !text.contains(words)), "{}", context());
}

/// Checks that no sentence compares rows of a group that sync each record with rows that sync less often.
fn check_syncs(
    document: &BenchDocument,
    answer: &BenchAnswer,
    group: &RowGroup,
    context: &dyn Fn() -> String,
) {
    let evidence = answer.evidence.iter().filter_map(|evidence| Some(&document.rows[evidence.row?]));
    let own: Vec<&BenchRow> = evidence.filter(|row| row.group == group.key).collect();
    let first = own.first().map(|row| row.syncs_per_record());
    assert!(own.iter().all(|row| Some(row.syncs_per_record()) == first), "{}", context());
    let is_buffered = |row: &BenchRow| {
        group.key.sync == "o_sync" && row.method == "stdio" && row.record_bytes < 4096 && row.mode.is_none()
    };
    for row in document.rows.iter().filter(|row| row.group == group.key) {
        assert_eq!(row.syncs_per_record(), !is_buffered(row), "{}", context());
        let is_marked = row.remark.as_deref().is_some_and(|remark| remark.contains("syncs per buffer"));
        assert_eq!(is_marked, is_buffered(row), "{}", context());
        assert!(!is_buffered(row) || row.vs_best.is_none() && !row.ties_with_best, "{}", context());
    }
    assert!(own.iter().all(|row| !is_buffered(row)) || text_of_buffer(answer), "{}", context());
}

/// Returns whether the answer is about the buffer, and says that only the buffer's calls sync.
fn text_of_buffer(answer: &BenchAnswer) -> bool {
    answer.question == "What did the user-space buffer do?" && answer.answer.contains("Only these calls sync")
}

/// Checks that a method that copies inside the kernel is chosen with its fastest record, and compared by it.
fn check_kernel(
    document: &BenchDocument,
    answer: &BenchAnswer,
    rows: &[&BenchRow],
    context: &dyn Fn() -> String,
) {
    let chosen = &document.rows[answer.evidence[0].row.unwrap()];
    let seconds = |row: &BenchRow| row.elapsed_s.unwrap().median;
    let own = rows.iter().filter(|row| row.method == chosen.method);
    assert!(own.clone().all(|row| seconds(row) >= seconds(chosen)), "{}", context());
    assert!(chosen.ties_with_best && own.count() > 1, "{}", context());
    let named = format!("here: {} with {}, else", chosen.method, Size(chosen.record_bytes));
    assert!(answer.answer.contains(&named), "{named}: {}", context());
}

/// Checks that each length of a line has the fastest row and all rows that tie with it.
fn check_lines(document: &BenchDocument, rows: &[&BenchRow], text: &str, context: &dyn Fn() -> String) {
    let mut lengths: Vec<u64> = rows.iter().map(|row| row.record_bytes).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut said = 0;
    for part in text.split("At ").skip(1) {
        let end = [" all tie", " write(2)", " stdio"].iter().filter_map(|words| part.find(words)).min();
        for length in listed(&format!("{}.", &part[..end.unwrap()]), &lengths) {
            said += 1;
            let own: Vec<&BenchRow> = rows.iter().copied().filter(|row| row.record_bytes == length).collect();
            let seconds = |row: &BenchRow| row.elapsed_s.unwrap().median;
            let fastest = own.iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b))).unwrap();
            let is_tie = |row: &&&BenchRow| {
                std::ptr::eq(**row, *fastest)
                    || ratio(row, fastest).is_none_or(|ratio| ratio.is_tie(document.noise.floor()))
            };
            let ties: Vec<String> = own.iter().filter(is_tie).map(|row| super::name(row)).collect();
            let expected = match ties.len() {
                all if all == own.len() => "all tie".into(),
                1 => format!("{} is fastest: ", ties[0]),
                _ => format!("{} are fastest and tie: ", super::joined(&ties)),
            };
            assert!(part.contains(&expected), "{length}, {expected}: {}", context());
        }
    }
    assert_eq!(said, lengths.len(), "{}", context());
}

/// Checks the comparison with a published table against the rows of this run.
fn check_published(document: &BenchDocument, seed: u64) {
    let (table, noise) = (&document.published[0], document.noise.floor().max(0.05));
    let is_ours = |row: &&BenchRow| row.group.cache == "cold" && row.method == "syscall";
    let ours: Vec<&BenchRow> = document.rows.iter().filter(is_ours).collect();
    let both = table.rows.iter().filter(|row| row.ours_s.is_some());
    let both: Vec<_> = both
        .map(|row| (row, *ours.iter().find(|own| own.record_bytes == row.record_bytes).unwrap()))
        .collect();
    let differs = |a: f64, b: f64| (a / b).max(b / a) > 1.05;
    let mut turned = false;
    for (at, (theirs, own)) in both.iter().enumerate() {
        for (theirs_b, own_b) in &both[at + 1..] {
            let here = ratio(own, own_b).filter(|ratio| !ratio.is_tie(noise));
            turned |= differs(theirs.theirs_s, theirs_b.theirs_s)
                && here.is_some_and(|here| (here.value > 1.0) != (theirs.theirs_s > theirs_b.theirs_s));
        }
    }
    let [shape, stops] = [0, 1].map(|at| table.verdict[at].as_str());
    let context = format!("table {seed}: {:#?}", table.verdict);
    assert!(
        !shape.starts_with("the same order") && !shape.starts_with("the same shape") || !turned,
        "{context}"
    );
    // Of the rows measured, the published curve is flat from 4 KiB on.
    assert!(stops.contains("stop at 4 KiB "), "{context}");
    let median_s = |row: &BenchRow| row.elapsed_s.unwrap().median;
    let fastest = both.iter().min_by(|a, b| median_s(a.1).total_cmp(&median_s(b.1))).unwrap().1;
    let is_enough = |row: &BenchRow| {
        std::ptr::eq(row, fastest) || ratio(row, fastest).is_some_and(|ratio| ratio.is_tie(noise))
    };
    let here = both.iter().find(|(_, own)| is_enough(own)).unwrap().0.record_bytes;
    assert_eq!(stops.contains("on both sides"), here == 4096, "{context}");
    assert!(stops.contains(&format!("{} here", Size(here))) || here == 4096, "{context}");
    assert!(!shape.starts_with("the same shape") || here == 4096, "{context}");
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
