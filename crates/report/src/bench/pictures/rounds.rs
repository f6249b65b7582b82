//! The rounds of a run: drift of the times, and what disturbed them.

use weir_model::bench::BenchDocument;

use super::{COUNT, NUMBER};
use crate::number::percent;
use crate::svg::{Chart, NARROW, Picture, Svg};

/// Smallest number of rounds for a picture.
const MIN_ROUNDS: usize = 3;

/// Returns for each round the median over the rows of sample / median of the row; `None` for a round without samples.
fn drifts(document: &BenchDocument) -> Vec<Option<f64>> {
    let mut of_round: Vec<Vec<f64>> = vec![Vec::new(); document.rounds.len()];
    for row in &document.rows {
        let Some(median) = row.elapsed_s.map(|elapsed| elapsed.median).filter(|median| *median > 0.0) else {
            continue;
        };
        for (sample, round) in row.samples_s.iter().zip(&row.rounds_of) {
            if let Some(shares) = of_round.get_mut(*round) {
                shares.push(sample / median);
            }
        }
    }
    let middle = |shares: &mut Vec<f64>| (!shares.is_empty()).then(|| weir_model::stats::median(shares));
    of_round.iter_mut().map(middle).collect()
}

/// Returns the drift over the rounds, with stolen time and other processes.
pub fn drift(document: &BenchDocument, prefix: &str) -> Option<Picture> {
    let drifts = drifts(document);
    if drifts.iter().flatten().count() < MIN_ROUNDS {
        return None;
    }
    let curve = |values: Vec<Option<f64>>, name: &str| -> Vec<([f64; 4], String)> {
        let point = |(at, value): (usize, Option<f64>)| {
            let value = value?;
            let tip = format!("round {}: {name} {} %", at + 1, percent(value / 100.0));
            Some(([at as f64 + 1.0, value, value, value], tip))
        };
        values.into_iter().enumerate().filter_map(point).collect()
    };
    let rounds = &document.rounds;
    let series = [
        curve(
            drifts.iter().map(|drift| drift.map(|drift| (drift - 1.0) * 100.0)).collect(),
            "time against the median",
        ),
        curve(rounds.iter().map(|round| Some(round.steal * 100.0)).collect(), "stolen by the hypervisor"),
        curve(rounds.iter().map(|round| Some(round.foreign_cpu * 100.0)).collect(), "other processes"),
    ];
    let draw = |width: f64| {
        let xs: Vec<f64> = series.iter().flatten().map(|([x, ..], _)| *x).collect();
        let mut ys: Vec<f64> = series.iter().flatten().map(|([_, y, ..], _)| *y).collect();
        ys.extend([-5.0, 5.0]);
        let mut chart = Chart::new([width, 250.0], (COUNT, &xs), (NUMBER, &ys), ["round", "%"])?;
        let noise = document.noise.floor() * 100.0;
        chart.shade_between(-noise, noise);
        series.iter().enumerate().rev().for_each(|(number, points)| chart.series(number, points, true));
        Some(chart.svg)
    };
    draw(NARROW)?;
    let legend = ["time against the row's median", "stolen by the hypervisor", "other processes"];
    let legend = legend.into_iter().map(String::from).enumerate().collect();
    let description = "How the times moved while the run went on, and what took processor time from it. A level line means \
                       that the machine did not change; the shaded part is the noise.";
    Some(Picture::new(&format!("{prefix}drift"), "Drift over the rounds", description, legend, |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
