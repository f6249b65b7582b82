//! The price of a policy: what a record costs, how long it waits, what a kill and a power cut lose.

use weir_model::Mode;
use weir_model::advise::{
    AdviceHost, AdvicePrices, AdviceQuestion, CallPrice, Medium, PredictedCost, SizedPrice, SyncPoint,
    WriteMethod,
};

use crate::sized;
use crate::syncs::{largest_group_records, shared, syncs};
use crate::write_policy::WritePolicy;

/// Bytes that a small flash medium programs at least for one sync. An assumption: data pages of SD cards have 8 to 16 KiB.
pub const FLASH_PAGE_BYTES: f64 = 16_384.0;
/// Bytes that a file system writes for one sync, if the kernel does not count them. An assumption: one block of data and
/// three of the journal.
pub const ASSUMED_SYNC_BYTES: f64 = 16_384.0;
const DAY_S: f64 = 86_400.0;

/// Returns the price of a policy at the question's rate. `None` if the policy does not apply, or if its price is unknown here.
pub fn predict(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    host: &AdviceHost,
    prices: &AdvicePrices,
) -> Option<PredictedCost> {
    let record = RecordCost::of(policy, question, prices)?;
    let wait_s = record.sync.map_or(0.0, |sync| sync.elapsed_ns / 1e9);
    let share = |ns: f64| question.rate * ns / 1e9 * 100.0;
    let kill = at_risk_kill(policy, question);
    let sync_calls =
        if policy.sync == SyncPoint::ODsync { 0.0 } else { syncs_at_rate(policy, question, &record) };
    Some(PredictedCost {
        calls_per_s: (record.writes + sync_calls) * question.rate,
        cpu_percent: share(record.price.cpu_ns),
        busy_percent: share(record.price.elapsed_ns),
        record_ns: record.price.elapsed_ns,
        record_ns_range: record.range_ns(prices),
        max_rate: (1e9 / record.price.elapsed_ns.max(1.0)).min(device_rate(question, prices)),
        latency_s: latency_s(policy, question, &record),
        at_risk_kill_bytes: kill,
        at_risk_power_bytes: at_risk_power(policy, question, host, kill, wait_s),
        flash_bytes_per_day: question
            .medium
            .wears()
            .then(|| flash_bytes(policy, question, host, prices, &record)),
    })
}

/// The price of a record with its share of flushes and syncs.
struct RecordCost {
    price: CallPrice,
    /// The part of the price that is syncs and waits for them.
    synced: Option<CallPrice>,
    /// Calls that write, per record.
    writes: f64,
    /// Syncs per record.
    syncs: f64,
    /// One sync without the write before it.
    sync: Option<CallPrice>,
    /// The write(2) that makes the record visible.
    write: CallPrice,
}

impl RecordCost {
    fn of(policy: &WritePolicy, question: &AdviceQuestion, prices: &AdvicePrices) -> Option<Self> {
        let bytes = question.record_bytes as f64;
        let records = if policy.gathers() { records_a_flush(policy, question) } else { 1.0 };
        let (writes, write) = (1.0 / records, write_of(policy, prices, records * bytes)?);
        let (syncs, sync) = syncs(policy, question, prices, records * bytes)?;
        let separate = write
            .times(writes)
            .plus(in_memory(policy, prices, bytes)?)
            .plus(locks_and_timer(policy, question, prices))
            .plus(sync.map_or(CallPrice { elapsed_ns: 0.0, cpu_ns: 0.0 }, |sync| sync.times(syncs)));
        let shared = shared(policy, question, prices);
        let price = shared.unwrap_or(separate);
        let synced = shared.or(sync.map(|sync| sync.times(syncs)));
        let writes = if policy.method == WriteMethod::Mmap { 0.0 } else { writes };
        Some(Self { price, synced, writes, syncs, sync, write })
    }

    /// Returns the elapsed time if the syncs take the shortest and the longest time that was measured.
    fn range_ns(&self, prices: &AdvicePrices) -> Option<[f64; 2]> {
        let (synced, measured) = (self.synced?.elapsed_ns, prices.fdatasync?.elapsed_ns);
        let of = |ns: f64| self.price.elapsed_ns + synced * (ns / measured - 1.0);
        prices.fdatasync_range_ns.map(|range| range.map(of))
    }
}

/// Returns how many records one write of a buffer has: as many whole ones as fit, or those of a timer's interval.
fn records_a_flush(policy: &WritePolicy, question: &AdviceQuestion) -> f64 {
    let fitting = (policy.buffer_bytes / question.record_bytes.max(1)).max(1) as f64;
    policy.flush_period_s.map_or(fitting, |period| (question.rate * period).clamp(1.0, fitting))
}

fn write_of(policy: &WritePolicy, prices: &AdvicePrices, bytes: f64) -> Option<CallPrice> {
    let table: &[SizedPrice] = match policy.method {
        WriteMethod::Mmap => &prices.mmap,
        WriteMethod::Direct => &prices.direct,
        WriteMethod::IoUring => &prices.io_uring,
        WriteMethod::InKernel => return None,
        WriteMethod::Syscall | WriteMethod::Stdio | WriteMethod::Libweir => &prices.write,
    };
    sized::at(table, bytes)
}

/// Returns what a record costs in the program's memory: the copy into the buffer and the library's call.
fn in_memory(policy: &WritePolicy, prices: &AdvicePrices, bytes: f64) -> Option<CallPrice> {
    let table = match policy.method {
        WriteMethod::Libweir => &prices.libweir,
        WriteMethod::Syscall | WriteMethod::Mmap => return Some(CallPrice { elapsed_ns: 0.0, cpu_ns: 0.0 }),
        _ => &prices.stdio,
    };
    // The measured price has the record's share of the writes of the buffer.
    let writes = bytes / prices.buffer_bytes.max(1) as f64;
    let write = sized::at(&prices.write, prices.buffer_bytes as f64)?.times(writes);
    let user = sized::at(table, bytes)?.minus(write);
    // The program keeps records whole with weir_putrec(3), which costs more than the weir_write(3) of the table.
    let more = match policy.method {
        WriteMethod::Libweir => (prices.libweir_record_ns - user_of_short(prices)).max(0.0),
        _ => 0.0,
    };
    Some(user.plus(CallPrice { elapsed_ns: more, cpu_ns: more }))
}

/// Returns what the shortest record of the table costs in libweir, without its share of the writes.
fn user_of_short(prices: &AdvicePrices) -> f64 {
    let write = sized::at(&prices.write, prices.buffer_bytes as f64);
    let writes = |bytes: u64| bytes as f64 / prices.buffer_bytes.max(1) as f64;
    let short = prices.libweir.first().zip(write);
    short.map_or(0.0, |(one, write)| one.price.minus(write.times(writes(one.bytes))).elapsed_ns)
}

fn locks_and_timer(policy: &WritePolicy, question: &AdviceQuestion, prices: &AdvicePrices) -> CallPrice {
    let locks = match (policy.timer_s(), policy.sync) {
        // The price of a record has the lock.
        _ if policy.method == WriteMethod::Libweir => 0.0,
        (_, SyncPoint::Group) => 2.0,
        (None, _) if question.sharers < 2 => 0.0,
        _ => 1.0,
    };
    let wakes = policy.timer_s().map_or(0.0, |period| 1.0 / (question.rate * period));
    let lock_ns = locks * prices.lock_ns;
    // The timer wakes in a thread of its own, for which no record waits.
    let price = CallPrice { elapsed_ns: lock_ns, cpu_ns: lock_ns + wakes * prices.wake_ns };
    price.plus(contention(policy, question, prices))
}

/// Returns what a record costs more because several writers wait for each other. A price that was not measured counts as
/// nothing.
fn contention(policy: &WritePolicy, question: &AdviceQuestion, prices: &AdvicePrices) -> CallPrice {
    let measured = match policy.method {
        // While a group's leader syncs, the others sleep; that wait is part of the sync.
        _ if question.sharers < 2 || policy.sync == SyncPoint::Group => None,
        WriteMethod::Libweir if policy.gathers() => prices.shared_libweir,
        WriteMethod::Libweir => prices.shared_libweir_write,
        _ if policy.gathers() => prices.shared_buffer,
        _ => prices.shared_write,
    };
    measured.unwrap_or(CallPrice { elapsed_ns: 0.0, cpu_ns: 0.0 })
}

/// Returns the device's rate in records per second, the limit in the long run: the page cache only delays it. Infinite for a
/// file in memory, for a device that was not measured, and if other processes had the processors during the measurement:
/// they make a device look slower than it is.
pub fn device_rate(question: &AdviceQuestion, prices: &AdvicePrices) -> f64 {
    match prices.device_bytes_per_s {
        _ if question.medium == Medium::Ram || prices.busy_share().is_some() => f64::INFINITY,
        Some(rate) if rate > 0.0 => rate / question.record_bytes.max(1) as f64,
        _ => f64::INFINITY,
    }
}

/// Returns the syncs per record at the question's rate: a group has the records that arrive while a sync runs.
fn syncs_at_rate(policy: &WritePolicy, question: &AdviceQuestion, record: &RecordCost) -> f64 {
    match (policy.sync, record.sync) {
        (SyncPoint::Group, Some(sync)) => {
            let records_per_sync = question.rate * sync.elapsed_ns / 1e9;
            1.0 / records_per_sync.clamp(1.0, largest_group_records(question))
        }
        _ => record.syncs,
    }
}

fn latency_s(policy: &WritePolicy, question: &AdviceQuestion, record: &RecordCost) -> f64 {
    let write_s = record.write.elapsed_ns / 1e9;
    let sync_s = record.sync.map_or(0.0, |sync| sync.elapsed_ns / 1e9);
    let waits_s = match policy.sync {
        SyncPoint::None => 0.0,
        // The write may have to wait until the timer's sync has written the same page.
        SyncPoint::Record | SyncPoint::ODsync | SyncPoint::Period => sync_s,
        // A record that just missed a sync waits for that one and its own.
        SyncPoint::Group => 2.0 * sync_s,
    };
    if !policy.gathers() {
        return write_s + waits_s;
    }
    let fills_s = (policy.buffer_bytes / question.record_bytes.max(1)).max(1) as f64 / question.rate;
    fills_s.min(policy.flush_period_s.unwrap_or(f64::INFINITY)) + write_s + waits_s
}

/// Returns the bytes of whole records that arrive in a time, at least one record.
fn arriving(question: &AdviceQuestion, seconds: f64) -> u64 {
    ((question.rate * seconds).ceil().max(1.0) * question.record_bytes as f64) as u64
}

fn at_risk_kill(policy: &WritePolicy, question: &AdviceQuestion) -> u64 {
    match (policy.mode, policy.flush_period_s) {
        (Mode::None | Mode::Line, _) => 0,
        (_, Some(period)) => arriving(question, period).min(policy.buffer_bytes),
        (_, None) => policy.buffer_bytes,
    }
}

fn at_risk_power(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    host: &AdviceHost,
    kill: u64,
    sync_s: f64,
) -> u64 {
    if question.medium == Medium::Ram {
        return arriving(question, DAY_S);
    }
    match (policy.sync, policy.sync_period_s) {
        (SyncPoint::None, _) if policy.method == WriteMethod::Direct => kill,
        (SyncPoint::None, _) => {
            let cached = arriving(question, host.writeback_s);
            kill.saturating_add(cached.min(host.dirty_limit_bytes.unwrap_or(u64::MAX)))
        }
        (SyncPoint::Period, Some(period)) => arriving(question, period + sync_s),
        _ => 0,
    }
}

/// Returns the bytes that the medium programs in a day: the data, and for each sync or write-back what the file system and
/// the medium add.
fn flash_bytes(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    host: &AdviceHost,
    prices: &AdvicePrices,
    record: &RecordCost,
) -> f64 {
    let unsynced = (1.0 / host.writeback_s.max(1.0)).min(question.rate);
    let syncs_s = if policy.sync == SyncPoint::None {
        unsynced
    } else {
        syncs_at_rate(policy, question, record) * question.rate
    };
    let of_sync = prices.sync_device_bytes.unwrap_or(ASSUMED_SYNC_BYTES);
    let page = if question.medium.is_small_flash() { FLASH_PAGE_BYTES } else { 4096.0 };
    let programmed = (of_sync / page).ceil().max(1.0) * page;
    (question.bytes_per_s() + syncs_s * programmed) * DAY_S
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{host, prices, question};
    use crate::write_policy::write_policies;

    fn of(question: &AdviceQuestion, name: &str) -> PredictedCost {
        let policies = write_policies(question);
        let policy = policies.iter().find(|policy| policy.name() == name);
        let policy = policy.unwrap_or_else(|| {
            panic!("{name}: {:?}", policies.iter().map(WritePolicy::name).collect::<Vec<_>>())
        });
        predict(policy, question, &host(), &prices()).unwrap()
    }

    #[test]
    fn a_buffer_divides_the_price_of_the_write() {
        let bulk = AdviceQuestion { rate: 1e6, record_bytes: 100, ..question() };
        let (each, full) = (of(&bulk, "write each record"), of(&bulk, "buffer of 64 KiB"));
        assert_eq!(each.calls_per_s, 1e6);
        assert!((full.calls_per_s - 1e6 / 655.0).abs() < 1.0, "{full:?}");
        assert!(each.cpu_percent > 5.0 * full.cpu_percent, "{each:?} {full:?}");
        assert_eq!((each.at_risk_kill_bytes, full.at_risk_kill_bytes), (0, 65_536));
        assert!(full.latency_s < 0.001, "the buffer fills in less than a millisecond");
    }

    #[test]
    fn a_sync_costs_what_was_measured_and_loses_nothing() {
        let slow = AdviceQuestion { rate: 50.0, record_bytes: 200, ..question() };
        let synced = of(&slow, "write each record, fdatasync after each");
        assert_eq!(synced.at_risk_power_bytes, 0);
        assert!((synced.record_ns - 600_000.0).abs() < 1000.0, "{synced:?}");
        let block = AdviceQuestion { record_bytes: 16_384, ..slow.clone() };
        let close = |cost: PredictedCost, ns: f64| assert!((cost.record_ns - ns).abs() < 1.0, "{cost:?}");
        close(of(&block, "write each record, fdatasync after each"), 700_000.0);
        // A megabyte a second in short calls.
        let bulk = AdviceQuestion { record_bytes: 1000, rate: 1000.0, ..slow.clone() };
        let period = of(&bulk, "write each record, fdatasync every 900 ms");
        let written = of(&bulk, "write each record");
        let share = (900_000.0 - 16_384.0) / f64::from((1 << 20) - 16_384);
        let sync = 690_000.0 + share * 2_010_000.0;
        assert!(((period.record_ns - written.record_ns - 12.0) * 900.0 - sync).abs() < 500.0, "{period:?}");
        assert_eq!(synced.calls_per_s, 100.0);
        // The fixture's syncs took half and five times the time.
        let [low, high] = synced.record_ns_range.unwrap();
        assert!(low < 0.51 * synced.record_ns && high > 4.9 * synced.record_ns, "{low} {high}");
        assert_eq!(written.record_ns_range, None);
        assert!(synced.cpu_percent < synced.busy_percent);
        assert_eq!(of(&slow, "write each record, O_DSYNC").calls_per_s, 50.0);
    }

    #[test]
    fn without_a_sync_a_power_cut_costs_the_time_of_write_back() {
        let slow = AdviceQuestion { rate: 10.0, record_bytes: 80, ..question() };
        assert_eq!(of(&slow, "write each record").at_risk_power_bytes, 10 * 35 * 80);
        let period = of(&slow, "write each record, fdatasync every 900 ms");
        assert_eq!(
            period.at_risk_power_bytes, 800,
            "10 records: 9 and one more that is written during the sync"
        );
        assert_eq!(period.at_risk_kill_bytes, 0);
        let memory = AdviceQuestion { medium: Medium::Ram, ..slow };
        assert!(of(&memory, "write each record, fdatasync after each").at_risk_power_bytes > 0);
    }

    #[test]
    fn a_group_shares_its_syncs_when_records_arrive_together() {
        let many = AdviceQuestion { rate: 10_000.0, record_bytes: 200, sharers: 4, ..question() };
        let group = of(&many, "write each record, one fdatasync for all threads that wait");
        let each = of(&many, "write each record, fdatasync after each");
        // The kernel answers some of the single syncs together, but fewer than a group commit.
        assert!((each.record_ns - 300_000.0).abs() < 1.0, "{each:?}");
        assert!((group.record_ns - 250_000.0).abs() < 1.0, "{group:?}");
        let six = AdviceQuestion { sharers: 6, record_bytes: 512, ..many.clone() };
        let policy = "libweir, write each record, one fdatasync for all threads that wait";
        let wider = of(&six, policy).record_ns - 195_000.0;
        assert!((wider - 300.0 * (312.0 / 448.0)).abs() < 1.0, "a longer write: {wider}");
        let few = AdviceQuestion { rate: 10.0, ..many };
        let group = of(&few, "write each record, one fdatasync for all threads that wait");
        assert!((group.calls_per_s - 20.0).abs() < 0.1, "a record that comes alone has a sync of its own");
    }

    #[test]
    fn writers_that_share_a_file_wait_for_each_other() {
        let alone = AdviceQuestion { rate: 1e4, record_bytes: 100, ..question() };
        let shared = AdviceQuestion { sharers: 4, ..alone.clone() };
        let more = |one: &str, several: &str| of(&shared, several).record_ns - of(&alone, one).record_ns;
        let close = |ns: f64, expected: f64| assert!((ns - expected).abs() < 1.0, "{ns} {expected}");
        close(more("write each record", "write each record"), 12.0 + 2000.0);
        close(more("buffer of 64 KiB", "buffer of 64 KiB"), 12.0 + 100.0);
        close(more("libweir, buffer of 64 KiB", "libweir, buffer of 64 KiB"), 30.0);
        let each = "libweir, write each record, fdatasync every 900 ms";
        close(more(each, each), 3000.0);
        let unmeasured = AdvicePrices { shared_write: None, ..prices() };
        let policy =
            write_policies(&shared).into_iter().find(|policy| policy.name() == "write each record").unwrap();
        let known = predict(&policy, &shared, &host(), &prices()).unwrap();
        let unknown = predict(&policy, &shared, &host(), &unmeasured).unwrap();
        close(known.record_ns - unknown.record_ns, 2000.0);
        assert!(unknown.cpu_percent < known.cpu_percent);
    }

    #[test]
    fn no_way_writes_more_than_the_device_takes() {
        // 500 MB a second in the fixture.
        let bulk = AdviceQuestion { rate: 100.0, record_bytes: 1 << 20, ..question() };
        let cost = of(&bulk, "write each record");
        assert!((cost.max_rate - 500e6 / (1 << 20) as f64).abs() < 1e-6, "{cost:?}");
        assert!(cost.max_rate < 1e9 / cost.record_ns, "the page cache takes it faster");
        let busy = AdvicePrices { cpu_wait_share: Some(0.6), ..prices() };
        assert_eq!(device_rate(&bulk, &busy), f64::INFINITY);
        let memory = AdviceQuestion { medium: Medium::Ram, ..bulk };
        let cost = of(&memory, "write each record");
        assert!((cost.max_rate - 1e9 / cost.record_ns).abs() < 1e-6, "{cost:?}");
    }

    #[test]
    fn flash_wears_by_syncs() {
        let card = AdviceQuestion { rate: 0.2, record_bytes: 40, medium: Medium::Sd, ..question() };
        let synced = of(&card, "write each record, fdatasync after each").flash_bytes_per_day.unwrap();
        let syncs = 0.2 * 86_400.0;
        assert!((synced - syncs * (40.0 + 16_384.0)).abs() < 1.0, "{synced}");
        assert!(of(&card, "write each record").flash_bytes_per_day.unwrap() < synced / 5.0);
        let disk = AdviceQuestion { medium: Medium::Hdd, ..card };
        assert_eq!(of(&disk, "write each record").flash_bytes_per_day, None);
    }

    #[test]
    fn a_missing_price_predicts_nothing() {
        let none = AdvicePrices { io_uring: Vec::new(), ..prices() };
        let policy = WritePolicy {
            method: WriteMethod::IoUring,
            mode: Mode::Full,
            buffer_bytes: 65_536,
            sync: SyncPoint::None,
            flush_period_s: None,
            sync_period_s: None,
        };
        assert_eq!(predict(&policy, &question(), &host(), &none), None);
        assert!(predict(&policy, &question(), &host(), &prices()).is_some());
    }
}
