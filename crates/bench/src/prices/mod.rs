//! Prices of a call, a byte and a sync on this machine, from which `weir trace` predicts gains.
//!
//! Short interleaved loops measure them in a fraction of a second; a cache keeps them per machine, kernel and file system.

pub(crate) mod cache;
mod measure;

use std::path::Path;

use weir_model::trace::Prices;
use weir_sys::file_system::is_usable;
use weir_sys::proc;
use weir_sys::signals::without_file_size_signal;

/// Name of the cache file in `weir/`.
const FILE: &str = "prices.json";

/// Returns whether all prices are positive and finite, so that an edited file cannot make a gain infinite.
fn is_sane(prices: &Prices) -> bool {
    prices.values().all(|ns| ns.is_finite() && ns > 0.0)
}

/// Returns the prices of this machine and of the file system of `directory`: from the cache, or measured and cached. If
/// `directory` is not writable, or another user serves it, measures in the directory for temporary files. Under a tracer
/// returns typical prices if there are no cached ones.
pub fn prices(directory: &Path) -> Prices {
    without_file_size_signal(|| cached_or_measured(directory))
}

/// The largest ratio of a cached price of a call to its price now. Load hardly raises a cached price, which is the lowest of many rounds;
/// a tracer raises it a hundredfold.
const MAX_RATIO: f64 = 4.0;

/// Returns whether a cached price of a call can be right, as a call costs `now_ns` now.
fn is_plausible(prices: &Prices, now_ns: f64) -> bool {
    prices.call_ns <= MAX_RATIO * now_ns
}

/// Returns the cached prices, unless they look measured under a tracer or an emulator.
fn load(key: &cache::PriceKey) -> Option<Prices> {
    let prices = cache::load(FILE, key, is_sane)?;
    measure::call_now_ns().is_none_or(|now_ns| is_plausible(&prices, now_ns)).then_some(prices)
}

fn cached_or_measured(directory: &Path) -> Prices {
    let key = cache::PriceKey::of(directory);
    if let Some(prices) = key.as_ref().and_then(load) {
        return prices;
    }
    if proc::is_traced() {
        return Prices::default();
    }
    let temporary = std::env::temp_dir();
    let mut usable = [directory, &temporary].into_iter().filter(|directory| is_usable(directory));
    match usable.find_map(|directory| measure::measure(directory).ok()) {
        Some(prices) => {
            // Without a writable cache the next run measures again, in a fraction of a second.
            let _ = key.map(|key| cache::store(FILE, &key, prices));
            prices
        }
        None => Prices::default(),
    }
}

/// Measures a sync in `directory` now, because the load of other processes changes its price. Returns `None` if the
/// directory is not writable.
pub fn sync_ns(directory: &Path) -> Option<f64> {
    is_usable(directory).then(|| without_file_size_signal(|| measure::sync_ns(directory).ok()))?
}

/// Returns the cached prices, if there are any.
pub fn cached(directory: &Path) -> Option<Prices> {
    load(&cache::PriceKey::of(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_from_under_a_tracer_is_not_plausible() {
        let priced = |call_ns: f64| Prices { call_ns, ..Prices::default() };
        assert!(is_plausible(&priced(400.0), 156.0) && is_plausible(&priced(100.0), 3000.0));
        assert!(!is_plausible(&priced(4860.0), 156.0) && !is_plausible(&priced(38_632.0), 400.0));
        assert!(measure::call_now_ns().is_some_and(|ns| ns > 0.0));
    }
}
