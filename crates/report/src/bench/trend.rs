//! Several runs over time: screen, page and picture.

use weir_model::bench::GroupKey;
use weir_model::bench::trend::{BenchTrend, TrendRow};
use weir_model::duration::format_seconds;
use weir_model::number::counted;

use super::compare::{interval, not_judged, verdict};
use super::labels;
use crate::block::Block;
use crate::number::{percent, ratio};
use crate::page::Body;
use crate::scale::{Axis, Spacing, Unit};
use crate::style::Style;
use crate::svg::{Chart, NARROW, Picture, Svg};
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};
use crate::{markdown, terminal};

/// Rows in a picture: each has a colour of its own.
const MAX_ROWS: usize = 8;

/// Returns all blocks of a trend in reading order.
pub fn blocks_trend(trend: &BenchTrend) -> Vec<Block> {
    let mut blocks = head(trend);
    for key in groups(trend) {
        blocks.push(Block::Title(labels::title(key)));
        blocks.push(Block::Table(table(trend, key)));
    }
    let names = trend.runs.iter().enumerate().map(|(at, run)| format!("{} {}", at + 1, run.name));
    blocks.push(Block::Aside(format!("runs, oldest first: {}", names.collect::<Vec<_>>().join(", "))));
    blocks.extend(trend.warnings.iter().cloned().map(Block::Warning));
    blocks
}

/// Returns a trend as text for a terminal.
pub fn screen_trend(trend: &BenchTrend, style: &Style) -> String {
    terminal::text(&blocks_trend(trend), style)
}

/// Returns a trend as GitHub-flavoured Markdown.
pub fn markdown_trend(trend: &BenchTrend) -> String {
    markdown::text(&blocks_trend(trend))
}

/// Returns a trend as CSV: one line for each row and run.
pub fn csv_trend(trend: &BenchTrend) -> String {
    const HEAD: [&str; 8] =
        ["row", "method", "record_bytes", "run", "started", "median_s", "ci95_low_s", "ci95_high_s"];
    let records = trend.rows.iter().flat_map(|row| {
        row.points.iter().map(|point| {
            let run = &trend.runs[point.run];
            vec![
                row.label.clone(),
                row.method.clone(),
                row.record_bytes.to_string(),
                run.name.clone(),
                run.started.clone(),
                point.median_s.to_string(),
                point.ci95[0].to_string(),
                point.ci95[1].to_string(),
            ]
        })
    });
    crate::csv::text(&HEAD, records)
}

/// Returns the title of the page of a trend.
pub fn trend_title(trend: &BenchTrend) -> String {
    format!("{} runs of weir bench over time", trend.runs.len())
}

/// Adds a trend to a page: the conclusion, a picture of each group with its table, the runs.
pub fn page_trend(trend: &BenchTrend, body: &mut Body, prefix: &str) {
    body.blocks(&head(trend));
    for (number, key) in groups(trend).into_iter().enumerate() {
        let id = format!("{prefix}g{}", number + 1);
        body.heading(&id, &labels::title(key));
        let table_blocks = [Block::Table(table(trend, key))];
        match picture(trend, key, &format!("{id}-trend")) {
            Some(picture) => body.picture(picture, &table_blocks),
            None => body.blocks(&table_blocks),
        }
    }
    body.blocks(&trend.warnings.iter().cloned().map(Block::Warning).collect::<Vec<_>>());
    body.heading(&format!("{prefix}runs"), "The runs");
    body.blocks(&[Block::Table(runs(trend))]);
    if let Some(last) = &trend.last {
        body.heading(&format!("{prefix}last"), "The last run");
        super::page::run_of_several(last, body);
    }
}

fn head(trend: &BenchTrend) -> Vec<Block> {
    use weir_model::bench::compare::ComparisonVerdict::{Faster, Slower, Tie};
    let judged = |row: &&TrendRow| row.latest.has_interval();
    let count = |wanted| trend.rows.iter().filter(judged).filter(|row| row.verdict == wanted).count();
    let changed = trend.rows.iter().filter(|row| !row.changes.is_empty()).count();
    let name = trend.runs.last().map_or("", |run| run.name.as_str());
    let lead = match trend.rows.len() {
        0 => "The last run has no row in common with the others.".into(),
        all => format!(
            "{name} against the level before it, {}: {} faster, {} slower, {} tied{}. Changes of level at some run: {}.",
            counted(all as u64, "row"),
            count(Faster),
            count(Slower),
            count(Tie),
            not_judged(all - trend.rows.iter().filter(judged).count()),
            counted(changed as u64, "row")
        ),
    };
    let aside = format!(
        "a level is a time that consecutive runs share; a change of it is larger than ±{} % (A/A noise), than the intervals of those runs and \
         than their spread",
        percent(trend.noise)
    );
    vec![Block::Lead(lead), Block::Aside(aside)]
}

fn groups(trend: &BenchTrend) -> Vec<&GroupKey> {
    let mut groups: Vec<&GroupKey> = Vec::new();
    for row in &trend.rows {
        if !groups.contains(&&row.group) {
            groups.push(&row.group);
        }
    }
    groups
}

fn table(trend: &BenchTrend, key: &GroupKey) -> Table {
    let columns = vec![
        Column::new("row", "", Align::Left),
        Column::new("first", "", Align::Right),
        Column::new("last", "", Align::Right),
        Column::new("last/before", "", Align::Right),
        Column::new("95 % interval", "", Align::Left).priority(ColumnPriority::Rank(2)),
        Column::new("last is", "", Align::Left),
        Column::new("changed at run", "", Align::Left).priority(ColumnPriority::Rank(1)),
    ];
    let row = |row: &TrendRow| {
        let (word, emphasis) = verdict(&row.latest, row.verdict);
        let ends = [row.points.first(), row.points.last()];
        let [first, last] =
            ends.map(|point| point.map_or(String::new(), |point| format_seconds(point.median_s)));
        let changes = row.changes.iter().map(|one| format!("{} ({})", one.run + 1, ratio(one.ratio)));
        let cells = vec![
            label_in_group(row).into(),
            first.into(),
            last.into(),
            TableCell::new(ratio(row.latest.value), emphasis),
            interval(&row.latest).into(),
            TableCell::new(word, emphasis),
            changes.collect::<Vec<_>>().join(", ").into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    let rows = trend.rows.iter().filter(|row| row.group == *key).map(row).collect();
    Table { columns, rows, ..Table::default() }
}

/// Returns the label of a row without the workload and the last parentheses, which the heading of its group shows.
fn label_in_group(row: &TrendRow) -> String {
    let text = row.label.strip_prefix(&format!("{} ", row.group.workload)).unwrap_or(&row.label);
    text.rsplit_once(" (").map_or(text, |(text, _)| text).into()
}

fn runs(trend: &BenchTrend) -> Table {
    let columns = vec![
        Column::new("run", "", Align::Right),
        Column::new("file", "", Align::Path),
        Column::new("started", "", Align::Left),
        Column::new("kernel", "", Align::Left),
    ];
    let row = |(at, run): (usize, &weir_model::bench::trend::TrendRun)| TableRow {
        cells: vec![
            (at + 1).to_string().into(),
            run.name.clone().into(),
            run.started.clone().into(),
            run.kernel.clone().into(),
        ],
        ..TableRow::default()
    };
    Table { columns, rows: trend.runs.iter().enumerate().map(row).collect(), ..Table::default() }
}

/// Returns a chart of the rows of a group that changed most: their times over the runs, each divided by that of the row's first run.
/// None if there is nothing to draw.
fn picture(trend: &BenchTrend, key: &GroupKey, id: &str) -> Option<Picture> {
    let mut rows: Vec<&TrendRow> = trend.rows.iter().filter(|row| row.group == *key).collect();
    let range = |row: &TrendRow| {
        let times = || row.points.iter().map(|point| point.median_s);
        times().fold(0.0, f64::max) / times().fold(f64::INFINITY, f64::min)
    };
    let all = rows.len();
    rows.sort_by(|a, b| range(b).total_cmp(&range(a)));
    rows.truncate(MAX_ROWS);
    let series: Vec<Vec<([f64; 4], String)>> = rows.iter().map(|row| points(trend, row)).collect();
    let draw = |width: f64| {
        let xs: Vec<f64> = (1..=trend.runs.len()).map(|run| run as f64).collect();
        let mut ys: Vec<f64> = series.iter().flatten().map(|([_, y, ..], _)| *y).collect();
        ys.extend([0.9, 1.1]);
        let x = Axis { spacing: Spacing::Linear, unit: Unit::Count };
        let y = Axis { spacing: Spacing::Log, unit: Unit::Number };
        let high = if width <= NARROW { 280.0 } else { 340.0 };
        let mut chart = Chart::new([width, high], (x, &xs), (y, &ys), ["run", "time / row's first run"])?;
        chart.shade_between(1.0 / (1.0 + trend.noise), 1.0 + trend.noise);
        for change in rows.iter().flat_map(|row| &row.changes) {
            chart.landmark(change.run as f64 + 0.5);
        }
        series.iter().enumerate().rev().for_each(|(at, points)| chart.series(at, points, true));
        Some(chart.svg)
    };
    draw(NARROW)?; // None if the axes have no range; the closure below cannot tell
    let more = match all.saturating_sub(MAX_ROWS) {
        0 => String::new(),
        1 => " One row that changed less is in the table only.".into(),
        more => format!(" {more} rows that changed less are in the table only."),
    };
    let description = format!(
        "Median of each run divided by that of the row's first run; the runs are in the order of their time. \
         The shaded part is noise, a dotted line is a change of level.{more}"
    );
    let legend = rows.iter().map(|row| label_in_group(row)).enumerate().collect();
    Some(Picture::new(id, "Time over the runs", &description, legend, |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}

fn points(trend: &BenchTrend, row: &TrendRow) -> Vec<([f64; 4], String)> {
    let Some(first) = row.points.first().map(|point| point.median_s) else { return Vec::new() };
    let point = |point: &weir_model::bench::trend::TrendPoint| {
        // Bands of several rows would cover the lines; the tip has the interval.
        let value = point.median_s / first;
        let run = &trend.runs[point.run];
        let [time, low, high] = [point.median_s, point.ci95[0], point.ci95[1]].map(format_seconds);
        let tip = format!("{}, {}: {time} [{low}, {high}]", label_in_group(row), run.name);
        ([point.run as f64 + 1.0, value, value, value], tip)
    };
    row.points.iter().map(point).collect()
}
