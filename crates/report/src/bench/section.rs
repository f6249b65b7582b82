//! A group of a document with its rows in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use weir_model::bench::{BenchDocument, BenchRow, GroupKey, RowGroup, fastest};
use weir_model::{Knee, Size};

/// Smallest number of record sizes for a plot. With fewer, the table shows as much.
const POINTS_OF_A_CURVE: usize = 3;

/// A group with its rows, sorted by curve.
pub(super) struct Section<'a> {
    /// The group, or an empty one for rows of a group that the document does not list.
    pub group: Cow<'a, RowGroup>,
    /// Rows by variant, then in the document's order.
    pub rows: Vec<&'a BenchRow>,
    /// Names of the curves: methods with their parameters other than the record size.
    pub variants: Vec<String>,
    /// Relative difference up to which two figures count as equal.
    pub noise: f64,
}

/// Returns the parameters of a row: buffer, mode, records in a call, requests in flight.
pub(super) fn with(row: &BenchRow) -> String {
    let words = [
        row.buffer_bytes.map(|bytes| Size(bytes).to_string()),
        row.mode.clone(),
        row.vector_records.map(|records| format!("{records} a call")),
        row.queue_depth.map(|depth| format!("{depth} in flight")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the name of the row's curve: the method and its parameters.
pub(super) fn variant(row: &BenchRow) -> String {
    match with(row) {
        with if with.is_empty() => row.method.clone(),
        with => format!("{} ({with})", row.method),
    }
}

/// Returns the label of a row.
pub(super) fn label(row: &BenchRow) -> String {
    format!("{} {}", variant(row), Size(row.record_bytes))
}

/// Returns the label of several rows: each variant once, with its record sizes.
pub(super) fn labels(rows: &[&BenchRow]) -> String {
    let mut named: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let (name, size) = (variant(row), Size(row.record_bytes).to_string());
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sizes)) => sizes.push(size),
            None => named.push((name, vec![size])),
        }
    }
    let all = named.iter().map(|(name, sizes)| format!("{name} {}", sizes.join(", ")));
    all.collect::<Vec<_>>().join("; ")
}

/// Returns the median elapsed seconds, if finite.
pub(super) fn elapsed(row: &BenchRow) -> Option<f64> {
    row.elapsed_s.map(|summary| summary.median).filter(|seconds| seconds.is_finite())
}

/// Returns a section for each group of `document`, and for each group that only its rows have.
pub(super) fn sections(document: &BenchDocument) -> Vec<Section<'_>> {
    let mut groups: Vec<Cow<RowGroup>> = document.groups.iter().map(Cow::Borrowed).collect();
    for row in &document.rows {
        if groups.iter().all(|group| group.key != row.group) {
            groups.push(Cow::Owned(unlisted(&row.group)));
        }
    }
    groups.into_iter().map(|group| Section::new(group, document)).collect()
}

fn unlisted(key: &GroupKey) -> RowGroup {
    RowGroup {
        key: key.clone(),
        model: None,
        model_ci95: None,
        model_method: None,
        pass_ns: Default::default(),
        pass_ns_ci95: Default::default(),
        knee: None,
        mount_options: String::new(),
    }
}

impl<'a> Section<'a> {
    fn new(group: Cow<'a, RowGroup>, document: &'a BenchDocument) -> Self {
        let mut rows: Vec<&BenchRow> = document.rows.iter().filter(|row| row.group == group.key).collect();
        let mut variants: Vec<String> = Vec::new();
        for name in rows.iter().filter(|row| row.cannot.is_none()).map(|row| variant(row)) {
            if !variants.contains(&name) {
                variants.push(name);
            }
        }
        rows.sort_by_key(|row| variant_index(&variants, row));
        Self { group, rows, variants, noise: document.noise.floor() }
    }

    /// Returns the properties that all rows share.
    pub fn key(&self) -> &GroupKey {
        &self.group.key
    }

    /// Returns the rows that this machine can measure, also those without figures.
    pub fn possible(&self) -> impl Iterator<Item = &'a BenchRow> {
        self.rows.iter().copied().filter(|row| row.cannot.is_none())
    }

    /// Returns the rows with figures and their median seconds.
    pub fn measured(&self) -> impl Iterator<Item = (&'a BenchRow, f64)> {
        self.possible().filter_map(|row| Some((row, elapsed(row)?)))
    }

    /// Returns the index of the row's curve.
    pub fn series(&self, row: &BenchRow) -> usize {
        variant_index(&self.variants, row)
    }

    /// Returns the row that the ratios refer to, else the row with the smallest elapsed time.
    pub fn best(&self) -> Option<(&'a BenchRow, f64)> {
        let rows = || self.measured().map(|(row, _)| row);
        let best = rows().find(|row| row.is_best()).or_else(|| fastest(rows()))?;
        Some((best, best.median_s()))
    }

    /// Returns the measured rows that sync as often as the best one: the others have another durability.
    pub fn comparable(&self) -> impl Iterator<Item = (&'a BenchRow, f64)> {
        let best = self.best();
        self.measured().filter(move |(row, _)| best.is_none_or(|(best, _)| row.syncs_as(best)))
    }

    /// Returns the rows of the knee's curve by record size.
    pub fn curve(&self) -> Vec<&'a BenchRow> {
        self.group.curve(self.measured().map(|(row, _)| row))
    }

    /// Returns the knee, unless it is the largest record of its method: gains may then go on. Lines have none: their length is no
    /// choice.
    pub fn knee(&self) -> Option<Knee> {
        self.group.knee?.within(self.largest_of_knee()?).filter(|_| !self.key().has_lines())
    }

    /// Returns the largest record of the knee's curve.
    pub fn largest_of_knee(&self) -> Option<u64> {
        self.curve().last().map(|row| row.record_bytes)
    }

    /// Returns the row of the knee.
    pub fn knee_row(&self) -> Option<&'a BenchRow> {
        let knee = self.knee()?;
        self.curve().into_iter().find(|row| row.record_bytes == knee.bytes)
    }

    /// Returns whether some method has enough record sizes for a plot.
    pub fn has_curve(&self) -> bool {
        let mut records: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        self.measured().for_each(|(row, _)| {
            records.entry(self.series(row)).or_default().insert(row.record_bytes);
        });
        records.values().any(|records| records.len() >= POINTS_OF_A_CURVE)
    }
}

fn variant_index(variants: &[String], row: &BenchRow) -> usize {
    let name = variant(row);
    variants.iter().position(|known| *known == name).unwrap_or(variants.len())
}
