//! Prices between and beyond the measured sizes.

use weir_model::advise::{CallPrice, SizedPrice};

/// Returns the price at `bytes`: on the line through the two nearest measured sizes. `None` without a measurement.
pub fn at(prices: &[SizedPrice], bytes: f64) -> Option<CallPrice> {
    let (first, last) = (prices.first()?, prices.last()?);
    if prices.len() == 1 {
        return Some(first.price);
    }
    let above = prices.iter().position(|one| one.bytes as f64 >= bytes).unwrap_or(prices.len() - 1).max(1);
    let (low, high) = (&prices[above - 1], &prices[above]);
    let share = (bytes - low.bytes as f64) / (high.bytes - low.bytes).max(1) as f64;
    let line = |low: f64, high: f64, least: f64| (low + (high - low) * share).max(least);
    // Noise can make the line fall. Below the largest size a call costs at least half the price of the smallest size; above
    // the largest size at least the price of that size.
    let floor = |of: fn(&CallPrice) -> f64| {
        if bytes > last.bytes as f64 { of(&last.price) } else { of(&first.price) * 0.5 }
    };
    Some(CallPrice {
        elapsed_ns: line(low.price.elapsed_ns, high.price.elapsed_ns, floor(|price| price.elapsed_ns)),
        cpu_ns: line(low.price.cpu_ns, high.price.cpu_ns, floor(|price| price.cpu_ns)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(bytes: u64, ns: f64) -> SizedPrice {
        SizedPrice { bytes, price: CallPrice { elapsed_ns: ns, cpu_ns: ns / 2.0 } }
    }

    #[test]
    fn prices_lie_on_lines() {
        let prices = [price(64, 1000.0), price(4096, 3000.0), price(65_536, 20_000.0)];
        let elapsed = |bytes: f64| at(&prices, bytes).unwrap().elapsed_ns;
        assert_eq!([elapsed(64.0), elapsed(4096.0), elapsed(65_536.0)], [1000.0, 3000.0, 20_000.0]);
        assert_eq!(elapsed(2080.0), 2000.0);
        assert!(elapsed(131_072.0) > 38_000.0 && elapsed(1.0) < 1000.0 && elapsed(1.0) > 500.0);
        assert_eq!(at(&prices, 2080.0).unwrap().cpu_ns, 1000.0);
    }

    #[test]
    fn noise_makes_no_price_negative() {
        let falling = [price(64, 1000.0), price(128, 500.0)];
        assert_eq!(at(&falling, 1e6).unwrap().elapsed_ns, 500.0);
        assert_eq!(at(&[], 1.0), None);
        assert_eq!(at(&falling[..1], 1e6).unwrap().elapsed_ns, 1000.0);
    }
}
