//! Published tables, each figure with the one measured here, from rows of `weir bench` or from the check itself.

use serde_json::Value;
use weir_bench::published::{TableData, table_data};
use weir_model::bench::BenchRow;
use weir_model::lab::{PublishedFigure, PublishedTable};
use weir_model::number::thousands;
use weir_model::{Size, Summary};

use crate::run::VersionRun;
use crate::{Error, Experiment};

/// A figure that a check measured itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MeasuredFigure {
    table: String,
    row: String,
    figure: String,
    value: f64,
    runs: u64,
    times: u64,
}

/// Parses a line `ours`, TABLE, ROW, FIGURE, VALUE, RUNS, TIMES of a check, separated by tabs.
pub(crate) fn parse_figure(line: &str) -> Option<MeasuredFigure> {
    let mut words = line.strip_prefix("ours\t")?.split('\t').map(String::from);
    let mut next = || words.next();
    let (table, row, figure) = (next()?, next()?, next()?);
    let value = next()?.trim().parse().ok()?;
    let (runs, times) = (next()?.trim().parse().ok()?, next()?.trim().parse().ok()?);
    Some(MeasuredFigure { table, row, figure, value, runs, times })
}

/// A figure measured here, from either source.
struct Ours {
    value: f64,
    runs: u64,
    scaled: bool,
    here: String,
}

/// Returns the tables that the experiment names, with the figures that its versions measured.
pub(crate) fn tables(experiment: &Experiment, ran: &[VersionRun]) -> Result<Vec<PublishedTable>, Error> {
    let rows: Vec<BenchRow> =
        ran.iter().flat_map(|one| &one.results).flat_map(|one| bench_rows(&one.1)).collect();
    let measured: Vec<&MeasuredFigure> = ran.iter().flat_map(|one| &one.ours).collect();
    let of = |id: &String| {
        let data = table_data().iter().find(|data| data.id == *id);
        data.map(|data| table(data, &rows, &measured)).ok_or_else(|| Error::Broken {
            name: experiment.name.clone(),
            why: format!("lab.toml: there is no published table {id}; 'weir bench --list' shows them"),
        })
    };
    experiment.published.iter().map(of).collect()
}

fn bench_rows(result: &Value) -> Vec<BenchRow> {
    match result["schema"] == "weir-bench/1" {
        true => serde_json::from_value(result["rows"].clone()).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// The columns that identify a row.
const KEYS: [&str; 8] =
    ["buffer_bytes", "line_bytes", "mode", "program", "output", "writers", "records_each", "record_bytes"];

fn table(data: &TableData, rows: &[BenchRow], measured: &[&MeasuredFigure]) -> PublishedTable {
    let (mut figures, mut here) = (Vec::new(), String::new());
    for cells in &data.rows {
        for (column, cell) in data.columns.iter().zip(cells).filter(|one| !KEYS.contains(&one.0.as_str())) {
            let (row, figure) = (label(data, cells), name(column, cell));
            let by_check =
                measured.iter().find(|one| one.table == data.id && one.row == row && one.figure == figure);
            let ours = by_check.map(|one| of_check(one)).or_else(|| of_bench(data, cells, column, rows));
            if let Some(ours) = ours.as_ref().filter(|_| here.is_empty()) {
                here.clone_from(&ours.here);
            }
            figures.push(PublishedFigure {
                row,
                figure,
                unit: unit(data, column),
                published: cell.as_f64().filter(|_| !column.ends_with(EXPECTED)),
                ours: ours.as_ref().map(|ours| ours.value),
                runs: ours.as_ref().map(|ours| ours.runs),
                scaled: ours.is_some_and(|ours| ours.scaled),
            });
        }
    }
    PublishedTable {
        id: data.id.clone(),
        title: data.title.clone(),
        source: data.source.clone(),
        setting: data.setting.clone(),
        here,
        rows: figures,
    }
}

fn of_check(measured: &MeasuredFigure) -> Ours {
    let MeasuredFigure { runs: count, times, value, .. } = *measured;
    let runs = if count == 1 { "1 run".into() } else { format!("mean of {count} runs") };
    // A mean over many process starts is not a scaled part of a total.
    let scaled = times > count;
    let here = if scaled { format!("{runs}, scaled {}-fold", times / count) } else { runs };
    Ours { value, runs: count, scaled, here }
}

/// Returns the cell of a column in a row.
fn key<'a>(data: &TableData, cells: &'a [Value], column: &str) -> Option<&'a Value> {
    cells.get(data.columns.iter().position(|one| one == column)?)
}

fn label(data: &TableData, cells: &[Value]) -> String {
    let words = |column: &str| key(data, cells, column)?.as_str().map(String::from);
    let size = |column: &str| Some(Size(key(data, cells, column)?.as_u64()?).to_string());
    let writers = || Some(format!("{} writers", key(data, cells, "writers")?));
    let first = words("program").or_else(|| size("buffer_bytes")).or_else(|| size("line_bytes"));
    let parts = [first.or_else(writers), words("output"), words("mode")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// End of the name of a column with values that the author expected and did not measure.
const EXPECTED: &str = "_expected";

/// Returns the name of a figure, with its expected value if the publication has no measured one.
fn name(column: &str, cell: &Value) -> String {
    let bare = |column: &str| column.strip_suffix("_s").unwrap_or(column).replace('_', " ");
    match column.strip_suffix(EXPECTED) {
        Some(expected) => format!("{} (expected: {})", bare(expected), thousands(cell.as_u64().unwrap_or(0))),
        None => bare(column),
    }
}

fn unit(data: &TableData, column: &str) -> String {
    match (column.ends_with("_s"), &data.unit) {
        (true, _) => "s".into(),
        (false, Some(unit)) => unit.clone(),
        (false, None) if column.contains("records") => "records".into(),
        (false, None) => "calls".into(),
    }
}

/// Returns the figure of the row of `weir bench` with the same method, size, mode and sync policy, and with the cache
/// state of the table.
fn of_bench(data: &TableData, cells: &[Value], column: &str, rows: &[BenchRow]) -> Option<Ours> {
    let record = key(data, cells, "buffer_bytes").or_else(|| key(data, cells, "line_bytes"))?.as_u64()?;
    let mode = key(data, cells, "mode").and_then(Value::as_str);
    let method = match column {
        "syscall_s" => "syscall",
        "stdio_s" => "stdio",
        _ => data.method.as_deref().unwrap_or("stdio"),
    };
    let alike = rows.iter().filter(|row| {
        row.group.workload == data.workload
            && data.sync.as_ref().is_none_or(|sync| row.group.sync == *sync)
            && (row.method.as_str(), row.record_bytes, row.mode.as_deref()) == (method, record, mode)
            && row.elapsed_s.is_some()
    });
    let row = alike.min_by_key(|row| data.cache.as_ref().is_some_and(|cache| row.group.cache != *cache))?;
    let (value, runs) = figure(row, column)?;
    let factor = data.bytes.map_or(1.0, |bytes| bytes as f64 / row.group.bytes as f64);
    let us = if data.unit.as_deref() == Some("us") { 1e6 } else { 1.0 };
    Some(Ours {
        value: value * factor * us,
        runs,
        scaled: row.extrapolated || factor != 1.0,
        here: here(row, factor, runs),
    })
}

/// Returns the figure of a bench row that a published column names, and how often it was measured.
fn figure(row: &BenchRow, column: &str) -> Option<(f64, u64)> {
    let elapsed = row.elapsed_s?;
    // The kernel counts CPU time in ticks. Most short samples have none, so only the mean is useful.
    let mean = |summary: Option<Summary>| summary.map(|summary| summary.mean);
    let value = match column {
        "cpu_s" => mean(row.cpu_s)?,
        "user_s" => row.divided_cpu().and(mean(row.user_s))?,
        "system_s" => row.divided_cpu().and(mean(row.system_s))?,
        "min" => elapsed.min,
        "q1" => elapsed.q1,
        "mean" => elapsed.mean,
        "q3" => elapsed.q3,
        "max" => elapsed.max,
        "sd" => elapsed.sd,
        "median" | "elapsed_s" | "syscall_s" | "stdio_s" => elapsed.median,
        _ => return None,
    };
    Some((value, elapsed.n as u64))
}

fn here(row: &BenchRow, factor: f64, runs: u64) -> String {
    let cache =
        if row.group.workload == "copy" { format!(", {} cache", row.group.cache) } else { String::new() };
    let scaled = match factor == 1.0 {
        true => String::new(),
        false => format!(
            ", {} scaled to {}",
            Size(row.group.bytes),
            Size((row.group.bytes as f64 * factor) as u64)
        ),
    };
    format!("{}{cache}, median of {runs} runs{scaled}", row.group.fs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(id: &str) -> &'static TableData {
        table_data().iter().find(|data| data.id == id).expect("the table")
    }

    #[test]
    fn a_figure_of_a_check_is_in_its_row() {
        let line = "ours\ttr2b-tr2u\ttr2u, file\twrites\t5000000\t1\t1";
        let table = table(data("tr2b-tr2u"), &[], &[&parse_figure(line).expect("a figure")]);
        assert_eq!(table.rows.len(), 20, "five figures of four rows");
        let measured: Vec<&PublishedFigure> = table.rows.iter().filter(|one| one.ours.is_some()).collect();
        assert_eq!(measured.len(), 1);
        assert_eq!((measured[0].published, measured[0].ours), (Some(5e6), Some(5e6)));
        assert_eq!((measured[0].unit.as_str(), table.here.as_str()), ("calls", "1 run"));
    }

    #[test]
    fn a_line_without_a_number_is_no_figure() {
        assert_eq!(parse_figure("ours\ttr2b-tr2u\ttr2u, file\twrites\tmany\t1\t1"), None);
        assert_eq!(parse_figure("ours\ttr2b-tr2u"), None);
        assert_eq!(parse_figure("writes\t7 writes"), None);
    }

    #[test]
    fn rows_and_figures_have_names() {
        let table = |id| table(data(id), &[], &[]);
        assert_eq!(table("tlpi-13-1").rows[0].row, "1 B");
        assert_eq!(table("benchlogs").rows[0].row, "64 B, full");
        assert_eq!(table("benchlogs").rows[0].unit, "us");
        assert_eq!(table("lobster").rows[0].row, "25 writers");
        assert_eq!(table("lobster").rows[0].figure, "records in one piece (expected: 2,500)");
        assert_eq!(table("lobster").rows[0].published, None, "it was not measured");
        assert_eq!(table("copy1-copy2").rows[0].published, None, "it did not finish");
    }
}
