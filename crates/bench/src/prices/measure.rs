//! Measures prices. A round runs one short loop for each price; the price is a low value of all rounds, because other
//! processes make a loop slower and never faster.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{pread, pwrite, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use weir_model::trace::Prices;
use weir_sys::clock::thread_cpu_ns;
use weir_sys::signals::HandledSignal;

/// Calls of one loop: enough for the resolution of the clock, few enough for [`ROUNDS`] rounds in [`TIME`].
const CALLS: u32 = 1000;
/// Largest number of rounds. With 21 rounds [`low`] returns the third lowest value.
const ROUNDS: usize = 21;
/// Bytes of a large read or write.
const BLOCK: usize = 65_536;
/// Blocks of one loop.
const BLOCKS: u32 = 4;
/// Bytes of a page of the page cache.
const PAGE: usize = 4096;
/// Pages that one loop allocates.
const PAGES: u32 = 16;
/// Largest number of syncs; the price is their median.
const SYNCS: usize = 5;
/// After this time no further sync starts, because a single one can take tens of milliseconds.
const SYNC_TIME: Duration = Duration::from_millis(80);
/// After this time no further round starts, except the first [`MIN_ROUNDS`]. Syncs are not part of it.
const TIME: Duration = Duration::from_millis(150);
/// Smallest number of rounds, independent of [`TIME`].
const MIN_ROUNDS: usize = 3;

/// The file and the buffers of the loops.
struct Bench {
    file: File,
    null: OwnedFd,
    reader: OwnedFd,
    writer: OwnedFd,
    block: Vec<u8>,
    /// Size of the file in bytes. Each round appends, as programs do, so that its writes allocate pages.
    end: u64,
}

/// Returns the prices of this machine and of the file system of `directory`. Writes unnamed temporary files there.
/// Fails if one cannot be created, or if a call fails.
pub(super) fn measure(directory: &Path) -> io::Result<Prices> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let file = tempfile::tempfile_in(directory)?;
    let mut bench = Bench { file, null, reader, writer, block: vec![b'w'; BLOCK], end: 0 };
    // The first round fills the processor's caches and is not counted.
    bench.round()?;
    let start = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < MIN_ROUNDS || (rounds.len() < ROUNDS && start.elapsed() < TIME) {
        rounds.push(bench.round()?);
    }
    Ok(Prices { sync_ns: sync_ns(directory)?, piped_byte_ns: piped_byte_ns()?, ..Prices::of(&rounds, low) })
}

/// Returns the price of a call now, the lowest of a few short loops, which take 50 µs. Returns None if /dev/null is not usable.
pub(super) fn call_now_ns() -> Option<f64> {
    let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let loops = (0..3).map(|_| timed(CALLS / 10, |_| done(write(&null, b"w")?, 1)).ok());
    loops.flatten().filter(|ns| *ns > 0.0).min_by(f64::total_cmp)
}

/// Returns the value at the lowest eighth: the lowest of up to seven values, the second lowest of 8 to 15. The result
/// is at least 0.001, because a price must be positive.
fn low(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 8).copied().unwrap_or(0.0).max(0.001)
}

/// Returns the median of `values`, and at least 0.001. Panics if there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    // A clock that is too coarse returns 0, but a price must be positive.
    values[values.len() / 2].max(0.001)
}

/// Returns the CPU time of this thread in nanoseconds. The loops do not wait, so it leaves out only the time of other
/// processes.
fn processor_ns() -> f64 {
    thread_cpu_ns() as f64
}

/// Calls `work` with each number below `times`. Returns the CPU time per call in nanoseconds; fails if `work` fails.
fn timed(times: u32, mut work: impl FnMut(u32) -> io::Result<()>) -> io::Result<f64> {
    let start_ns = processor_ns();
    for number in 0..times {
        work(number)?;
    }
    Ok((processor_ns() - start_ns) / f64::from(times))
}

impl Bench {
    /// Measures each price once. Leaves `piped_byte_ns` and `sync_ns` 0: a sync of this file would also write the loops' dirty pages.
    fn round(&mut self) -> io::Result<Prices> {
        let Self { file, null, reader, writer, block, end } = self;
        let (file, null) = (file.as_fd(), null.as_fd());
        let from = *end;
        let pages_from = (from + u64::from(CALLS)).next_multiple_of(PAGE as u64);
        let blocks_from = pages_from + u64::from(PAGES) * PAGE as u64;
        *end = blocks_from + u64::from(BLOCKS) * BLOCK as u64;
        let at_page = |at: u32| pages_from + u64::from(at) * PAGE as u64;
        let at_block = |at: u32| blocks_from + u64::from(at) * BLOCK as u64;
        let byte = [b'w'];
        let mut one = [0u8];
        let written = timed(CALLS, |at| done(pwrite(file, &byte, from + u64::from(at))?, 1))?;
        let read_back = timed(CALLS, |at| done(pread(file, &mut one, from + u64::from(at))?, 1))?;
        let called = timed(CALLS, |_| done(write(null, &byte)?, 1))?;
        let piped = timed(CALLS / 2, |_| {
            done(write(&*writer, &byte)?, 1)?;
            done(read(&*reader, &mut one)?, 1)
        })? / 2.0;
        let paged = timed(PAGES, |at| done(pwrite(file, &block[..PAGE], at_page(at))?, PAGE))?;
        let blocks = timed(BLOCKS, |at| done(pwrite(file, block, at_block(at))?, BLOCK))?;
        let blocks_back = timed(BLOCKS, |at| done(pread(file, block.as_mut_slice(), at_block(at))?, BLOCK))?;
        // The time of a block is that of a one-byte call plus that of the block's bytes.
        let of_byte = |block_ns: f64, call_ns: f64| ((block_ns - call_ns) / BLOCK as f64).max(0.001);
        let byte_ns = of_byte((blocks + blocks_back) / 2.0, (written + read_back) / 2.0);
        let again_byte_ns = of_byte(blocks_back, read_back);
        Ok(Prices {
            file_read_ns: read_back,
            file_write_ns: written,
            page_write_ns: paged,
            pipe_ns: piped,
            call_ns: called,
            byte_ns,
            again_byte_ns,
            piped_byte_ns: 0.0,
            sync_ns: 0.0,
            buffered_byte_ns: buffered_byte_ns(block),
            signal_ns: signal_ns()?,
            ..gathered(block)
        })
    }
}

/// Returns the median time of a few fdatasync(2) calls in nanoseconds, each after a write of 64 bytes. The file is not
/// that of the loops, so that the syncs do not write its dirty pages.
pub(super) fn sync_ns(directory: &Path) -> io::Result<f64> {
    let file = tempfile::tempfile_in(directory)?;
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < SYNCS && (times.is_empty() || start.elapsed() < SYNC_TIME) {
        done(pwrite(&file, &[b'w'; 64], 64 * times.len() as u64)?, 64)?;
        let before = Instant::now();
        fdatasync(&file)?;
        times.push(before.elapsed().as_nanos() as f64);
    }
    Ok(median(times))
}

/// Returns the CPU time in nanoseconds, of both threads together, for a byte that goes through a pipe in large pieces. It is the
/// median of some runs, because the scheduler decides whether both threads share a processor, as in a pipeline.
fn piped_byte_ns() -> io::Result<f64> {
    const TIMES: usize = 7;
    const PIECES: u32 = 48;
    let mut times = Vec::new();
    while times.len() < TIMES {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let reads = thread::spawn(move || {
            let mut block = vec![0; BLOCK];
            let start_ns = processor_ns();
            while read(&reader, &mut block)? > 0 {}
            io::Result::Ok(processor_ns() - start_ns)
        });
        let block = vec![b'w'; BLOCK];
        let written_ns = timed(PIECES, |_| done(write(&writer, &block)?, BLOCK));
        drop(writer);
        let read_ns = reads.join().map_err(|_| io::Error::other("the reader of a pipe failed"))??;
        times.push((written_ns? + read_ns / f64::from(PIECES)) / BLOCK as f64);
    }
    Ok(median(times))
}

/// Returns the nanoseconds of a signal that this thread sends to itself.
fn signal_ns() -> io::Result<f64> {
    const SIGNALS: u32 = 100;
    let handled = HandledSignal::begin()?;
    timed(SIGNALS, |_| handled.raise())
}

/// Returns the nanoseconds that one byte costs on its way through a user-space buffer: a load, a test whether the
/// buffer is full, and a store.
fn buffered_byte_ns(block: &[u8]) -> f64 {
    let mut out: Vec<u8> = Vec::with_capacity(block.len());
    let start_ns = processor_ns();
    for &byte in block {
        if out.len() == out.capacity() {
            out.clear();
        }
        out.push(black_box(byte));
    }
    let ns = processor_ns() - start_ns;
    black_box(&out);
    ns / block.len() as f64
}

/// Memory into which a library gathers writes.
struct Gathered {
    bytes: Vec<u8>,
    used: usize,
    calls: u64,
}

/// Does what the library of `weir run --coalesce` does for a tiny write(2) (native/preload/calls.c): a test of the size and
/// of the room, a copy, and the count of calls and bytes. Not inlined, because it is a call to another object there.
#[inline(never)]
fn gather(into: &mut Gathered, piece: &[u8]) {
    if into.used + piece.len() > into.bytes.len() {
        into.used = 0;
    }
    into.bytes[into.used..][..piece.len()].copy_from_slice(piece);
    into.used += piece.len();
    into.calls += 1;
}

/// Returns prices of which only those of gathered calls are measured.
fn gathered(block: &[u8]) -> Prices {
    const PIECE: usize = 512;
    let mut into = Gathered { bytes: vec![0; BLOCK], used: 0, calls: 0 };
    let mut call_ns = |bytes: usize| {
        let start_ns = processor_ns();
        for _ in 0..CALLS {
            black_box(gather as fn(&mut Gathered, &[u8]))(&mut into, black_box(&block[..bytes]));
        }
        (processor_ns() - start_ns) / f64::from(CALLS)
    };
    let (one, piece) = (call_ns(1), call_ns(PIECE));
    black_box(&into.calls);
    Prices {
        gathered_call_ns: one.max(0.001),
        copied_byte_ns: ((piece - one) / (PIECE - 1) as f64).max(0.001),
        ..Prices::default()
    }
}

/// Fails if a call moved fewer bytes than wanted: its time is then not that of the wanted call.
fn done(moved: usize, wanted: usize) -> io::Result<()> {
    if moved == wanted { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_the_same_order_on_every_machine() {
        let dir = tempfile::tempdir().unwrap();
        let prices = measure(dir.path()).unwrap();
        let all = [prices.file_read_ns, prices.file_write_ns, prices.pipe_ns, prices.call_ns, prices.sync_ns];
        assert!(all.iter().all(|ns| (10.0..1e10).contains(ns)), "{prices:?}");
        assert!(prices.byte_ns < prices.call_ns && prices.buffered_byte_ns < prices.call_ns, "{prices:?}");
        assert!(prices.byte_ns > 0.0 && prices.buffered_byte_ns > 0.0, "{prices:?}");
        assert!(prices.page_write_ns > prices.file_write_ns, "{prices:?}");
        assert!(prices.again_byte_ns > 0.0 && prices.again_byte_ns < prices.call_ns, "{prices:?}");
        assert!(prices.piped_byte_ns > 0.0 && prices.piped_byte_ns < prices.call_ns, "{prices:?}");
        assert!(prices.gathered_call_ns < prices.call_ns, "{prices:?}");
        assert!(prices.signal_ns > prices.gathered_call_ns && prices.signal_ns < 1e6, "{prices:?}");
        assert!(prices.copied_byte_ns > 0.0 && prices.copied_byte_ns < prices.gathered_call_ns, "{prices:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        assert!(measure(Path::new("/no/such/directory")).is_err());
    }

    #[test]
    fn a_price_is_a_low_one() {
        assert_eq!(low(vec![3.0, 1.0, 2.0]), 1.0);
        assert_eq!(low((0..16).map(f64::from).collect()), 2.0);
        assert_eq!(low(Vec::new()), 0.001);
    }

    #[test]
    fn a_median_is_positive() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![0.0]), 0.001);
    }
}
