//! Figures against the record size.

use weir_model::bench::{BenchRow, PublishedComparison};
use weir_model::duration::format_seconds;
use weir_model::{Size, distinct, estimate};

use super::super::section::Section;
use super::{LOG_BYTES, LOG_NUMBER, LOG_SECONDS, legend};
use crate::number::{count, ratio};
use crate::scale::Axis;
use crate::svg::{Chart, NARROW, Picture, VerticalMark};

const MIB: f64 = 1_048_576.0;

/// Sizes that readers look for: the page and the block size of most file systems, and the default capacity of a pipe
/// (pipe(7)).
const MARKS: [VerticalMark; 2] =
    [VerticalMark { at: 4096.0, label: "page, block" }, VerticalMark { at: 65536.0, label: "pipe" }];

/// The points of a series: x, y, ends of the interval; and the tip.
type Points = Vec<([f64; 4], String)>;

/// Returns the points of each curve for which `figure` has a value.
fn points(section: &Section, figure: impl Fn(&BenchRow) -> Option<([f64; 3], String)>) -> Vec<Points> {
    let mut all: Vec<Points> = vec![Vec::new(); section.variants.len()];
    for (row, _) in section.measured() {
        let (Some(points), Some(([value, low, high], tip))) = (all.get_mut(section.series(row)), figure(row))
        else {
            continue;
        };
        points.push(([row.record_bytes as f64, value, low, high], tip));
    }
    all.iter_mut().for_each(|points| points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0])));
    all
}

fn height(width: f64) -> f64 {
    if width <= NARROW { 300.0 } else { 380.0 }
}

/// Returns a chart of the points; `None` if an axis can show none of them.
fn chart(width: f64, all: &[Points], x: Axis, y: Axis, name: &str) -> Option<Chart> {
    let xs: Vec<f64> = all.iter().flatten().map(|([x, ..], _)| *x).collect();
    let values = all.iter().flatten().flat_map(|([_, value, low, high], _)| [*value, *low, *high]);
    // Room above and below the points, so that marks do not touch the axes.
    let ys: Vec<f64> = values.flat_map(|value| [value * 0.8, value * 1.25]).collect();
    Chart::new([width, height(width)], (x, &xs), (y, &ys), ["record size", name])
}

/// Returns the elapsed time against the record size, with intervals, landmarks and the plateau.
pub fn sweep(section: &Section, prefix: &str) -> Option<Picture> {
    if !section.has_curve() {
        return None;
    }
    let all = points(section, |row| {
        let elapsed = row.elapsed_s?;
        let scaled = if row.extrapolated { ", measured in part and scaled" } else { "" };
        let tip = format!(
            "{}: {}, {} samples{scaled}",
            super::super::section::label(row),
            estimate::median_seconds(&elapsed),
            elapsed.n
        );
        Some(([elapsed.median, elapsed.ci95[0], elapsed.ci95[1]], tip))
    });
    let knee = section.knee();
    chart(NARROW, &all, LOG_BYTES, LOG_SECONDS, "elapsed")?;
    let plateau = knee.map_or(String::new(), |knee| {
        format!(" Shaded: records from {} are within 5 % of the best.", Size(knee.bytes))
    });
    let description = format!(
        "Elapsed time of {} against the record size; both axes are logarithmic. Bands are 95 % intervals.{plateau}",
        Size(section.key().bytes)
    );
    Some(Picture::new(
        &format!("{prefix}sweep"),
        "Time by record size",
        &description,
        legend(section),
        |width| {
            let Some(mut chart) = chart(width, &all, LOG_BYTES, LOG_SECONDS, "elapsed") else {
                return empty(width);
            };
            if let Some(knee) = knee {
                chart.shade_from(knee.bytes as f64, "within 5 % of the best");
            }
            chart.marks(&MARKS);
            all.iter().enumerate().rev().for_each(|(series, points)| chart.series(series, points, true));
            chart.svg
        },
    ))
}

fn empty(width: f64) -> crate::svg::Svg {
    crate::svg::Svg::new(width, 1.0)
}

/// Returns the time of one call against the record size.
pub fn per_call(section: &Section, prefix: &str) -> Option<Picture> {
    if !section.has_curve() {
        return None;
    }
    let all = points(section, |row| {
        let calls = row.calls_per_mib.filter(|calls| *calls > 0.0)? * row.group.bytes as f64 / MIB;
        let elapsed = row.elapsed_s?;
        let each = [elapsed.median, elapsed.ci95[0], elapsed.ci95[1]].map(|seconds| seconds / calls);
        let tip = format!(
            "{}: {} a call, {} calls for each MiB",
            super::super::section::label(row),
            format_seconds(each[0]),
            count(row.calls_per_mib.unwrap_or_default())
        );
        Some((each, tip))
    });
    chart(NARROW, &all, LOG_BYTES, LOG_SECONDS, "time of one call")?;
    let description = "Elapsed time divided by the number of system calls that move bytes. A flat line is the price of a \
                       call; a rising one is the price of the bytes.";
    Some(Picture::new(
        &format!("{prefix}per-call"),
        "Time of one system call",
        description,
        legend(section),
        |width| {
            let Some(mut chart) = chart(width, &all, LOG_BYTES, LOG_SECONDS, "time of one call") else {
                return empty(width);
            };
            chart.marks(&MARKS);
            all.iter().enumerate().rev().for_each(|(series, points)| chart.series(series, points, true));
            chart.svg
        },
    ))
}

/// Returns the prediction of the cost model divided by the measured time, against the record size.
pub fn residuals(section: &Section, prefix: &str) -> Option<Picture> {
    let model = section.group.model?;
    let all = points(section, |row| {
        let (predicted, elapsed) = (row.predicted_s?, row.elapsed_s?.median);
        let residual = predicted / elapsed;
        let tip = format!(
            "{}: predicted {}, measured {} ({})",
            super::super::section::label(row),
            format_seconds(predicted),
            format_seconds(elapsed),
            ratio(residual)
        );
        Some(([residual; 3], tip))
    });
    let framed = |width: f64| {
        let xs: Vec<f64> = all.iter().flatten().map(|([x, ..], _)| *x).collect();
        let mut ys: Vec<f64> = all.iter().flatten().map(|([_, y, ..], _)| *y).collect();
        ys.extend([0.8, 1.25]);
        let name = "predicted / measured";
        Chart::new([width, 240.0], (LOG_BYTES, &xs), (LOG_NUMBER, &ys), ["record size", name])
    };
    framed(NARROW)?;
    let description = format!(
        "The model beside the measurement: {}. Points in the shaded part are within 10 %. {}",
        super::super::labels::prices(&model, section.group.model_ci95.as_ref()),
        errors(section)
    );
    Some(Picture::new(
        &format!("{prefix}model"),
        "The cost model and its errors",
        &description,
        legend(section),
        |width| {
            let Some(mut chart) = framed(width) else { return empty(width) };
            chart.shade_between(1.0 / 1.1, 1.1);
            all.iter().enumerate().rev().for_each(|(series, points)| chart.series(series, points, false));
            chart.svg
        },
    ))
}

/// Returns the largest error of the rows that the prices were fitted to, and of the other rows.
fn errors(section: &Section) -> String {
    let method = section.group.model_method.as_deref();
    let most = |is_fitted: bool| {
        let own = section.measured().filter(|(row, _)| (Some(row.method.as_str()) == method) == is_fitted);
        own.filter_map(|(row, seconds)| Some((row.predicted_s? / seconds - 1.0).abs())).reduce(f64::max)
    };
    let percent = super::super::labels::within_percent;
    let fitted = match (method, most(true)) {
        (Some(method), Some(most)) => {
            format!("The prices were fitted to the rows of {method}, which are within {} %", percent(most))
        }
        _ => return String::new(),
    };
    match most(false) {
        Some(others) => format!("{fitted}; the rows of the other methods are within {} %.", percent(others)),
        None => format!("{fitted}."),
    }
}

/// Returns a published table beside this machine's figures, both divided by their best.
pub fn published(comparison: &PublishedComparison, prefix: &str) -> Option<Picture> {
    let tip = |who: &str, record: u64, seconds: f64, vs: f64| {
        format!("{who}, {}: {}, {} the best", Size(record), format_seconds(seconds), ratio(vs))
    };
    let methods = distinct(comparison.rows.iter().map(|row| row.method.as_str()));
    let mut all: Vec<Points> = Vec::new();
    let mut legend = Vec::new();
    for method in methods {
        let rows = || comparison.rows.iter().filter(|row| row.method == method);
        let ours = rows().filter_map(|row| {
            let (seconds, vs) = (row.ours_s?, row.ours_vs_best?);
            Some(([row.record_bytes as f64, vs, vs, vs], tip("this machine", row.record_bytes, seconds, vs)))
        });
        let theirs = rows().map(|row| {
            let vs = row.theirs_vs_best;
            ([row.record_bytes as f64, vs, vs, vs], tip("published", row.record_bytes, row.theirs_s, vs))
        });
        legend.extend([
            (all.len(), format!("{method}, this machine")),
            (all.len() + 1, format!("{method}, published")),
        ]);
        all.extend([ours.collect::<Points>(), theirs.collect()]);
    }
    all.iter_mut().for_each(|points| points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0])));
    chart(NARROW, &all, LOG_BYTES, LOG_NUMBER, "times the best")?;
    let description = format!(
        "{} Each figure is divided by the best of its table, so that a faster machine has the same curve. Published: {}, {}.",
        comparison.title, comparison.source, comparison.setting
    );
    let title = format!("Published beside ours: {}", comparison.id);
    Some(Picture::new(
        &format!("{prefix}published-{}", comparison.id),
        &title,
        &description,
        legend,
        |width| {
            let Some(mut chart) = chart(width, &all, LOG_BYTES, LOG_NUMBER, "times the best") else {
                return empty(width);
            };
            all.iter().enumerate().rev().for_each(|(series, points)| chart.series(series, points, true));
            chart.svg
        },
    ))
}
