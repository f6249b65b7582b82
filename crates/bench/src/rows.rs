//! Makes the row of a cell from its samples.

use std::collections::BTreeMap;

use weir_model::{Summary, stats};

use crate::directory::BenchDirectory;
use crate::figures::{Figures, moves_bytes};
use crate::rounds::kept;
use crate::run::{Sample, Track};
use weir_model::bench::{BenchRow, ContextSwitches, Noise, Round};

/// Returns the row of a cell. Fields that depend on other rows are left empty.
pub fn row(track: &Track, directory: &BenchDirectory, rounds: &[Round]) -> BenchRow {
    let cell = &track.cell;
    let samples = kept(&track.samples, rounds);
    let summary = |pick: fn(&Figures) -> f64| {
        Summary::of(&samples.iter().map(|sample| pick(&sample.figures)).collect::<Vec<_>>())
    };
    let list =
        |pick: fn(&Figures) -> f64| samples.iter().map(|sample| pick(&sample.figures)).collect::<Vec<_>>();
    let elapsed_s = summary(|f| f.elapsed_s);
    let samples_s = list(|f| f.elapsed_s);
    let calls = median_calls(&samples);
    let moving: u64 = calls.iter().filter(|(name, _)| moves_bytes(name)).map(|(_, count)| count).sum();
    let cannot = track
        .cannot
        .clone()
        .or_else(|| elapsed_s.is_none().then(|| "the run ended before its sample".into()));
    let mut row = BenchRow {
        group: cell.group_key(&directory.fs, &directory.dir),
        method: cell.method.clone(),
        record_bytes: cell.record_bytes,
        buffer_bytes: cell.buffer_bytes,
        mode: cell.mode.map(|mode| mode.name().into()),
        vector_records: cell.vector_records,
        queue_depth: cell.queue_depth,
        cannot,
        remark: None,
        measured_bytes: track.measured_bytes,
        extrapolated: track.measured_bytes < cell.bytes && elapsed_s.is_some(),
        verified: track.verified,
        elapsed_s,
        cpu_s: summary(|f| f.cpu_s),
        user_s: summary(|f| f.user_s),
        system_s: summary(|f| f.system_s),
        transfer_s: summary(|f| f.transfer_s),
        sync_s: summary(|f| f.sync_s),
        close_s: summary(|f| f.close_s),
        calls_per_mib: elapsed_s.map(|_| moving as f64 / (cell.bytes as f64 / f64::from(1 << 20))),
        calls,
        context_switches: ContextSwitches {
            voluntary: summary(|f| f.voluntary_switches),
            involuntary: summary(|f| f.involuntary_switches),
        },
        page_faults: summary(|f| f.page_faults),
        dirty_bytes: samples.iter().map(|sample| sample.figures.dirty_bytes).max().flatten(),
        vs_best: None,
        ties_with_best: false,
        predicted_s: None,
        outliers: elapsed_s.map_or(0, |s| s.outliers(&samples_s)),
        cached_before: track.cached_before,
        samples_s,
        samples_cpu_s: list(|f| f.cpu_s),
        rounds_of: samples.iter().map(|sample| sample.round).collect(),
    };
    row.remark = remark(track, row.syncs_per_record());
    row
}

/// Returns the loop's remark, a remark if the input of a cold cell was cached, and one if a sync is of several records.
fn remark(track: &Track, syncs_per_record: bool) -> Option<String> {
    let not_cold = track.cached_before.filter(|&share| share > 0.0).map(|share| {
        let percent = if share < 0.01 { "less than 1".into() } else { format!("{:.0}", share * 100.0) };
        format!("the cold state was not reached: up to {percent} % of the input was still cached")
    });
    let unit = if track.cell.vector_records.is_some() { "call" } else { "buffer" };
    let several = (!syncs_per_record).then(|| {
        format!("syncs per {unit}, not per record, so it is not compared with rows that sync each record")
    });
    let all: Vec<String> = [track.remark.clone(), not_cold, several].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns the median count of each call.
fn median_calls(samples: &[&Sample]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, count) in samples.iter().flat_map(|sample| &sample.figures.calls) {
        counts.entry(name.clone()).or_default().push(*count as f64);
    }
    counts.into_iter().map(|(name, mut values)| (name, stats::median(&mut values).round() as u64)).collect()
}

/// Estimates the noise from the differences between samples and their twins.
pub fn noise(tracks: &[Track], rounds: &[Round]) -> Noise {
    let mut pairs: Vec<(usize, &Figures, &Figures)> = Vec::new();
    for track in tracks.iter().filter(|track| track.has_twin) {
        for twin in kept(&track.twins, rounds) {
            if let Some(first) = track.samples.iter().find(|sample| sample.round == twin.round) {
                pairs.push((twin.round, &first.figures, &twin.figures));
            }
        }
    }
    let mut of: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
    of.sort_unstable();
    of.dedup();
    Noise {
        pairs: pairs.len(),
        rounds: of.len(),
        cpu: stats::pooled_noise(pairs.iter().map(|(_, a, b)| (a.cpu_s, b.cpu_s))),
        wall: stats::pooled_noise(pairs.iter().map(|(_, a, b)| (a.elapsed_s, b.elapsed_s))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Workload;
    use crate::directory::DirectoryRequest;
    use crate::fixture;
    use crate::job::Measured;
    use crate::plan::Axes;

    const RECORDS: [u64; 6] = [1, 64, 100, 256, 4096, 65_536];

    /// Returns rows with O_DSYNC of a file of `bytes`, for each record size and each part that a sample can move; each call writes
    /// `per_call` records.
    fn synced_rows(bytes: u64, call: &str, per_call: u64) -> Vec<BenchRow> {
        let outer = tempfile::tempdir().unwrap();
        let directory = BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1).unwrap();
        let axes = Axes {
            workloads: vec![Workload::Write],
            methods: vec!["syscall".into()],
            syncs: vec!["o_dsync".parse().unwrap()],
            records: RECORDS.into(),
            bytes,
            ..fixture::axes()
        };
        let mut measurement = fixture::measurement(&[axes], 4);
        let mut rows = Vec::new();
        for track in &mut measurement.tracks {
            let unit = track.cell.record_bytes * per_call;
            for moved in [1, 2, 3, 7, 10, 1000, bytes].map(|units: u64| bytes.min(units.saturating_mul(unit)))
            {
                track.measured_bytes = moved;
                let calls = vec![(call.to_string(), moved.div_ceil(unit))];
                let measured = Measured { bytes_moved: moved, calls, ..Measured::default() };
                for sample in &mut track.samples {
                    sample.figures = Figures::of(&measured, &track.cell, 0);
                }
                rows.push(row(track, &directory, &measurement.rounds));
            }
        }
        rows
    }

    #[test]
    fn a_call_for_each_record_syncs_each_record_whatever_the_size() {
        for bytes in [1_000_000, 1 << 20, 999_999, 100_001, 6_400] {
            for row in ["write", "pwritev2"].iter().flat_map(|call| synced_rows(bytes, call, 1)) {
                let what = (row.group.bytes, row.record_bytes, row.measured_bytes, &row.calls);
                assert!(row.syncs_per_record() && row.remark.is_none(), "{what:?}");
            }
            for row in synced_rows(bytes, "write", 2).iter().filter(|row| bytes > row.record_bytes) {
                let what = (row.group.bytes, row.record_bytes, row.measured_bytes, &row.calls);
                assert!(!row.syncs_per_record(), "{what:?}");
            }
        }
    }
}
