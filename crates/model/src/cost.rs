//! The cost model: a price for each call, byte, page-cache block and sync.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// Time and system calls of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Wall-clock time in seconds.
    pub elapsed_s: f64,
    /// CPU time in user mode, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel, in seconds.
    pub system_s: f64,
    /// Number of system calls.
    pub calls: u64,
}

/// One measured row as the input of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// System calls that moved bytes.
    pub calls: f64,
    /// Bytes that the calls moved.
    pub bytes: f64,
    /// Blocks of the page cache that calls fill at once: one for each page, or one for each call that moves more than a
    /// page, because file systems then use larger folios.
    pub blocks: f64,
    /// Sync calls, or writes to a file opened with O_SYNC or O_DSYNC.
    pub syncs: f64,
    /// Measured time in seconds.
    pub seconds: f64,
}

/// Prices fitted to measured rows: `seconds = calls·call + bytes·byte + blocks·block + syncs·sync`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostModel {
    /// Nanoseconds for each call.
    pub call_ns: f64,
    /// Nanoseconds for each byte.
    pub byte_ns: f64,
    /// Nanoseconds for each block of the page cache; 0 if the rows cannot separate it from the price of the bytes.
    pub block_ns: f64,
    /// Nanoseconds for each sync; 0 if no row has one.
    pub sync_ns: f64,
    /// Quality of the fit.
    pub fit: Fit,
}

/// 95 % intervals of the prices of a [`CostModel`], in nanoseconds. They are those of the samples; [`Fit`] has the errors of the
/// model itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PriceIntervals {
    /// Interval for each system call that moves bytes.
    pub call_ns: [f64; 2],
    /// Interval for each moved byte.
    pub byte_ns: [f64; 2],
    /// Interval for each block of the page cache; `[0, 0]` if the model has no such price.
    pub block_ns: [f64; 2],
    /// Interval for each sync; `[0, 0]` without syncs.
    pub sync_ns: [f64; 2],
}

/// Errors of the model on the rows that it was fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Number of fitted rows.
    pub rows: usize,
    /// Median of |predicted - measured| / measured.
    pub median_error: f64,
    /// Largest of |predicted - measured| / measured.
    pub max_error: f64,
}

/// Returns the prices of the `selected` terms with the least squared relative errors, and the sum of the squares.
fn least_squares(rows: &[Vec<f64>], selected: &[usize]) -> Option<(f64, Vec<f64>)> {
    let ones = DVector::from_element(rows.len(), 1.0);
    let matrix = DMatrix::from_fn(rows.len(), selected.len(), |r, c| rows[r][selected[c]]);
    // Columns differ by many powers of ten. Without scaling the decomposition drops the small ones.
    let scale: Vec<f64> = (0..selected.len()).map(|c| matrix.column(c).amax()).collect();
    // Drop a term that is zero in every row.
    if scale.contains(&0.0) {
        return None;
    }
    let scaled = DMatrix::from_fn(rows.len(), selected.len(), |r, c| matrix[(r, c)] / scale[c]);
    let solution = scaled.clone().svd(true, true).solve(&ones, 1e-12).ok()?;
    let error = (scaled * &solution - &ones).norm_squared();
    Some((error, scale.iter().zip(solution.iter()).map(|(scale, x)| x / scale).collect()))
}

/// Returns the non-negative prices with the least squared relative errors. Tries every subset of terms, which is exact
/// for a handful of terms (Lawson and Hanson's active set, enumerated).
fn non_negative_least_squares(rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    let terms = rows.first()?.len();
    let mut best: Option<(f64, Vec<f64>)> = None;
    for set in 1u32..1 << terms {
        let selected: Vec<usize> = (0..terms).filter(|t| set & (1 << t) != 0).collect();
        if selected.len() > rows.len() {
            continue;
        }
        let Some((error, solution)) = least_squares(rows, &selected) else { continue };
        if solution.iter().any(|&x| x < 0.0) {
            continue;
        }
        if best.as_ref().is_none_or(|(least, _)| error < least - 1e-12) {
            let mut prices = vec![0.0; terms];
            selected.iter().zip(&solution).for_each(|(&t, x)| prices[t] = *x);
            best = Some((error, prices));
        }
    }
    best.map(|(_, prices)| prices)
}

impl CostModel {
    /// Fits the prices; `None` with fewer than three rows, because two prices fit any two rows.
    pub fn fit(rows: &[Observation]) -> Option<Self> {
        let rows: Vec<_> = rows.iter().filter(|row| row.seconds > 0.0).copied().collect();
        if rows.len() < 3 {
            return None;
        }
        // Blocks are proportional to bytes until calls exceed a page, and a fit needs more rows than prices.
        let per_byte = |row: &Observation| row.blocks / row.bytes.max(1.0);
        let most = rows.iter().map(per_byte).fold(0.0, f64::max);
        let prices = if rows.iter().any(|row| row.syncs > 0.0) { 4 } else { 3 };
        let separates_blocks = rows.len() > prices && rows.iter().any(|row| per_byte(row) < most * 0.9);
        let design: Vec<Vec<f64>> = rows
            .iter()
            .map(|r| {
                [r.calls, r.bytes, if separates_blocks { r.blocks } else { 0.0 }, r.syncs]
                    .iter()
                    .map(|term| term / r.seconds)
                    .collect()
            })
            .collect();
        let prices = non_negative_least_squares(&design)?;
        let mut model = Self {
            call_ns: prices[0] * 1e9,
            byte_ns: prices[1] * 1e9,
            block_ns: prices[2] * 1e9,
            sync_ns: prices[3] * 1e9,
            fit: Fit { rows: rows.len(), median_error: 0.0, max_error: 0.0 },
        };
        let mut errors: Vec<f64> =
            rows.iter().map(|r| (model.predict(r) - r.seconds).abs() / r.seconds).collect();
        model.fit.max_error = errors.iter().copied().fold(0.0, f64::max);
        model.fit.median_error = crate::stats::median(&mut errors);
        Some(model)
    }

    /// Fits the prices that are not 0 to other times of the same rows. The errors remain those of `self`.
    pub fn refit(&self, rows: &[Observation]) -> Option<Self> {
        let old = [self.call_ns, self.byte_ns, self.block_ns, self.sync_ns];
        let selected: Vec<usize> = (0..old.len()).filter(|&term| old[term] > 0.0).collect();
        let terms = |row: &Observation| {
            [row.calls, row.bytes, row.blocks, row.syncs].map(|term| term / row.seconds).to_vec()
        };
        let design: Vec<Vec<f64>> = rows.iter().filter(|row| row.seconds > 0.0).map(terms).collect();
        if design.is_empty() || selected.is_empty() {
            return None;
        }
        let mut prices = [0.0; 4];
        let (_, found) = least_squares(&design, &selected)?;
        selected.iter().zip(found).for_each(|(&term, price)| prices[term] = price.max(0.0) * 1e9);
        let [call_ns, byte_ns, block_ns, sync_ns] = prices;
        Some(Self { call_ns, byte_ns, block_ns, sync_ns, fit: self.fit })
    }

    /// Returns the seconds that the model predicts for `row`; ignores the row's own seconds.
    pub fn predict(&self, row: &Observation) -> f64 {
        let calls = self.call_ns * row.calls + self.sync_ns * row.syncs;
        (calls + self.byte_ns * row.bytes + self.block_ns * row.blocks) / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(calls: f64, bytes: f64, syncs: f64, prices: [f64; 4]) -> Observation {
        let blocks = bytes / f64::max(4096.0, bytes * 2.0 / calls);
        let seconds = (prices[0] * calls + prices[1] * bytes + prices[2] * syncs + prices[3] * blocks) / 1e9;
        Observation { calls, bytes, blocks, syncs, seconds }
    }

    #[test]
    fn a_negative_price_becomes_zero() {
        // The time decreases with the bytes: no byte price can explain that.
        let rows = [
            Observation { calls: 40.0, bytes: 0.2e6, blocks: 0.0, syncs: 0.0, seconds: 5.0 },
            Observation { calls: 10.0, bytes: 1e6, blocks: 0.0, syncs: 0.0, seconds: 1.0 },
            Observation { calls: 20.0, bytes: 0.5e6, blocks: 0.0, syncs: 0.0, seconds: 2.5 },
        ];
        let model = CostModel::fit(&rows).unwrap();
        assert!(model.byte_ns == 0.0 && model.call_ns > 0.0, "{model:?}");
    }

    #[test]
    fn one_row_gives_no_model() {
        assert_eq!(CostModel::fit(&[row(1.0, 1.0, 0.0, [1.0, 1.0, 0.0, 0.0])]), None);
        assert_eq!(CostModel::fit(&[]), None);
    }

    proptest! {
        #[test]
        fn finds_the_prices_that_made_the_rows(call in 100.0..2000.0f64, byte in 0.05..5.0f64, block in 100.0..2000.0f64, sync in 1e4..1e6f64) {
            let prices = [call, byte, sync, block];
            let rows: Vec<_> = [1.0, 64.0, 4096.0, 65536.0].into_iter()
                .flat_map(|record| [0.0, 1e8 / record].map(|syncs| row(2e8 / record, 1e8, syncs, prices)))
                .collect();
            let model = CostModel::fit(&rows).unwrap();
            prop_assert!((model.call_ns / call - 1.0).abs() < 1e-3, "{:?}", model);
            prop_assert!((model.byte_ns / byte - 1.0).abs() < 1e-3, "{:?}", model);
            prop_assert!((model.block_ns / block - 1.0).abs() < 1e-3, "{:?}", model);
            prop_assert!((model.sync_ns / sync - 1.0).abs() < 1e-3, "{:?}", model);
            prop_assert!(model.fit.max_error < 1e-3);
        }
    }
}
