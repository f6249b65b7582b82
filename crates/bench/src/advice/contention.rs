//! The price of writers that share a file: the time that a record takes longer when several threads write without a pause,
//! and the price of a record whose sync several threads share.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_model::advise::{CallPrice, SharedPrice};

use super::cells;
use crate::shared::{SharedJob, Sharing, measure};

/// Threads that write at once: the middle of the two to eight that a question usually has.
const WRITERS: u32 = 4;
/// Records of a thread in a sample that writes each of them, and in one that only copies them: both take tens of milliseconds,
/// many times as long as the start of a thread and a time slice of the scheduler.
const WRITTEN: u64 = 5000;
const COPIED: u64 = 100_000;
/// Pairs of samples, with one writer and with several.
const PAIRS: usize = 5;
/// A short line of a log.
const RECORD_BYTES: u64 = 100;
/// Threads that wait for one sync: prices between these lie on lines.
const COMMITTERS: [u32; 3] = [2, 4, 8];
/// Records of a thread in a sample with syncs, and the time for all samples of a way.
const SYNCED: u64 = 25;
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

/// Measures in a temporary file of `directory`, in about a second.
pub fn contention(directory: &Path) -> ContentionPrices {
    let of = |sharing, records| more_when_shared(directory, sharing, records).ok();
    ContentionPrices {
        buffer: of(Sharing::Buffer, COPIED),
        write: of(Sharing::Write, WRITTEN),
        libweir: of(Sharing::Libweir, COPIED),
        libweir_write: of(Sharing::LibweirWrite, WRITTEN),
    }
}

/// Returns the price of a record that waits until it is synced, by the number of threads that wait at once. Empty if it cannot be
/// measured.
pub fn group_commit(directory: &Path, sharing: Sharing) -> Vec<SharedPrice> {
    let mut samples = COMMITTERS.map(|writers| (writers, Vec::new()));
    let start = Instant::now();
    for round in 0..SYNC_ROUNDS {
        if round > 0 && start.elapsed() > SYNC_BUDGET {
            break;
        }
        for (writers, prices) in &mut samples {
            prices.extend(sample(directory, sharing, *writers, SYNCED));
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
fn more_when_shared(directory: &Path, sharing: Sharing, records: u64) -> io::Result<CallPrice> {
    let (mut alone, mut shared) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        alone.push(sample(directory, sharing, 1, records)?);
        shared.push(sample(directory, sharing, WRITERS, records)?);
    }
    Ok(ranked(&shared, PAIRS / 4).minus(ranked(&alone, 0)))
}

/// Returns the price at a rank, each of its times by itself.
fn ranked(samples: &[CallPrice], rank: usize) -> CallPrice {
    let of = |time: fn(&CallPrice) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(time).collect();
        all.sort_by(f64::total_cmp);
        all[rank]
    };
    CallPrice { elapsed_ns: of(|price| price.elapsed_ns), cpu_ns: of(|price| price.cpu_ns) }
}

fn sample(directory: &Path, sharing: Sharing, writers: u32, records: u64) -> io::Result<CallPrice> {
    let file = tempfile::NamedTempFile::new_in(directory)?;
    let record_bytes = match sharing {
        Sharing::Group | Sharing::LibweirGroup | Sharing::Each => cells::SYNC_RECORD_BYTES,
        _ => RECORD_BYTES,
    };
    let job = SharedJob { sharing, writers, records, record_bytes, buffer_bytes: cells::BUFFER_BYTES };
    measure(&job, file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_has_a_price_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let ContentionPrices { buffer, write, libweir, libweir_write } = contention(directory.path());
        for price in [buffer, write, libweir, libweir_write] {
            let price = price.expect("a price");
            assert!(price.elapsed_ns >= 0.0 && price.elapsed_ns < 1e8 && price.cpu_ns >= 0.0, "{price:?}");
        }
        for sharing in [Sharing::Group, Sharing::LibweirGroup, Sharing::Each] {
            let prices = group_commit(directory.path(), sharing);
            assert_eq!(prices.iter().map(|one| one.writers).collect::<Vec<_>>(), COMMITTERS);
            assert!(prices.iter().all(|one| one.price.elapsed_ns > 0.0), "{prices:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(contention(Path::new("/no/such/directory")).write.is_none());
        assert!(group_commit(Path::new("/no/such/directory"), Sharing::Group).is_empty());
    }

    #[test]
    fn a_rank_is_of_each_time_by_itself() {
        let price = |elapsed_ns, cpu_ns| CallPrice { elapsed_ns, cpu_ns };
        let all = [price(3.0, 1.0), price(1.0, 3.0), price(2.0, 2.0)];
        assert_eq!(ranked(&all, 0), price(1.0, 1.0));
        assert_eq!(ranked(&all, 1), price(2.0, 2.0));
    }
}
