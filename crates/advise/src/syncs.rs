//! Prices of syncs: of a record, of a timer, of a group of threads.

use weir_model::advise::{AdvicePrices, AdviceQuestion, CallPrice, SizedPrice, SyncPoint, WriteMethod};

use crate::sized;
use crate::write_policy::WritePolicy;

/// Returns the syncs per record, and the price of a sync of the bytes since the last one. `write_bytes`: length of the write(2) calls
/// of this policy.
pub fn syncs(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    prices: &AdvicePrices,
    write_bytes: f64,
) -> Option<(f64, Option<CallPrice>)> {
    let of = |short, block, bytes| sync_of(prices, short?, block, bytes);
    let fdatasync = |bytes: f64| of(prices.fdatasync, prices.fdatasync_block, bytes);
    let bytes = question.record_bytes as f64;
    Some(match policy.sync {
        SyncPoint::None => (0.0, None),
        SyncPoint::Record => (1.0, Some(fdatasync(bytes)?)),
        SyncPoint::ODsync => (1.0, Some(of(prices.o_dsync, prices.o_dsync_block, bytes)?)),
        SyncPoint::Group => (1.0 / largest_group_records(question), Some(fdatasync(bytes)?)),
        SyncPoint::Period => {
            let records = (question.rate * policy.sync_period_s?).max(1.0);
            // At less than one record an interval, an interval without a record makes no sync.
            (
                1.0 / records,
                Some(
                    batch_sync(prices, records * bytes, write_bytes)
                        .or_else(|| fdatasync(records * bytes))?,
                ),
            )
        }
    })
}

/// Returns the price of a sync of one call of write(2), without that call. It was measured for a short record and for a block.
fn sync_of(
    prices: &AdvicePrices,
    short: CallPrice,
    block: Option<CallPrice>,
    bytes: f64,
) -> Option<CallPrice> {
    let alone = |bytes: u64, price: CallPrice| -> Option<SizedPrice> {
        Some(SizedPrice { bytes, price: price.minus(sized::at(&prices.write, bytes as f64)?) })
    };
    let mut table = vec![alone(prices.sync_record_bytes, short)?];
    if let Some(block) = block.filter(|_| prices.sync_block_bytes > prices.sync_record_bytes) {
        table.push(alone(prices.sync_block_bytes, block)?);
    }
    let most = table.last().map_or(0.0, |largest| largest.bytes as f64);
    let sync = sized::at(&table, bytes.min(most))?;
    if bytes <= most {
        return Some(sync);
    }
    let longer = |bytes| batch_sync(prices, bytes, bytes);
    Some(longer(bytes).zip(longer(most)).map_or(sync, |(all, measured)| sync.plus(all.minus(measured))))
}

/// Returns the price of a sync of `bytes` that calls of `write_bytes` each have written. The kernel takes larger folios for longer
/// calls, and a sync of fewer folios costs less. Between the two measured lengths the price
/// is interpolated over the logarithm of the length.
fn batch_sync(prices: &AdvicePrices, bytes: f64, write_bytes: f64) -> Option<CallPrice> {
    let (short, long) = (prices.short_write_bytes.max(1) as f64, prices.long_write_bytes as f64);
    let after_short = sized::at(&prices.sync_after_short, bytes)?;
    let after_long = sized::at(&prices.sync_after_long, bytes).filter(|_| long > short && bytes >= long);
    let share = ((write_bytes / short).ln() / (long / short).ln()).clamp(0.0, 1.0);
    Some(after_long.map_or(after_short, |other| after_short.times(1.0 - share).plus(other.times(share))))
}

/// Returns the records of one sync if all threads wait: about half the number of threads, because a record that comes during a sync waits
/// for the next one.
pub fn largest_group_records(question: &AdviceQuestion) -> f64 {
    (f64::from(question.sharers.max(1)) + 1.0) / 2.0
}

/// Returns the price of a record that several threads sync at once, in a group commit or each by itself: that of as many threads as the
/// question has, which includes the wake-ups of the threads that wait. `None` for other policies, and if it was not measured.
pub fn shared(policy: &WritePolicy, question: &AdviceQuestion, prices: &AdvicePrices) -> Option<CallPrice> {
    let measured = match (policy.sync, policy.method) {
        (SyncPoint::Group, WriteMethod::Libweir) => &prices.libweir_group,
        (SyncPoint::Group, _) => &prices.group,
        (SyncPoint::Record, _) if question.sharers > 1 => &prices.shared_sync,
        _ => return None,
    };
    // Interpolated over the number of threads, in the field for bytes.
    let table: Vec<SizedPrice> =
        measured.iter().map(|one| SizedPrice { bytes: u64::from(one.writers), price: one.price }).collect();
    let group = sized::at(&table, f64::from(question.sharers))?;
    let write = |bytes: u64| sized::at(&prices.write, bytes as f64);
    // The group was measured with short records.
    let longer = write(question.record_bytes)?.minus(write(prices.sync_record_bytes)?);
    Some(group.plus(longer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::prices;

    #[test]
    fn a_sync_after_long_calls_costs_less() {
        let prices = prices();
        let ns = |bytes: f64, write: f64| batch_sync(&prices, bytes, write).unwrap().elapsed_ns;
        let mib = f64::from(1 << 20);
        assert_eq!([ns(mib, 100.0), ns(mib, 4000.0)], [2_700_000.0; 2]);
        assert_eq!([ns(mib, 65_500.0), ns(mib, 262_144.0)], [1_700_000.0; 2]);
        let between = ns(mib, 16_384.0);
        assert!(between < 2_400_000.0 && between > 2_000_000.0, "{between}");
        assert!(ns(16.0 * mib, 65_500.0) > 15e6, "beyond the largest, as the largest two");
        let short = AdvicePrices { sync_after_long: Vec::new(), ..prices.clone() };
        assert_eq!(batch_sync(&short, mib, 65_500.0).unwrap().elapsed_ns, 2_700_000.0);
        let none = AdvicePrices { sync_after_short: Vec::new(), ..prices };
        assert_eq!(batch_sync(&none, mib, 100.0), None);
    }

    #[test]
    fn a_record_beyond_a_block_costs_what_its_bytes_add() {
        let prices = prices();
        let of = |bytes| sync_of(&prices, prices.fdatasync.unwrap(), prices.fdatasync_block, bytes).unwrap();
        let block = of(16_384.0).elapsed_ns;
        let more = of(f64::from(1 << 20)).elapsed_ns - block;
        // Both after one call: 1.7 ms less the sync of a block.
        assert!(more > 900_000.0 && more < 1_100_000.0, "{more}");
    }
}
