//! Rounds of runs whose order turns, so that a slow moment of the machine meets all of them.

use crate::Failed;

/// Seconds of each of the runs, a row a round.
pub fn rounds(
    number: usize,
    runs: usize,
    mut run: impl FnMut(usize) -> Result<f64, Failed>,
) -> Result<Vec<Vec<f64>>, Failed> {
    let mut rows = Vec::new();
    for round in 0..number {
        let mut row = vec![0.0; runs];
        for step in 0..runs {
            let which = (round + step) % runs;
            row[which] = run(which)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The pairs of two of the runs.
pub fn pairs(rows: &[Vec<f64>], a: usize, b: usize) -> impl Iterator<Item = (f64, f64)> {
    rows.iter().map(move |row| (row[a], row[b]))
}
