//! Compares rows within rounds, and finds where the gains of larger records stop.

use std::collections::BTreeMap;

use super::{BenchRow, GroupKey, RowGroup};
use crate::{Knee, Ratio};

/// Sync policies that make each write wait for the device.
const SYNCS_IN_WRITES: [&str; 3] = ["o_sync", "o_dsync", "rwf_dsync"];

/// Returns `a / b` in elapsed time. The value is the ratio of the medians, so that it agrees with the figures of the table. The
/// interval is that of the ratios within the rounds that have both, widened to the value if rows were measured in different
/// rounds. Returns `None` if no round has both.
pub fn ratio(a: &BenchRow, b: &BenchRow) -> Option<Ratio> {
    let of_round: BTreeMap<usize, f64> =
        b.rounds_of.iter().copied().zip(b.samples_s.iter().copied()).collect();
    let pairs =
        a.rounds_of.iter().zip(&a.samples_s).filter_map(|(round, &a_s)| Some((a_s, *of_round.get(round)?)));
    let value = a.elapsed_s?.median / b.elapsed_s?.median;
    Ratio::paired(pairs).filter(|_| value.is_finite()).map(|ratio| ratio.with_value(value))
}

impl BenchRow {
    /// Returns the median elapsed time in seconds; infinity for a row that was not measured.
    pub fn median_s(&self) -> f64 {
        self.elapsed_s.map_or(f64::INFINITY, |elapsed| elapsed.median)
    }

    /// Returns whether each record is synced as the policy demands. If each write waits for the device, a user-space buffer or
    /// a vector of records makes one sync of several records: a record is durable later than its call returns.
    pub fn syncs_per_record(&self) -> bool {
        let writes: u64 =
            self.calls.iter().filter(|(name, _)| name.contains("write")).map(|(_, count)| count).sum();
        let record_bytes = self.record_bytes.max(1);
        // The counts of a row that was measured in part are scaled and rounded, so that they may lack a last record that is partial.
        let records = match self.extrapolated {
            true => self.group.bytes / record_bytes,
            false => self.group.bytes.div_ceil(record_bytes),
        };
        !SYNCS_IN_WRITES.contains(&self.group.sync.as_str()) || writes == 0 || writes >= records
    }

    /// Returns whether this row's records and those of `other` are durable equally early, so that their times can be compared.
    pub fn syncs_as(&self, other: &Self) -> bool {
        self.syncs_per_record() == other.syncs_per_record()
    }
}

/// Returns the fastest of the measured rows that sync each record, else of all measured rows.
pub fn fastest<'a>(rows: impl IntoIterator<Item = &'a BenchRow>) -> Option<&'a BenchRow> {
    let order = |row: &BenchRow| (!row.syncs_per_record(), row.median_s());
    rows.into_iter().filter(|row| row.median_s().is_finite()).min_by(|a, b| {
        let ((a_rank, a_s), (b_rank, b_s)) = (order(a), order(b));
        a_rank.cmp(&b_rank).then(a_s.total_cmp(&b_s))
    })
}

impl GroupKey {
    /// Returns whether the record size is the length of a line, which the program cannot choose.
    pub fn has_lines(&self) -> bool {
        self.workload == "log"
    }
}

impl RowGroup {
    /// Returns the measured rows of the knee's method by record size: those with the buffer and mode of its first row.
    pub fn curve<'a>(&self, rows: impl IntoIterator<Item = &'a BenchRow>) -> Vec<&'a BenchRow> {
        let is_own = |row: &&BenchRow| {
            row.group == self.key
                && row.elapsed_s.is_some()
                && Some(&row.method) == self.model_method.as_ref()
        };
        let mut curve: Vec<&BenchRow> = rows.into_iter().filter(is_own).collect();
        let variant = |row: &BenchRow| (row.buffer_bytes, row.mode.clone());
        if let Some(first) = curve.first().map(|row| variant(row)) {
            curve.retain(|row| variant(row) == first);
        }
        curve.sort_by_key(|row| row.record_bytes);
        curve
    }
}

/// Where the gains of larger records stop, by the intervals of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gains {
    /// At a knee below the largest record.
    Stop(Knee),
    /// The largest record is the fastest, but a smaller one ties with it.
    Level {
        /// Bytes of the smallest record that ties.
        from: u64,
        /// Bytes of the largest record.
        to: u64,
        /// Time of `from` divided by that of `to`.
        ratio: Ratio,
    },
    /// The largest record is faster than each smaller one by more than the noise.
    GoOn {
        /// Bytes of the second largest record.
        before: u64,
        /// Bytes of the largest record.
        to: u64,
        /// Time of `before` divided by that of `to`.
        ratio: Ratio,
    },
}

impl Gains {
    /// Returns where the gains of `curve` stop, whose rows are sorted by record size. `noise` is the share within which two
    /// figures are equal. Returns `None` for fewer than two rows, if no round has two of them, or if a smaller record than the
    /// largest is faster although there is no knee.
    pub fn of(curve: &[&BenchRow], knee: Option<Knee>, noise: f64) -> Option<Self> {
        let [smaller @ .., last] = curve else { return None };
        let (to, before) = (last.record_bytes, *smaller.last()?);
        // Documents of older versions have no knee for a curve that falls up to its largest record.
        if let Some(knee) = knee.and_then(|knee| knee.within(to)) {
            return Some(Self::Stop(knee));
        }
        if smaller.iter().any(|row| row.median_s() < last.median_s()) {
            return None;
        }
        let compared = |row: &&BenchRow| Some((row.record_bytes, ratio(row, last)?));
        let tie = smaller.iter().filter_map(compared).find(|(_, ratio)| ratio.is_tie(noise));
        match tie {
            Some((from, ratio)) => Some(Self::Level { from, to, ratio }),
            None => Some(Self::GoOn { before: before.record_bytes, to, ratio: ratio(before, last)? }),
        }
    }

    /// Returns the smallest record in bytes that is enough, as far as the figures show.
    pub fn enough(&self) -> u64 {
        match self {
            Self::Stop(knee) => knee.bytes,
            Self::Level { from, .. } => *from,
            Self::GoOn { to, .. } => *to,
        }
    }
}

/// Returns the system calls of the method `syscall` in a sentence about `workload`.
pub fn plain_calls(workload: &str) -> &'static str {
    match workload {
        "write" | "log" => "write(2)",
        "read" => "read(2)",
        _ => "read/write",
    }
}
