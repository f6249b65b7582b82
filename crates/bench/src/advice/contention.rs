//! The price of writers that share a file: the time that a record takes longer when several threads write without a pause.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::time::ClockId;
use weir_model::advise::CallPrice;
use weir_sys::clock::clock_ns;

use super::cells;

/// Threads that write at once: the middle of the two to eight that a question usually has.
const WRITERS: u32 = 4;
/// Records of a thread in a sample that writes each of them, and in one that only copies them: both take several times as long as
/// the start of a thread, so that all threads run at once.
const WRITTEN: u32 = 2000;
const COPIED: u32 = 50_000;
/// Pairs of samples, with one writer and with several.
const PAIRS: usize = 5;
/// A short line of a log.
const RECORD: &[u8; 100] = &[b'x'; 100];

/// Prices that a record costs more with several writers than with one. `None`: not measurable here.
pub struct SharedPrices {
    /// A copy into a buffer, behind a mutex.
    pub buffer: Option<CallPrice>,
    /// A write(2), behind a mutex.
    pub write: Option<CallPrice>,
    /// weir_putrec(3) of a stream with WEIR_THREADS.
    pub libweir: Option<CallPrice>,
}

/// Measures in a file without a name in `directory`, in about half a second.
pub fn measure(directory: &Path) -> SharedPrices {
    SharedPrices { buffer: buffer(), write: write(directory).ok(), libweir: libweir().ok() }
}

fn buffer() -> Option<CallPrice> {
    let buffer = Mutex::new((vec![0u8; cells::BUFFER_BYTES as usize], 0));
    let put = || {
        let mut buffer = buffer.lock().unwrap_or_else(|broken| broken.into_inner());
        let (bytes, used) = &mut *buffer;
        if *used + RECORD.len() > bytes.len() {
            *used = 0;
        }
        bytes[*used..*used + RECORD.len()].copy_from_slice(black_box(RECORD));
        *used += RECORD.len();
        true
    };
    more_when_shared(COPIED, put)
}

fn write(directory: &Path) -> io::Result<CallPrice> {
    let file = tempfile::tempfile_in(directory)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    let file = Mutex::new(file);
    let put = || {
        let mut file: std::sync::MutexGuard<File> = file.lock().unwrap_or_else(|broken| broken.into_inner());
        file.write_all(RECORD).is_ok()
    };
    more_when_shared(WRITTEN, put).ok_or_else(io::Error::last_os_error)
}

fn libweir() -> io::Result<CallPrice> {
    let options = libweir::Options::new().mode(libweir::StreamMode::Record);
    // /dev/null discards the writes.
    let stream = options.buffer_bytes(cells::BUFFER_BYTES as usize).append(Path::new("/dev/null"))?;
    let put = || stream.put_record(RECORD).is_ok();
    more_when_shared(COPIED, put).ok_or_else(io::Error::last_os_error)
}

/// Returns what a record costs more with several writers: the lower quartile of their samples less the cheapest sample of one
/// writer, because other processes make some samples dearer. `None` if `put` fails.
fn more_when_shared(records: u32, put: impl Fn() -> bool + Sync) -> Option<CallPrice> {
    let (mut alone, mut shared) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        alone.push(sample(1, records, &put)?);
        shared.push(sample(WRITERS, records, &put)?);
    }
    let ranked = |samples: &[CallPrice], of: fn(&CallPrice) -> f64, rank: usize| {
        let mut all: Vec<f64> = samples.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[rank]
    };
    let more = |of| (ranked(&shared, of, PAIRS / 4) - ranked(&alone, of, 0)).max(0.0);
    Some(CallPrice { elapsed_ns: more(|price| price.elapsed_ns), cpu_ns: more(|price| price.cpu_ns) })
}

/// Returns the price of a record of `writers` threads together.
fn sample(writers: u32, records: u32, put: &(impl Fn() -> bool + Sync)) -> Option<CallPrice> {
    let start = Barrier::new(writers as usize + 1);
    let write = || {
        start.wait();
        (0..records).all(|_| put())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|_| scope.spawn(write)).collect();
        start.wait();
        let (began, cpu_ns) = (Instant::now(), clock_ns(ClockId::ProcessCPUTime));
        let all_written =
            threads.into_iter().map(|thread| thread.join()).all(|written| written.unwrap_or(false));
        let records = f64::from(writers * records);
        all_written.then(|| CallPrice {
            elapsed_ns: began.elapsed().as_nanos() as f64 / records,
            cpu_ns: (clock_ns(ClockId::ProcessCPUTime) - cpu_ns) as f64 / records,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_has_a_price_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let shared = measure(directory.path());
        for price in [shared.buffer, shared.write, shared.libweir] {
            let price = price.expect("a price");
            assert!(price.elapsed_ns >= 0.0 && price.elapsed_ns < 1e8 && price.cpu_ns >= 0.0, "{price:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(more_when_shared(1, || false), None);
    }
}
