//! Prices of ways to write in a directory, from which `weir advise` predicts: measured by the engine of `weir bench` in
//! interleaved rounds, in at most about ten seconds, and kept in the user's cache.

mod batch_sync;
mod cells;
mod contention;
mod cpu_wait;
mod device;
mod host;
mod pace;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_model::advise::{AdvicePrices, CallPrice, SharedPrice, SizedPrice};
use weir_model::stats::Summary;
use weir_sys::clock::thread_cpu_ns;

use crate::directory::{BenchDirectory, DirectoryRequest};
use crate::disturbance::is_quiet_now;
use crate::error::{Error, Result};
use crate::needs;
use crate::plan::Cell;
use crate::prices::cache::{self, PriceKey};
use crate::run::{self, Measurement, Progress, Settings};
use crate::shared::Sharing;

pub use host::host;
use pace::Pace;

/// Name of the cache file in `weir/`.
const FILE: &str = "advise.json";
/// Time for the cells that sync, and for the others. With the pilots the whole takes six to eight seconds.
const SYNC_BUDGET: Duration = Duration::from_millis(1500);
const BUDGET: Duration = Duration::from_millis(4000);
/// Time until the cells must be done, so that the rest, threads that share a file, ends within ten seconds on a busy machine, too.
const CELLS_DONE: Duration = Duration::from_millis(7000);
/// Time for the cells that sync if the other prices are known: a user waits for it at each question.
const NEW_SYNC_BUDGET: Duration = Duration::from_millis(900);
/// Time for the syncs of many bytes, likewise.
const BATCH_BUDGET: Duration = Duration::from_millis(800);
const NEW_BATCH_BUDGET: Duration = Duration::from_millis(400);
/// Price of a record of libweir if it cannot be measured: so high that libweir is not chosen.
const UNKNOWN_NS: f64 = 1e6;
/// Repetitions of the short loops; the price is the lowest of them, because other processes can only slow a loop down.
const REPETITIONS: usize = 5;

/// The prices that may come from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUse {
    /// Every price, if the cache has it.
    All,
    /// All but those of syncs, which are measured again: the price of a sync depends on the load of the device and
    /// was seen to change by a factor of 20 within a day, while those of calls stay.
    AllButSyncs,
    /// None: all are measured again.
    Nothing,
}

/// Returns the prices of `directory`. Cached prices are used, unless they were measured on a busy machine that is quiet now; a
/// full measurement is cached. Fails if the directory is not writable, or with [`Error::Failed`] if write(2) gives no price
/// or if `stop` becomes true.
pub fn prices(
    directory: &Path,
    cache_use: CacheUse,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<AdvicePrices> {
    let key = PriceKey::of(directory);
    let may_load = cache_use != CacheUse::Nothing;
    let known = key.as_ref().filter(|_| may_load).and_then(|key| cache::load(FILE, key, is_valid));
    let known = known.filter(|prices| prices.busy_share().is_none() || !is_quiet_now());
    match known {
        Some(prices) if cache_use == CacheUse::All => return Ok(prices),
        Some(prices) => {
            let prices = with_new_syncs(prices, directory, stop, progress)?;
            // The range of the syncs' prices grows with each measurement.
            let _ = key.map(|key| cache::update(FILE, &key, prices.clone()));
            return Ok(prices);
        }
        None => {}
    }
    let prices = measure_all(directory, stop, progress)?;
    // Without a writable cache the next run measures again.
    let _ = key.map(|key| cache::store(FILE, &key, prices.clone()));
    Ok(prices)
}

/// Returns prices with those of syncs measured now.
fn with_new_syncs(
    prices: AdvicePrices,
    directory: &Path,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<AdvicePrices> {
    let pace = Pace::of(directory);
    let syncs = run_cells(cells::syncs(directory)?, directory, NEW_SYNC_BUDGET, stop, progress)?;
    let sync_s = sync_s(&syncs);
    let of = |kind, bytes, known: Option<CallPrice>| sync_price(&syncs, kind, bytes).or(known);
    let batches = batch_sync::batch_syncs(directory, NEW_BATCH_BUDGET);
    let groups = |sharing, known: Vec<SharedPrice>| match contention::group_commit(
        directory, sharing, sync_s, &pace,
    ) {
        new if new.is_empty() => known,
        new => new,
    };
    Ok(AdvicePrices {
        fdatasync_range_ns: range_ns(&syncs, prices.fdatasync_range_ns),
        sync_after_short: newer(batches.after_short, &prices.sync_after_short),
        sync_after_long: newer(batches.after_long, &prices.sync_after_long),
        fdatasync: of("fdatasync", cells::SYNC_RECORD_BYTES, prices.fdatasync),
        o_dsync: of("o_dsync", cells::SYNC_RECORD_BYTES, prices.o_dsync),
        fdatasync_block: of("fdatasync", cells::SYNC_BLOCK_BYTES, prices.fdatasync_block),
        o_dsync_block: of("o_dsync", cells::SYNC_BLOCK_BYTES, prices.o_dsync_block),
        group: groups(Sharing::Group, prices.group),
        libweir_group: groups(Sharing::LibweirGroup, prices.libweir_group),
        shared_sync: groups(Sharing::Each, prices.shared_sync),
        ..prices
    })
}

/// Returns the seconds of a sync of a record; 0 if none was measured.
fn sync_s(syncs: &Measurement) -> f64 {
    sync_price(syncs, "fdatasync", cells::SYNC_RECORD_BYTES).map_or(0.0, |price| price.elapsed_ns / 1e9)
}

fn sync_price(measurement: &Measurement, kind: &str, bytes: u64) -> Option<CallPrice> {
    let chosen = |cell: &Cell| cell.sync.kind.name() == kind && cell.record_bytes == bytes;
    table(measurement, chosen).first().map(|one| one.price)
}

/// Returns the range of the samples of a short fdatasync(2), widened by that of earlier measurements.
fn range_ns(syncs: &Measurement, known: Option<[f64; 2]>) -> Option<[f64; 2]> {
    let is_short =
        |cell: &Cell| cell.sync.kind.name() == "fdatasync" && cell.record_bytes == cells::SYNC_RECORD_BYTES;
    let track = syncs.tracks.iter().find(|track| is_short(&track.cell))?;
    let records = (track.cell.bytes as f64 / track.cell.record_bytes as f64).max(1.0);
    let prices = track.samples.iter().map(|sample| sample.figures.elapsed_s / records * 1e9);
    let all = prices.filter(|ns| *ns > 0.0).chain(known.into_iter().flatten());
    all.fold(None, |range, ns| {
        let [low, high] = range.unwrap_or([ns, ns]);
        Some([f64::min(low, ns), f64::max(high, ns)])
    })
}

/// Returns the new prices, and the known ones of larger sizes, for which a slow device had no time.
fn newer(mut new: Vec<SizedPrice>, known: &[SizedPrice]) -> Vec<SizedPrice> {
    let most = new.last().map_or(0, |one| one.bytes);
    new.extend(known.iter().filter(|one| one.bytes > most));
    new
}

/// Returns whether cached prices are finite, positive and sorted: the user may have edited the file.
fn is_valid(prices: &AdvicePrices) -> bool {
    let more =
        |price: &CallPrice| [price.elapsed_ns, price.cpu_ns].iter().all(|ns| ns.is_finite() && *ns >= 0.0);
    let positive = |price: &CallPrice| more(price) && price.elapsed_ns > 0.0;
    let tables = [
        &prices.write,
        &prices.stdio,
        &prices.libweir,
        &prices.mmap,
        &prices.direct,
        &prices.io_uring,
        &prices.sync_after_short,
        &prices.sync_after_long,
    ];
    let sorted = |table: &[SizedPrice]| table.is_sorted_by(|one, other| one.bytes < other.bytes);
    tables.iter().all(|table| table.iter().all(|one| positive(&one.price)) && sorted(table))
        && [&prices.write, &prices.stdio, &prices.libweir].iter().all(|table| !table.is_empty())
        && [prices.fdatasync, prices.o_dsync, prices.fdatasync_block, prices.o_dsync_block]
            .iter()
            .flatten()
            .all(positive)
        // Prices of an older weir have none.
        && prices.shared_libweir_write.is_some()
        && prices.short_write_bytes > 0
        && prices.long_write_bytes > prices.short_write_bytes
        && [prices.shared_buffer, prices.shared_write, prices.shared_libweir, prices.shared_libweir_write]
            .iter()
            .flatten()
            .all(more)
        && [&prices.group, &prices.libweir_group, &prices.shared_sync].iter().all(|table| {
            table.iter().all(|one| positive(&one.price))
                && table.is_sorted_by(|one, other| one.writers < other.writers)
        })
        && prices.fdatasync_range_ns.is_none_or(|[low, high]| 0.0 < low && low <= high && high.is_finite())
        && [prices.libweir_record_ns, prices.lock_ns, prices.wake_ns]
            .iter()
            .all(|ns| ns.is_finite() && *ns > 0.0)
        && prices.buffer_bytes > 0
        && prices.cpu_wait_share.is_none_or(|share| (0.0..=1.0).contains(&share))
}

fn measure_all(directory: &Path, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<AdvicePrices> {
    let (wait, started) = (cpu_wait::CpuWait::start(), Instant::now());
    let pace = Pace::of(directory);
    // The syncs come first: a sync may also write the dirty pages of the other cells' files.
    let syncs = run_cells(cells::syncs(directory)?, directory, SYNC_BUDGET, stop, progress)?;
    let batches = batch_sync::batch_syncs(directory, BATCH_BUDGET);
    let budget = CELLS_DONE.saturating_sub(started.elapsed()).min(BUDGET);
    let others = run_cells(cells::others(directory, &pace)?, directory, budget, stop, progress)?;
    let table =
        |method: &str| table(&others, |cell| cell.method == method && cell.sync.kind.name() == "none");
    let write = table("syscall");
    if write.is_empty() {
        return Err(Error::Failed(format!(
            "{}: no write(2) could be timed there; use a directory with more free space",
            directory.display()
        )));
    }
    let shared = contention::contention(directory, &pace);
    let sync_s = sync_s(&syncs);
    let group = |sharing| contention::group_commit(directory, sharing, sync_s, &pace);
    let at_end = self::table(&others, |cell| cell.sync.kind.name() == "end");
    Ok(AdvicePrices {
        write,
        buffer_bytes: cells::BUFFER_BYTES,
        stdio: table("stdio"),
        libweir: table("libweir"),
        mmap: table("mmap"),
        direct: table("direct"),
        io_uring: table("io_uring"),
        fdatasync: sync_price(&syncs, "fdatasync", cells::SYNC_RECORD_BYTES),
        o_dsync: sync_price(&syncs, "o_dsync", cells::SYNC_RECORD_BYTES),
        sync_record_bytes: cells::SYNC_RECORD_BYTES,
        fdatasync_block: sync_price(&syncs, "fdatasync", cells::SYNC_BLOCK_BYTES),
        o_dsync_block: sync_price(&syncs, "o_dsync", cells::SYNC_BLOCK_BYTES),
        sync_block_bytes: cells::SYNC_BLOCK_BYTES,
        fdatasync_range_ns: range_ns(&syncs, None),
        short_write_bytes: batch_sync::SHORT_WRITE_BYTES,
        sync_after_short: batches.after_short,
        long_write_bytes: batch_sync::LONG_WRITE_BYTES,
        sync_after_long: batches.after_long,
        sync_device_bytes: device::bytes_of_sync(directory),
        device_bytes_per_s: at_end.first().map(|one| one.bytes as f64 / one.price.elapsed_ns * 1e9),
        libweir_record_ns: lowest(|| libweir_record_ns().unwrap_or(UNKNOWN_NS)),
        lock_ns: lowest(lock_ns),
        shared_buffer: shared.buffer,
        shared_write: shared.write,
        shared_libweir: shared.libweir,
        shared_libweir_write: shared.libweir_write,
        group: group(Sharing::Group),
        libweir_group: group(Sharing::LibweirGroup),
        shared_sync: group(Sharing::Each),
        wake_ns: lowest(wake_ns),
        cpu_wait_share: wait.share(),
    })
}

/// Measures cells in a private directory of `directory`.
fn run_cells(
    cells: Vec<Cell>,
    directory: &Path,
    budget: Duration,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Measurement> {
    let request = DirectoryRequest::Dir(directory.into());
    let opened = BenchDirectory::open(&request, needs::needed_bytes(&cells, 0))?;
    let settings = Settings { budget, precision: 0.03, exact: false, rounds: None, seed: None };
    let directories = [opened];
    let mut measurement = run::run(cells, &directories, &settings, stop, progress);
    let [opened] = directories;
    opened.close()?;
    match measurement.error.take() {
        Some(error) => Err(error.without_options_of_bench()),
        None if stop.load(Ordering::Relaxed) => Err(Error::Failed("stopped".into())),
        None => Ok(measurement),
    }
}

/// Returns the median price of a record of each chosen cell, by size.
fn table(measurement: &Measurement, chosen: impl Fn(&Cell) -> bool) -> Vec<SizedPrice> {
    let price = |track: &run::Track| {
        let records = (track.cell.bytes as f64 / track.cell.record_bytes as f64).max(1.0);
        let of = |seconds: fn(&run::Sample) -> f64| {
            let all: Vec<f64> = track.samples.iter().map(seconds).collect();
            Summary::of(&all).map(|summary| summary.median / records * 1e9)
        };
        let elapsed_ns = of(|sample| sample.figures.elapsed_s)?;
        let cpu_ns = of(|sample| sample.figures.cpu_s)?.min(elapsed_ns);
        (elapsed_ns > 0.0)
            .then_some(SizedPrice { bytes: track.cell.record_bytes, price: CallPrice { elapsed_ns, cpu_ns } })
    };
    let mut all: Vec<SizedPrice> =
        measurement.tracks.iter().filter(|track| chosen(&track.cell)).filter_map(price).collect();
    all.sort_by_key(|one| one.bytes);
    all
}

fn lowest(measure: fn() -> f64) -> f64 {
    (0..REPETITIONS).map(|_| measure()).fold(f64::INFINITY, f64::min).max(0.1)
}

/// Returns the nanoseconds of one buffered weir_putrec(3) of a short record. /dev/null discards the writes.
fn libweir_record_ns() -> std::io::Result<f64> {
    const TIMES: u32 = 10_000;
    let options = libweir::Options::new().mode(libweir::StreamMode::Record);
    let stream = options.buffer_bytes(cells::BUFFER_BYTES as usize).append(Path::new("/dev/null"))?;
    let start = Instant::now();
    for _ in 0..TIMES {
        stream.put_record(b"0123456789abcde")?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(TIMES))
}

/// Returns the nanoseconds of an uncontended lock and unlock.
fn lock_ns() -> f64 {
    const TIMES: u32 = 10_000;
    let counter = Mutex::new(0u64);
    let start = Instant::now();
    for _ in 0..TIMES {
        *std::hint::black_box(&counter).lock().unwrap_or_else(|broken| broken.into_inner()) += 1;
    }
    start.elapsed().as_nanos() as f64 / f64::from(TIMES)
}

/// Returns the nanoseconds of CPU time to sleep for 1 ms and wake.
fn wake_ns() -> f64 {
    const TIMES: u32 = 10;
    let start = thread_cpu_ns();
    (0..TIMES).for_each(|_| sleep(Duration::from_millis(1)));
    thread_cpu_ns().saturating_sub(start) as f64 / f64::from(TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_loops_cost_something() {
        assert!((0.1..100_000.0).contains(&lowest(lock_ns)) && (0.1..1e7).contains(&lowest(wake_ns)));
    }

    #[test]
    fn larger_syncs_keep_their_price_if_there_was_no_time() {
        let one = |bytes, elapsed_ns| SizedPrice { bytes, price: CallPrice { elapsed_ns, cpu_ns: 1.0 } };
        let known = [one(1, 5.0), one(2, 6.0), one(4, 8.0)];
        assert_eq!(newer(vec![one(1, 3.0), one(2, 4.0)], &known), [one(1, 3.0), one(2, 4.0), one(4, 8.0)]);
        assert_eq!(newer(Vec::new(), &known), known);
    }

    #[test]
    fn cached_prices_must_be_sane() {
        let one = |bytes, elapsed_ns| SizedPrice { bytes, price: CallPrice { elapsed_ns, cpu_ns: 1.0 } };
        let good = AdvicePrices {
            write: vec![one(1, 2.0), one(2, 2.0)],
            stdio: vec![one(1, 2.0)],
            libweir: vec![one(1, 2.0)],
            buffer_bytes: 1,
            short_write_bytes: 1,
            long_write_bytes: 2,
            libweir_record_ns: 1.0,
            lock_ns: 1.0,
            wake_ns: 1.0,
            shared_libweir_write: Some(CallPrice { elapsed_ns: 0.0, cpu_ns: 0.0 }),
            ..AdvicePrices::default()
        };
        assert!(is_valid(&good));
        let bad = [
            AdvicePrices { write: vec![one(1, 0.0)], ..good.clone() },
            AdvicePrices { write: vec![one(2, 2.0), one(1, 2.0)], ..good.clone() },
            AdvicePrices { write: Vec::new(), ..good.clone() },
            AdvicePrices { lock_ns: f64::NAN, ..good.clone() },
            AdvicePrices { shared_libweir_write: None, ..good.clone() },
            AdvicePrices { fdatasync_range_ns: Some([2.0, 1.0]), ..good.clone() },
            AdvicePrices { fdatasync_range_ns: Some([f64::NAN, 1.0]), ..good.clone() },
            AdvicePrices { sync_after_short: vec![one(1, -2.0)], ..good.clone() },
            AdvicePrices { long_write_bytes: 1, ..good.clone() },
            AdvicePrices {
                group: vec![SharedPrice { writers: 2, price: CallPrice { elapsed_ns: 0.0, cpu_ns: 1.0 } }],
                ..good.clone()
            },
            AdvicePrices {
                shared_buffer: Some(CallPrice { elapsed_ns: f64::NAN, cpu_ns: 0.0 }),
                ..good.clone()
            },
            AdvicePrices { cpu_wait_share: Some(f64::NAN), ..good.clone() },
            AdvicePrices { fdatasync: Some(CallPrice { elapsed_ns: -1.0, cpu_ns: 1.0 }), ..good.clone() },
        ];
        assert!(bad.iter().all(|prices| !is_valid(prices)));
    }
}
