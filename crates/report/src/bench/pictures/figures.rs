//! Ratios and samples, one line for each row.

use weir_model::bench::BenchRow;
use weir_model::bench::compare::{ComparedRow, ComparisonVerdict};
use weir_model::duration::format_seconds;
use weir_model::{Ratio, Size, estimate};

use super::super::rows::vs_best_text;
use super::super::section::{Section, label};
use super::{LOG_NUMBER, MAX_ROWS, NUMBER, left_out};
use crate::number::percent;
use crate::svg::{NARROW, Picture, RowChart, Svg, series_class};

/// Samples of a row that are drawn: more dots than this cover each other.
const MAX_SAMPLES: usize = 200;
/// Ends of the axis of samples as shares of the row's median. Samples beyond are drawn at the end.
const SAMPLES_FROM_TO: [f64; 2] = [0.7, 1.5];

/// A row of a forest: label, series, ratio, tip, figure at the end.
struct Branch {
    label: String,
    series: usize,
    ratio: Ratio,
    tip: String,
    /// Figure at the end of the line.
    figure: String,
}

/// Draws ratios with their intervals and the part within the noise.
fn draw(width: f64, branches: &[Branch], noise: f64, name: &str) -> Option<Svg> {
    let labels: Vec<String> = branches.iter().map(|branch| branch.label.clone()).collect();
    let mut values: Vec<f64> = branches.iter().flat_map(|branch| branch.ratio.ci95).collect();
    values.extend(branches.iter().map(|branch| branch.ratio.value));
    values.extend([1.0 / (1.0 + noise), 1.0 + noise]);
    let figures: Vec<&str> = branches.iter().map(|branch| branch.figure.as_str()).collect();
    let mut chart = RowChart::with_figures(width, &labels, (LOG_NUMBER, &values), name, &figures)?;
    chart.shade(1.0 / (1.0 + noise), 1.0 + noise);
    for (row, branch) in branches.iter().enumerate() {
        let (top, height) = chart.band(row);
        let y = top + height / 2.0;
        let [low, high] = branch.ratio.ci95.map(|end| chart.x(end));
        let x = chart.x(branch.ratio.value);
        chart.svg.begin("g", &[("class", &series_class(branch.series))]);
        chart.svg.line("whisker", [low, y], [high, y]);
        chart.svg.mark("mark", branch.series, [x, y], &branch.tip);
        chart.svg.end("g");
        chart.figure(row, &branch.figure);
    }
    Some(chart.svg)
}

fn forest_of(
    id: &str,
    title: &str,
    description: &str,
    branches: &[Branch],
    noise: f64,
    name: &str,
) -> Option<Picture> {
    draw(NARROW, branches, noise, name)?;
    Some(Picture::new(id, title, description, Vec::new(), |width| {
        draw(width, branches, noise, name).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}

/// Returns the ratios of a group's rows to the best row.
pub fn forest(section: &Section, noise: f64, prefix: &str) -> Option<Picture> {
    let branches: Vec<Branch> = section
        .measured()
        .filter_map(|(row, _)| {
            let vs = row.vs_best?;
            let tie = if row.ties_with_best && !row.is_best() { ", a tie with the best" } else { "" };
            let tip = format!("{}: {} the best{tie}", label(row), estimate::ratio(&vs));
            let figure = vs_best_text(row)?;
            Some(Branch { label: label(row), series: section.series(row), ratio: vs, tip, figure })
        })
        .collect();
    let shown = &branches[..branches.len().min(MAX_ROWS)];
    let description = format!(
        "Time divided by that of the best row, within rounds, with 95 % intervals. Differences inside of the shaded part, \
         ±{} %, are noise: two measurements of one row differ as much.{}",
        percent(noise),
        left_out(branches.len())
    );
    forest_of(
        &format!("{prefix}ratios"),
        "How much slower than the best",
        &description,
        shown,
        noise,
        "times the best",
    )
}

/// Returns the ratios of two runs.
pub fn compared(rows: &[&ComparedRow], noise: f64, id: &str) -> Option<Picture> {
    let branches: Vec<Branch> = rows
        .iter()
        .take(MAX_ROWS)
        .map(|row| {
            let series = match row.verdict {
                _ if !row.ratio.has_interval() => 6,
                ComparisonVerdict::Faster => 2,
                ComparisonVerdict::Slower => 1,
                ComparisonVerdict::Tie => 6,
            };
            let buffer = row.buffer_bytes.map_or(String::new(), |bytes| format!(" ({})", Size(bytes)));
            let label = format!("{}{buffer} {}", row.method, Size(row.record_bytes));
            let [a, b] = [row.a_s, row.b_s].map(format_seconds);
            let tip = format!("{label}: A {a}, B {b}, {}", estimate::ratio(&row.ratio));
            Branch { label, series, ratio: row.ratio, tip, figure: estimate::short_ratio(&row.ratio) }
        })
        .collect();
    let description = format!(
        "Time of B divided by that of A, with 95 % intervals: left of 1, B is faster. Differences inside of the shaded \
         part, ±{} %, are noise.{}",
        percent(noise),
        left_out(rows.len())
    );
    forest_of(id, "B compared with A", &description, &branches, noise, "B / A")
}

/// Returns each sample of a group's rows, divided by the median of its row.
pub fn samples(section: &Section, prefix: &str) -> Option<Picture> {
    let rows: Vec<(&BenchRow, f64)> =
        section.measured().filter(|(row, median)| row.samples_s.len() > 1 && *median > 0.0).collect();
    let shown = &rows[..rows.len().min(MAX_ROWS)];
    let draw = |width: f64| {
        let labels: Vec<String> = shown.iter().map(|(row, _)| label(row)).collect();
        let mut chart =
            RowChart::new(width, &labels, (NUMBER, &SAMPLES_FROM_TO), "sample / median of the row")?;
        for (at, (row, median)) in shown.iter().enumerate() {
            let (top, height) = chart.band(at);
            let series = section.series(row);
            chart.svg.begin("g", &[("class", &series_class(series))]);
            for (number, sample) in row.samples_s.iter().take(MAX_SAMPLES).enumerate() {
                // Neighbouring samples at three heights, so that equal ones do not cover each other.
                let y = top + height * [0.5, 0.25, 0.75][number % 3];
                let round =
                    row.rounds_of.get(number).map_or(String::new(), |round| format!(", round {}", round + 1));
                let tip = format!("{}{round}: {}", label(row), format_seconds(*sample));
                let place = [("cx", chart.x(sample / median)), ("cy", y), ("r", 2.6)];
                chart.svg.element("circle", "dot", &place, Some(&tip));
            }
            chart.svg.end("g");
            chart.figure(at, &format!("n = {}", row.samples_s.len()));
        }
        Some(chart.svg)
    };
    if shown.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let description = format!(
        "Each dot is one sample, divided by the median of its row. A dot at an end of the axis is beyond it; no sample is \
         left out of the figures.{}",
        left_out(rows.len())
    );
    Some(Picture::new(&format!("{prefix}samples"), "Every sample", &description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
