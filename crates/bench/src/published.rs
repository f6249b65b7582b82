//! Published tables: cells to measure, and figures to compare with the measured ones.
//!
//! The figures are in `published/published.json` with their sources. weir did not measure them.

mod verdict;

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use weir_model::Mode;

use crate::axes::{CacheState, Sync, SyncKind, Workload, parse_mode};
use crate::error::{Error, Result, suggestion};
use crate::plan::Axes;
use weir_model::bench::{BenchRow, PublishedComparison, PublishedRow};

/// The contents of `published/published.json`.
#[derive(Deserialize)]
struct Data {
    tables: Vec<TableData>,
}

/// A published table as in the file: columns that identify a row, and columns of figures.
#[derive(Debug, Deserialize)]
pub struct TableData {
    /// The word for `--published`.
    pub id: String,
    /// One line for the report.
    pub title: String,
    /// Where the table was published.
    pub source: String,
    /// Machine and conditions of the published measurement.
    pub setting: String,
    /// Name of the workload that comes closest to the published program.
    pub workload: String,
    /// The method of all rows, if it is the same for all.
    pub method: Option<String>,
    /// Bytes of the whole job.
    pub bytes: Option<u64>,
    /// Name of the page cache's state before the measurement.
    pub cache: Option<String>,
    /// Name of the sync policy; `None` means no syncs.
    pub sync: Option<String>,
    /// Unit of the figures whose column names no unit.
    pub unit: Option<String>,
    /// Column names, in the order of the cells of a row.
    pub columns: Vec<String>,
    /// Rows, with one cell for each column.
    pub rows: Vec<Vec<Value>>,
}

/// A published table that the benchmark can measure.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurableTable {
    /// The word for `--published`.
    pub id: String,
    /// One line for the report.
    pub title: String,
    /// Where the table was published.
    pub source: String,
    /// Machine and conditions of the published measurement.
    pub setting: String,
    workload: Workload,
    bytes: Option<u64>,
    cache: Option<CacheState>,
    sync: SyncKind,
    entries: Vec<Entry>,
}

/// A published row: its parameters and its elapsed time.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    method: String,
    mode: Option<Mode>,
    record_bytes: u64,
    seconds: f64,
}

/// Returns every table of `published/published.json`.
pub fn table_data() -> &'static [TableData] {
    static TABLES: OnceLock<Vec<TableData>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let data = serde_json::from_str(include_str!("../published/published.json"));
        data.unwrap_or(Data { tables: Vec::new() }).tables
    })
}

/// Returns every published table that the benchmark can measure.
pub fn tables() -> &'static [MeasurableTable] {
    static TABLES: OnceLock<Vec<MeasurableTable>> = OnceLock::new();
    TABLES.get_or_init(|| table_data().iter().filter_map(table).collect())
}

/// Returns the tables that `words` name. A word is a name, a prefix of names (`tlpi-13`), or `all`. Fails for an
/// unknown word.
pub fn select(words: &[String]) -> Result<Vec<&'static MeasurableTable>> {
    let mut chosen: Vec<&'static MeasurableTable> = Vec::new();
    for word in words {
        let found: Vec<_> =
            tables().iter().filter(|table| word == "all" || table.id.starts_with(word.as_str())).collect();
        if found.is_empty() || word.is_empty() {
            let advice = suggestion(word, tables().iter().map(|table| table.id.as_str()));
            return Err(Error::Usage(format!("--published {word}: no such table; {advice}")));
        }
        chosen.extend(
            found
                .into_iter()
                .filter(|table| !chosen.iter().any(|known| known.id == table.id))
                .collect::<Vec<_>>(),
        );
    }
    Ok(chosen)
}

fn table(data: &TableData) -> Option<MeasurableTable> {
    let column = |name: &str| data.columns.iter().position(|column| column == name);
    let unit = if data.unit.as_deref() == Some("us") { 1e-6 } else { 1.0 };
    let mut entries = Vec::new();
    for row in &data.rows {
        let number = |name: &str| row.get(column(name)?)?.as_f64();
        let text = |name: &str| row.get(column(name)?)?.as_str();
        let mut add = |method: &str, record: Option<f64>, mode: Option<Mode>, seconds: Option<f64>| {
            if let (Some(record), Some(seconds)) = (record, seconds) {
                entries.push(Entry {
                    method: method.into(),
                    mode,
                    record_bytes: record as u64,
                    seconds: seconds * unit,
                });
            }
        };
        match (text("program"), text("output")) {
            // A terminal is slower than a file: only the lab measures these rows.
            (Some(_), Some("terminal")) => {}
            (Some("unbuffered_writer" | "tr2u"), _) => add("syscall", Some(1.0), None, number("elapsed_s")),
            (Some("buffered_writer" | "tr2b"), _) => add("stdio-char", Some(1.0), None, number("elapsed_s")),
            (Some(_), _) => {}
            (None, _) if column("line_bytes").is_some() => {
                let mode = text("mode").and_then(|mode| parse_mode(mode).ok());
                add("stdio", number("line_bytes"), mode, number("median"));
            }
            (None, _) => {
                for (name, method) in
                    [("elapsed_s", "syscall"), ("syscall_s", "syscall"), ("stdio_s", "stdio")]
                {
                    add(method, number("buffer_bytes"), None, number(name));
                }
            }
        }
    }
    let workload = data.workload.parse().ok()?;
    (!entries.is_empty()).then(|| MeasurableTable {
        id: data.id.clone(),
        title: data.title.clone(),
        source: data.source.clone(),
        setting: data.setting.clone(),
        workload,
        bytes: data.bytes,
        cache: data.cache.as_deref().and_then(|cache| cache.parse().ok()),
        sync: data.sync.as_deref().and_then(|sync| sync.parse().ok()).unwrap_or(SyncKind::None),
        entries,
    })
}

impl MeasurableTable {
    /// Returns the axes that measure this table, one for each method and mode, because not every method has every
    /// record. Values that the table does not state come from `default`.
    pub fn axes(&self, default: &Axes) -> Vec<Axes> {
        let mut variants: Vec<(&str, Option<Mode>)> = Vec::new();
        for entry in &self.entries {
            if !variants.contains(&(&entry.method, entry.mode)) {
                variants.push((&entry.method, entry.mode));
            }
        }
        variants
            .into_iter()
            .map(|(method, mode)| Axes {
                workloads: vec![self.workload],
                methods: vec![method.into()],
                records: self.of(method, mode).map(|entry| entry.record_bytes).collect(),
                buffers: vec![None],
                modes: vec![mode],
                syncs: vec![Sync::of(self.sync)],
                caches: self.cache.map_or_else(|| default.caches.clone(), |cache| vec![cache]),
                advices: vec![None],
                bytes: self.bytes.unwrap_or(default.bytes),
                ..default.clone()
            })
            .collect()
    }

    fn of<'a>(&'a self, method: &'a str, mode: Option<Mode>) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.method == method && entry.mode == mode)
    }

    /// Compares this table with the measured `rows`. Of several directories, the first with a matching row counts. `noise` is the
    /// share within which two of our figures are equal.
    pub fn compare(&self, rows: &[BenchRow], noise: f64) -> PublishedComparison {
        let ours: Vec<Option<&BenchRow>> =
            self.entries.iter().map(|entry| self.matching(entry, rows)).collect();
        let seconds = |row: &BenchRow| {
            let whole = self.bytes.unwrap_or(row.group.bytes) as f64 / row.group.bytes as f64;
            row.elapsed_s.map(|elapsed| elapsed.median * whole)
        };
        let ours_s: Vec<Option<f64>> = ours.iter().map(|row| seconds((*row)?)).collect();
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let their_best = least(&mut self.entries.iter().map(|entry| entry.seconds));
        let our_best = least(&mut ours_s.iter().copied().flatten());
        let published_row = |(entry, &ours_s): (&Entry, &Option<f64>)| PublishedRow {
            method: entry
                .mode
                .map_or(entry.method.clone(), |mode| format!("{} {}", entry.method, mode.name())),
            record_bytes: entry.record_bytes,
            theirs_s: entry.seconds,
            ours_s,
            theirs_vs_best: entry.seconds / their_best,
            ours_vs_best: ours_s.map(|seconds| seconds / our_best),
        };
        let rows: Vec<PublishedRow> = self.entries.iter().zip(&ours_s).map(published_row).collect();
        let both: Vec<verdict::Both> = rows
            .iter()
            .zip(&ours)
            .filter_map(|(published, ours)| Some(verdict::Both { published, ours: (*ours)? }))
            .collect();
        let verdict = match both.len() {
            few @ 0..2 => {
                vec![format!(
                    "{few} of its {} rows were measured in this run: too few to compare",
                    rows.len()
                )]
            }
            _ => verdict::verdict(&both, noise, self.bytes.is_some()),
        };
        PublishedComparison {
            id: self.id.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            setting: self.setting.clone(),
            verdict,
            rows,
        }
    }

    fn matching<'a>(&self, entry: &Entry, rows: &'a [BenchRow]) -> Option<&'a BenchRow> {
        let cold_matters = self.workload.has_input();
        rows.iter().find(|row| {
            row.group.workload == self.workload.name()
                && row.group.sync == self.sync.name()
                && (!cold_matters || self.cache.is_none_or(|cache| row.group.cache == cache.name()))
                && row.group.advice.is_none()
                && row.method == entry.method
                && row.buffer_bytes.is_none()
                && (row.mode.as_deref() == entry.mode.map(Mode::name))
                && row.record_bytes == entry.record_bytes
                && row.elapsed_s.is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_calls_is_there() {
        let ids: Vec<&str> = tables().iter().map(|table| table.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "tlpi-13-1",
                "tlpi-13-2",
                "tlpi-13-3-none",
                "tlpi-13-3-sync",
                "copy1-copy2",
                "writers-100k",
                "tr2b-tr2u",
                "benchlogs"
            ]
        );
        assert_eq!(tables()[0].entries.len(), 14);
        assert_eq!(tables()[4].entries.len(), 9, "copy1 at 1 byte did not finish");
        assert_eq!(tables()[6].entries.len(), 2, "the terminal's rows are not a file's");
        assert!((tables()[7].entries[0].seconds - 0.019494).abs() < 1e-9);
    }

    #[test]
    fn chosen_by_name_by_start_or_all() {
        let ids = |words: &[&str]| -> Result<Vec<String>> {
            Ok(select(&words.iter().map(|w| w.to_string()).collect::<Vec<_>>())?
                .iter()
                .map(|t| t.id.clone())
                .collect())
        };
        assert_eq!(ids(&["tlpi-13-3"]).unwrap(), ["tlpi-13-3-none", "tlpi-13-3-sync"]);
        assert_eq!(ids(&["tlpi-13-1", "tlpi"]).unwrap().len(), 4);
        assert_eq!(ids(&["all"]).unwrap().len(), 8);
        assert!(ids(&["tlpi-99"]).is_err() && ids(&[""]).is_err());
    }
}
