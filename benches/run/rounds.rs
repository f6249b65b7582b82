//! Rounds of runs in rotating order, so that a slow phase of the machine affects all runs.

use crate::BoxError;

/// Returns the seconds of each run, one row per round.
pub fn rounds(
    number: usize,
    runs: usize,
    mut run: impl FnMut(usize) -> Result<f64, BoxError>,
) -> Result<Vec<Vec<f64>>, BoxError> {
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

/// Returns the pairs of two of the runs, one per round.
pub fn pairs(rows: &[Vec<f64>], a: usize, b: usize) -> impl Iterator<Item = (f64, f64)> {
    rows.iter().map(move |row| (row[a], row[b]))
}
