//! The table of one group.

use weir_model::bench::BenchRow;
use weir_model::estimate::short_ratio;
use weir_model::{Size, Summary};

use super::labels;
use super::section::{Section, elapsed, with};
use crate::number::{ABSENT, TimeUnit, count, percent};
use crate::style::Emphasis;
use crate::table::{Align, Bars, Column, ColumnPriority, Heading, Table, TableCell, TableRow};

/// Data of the section that cells need besides their row.
struct Context<'a> {
    section: &'a Section<'a>,
    unit: TimeUnit,
    best: Option<&'a BenchRow>,
}

/// A column and the function that returns a row's cell.
struct Field {
    column: Column,
    cell: fn(&Context, &BenchRow) -> TableCell,
}

/// Returns the table of the rows that this machine can measure.
pub(super) fn table(section: &Section) -> Table {
    let context = Context {
        section,
        unit: TimeUnit::for_values(section.measured().map(|(_, seconds)| seconds)),
        best: section.best().map(|(row, _)| row),
    };
    let fields: Vec<Field> = words_of(section).chain(figures(&context)).chain([versus_best()]).collect();
    let possible: Vec<&BenchRow> = section.possible().collect();
    // Rows of a curve are under a heading with the marker of the plot; otherwise the method is a column.
    let headed = section.has_curve();
    let knee = section.knee_row();
    let row = |measured: &&BenchRow| {
        let series = section.series(measured);
        TableRow {
            heading: headed.then_some(series),
            cells: fields.iter().map(|field| (field.cell)(&context, measured)).collect(),
            bar: elapsed(measured),
            series: Some(series),
            remarks: remarks(section, measured, knee.is_some_and(|knee| std::ptr::eq(knee, *measured))),
        }
    };
    let heading = |(series, text): (usize, &String)| Heading { text: text.clone(), series: Some(series) };
    Table {
        rows: possible.iter().map(row).collect(),
        columns: fields.into_iter().map(|field| field.column).collect(),
        headings: if headed {
            section.variants.iter().enumerate().map(heading).collect()
        } else {
            Vec::new()
        },
        // A plot has the same information as the bars, so they have a low priority beside one.
        bars: Some(Bars { head: "log scale".into(), rank: if headed { 8 } else { 5 } }),
    }
}

fn remarks(section: &Section, row: &BenchRow, is_knee: bool) -> Vec<String> {
    match (section.knee(), elapsed(row)) {
        (Some(knee), _) if is_knee => {
            let long = format!("◀ knee: {}", labels::knee(&knee));
            vec![long, "◀ knee".into(), "◀".into()]
        }
        (_, None) => vec!["not measured".into()],
        _ => Vec::new(),
    }
}

/// Returns the columns that identify a row. Properties of only some methods share one column, because most cells of
/// separate columns would be empty.
fn words_of(section: &Section) -> impl Iterator<Item = Field> {
    let word = |head: &str, cell| Field {
        column: Column::new(head, "", Align::Left).priority(ColumnPriority::UnlessHeaded),
        cell,
    };
    let has_more = section.rows.iter().any(|row| !with(row).is_empty());
    let more = has_more.then(|| word("with", |_, row| with(row).into()));
    let method = word("method", |_, row| row.method.as_str().into());
    let record = Field {
        column: Column::new("record", "", Align::Right),
        cell: |_, row| Size(row.record_bytes).to_string().into(),
    };
    [method].into_iter().chain(more).chain([record])
}

/// Returns the columns of figures with their priority on a narrow terminal.
fn figures(context: &Context) -> impl Iterator<Item = Field> {
    let synced = context.section.key().sync != "none";
    let loop_name = match context.section.key().workload.as_str() {
        "write" | "log" => "write",
        _ => "loop",
    };
    let unit = context.unit.name;
    let time = |head: &str, rank, cell| Field {
        column: Column::new(head, unit, Align::Decimal).priority(ColumnPriority::Rank(rank)),
        cell,
    };
    let plain = |head: &str, unit: &str, rank, cell| Field {
        column: Column::new(head, unit, Align::Right).priority(ColumnPriority::Rank(rank)),
        cell,
    };
    let elapsed = Field { column: Column::new("elapsed", unit, Align::Decimal), cell: elapsed_cell };
    let fields = [
        (true, elapsed),
        (true, plain("±", "%", 2, |_, row| spread(row.elapsed_s.as_ref()))),
        (true, time("CPU", 4, |context, row| part(context, row, &row.cpu_s))),
        (true, time("user", 7, |context, row| share(context, row, 0))),
        (true, time("system", 7, |context, row| share(context, row, 1))),
        (synced, time(loop_name, 6, |context, row| part(context, row, &row.transfer_s))),
        (synced, time("sync", 1, |context, row| part(context, row, &row.sync_s))),
        (synced, time("close", 6, |context, row| part(context, row, &row.close_s))),
        (true, plain("calls", "per MiB", 3, |_, row| calls_per_mib(row))),
        (true, plain("calls", "in all", 9, |_, row| calls(row))),
        (true, time("model", 10, predicted)),
    ];
    let has_model = context.section.rows.iter().any(|row| row.predicted_s.is_some());
    fields
        .into_iter()
        .filter(move |(shown, field)| *shown && (has_model || field.column.head != "model"))
        .map(|(_, field)| field)
}

fn versus_best() -> Field {
    Field { column: Column::new("vs best", "", Align::Right), cell: vs_best }
}

fn elapsed_cell(context: &Context, row: &BenchRow) -> TableCell {
    let marks = [(row.extrapolated, "~"), (row.remark.is_some(), "*")];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let space = if marks.is_empty() { "" } else { " " };
    let text = elapsed(row).map_or(ABSENT.into(), |seconds| context.unit.show(seconds));
    TableCell::from(text).marked(format!("{space}{marks}"))
}

fn spread(elapsed: Option<&Summary>) -> TableCell {
    elapsed.map_or(ABSENT.into(), |summary| percent(summary.relative_half_width())).into()
}

fn part(context: &Context, row: &BenchRow, figure: &Option<Summary>) -> TableCell {
    let whole = elapsed(row);
    let shown = figure.zip(whole).map(|(figure, whole)| context.unit.show_part(figure.median, whole));
    shown.unwrap_or(ABSENT.into()).into()
}

/// Returns user time (`index` 0) or system time (1).
fn share(context: &Context, row: &BenchRow, index: usize) -> TableCell {
    let seconds = || Some(context.unit.show_part(row.divided_cpu()?[index], elapsed(row)?));
    seconds().unwrap_or(ABSENT.into()).into()
}

fn calls_per_mib(row: &BenchRow) -> TableCell {
    let whole = |value: f64| if value >= 9.995 { format!("{value:.0}") } else { count(value) };
    row.calls_per_mib.map_or(ABSENT.into(), whole).into()
}

fn calls(row: &BenchRow) -> TableCell {
    match row.calls.values().map(|&calls| calls as f64).sum::<f64>() {
        0.0 => ABSENT.into(),
        calls => count(calls).into(),
    }
}

fn predicted(context: &Context, row: &BenchRow) -> TableCell {
    row.predicted_s.map_or(ABSENT.into(), |seconds| context.unit.show(seconds)).into()
}

fn vs_best(context: &Context, row: &BenchRow) -> TableCell {
    if context.best.is_some_and(|best| std::ptr::eq(best, row)) {
        return TableCell::new("best", Emphasis::Good);
    }
    let Some(text) = vs_best_text(row) else { return ABSENT.into() };
    match row.ties_with_best {
        true => TableCell::new(text, Emphasis::Good),
        false => text.into(),
    }
}

/// Returns the ratio of a row to the best one, as an interval if it is wide; `None` for a row that is not compared.
pub(super) fn vs_best_text(row: &BenchRow) -> Option<String> {
    let text = short_ratio(&row.vs_best?);
    let is_tie = row.ties_with_best && !row.is_best();
    Some(if is_tie { format!("= {text}") } else { text })
}
