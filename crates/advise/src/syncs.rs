//! Prices of syncs: of a record, of a timer, of a group of threads.

use weir_model::advise::{AdvicePrices, AdviceQuestion, CallPrice, SizedPrice, SyncPoint, WriteMethod};

use crate::sized;
use crate::way::Way;

/// Returns the syncs per record and the price of one, which writes the bytes since the last.
pub fn syncs(
    way: &Way,
    question: &AdviceQuestion,
    prices: &AdvicePrices,
) -> Option<(f64, Option<CallPrice>)> {
    let of = |short, block, bytes| sync_of(prices, short?, block, bytes);
    let fdatasync = |bytes: f64| of(prices.fdatasync, prices.fdatasync_block, bytes);
    let bytes = question.record_bytes as f64;
    Some(match way.sync {
        SyncPoint::None => (0.0, None),
        SyncPoint::Record => (1.0, Some(fdatasync(bytes)?)),
        SyncPoint::ODsync => (1.0, Some(of(prices.o_dsync, prices.o_dsync_block, bytes)?)),
        SyncPoint::Group => (1.0 / largest_group(question), Some(fdatasync(bytes)?)),
        SyncPoint::Period => {
            let records = (question.rate * way.sync_period_s?).max(1.0);
            // At less than one record an interval, an interval without a record makes no sync.
            (1.0 / records, Some(fdatasync(records * bytes)?))
        }
    })
}

/// Returns the price of a sync of `bytes` without the write(2) before it. It was measured for a short record and for a block;
/// more bytes cost what each byte of a large sync costs.
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
    let more_ns = (bytes - most).max(0.0) * prices.sync_byte_ns.unwrap_or(0.0);
    Some(CallPrice { elapsed_ns: sync.elapsed_ns + more_ns, ..sync })
}

/// Returns how many records one sync covers if all threads wait: half of them, because a record that comes during a sync
/// waits for the next.
pub fn largest_group(question: &AdviceQuestion) -> f64 {
    (f64::from(question.sharers.max(1)) + 1.0) / 2.0
}

/// Returns the price of a record of a group commit: that of as many threads as the question has, which includes the wake-ups of the
/// threads that wait. `None` for other ways, and if it was not measured.
pub fn in_group(way: &Way, question: &AdviceQuestion, prices: &AdvicePrices) -> Option<CallPrice> {
    let measured = match (way.sync, way.method) {
        (SyncPoint::Group, WriteMethod::Libweir) => &prices.libweir_group,
        (SyncPoint::Group, _) => &prices.group,
        _ => return None,
    };
    let table: Vec<SizedPrice> =
        measured.iter().map(|one| SizedPrice { bytes: u64::from(one.writers), price: one.price }).collect();
    let group = sized::at(&table, f64::from(question.sharers))?;
    let write = |bytes: u64| sized::at(&prices.write, bytes as f64);
    // The group was measured with short records.
    let longer = write(question.record_bytes)?.minus(write(prices.sync_record_bytes)?);
    Some(group.plus(longer))
}
