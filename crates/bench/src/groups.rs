//! Groups comparable rows and finds their best row, cost model and knee.

use std::collections::BTreeMap;

use weir_model::cost::PriceIntervals;
use weir_model::knee::Curve;
use weir_model::stats::{MIN_SAMPLES, median, quantile, resamples};
use weir_model::{CostModel, Knee, Observation, knee};

use crate::axes::SyncKind;
use crate::ffi::MethodAxis;
use crate::figures::{moves_bytes, syncs_bytes};
use crate::plan::method;
use weir_model::bench::{BenchRow, GroupKey, Noise, RowGroup, fastest, ratio};

/// Methods that spend their time only in their system calls; the model is fitted to the first one with two sizes.
const MODEL_METHODS: [&str; 4] = ["syscall", "pread-pwrite", "vector", "direct"];

/// Resamples for an interval of the prices. Each fits a model, so there are fewer than for a figure.
const PRICE_RESAMPLES: usize = 200;

/// Page size in bytes of x86-64 and most aarch64 kernels; with larger pages the price of a block covers more bytes.
const PAGE: f64 = 4096.0;

/// Returns the groups of `rows`, in the order of their first rows. Sets the comparing fields of the rows.
pub fn group(
    rows: &mut [BenchRow],
    noise: &Noise,
    mount_options: impl Fn(&GroupKey) -> String,
) -> Vec<RowGroup> {
    let mut keys: Vec<GroupKey> = Vec::new();
    for row in rows.iter() {
        if !keys.contains(&row.group) {
            keys.push(row.group.clone());
        }
    }
    keys.into_iter()
        .map(|key| {
            compare_with_best(rows, &key, noise);
            let model_method = model_method(rows, &key);
            let model = model_method.as_deref().and_then(|name| fit(rows, &key, name));
            let pass_ns =
                model.map(|model| predict(rows, &key, model_method.as_deref(), &model)).unwrap_or_default();
            let (model_ci95, pass_ns_ci95) = model_method
                .as_deref()
                .zip(model)
                .and_then(|(name, model)| price_intervals(rows, &key, name, &model, &pass_ns))
                .unzip();
            let knee_method = model_method.clone().or_else(|| any_method(rows, &key));
            let mut group = RowGroup {
                mount_options: mount_options(&key),
                key,
                model,
                model_ci95,
                model_method: knee_method,
                pass_ns,
                pass_ns_ci95: pass_ns_ci95.unwrap_or_default(),
                knee: None,
            };
            group.knee = knee_of(&group.curve(rows.iter()));
            group
        })
        .collect()
}

fn of<'a>(rows: &'a [BenchRow], key: &GroupKey) -> impl Iterator<Item = &'a BenchRow> {
    rows.iter().filter(move |row| row.group == *key && row.elapsed_s.is_some())
}

/// Compares the rows of a group with the best one. If each write is also a sync, only rows that sync as often can be compared.
fn compare_with_best(rows: &mut [BenchRow], key: &GroupKey, noise: &Noise) {
    let Some(best) = fastest(of(rows, key)).cloned() else { return };
    let is_comparable = |row: &BenchRow| row.group == *key && row.elapsed_s.is_some() && row.syncs_as(&best);
    for row in rows.iter_mut().filter(|row| is_comparable(row)) {
        row.vs_best = ratio(row, &best);
        row.ties_with_best = row.vs_best.is_some_and(|ratio| ratio.is_tie(noise.floor()));
    }
}

fn model_method(rows: &[BenchRow], key: &GroupKey) -> Option<String> {
    let sizes = |name: &str| of(rows, key).filter(|row| row.method == name).count();
    MODEL_METHODS.iter().find(|name| sizes(name) >= 2).map(|name| (*name).into())
}

/// Returns the method with the most record sizes, for the knee of a group without a model.
fn any_method(rows: &[BenchRow], key: &GroupKey) -> Option<String> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    of(rows, key).for_each(|row| *sizes.entry(&row.method).or_default() += 1);
    sizes
        .into_iter()
        .filter(|&(_, count)| count >= 2)
        .max_by_key(|&(_, count)| count)
        .map(|(name, _)| name.into())
}

/// Returns the model's input for a row. If every write is also a sync, each write counts as a sync.
pub fn observation(row: &BenchRow) -> Observation {
    let sum = |wanted: fn(&str) -> bool| -> u64 {
        row.calls.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum()
    };
    let kind: SyncKind = row.group.sync.parse().unwrap_or(SyncKind::None);
    let syncs = if kind.in_every_write() {
        sum(|name| moves_bytes(name) && name.contains("write"))
    } else {
        sum(syncs_bytes)
    };
    let calls = sum(moves_bytes) as f64;
    let bytes = row.group.bytes as f64;
    let files = if row.group.workload == "copy" || row.group.workload == "translate" { 2.0 } else { 1.0 };
    Observation {
        calls,
        bytes,
        blocks: bytes / (files * bytes / calls.max(1.0)).max(PAGE),
        syncs: syncs as f64,
        seconds: row.median_s(),
    }
}

/// Fits the cost model to the rows of `method`.
fn fit(rows: &[BenchRow], key: &GroupKey, method: &str) -> Option<CostModel> {
    CostModel::fit(&observations(rows, key, method, &BenchRow::median_s))
}

/// Returns the model's input for the rows of `method`, with the given times. With a sync after every record, the numbers of calls and
/// syncs are equal, so these rows cannot separate their prices. Rows of the same work without syncs give the price of a call;
/// without such rows, the price of a sync includes that of the call.
fn observations(
    rows: &[BenchRow],
    key: &GroupKey,
    method: &str,
    seconds: &dyn Fn(&BenchRow) -> f64,
) -> Vec<Observation> {
    let observed = |row: &BenchRow| Observation { seconds: seconds(row), ..observation(row) };
    let mut observations: Vec<Observation> =
        of(rows, key).filter(|row| row.method == method).map(observed).collect();
    if key.sync != SyncKind::None.name() && key.sync != SyncKind::End.name() {
        let plain: Vec<Observation> = rows
            .iter()
            .filter(|row| row.elapsed_s.is_some() && row.method == method && is_without_sync(&row.group, key))
            .map(observed)
            .collect();
        if plain.is_empty() {
            observations.iter_mut().for_each(|row| row.calls = 0.0);
        }
        observations.extend(plain);
    }
    observations
}

/// Returns the intervals of the prices and of the user-space nanoseconds per record, bootstrapped over rounds. Returns `None` with too
/// few rounds for an interval.
fn price_intervals(
    rows: &[BenchRow],
    key: &GroupKey,
    method: &str,
    model: &CostModel,
    pass_ns: &BTreeMap<String, f64>,
) -> Option<(PriceIntervals, BTreeMap<String, [f64; 2]>)> {
    if of(rows, key).any(|row| row.rounds_of.len() < MIN_SAMPLES) {
        return None;
    }
    let rounds = rows.iter().flat_map(|row| &row.rounds_of).max()? + 1;
    let mut prices: [Vec<f64>; 4] = Default::default();
    let mut passes: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for drawn in resamples(rounds).take(PRICE_RESAMPLES) {
        let mut times = vec![0usize; rounds];
        drawn.into_iter().for_each(|round| times[round] += 1);
        let seconds = |row: &BenchRow| drawn_median_s(row, &times);
        let Some(model) = model.refit(&observations(rows, key, method, &seconds)) else { continue };
        let found = [model.call_ns, model.byte_ns, model.block_ns, model.sync_ns];
        prices.iter_mut().zip(found).for_each(|(prices, ns)| prices.push(ns));
        for (name, _) in pass_ns.iter().filter(|(_, ns)| **ns > 0.0) {
            let own = of(rows, key).filter(|row| row.method == *name);
            passes.entry(name).or_default().push(user_space_ns(own, &model, &seconds));
        }
    }
    let ends = |values: &[f64], ns: f64| {
        let [low, high] = [0.025, 0.975].map(|share| quantile(&mut values.to_vec(), share));
        [low.min(ns), high.max(ns)]
    };
    if prices[0].is_empty() {
        return None;
    }
    let intervals = PriceIntervals {
        call_ns: ends(&prices[0], model.call_ns),
        byte_ns: ends(&prices[1], model.byte_ns),
        block_ns: ends(&prices[2], model.block_ns),
        sync_ns: ends(&prices[3], model.sync_ns),
    };
    let of_passes = passes.into_iter().map(|(name, values)| (name.clone(), ends(&values, pass_ns[name])));
    Some((intervals, of_passes.collect()))
}

/// Returns the median of a row's samples, each as often as its round was drawn; of all samples if none was.
fn drawn_median_s(row: &BenchRow, times: &[usize]) -> f64 {
    let samples = row.rounds_of.iter().zip(&row.samples_s);
    let mut drawn: Vec<f64> =
        samples.flat_map(|(&round, &seconds)| std::iter::repeat_n(seconds, times[round])).collect();
    if drawn.is_empty() { row.median_s() } else { median(&mut drawn) }
}

/// Returns whether `other` is the work of `key` on the same file system and cache state, without syncs.
pub fn is_without_sync(other: &GroupKey, key: &GroupKey) -> bool {
    other.sync == SyncKind::None.name()
        && (&other.workload, &other.fs, &other.dir, &other.cache)
            == (&key.workload, &key.fs, &key.dir, &key.cache)
}

/// Sets the model's prediction in the rows. Returns, for each method with a library, the user-space nanoseconds per
/// record in addition to the costs of calls and bytes.
fn predict(
    rows: &mut [BenchRow],
    key: &GroupKey,
    of_method: Option<&str>,
    model: &CostModel,
) -> BTreeMap<String, f64> {
    let mut pass_ns = BTreeMap::new();
    // With syncs, the noise is larger than the user-space cost.
    let synced = key.sync != SyncKind::None.name();
    let mut names: Vec<String> = of(rows, key).map(|row| row.method.clone()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let has_library = method(&name).is_ok_and(|info| info.has(MethodAxis::Buffer));
        let is_model = of_method == Some(&name);
        if !is_model && !has_library {
            continue; // the calls of this method have other prices
        }
        let user_ns = match is_model || synced {
            true => 0.0,
            false => {
                user_space_ns(of(rows, key).filter(|row| row.method == name), model, &BenchRow::median_s)
            }
        };
        if has_library && !synced {
            pass_ns.insert(name.clone(), user_ns);
        }
        for row in
            rows.iter_mut().filter(|row| row.group == *key && row.method == name && row.elapsed_s.is_some())
        {
            row.predicted_s = Some(model.predict(&observation(row)) + user_ns * passes(row) / 1e9);
        }
    }
    pass_ns
}

/// Returns the number of library calls of the program; a byte-by-byte method makes one per byte, not per record.
fn passes(row: &BenchRow) -> f64 {
    let record = if row.method.starts_with("stdio-char") { 1 } else { row.record_bytes };
    row.group.bytes as f64 / record as f64
}

/// Returns the nanoseconds per record that minimise the squared relative error of the prediction.
fn user_space_ns<'a>(
    rows: impl Iterator<Item = &'a BenchRow>,
    model: &CostModel,
    seconds: &dyn Fn(&BenchRow) -> f64,
) -> f64 {
    let (numerator, denominator) = rows.fold((0.0, 0.0), |(numerator, denominator), row| {
        let observed = Observation { seconds: seconds(row), ..observation(row) };
        let (passes, square) = (passes(row), observed.seconds * observed.seconds);
        let rest_s = observed.seconds - model.predict(&observed);
        (numerator + rest_s * passes / square, denominator + passes * passes / square)
    });
    if denominator > 0.0 { (numerator / denominator * 1e9).max(0.0) } else { 0.0 }
}

/// Returns the knee of a group's curve.
pub fn knee_of(curve: &[&BenchRow]) -> Option<Knee> {
    let rounds = curve.iter().flat_map(|row| &row.rounds_of).max()? + 1;
    let curves: Vec<Curve> = curve
        .iter()
        .map(|row| {
            let mut values = vec![None; rounds];
            row.rounds_of
                .iter()
                .zip(&row.samples_s)
                .for_each(|(&round, &seconds)| values[round] = Some(seconds));
            (row.record_bytes, values)
        })
        .collect();
    knee(&curves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Sync;
    use crate::fixture::{self, BLOCK_NS, BYTE_NS, CALL_NS, PASS_NS, SYNC_NS};
    use crate::plan::Axes;

    fn close(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 0.02, "{a} is not {b}");
    }

    #[test]
    fn the_model_finds_the_prices_that_made_the_rows() {
        let document = fixture::run(&[fixture::axes()], 7);
        let model = document.model.unwrap();
        close(model.call_ns, CALL_NS);
        close(model.byte_ns, BYTE_NS);
        close(model.block_ns, BLOCK_NS);
        close(document.groups[0].pass_ns["stdio"], PASS_NS);
        for row in &document.rows {
            close(row.predicted_s.unwrap(), row.median_s());
        }
    }

    #[test]
    fn rows_without_syncs_separate_the_price_of_a_sync_from_that_of_a_call() {
        let syncs = vec![Sync::of(SyncKind::None), Sync::of(SyncKind::OSync)];
        let write = Axes {
            workloads: vec![crate::axes::Workload::Write],
            syncs,
            bytes: 1_000_000,
            ..fixture::axes()
        };
        let document = fixture::run(&[write], 5);
        let synced = document.groups.iter().find(|group| group.key.sync == "o_sync").unwrap().model.unwrap();
        close(synced.sync_ns, SYNC_NS);
        close(synced.call_ns, CALL_NS);
    }

    #[test]
    fn best_row_knee_and_ties() {
        let mut axes = fixture::axes();
        let falls_to_its_end = fixture::run(std::slice::from_ref(&axes), 7);
        let largest = falls_to_its_end.rows.iter().map(|row| row.record_bytes).max();
        assert_eq!(falls_to_its_end.knee_bytes, largest);
        assert_eq!(falls_to_its_end.groups[0].knee.unwrap().within(largest.unwrap()), None);
        axes.records.extend([1 << 18, 1 << 20]);
        let document = fixture::run(&[axes], 7);
        let best = document.rows.iter().find(|row| row.vs_best.unwrap().value == 1.0).unwrap();
        assert_eq!((best.method.as_str(), best.record_bytes), ("syscall", 1 << 20));
        // 16 KiB records cost 6 % more for blocks and calls than 64 KiB, so the knee is above 16 KiB.
        let knee = document.groups[0].knee.unwrap();
        assert_eq!(Some(knee.bytes), document.knee_bytes);
        let seconds = |record| {
            let of_record = |row: &&BenchRow| row.method == "syscall" && row.record_bytes == record;
            document.rows.iter().find(of_record).unwrap().median_s()
        };
        assert!(seconds(knee.bytes) <= seconds(1 << 20) * 1.05);
        assert!(document.rows.iter().all(|row| row.vs_best.unwrap().value > 1.05
            || row.ties_with_best
            || row.vs_best.unwrap().value == 1.0
            || row.vs_best.unwrap().ci95[0] > 1.0));
    }

    #[test]
    fn a_slow_round_shows_in_the_spread_but_not_in_ratios_or_noise() {
        let document = fixture::run(&[fixture::axes()], 7);
        let row = &document.rows[0];
        let elapsed = row.elapsed_s.unwrap();
        close(elapsed.max, elapsed.min * 2.0);
        assert_eq!(row.outliers, 1, "kept and counted");
        let ratio = row.vs_best.unwrap();
        close(ratio.ci95[0], ratio.ci95[1]);
        assert_eq!((document.noise.pairs, document.noise.rounds), (21, 7));
        close(document.noise.wall.unwrap(), 0.01);
    }
}
