//! The rows of one group, put in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use weir_model::Size;
use weir_model::bench::{BenchDocument, BenchRow, GroupKey, RowGroup};

/// With fewer, the table shows as much as a plot.
const POINTS_OF_A_CURVE: usize = 3;

/// A group with its rows; those of one curve stand together.
pub(super) struct Section<'a> {
    /// What the document says of the group.
    pub group: Cow<'a, RowGroup>,
    /// Its rows, by variant, else in the document's order.
    pub rows: Vec<&'a BenchRow>,
    /// Names of its curves: a method, with what else its rows differ in besides the record.
    pub variants: Vec<String>,
}

/// Buffer, mode, records a call and requests in flight, as far as `row` has them.
pub(super) fn with(row: &BenchRow) -> String {
    let words = [
        row.buffer_bytes.map(|bytes| Size(bytes).to_string()),
        row.mode.clone(),
        row.vector_records.map(|records| format!("{records} a call")),
        row.queue_depth.map(|depth| format!("{depth} in flight")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A method with what it has besides: what one curve of the plot is of.
pub(super) fn variant(row: &BenchRow) -> String {
    match with(row) {
        with if with.is_empty() => row.method.clone(),
        with => format!("{} ({with})", row.method),
    }
}

/// A row in a few words.
pub(super) fn label(row: &BenchRow) -> String {
    format!("{} {}", variant(row), Size(row.record_bytes))
}

/// Several rows in a few words: each variant once, with its records.
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

/// The median elapsed seconds, if they are a figure.
pub(super) fn elapsed(row: &BenchRow) -> Option<f64> {
    row.elapsed_s.map(|summary| summary.median).filter(|seconds| seconds.is_finite())
}

/// The sections of `document`: one for each group, and for rows of groups that it does not list.
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
        model_method: None,
        pass_ns: Default::default(),
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
        rows.sort_by_key(|row| place(&variants, row));
        Self { group, rows, variants }
    }

    /// What its rows share.
    pub fn key(&self) -> &GroupKey {
        &self.group.key
    }

    /// Rows that were to be measured, figures or not.
    pub fn possible(&self) -> impl Iterator<Item = &'a BenchRow> {
        self.rows.iter().copied().filter(|row| row.cannot.is_none())
    }

    /// Rows with figures.
    pub fn measured(&self) -> impl Iterator<Item = (&'a BenchRow, f64)> {
        self.possible().filter_map(|row| Some((row, elapsed(row)?)))
    }

    /// Which curve `row` is of.
    pub fn series(&self, row: &BenchRow) -> usize {
        place(&self.variants, row)
    }

    /// The row with the least elapsed time: the one that others are compared with, if known.
    pub fn best(&self) -> Option<(&'a BenchRow, f64)> {
        let least = || self.measured().min_by(|a, b| a.1.total_cmp(&b.1));
        self.measured().find(|(row, _)| row.is_best()).or_else(least)
    }

    /// The row that the knee stands at.
    pub fn knee_row(&self) -> Option<&'a BenchRow> {
        let (knee, method) = (self.group.knee?, self.group.model_method.as_ref()?);
        self.measured()
            .map(|(row, _)| row)
            .find(|row| row.method == *method && row.record_bytes == knee.bytes)
    }

    /// Has some method enough record sizes to draw a curve through?
    pub fn has_curve(&self) -> bool {
        let mut records: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        self.measured().for_each(|(row, _)| {
            records.entry(self.series(row)).or_default().insert(row.record_bytes);
        });
        records.values().any(|records| records.len() >= POINTS_OF_A_CURVE)
    }
}

fn place(variants: &[String], row: &BenchRow) -> usize {
    let name = variant(row);
    variants.iter().position(|known| *known == name).unwrap_or(variants.len())
}
