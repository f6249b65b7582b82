//! The price of a sync of many bytes that earlier calls wrote, as a program makes it that syncs on a timer.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::fdatasync;
use weir_model::advise::{CallPrice, SizedPrice};
use weir_model::stats::Summary;
use weir_sys::clock::thread_cpu_ns;

use super::cells;
use crate::directory::check_space;

/// Short calls of write(2): a line or a paragraph, each in pages of its own; the price of a sync depends on the number of pages.
/// It is no multiple of a page, because the sizes of records are not.
pub const SHORT_WRITE_BYTES: u64 = 4000;
/// Long calls of write(2): a buffer of 64 KiB with whole records. The kernel takes larger folios for them.
pub const LONG_WRITE_BYTES: u64 = 65_500;
/// Bytes of a sync, after short and after long calls.
const AFTER_SHORT: [u64; 6] =
    [cells::SYNC_RECORD_BYTES, cells::SYNC_BLOCK_BYTES, 128 << 10, 1 << 20, 4 << 20, 16 << 20];
const AFTER_LONG: [u64; 4] = [LONG_WRITE_BYTES, 1 << 20, 4 << 20, 16 << 20];
/// Longest expected time of a sample that is taken even after the budget.
const LONGEST: Duration = Duration::from_millis(500);
/// Rounds over all sizes, if the time allows.
const ROUNDS: usize = 9;

/// Prices after short and after long calls of write(2), by the bytes of the sync. Empty if not measurable.
pub struct BatchSyncs {
    pub after_short: Vec<SizedPrice>,
    pub after_long: Vec<SizedPrice>,
}

/// One size with its samples.
struct Batch {
    write_bytes: u64,
    bytes: u64,
    samples: Vec<CallPrice>,
    /// Longest time of a sample with its writes.
    longest: Duration,
}

impl Batch {
    fn new(write_bytes: u64, bytes: u64) -> Self {
        Self { write_bytes, bytes, samples: Vec::new(), longest: Duration::ZERO }
    }

    fn price(&self) -> Option<SizedPrice> {
        let median = |time: fn(&CallPrice) -> f64| {
            let all: Vec<f64> = self.samples.iter().map(time).collect();
            Summary::of(&all).map(|summary| summary.median)
        };
        let elapsed_ns = median(|price| price.elapsed_ns)?;
        let cpu_ns = median(|price| price.cpu_ns)?.min(elapsed_ns);
        Some(SizedPrice { bytes: self.bytes, price: CallPrice { elapsed_ns, cpu_ns } })
    }
}

/// Measures in temporary files of `directory` for about as long as `budget`; on a slow device, and where the file system has no room for
/// them, the larger sizes are left out. A file has at most 45 MB.
pub fn batch_syncs(directory: &Path, budget: Duration) -> BatchSyncs {
    let mut short = AFTER_SHORT.map(|bytes| Batch::new(SHORT_WRITE_BYTES, bytes));
    let mut long = AFTER_LONG.map(|bytes| Batch::new(LONG_WRITE_BYTES, bytes));
    let end = Instant::now() + budget;
    for _ in 0..ROUNDS {
        // Small sizes come first: on a slow device the time ends before the largest ones.
        let mut all: Vec<&mut Batch> = short.iter_mut().chain(&mut long).collect();
        all.sort_by_key(|batch| batch.bytes);
        if Instant::now() > end || round(directory, &mut all, end).is_err() {
            break;
        }
    }
    let table = |batches: &[Batch]| batches.iter().filter_map(Batch::price).collect();
    BatchSyncs { after_short: table(&short), after_long: table(&long) }
}

/// Takes a sample of each size, and ends at the first size above 1 MiB, or slower than [`LONGEST`], that would end after `end`. Fails if
/// the file cannot be written or synced.
fn round(directory: &Path, batches: &mut [&mut Batch], end: Instant) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(directory)?;
    // The first sync of a file also writes its inode, and what other programs left in the journal.
    append(&mut file, 1, 1)?;
    fdatasync(&file)?;
    let mut last = (0, Duration::ZERO);
    for batch in batches {
        let (bytes, took) = last;
        let expected = match batch.longest {
            Duration::ZERO if bytes > 0 => took.mul_f64(batch.bytes as f64 / bytes as f64),
            known => known,
        };
        // The price of a larger size can be extrapolated from those of smaller sizes.
        let is_optional = batch.bytes > 1 << 20 || expected > LONGEST;
        if is_optional && Instant::now() + expected > end {
            break;
        }
        // Other programs need the last bytes of the file system.
        if check_space(directory, batch.bytes).is_err() {
            break;
        }
        let begin = Instant::now();
        append(&mut file, batch.bytes, batch.write_bytes)?;
        batch.samples.push(sync(&file)?);
        let took = begin.elapsed();
        batch.longest = batch.longest.max(took);
        last = (batch.bytes, took);
    }
    Ok(())
}

fn append(file: &mut File, bytes: u64, write_bytes: u64) -> io::Result<()> {
    static TEXT: [u8; LONG_WRITE_BYTES as usize] = [b'w'; LONG_WRITE_BYTES as usize];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(write_bytes);
        file.write_all(&TEXT[..now as usize])?;
        left -= now;
    }
    Ok(())
}

fn sync(file: &File) -> io::Result<CallPrice> {
    let (begin, cpu) = (Instant::now(), thread_cpu_ns());
    fdatasync(file)?;
    let cpu_ns = thread_cpu_ns().saturating_sub(cpu) as f64;
    Ok(CallPrice { elapsed_ns: begin.elapsed().as_nanos() as f64, cpu_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_sizes_have_prices_and_no_file_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let BatchSyncs { after_short, after_long } =
            batch_syncs(directory.path(), Duration::from_millis(500));
        // On a slow device only the smallest size has a price.
        assert!(!after_short.is_empty());
        for (table, sizes) in [(&after_short, &AFTER_SHORT[..]), (&after_long, &AFTER_LONG[..])] {
            let measured: Vec<u64> = table.iter().map(|one| one.bytes).collect();
            assert!(sizes.starts_with(&measured), "{table:?}");
            assert!(table.iter().all(|one| one.price.elapsed_ns > 0.0), "{table:?}");
            assert!(table.iter().all(|one| one.price.cpu_ns <= one.price.elapsed_ns), "{table:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(batch_syncs(Path::new("/no/such/directory"), Duration::from_secs(1)).after_short.is_empty());
    }

    #[test]
    fn a_batch_is_written_whole() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(directory.path()).unwrap();
        append(&mut file, 10_001, SHORT_WRITE_BYTES).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 10_001);
    }
}
