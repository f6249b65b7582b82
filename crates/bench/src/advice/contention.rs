//! The price of writers that share a file: the time that a record takes longer when several threads write without a pause,
//! and the price of a record whose sync several threads share.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_model::advise::{CallPrice, SharedPrice};

use super::cells;
use super::pace::{Pace, calls_in};
use crate::directory::check_space;
use crate::shared::{SharedJob, Sharing, measure};

/// Threads that write at once: the middle of the two to eight that a question usually has.
const WRITERS: u32 = 4;
/// Records of a thread in a sample that writes each of them, and in one that only copies them: both take tens of milliseconds,
/// many times as long as the start of a thread and a time slice of the scheduler.
const WRITTEN: u64 = 5000;
const COPIED: u64 = 100_000;
/// Pairs of samples, with one writer and with several.
const PAIRS: usize = 5;
/// Pairs where write(2) is slow.
const SLOW_PAIRS: usize = 2;
/// Records that share one call if they are copied to a buffer.
const BUFFERED: u64 = cells::BUFFER_BYTES / RECORD_BYTES;
/// A short line of a log.
const RECORD_BYTES: u64 = 100;
/// Threads that wait for one sync: prices between these lie on lines.
const COMMITTERS: [u32; 3] = [2, 4, 8];
/// Most records of a thread in a sample with syncs.
const SYNCED: u64 = 25;
/// Time of the syncs of a thread in a sample, if none is shared.
const SYNC_SAMPLE_S: f64 = 0.1;
/// Time for all samples with syncs of one kind of sharing.
const SYNC_BUDGET: Duration = Duration::from_millis(250);
/// Rounds of the samples with syncs, if the time allows.
const SYNC_ROUNDS: usize = 7;

/// Prices that a record costs more with several writers than with one. `None`: not measurable here.
pub struct ContentionPrices {
    pub buffer: Option<CallPrice>,
    pub write: Option<CallPrice>,
    pub libweir: Option<CallPrice>,
    pub libweir_write: Option<CallPrice>,
}

/// Measures in a temporary file of `directory`, in about a second; where write(2) is slow, with fewer records.
pub fn contention(directory: &Path, pace: &Pace) -> ContentionPrices {
    let pairs = if pace.slow_write_s().is_some() { SLOW_PAIRS } else { PAIRS };
    let of = |sharing, records| {
        pace.has_time().then(|| more_when_shared(directory, sharing, records, pairs).ok()).flatten()
    };
    let (written, copied) = (pace.calls(WRITTEN), pace.calls(COPIED / BUFFERED) * BUFFERED);
    ContentionPrices {
        buffer: of(Sharing::Buffer, copied),
        write: of(Sharing::Write, written),
        libweir: of(Sharing::Libweir, copied),
        libweir_write: of(Sharing::LibweirWrite, written),
    }
}

/// Returns the price of a record that waits until it is synced, by the number of threads that wait at once: with fewer records if
/// one sync takes long. Empty if it cannot be measured, or not in time.
pub fn group_commit(directory: &Path, sharing: Sharing, sync_s: f64, pace: &Pace) -> Vec<SharedPrice> {
    let synced = calls_in(SYNC_SAMPLE_S, sync_s, SYNCED);
    let mut samples = COMMITTERS.map(|writers| (writers, Vec::new()));
    let start = Instant::now();
    for round in 0..SYNC_ROUNDS {
        if round > 0 && start.elapsed() > SYNC_BUDGET || !pace.has_time() {
            break;
        }
        for (writers, prices) in &mut samples {
            prices.extend(sample(directory, sharing, *writers, synced));
        }
    }
    let median = |(writers, prices): (u32, Vec<CallPrice>)| {
        let middle = prices.len() / 2;
        (!prices.is_empty()).then(|| SharedPrice { writers, price: ranked(&prices, middle) })
    };
    samples.into_iter().filter_map(median).collect()
}

/// Returns what a record costs more with several writers: the lower quartile of their samples less the cheapest sample of one
/// writer, because other processes make some samples dearer.
fn more_when_shared(directory: &Path, sharing: Sharing, records: u64, pairs: usize) -> io::Result<CallPrice> {
    let (mut alone, mut shared) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        alone.push(sample(directory, sharing, 1, records)?);
        shared.push(sample(directory, sharing, WRITERS, records)?);
    }
    Ok(ranked(&shared, pairs / 4).minus(ranked(&alone, 0)))
}

/// Returns the elapsed time and the CPU time at a rank. Each of the two is sorted by itself.
fn ranked(samples: &[CallPrice], rank: usize) -> CallPrice {
    let of = |time: fn(&CallPrice) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(time).collect();
        all.sort_by(f64::total_cmp);
        all[rank]
    };
    CallPrice { elapsed_ns: of(|price| price.elapsed_ns), cpu_ns: of(|price| price.cpu_ns) }
}

fn sample(directory: &Path, sharing: Sharing, writers: u32, records: u64) -> io::Result<CallPrice> {
    let record_bytes = match sharing {
        Sharing::Group | Sharing::LibweirGroup | Sharing::Each => cells::SYNC_RECORD_BYTES,
        _ => RECORD_BYTES,
    };
    // Other programs need the last bytes of the file system.
    check_space(directory, u64::from(writers) * records * record_bytes).map_err(io::Error::other)?;
    let file = tempfile::NamedTempFile::new_in(directory)?;
    let job = SharedJob { sharing, writers, records, record_bytes, buffer_bytes: cells::BUFFER_BYTES };
    measure(&job, file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_has_a_price_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let ContentionPrices { buffer, write, libweir, libweir_write } =
            contention(directory.path(), &Pace::of(directory.path()));
        for price in [buffer, write, libweir, libweir_write] {
            let price = price.expect("a price");
            assert!(price.elapsed_ns >= 0.0 && price.elapsed_ns < 1e8 && price.cpu_ns >= 0.0, "{price:?}");
        }
        for sharing in [Sharing::Group, Sharing::LibweirGroup, Sharing::Each] {
            let prices = group_commit(directory.path(), sharing, 0.0, &Pace::of(directory.path()));
            assert_eq!(prices.iter().map(|one| one.writers).collect::<Vec<_>>(), COMMITTERS);
            assert!(prices.iter().all(|one| one.price.elapsed_ns > 0.0), "{prices:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let absent = Path::new("/no/such/directory");
        assert!(contention(absent, &Pace::of(absent)).write.is_none());
        assert!(group_commit(absent, Sharing::Group, 0.0, &Pace::of(absent)).is_empty());
    }

    #[test]
    fn a_rank_is_of_each_time_by_itself() {
        let price = |elapsed_ns, cpu_ns| CallPrice { elapsed_ns, cpu_ns };
        let all = [price(3.0, 1.0), price(1.0, 3.0), price(2.0, 2.0)];
        assert_eq!(ranked(&all, 0), price(1.0, 1.0));
        assert_eq!(ranked(&all, 1), price(2.0, 2.0));
    }
}
