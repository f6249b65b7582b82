//! What a call, a byte and a sync cost here: the prices that a trace's gains are predicted from.
//!
//! Measured in short interleaved loops, in a fraction of a second, and kept per machine, kernel and file system.

mod cache;
mod measure;

use std::path::Path;

use weir_model::trace::Prices;

/// The prices of this machine and of the file system of `directory`: known ones, else measured now and kept.
/// Where `directory` cannot be written to, those of the directory for temporary files.
pub fn prices(directory: &Path) -> Prices {
    let key = cache::PriceKey::of(directory);
    if let Some(prices) = key.as_ref().and_then(cache::load) {
        return prices;
    }
    let measured = measure::measure(directory).or_else(|_| measure::measure(&std::env::temp_dir()));
    match measured {
        Ok(prices) => {
            // A cache that cannot be written costs the next run a fraction of a second.
            let _ = key.map(|key| cache::store(&key, &prices));
            prices
        }
        Err(_) => Prices::default(),
    }
}

/// What a sync costs in `directory` at this moment: a device that others use too is slower. None: it cannot be
/// measured there.
pub fn sync_ns(directory: &Path) -> Option<f64> {
    measure::sync_ns(directory).ok()
}

/// Returns the cached prices, if there are any.
pub fn cached(directory: &Path) -> Option<Prices> {
    cache::load(&cache::PriceKey::of(directory)?)
}
