//! Measures prices: rounds of short loops, one of each kind a round, and of each a low one: what others do
//! with the machine makes a loop slower and never faster.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{pread, pwrite, read, write};
use rustix::pipe::pipe;
use rustix::time::{ClockId, clock_gettime};
use weir_model::trace::Prices;

/// Calls of one loop: long enough for the clock, short enough for twenty rounds.
const CALLS: u32 = 1000;
const ROUNDS: usize = 21;
const BLOCK: usize = 65_536;
const BLOCKS: u32 = 4;
/// A page of the page cache, and how many are made.
const PAGE: usize = 4096;
const PAGES: u32 = 16;
/// Syncs may be slow: no more than this long.
const SYNCS: usize = 5;
const SYNC_TIME: Duration = Duration::from_millis(80);
/// All of it; rounds that find no time are left out, but never the first three.
const TIME: Duration = Duration::from_millis(150);
const LEAST_ROUNDS: usize = 3;

/// The file and the buffers of the loops.
struct Bench {
    file: File,
    null: OwnedFd,
    reader: OwnedFd,
    writer: OwnedFd,
    block: Vec<u8>,
    /// Where the file ends: bytes and blocks are appended, as programs do, so that pages are made.
    end: u64,
}

/// Measures in `directory`, in an unnamed temporary file.
pub(super) fn measure(directory: &Path) -> io::Result<Prices> {
    let (reader, writer) = pipe()?;
    let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let file = tempfile::tempfile_in(directory)?;
    let mut bench = Bench { file, null, reader, writer, block: vec![b'w'; BLOCK], end: 0 };
    // The first round makes pages and fills caches.
    bench.round()?;
    let start = Instant::now();
    let mut rounds = Vec::new();
    while rounds.len() < LEAST_ROUNDS || (rounds.len() < ROUNDS && start.elapsed() < TIME) {
        rounds.push(bench.round()?);
    }
    Ok(Prices { sync_ns: sync_ns(directory)?, ..Prices::of(&rounds, low) })
}

/// Returns the value at the lowest eighth: the lowest of up to seven values, the second lowest of 8 to 15.
fn low(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 8).copied().unwrap_or(0.0).max(0.001)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    // A clock too coarse for a loop must not make anything free.
    values[values.len() / 2].max(0.001)
}

/// Nanoseconds that this thread had the processor: of calls that do not wait, others' work is no part.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the nanoseconds per iteration of `times` iterations.
fn timed(times: u32, mut work: impl FnMut(u32) -> io::Result<()>) -> io::Result<f64> {
    let start_ns = processor_ns();
    for number in 0..times {
        work(number)?;
    }
    Ok((processor_ns() - start_ns) / f64::from(times))
}

impl Bench {
    /// Measures all prices except that of a sync, which would write back the dirty pages of the loops.
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
        let taken = timed(CALLS, |at| done(pread(file, &mut one, from + u64::from(at))?, 1))?;
        let called = timed(CALLS, |_| done(write(null, &byte)?, 1))?;
        let piped = timed(CALLS / 2, |_| {
            done(write(&*writer, &byte)?, 1)?;
            done(read(&*reader, &mut one)?, 1)
        })? / 2.0;
        let paged = timed(PAGES, |at| done(pwrite(file, &block[..PAGE], at_page(at))?, PAGE))?;
        let blocks = timed(BLOCKS, |at| done(pwrite(file, block, at_block(at))?, BLOCK))?;
        let blocks_back = timed(BLOCKS, |at| done(pread(file, block.as_mut_slice(), at_block(at))?, BLOCK))?;
        // A block is a call and its bytes.
        let of_byte = |block_ns: f64, call_ns: f64| ((block_ns - call_ns) / BLOCK as f64).max(0.001);
        let byte_ns = of_byte((blocks + blocks_back) / 2.0, (written + taken) / 2.0);
        let again_byte_ns = of_byte(blocks_back, taken);
        Ok(Prices {
            file_read_ns: taken,
            file_write_ns: written,
            page_write_ns: paged,
            pipe_ns: piped,
            call_ns: called,
            byte_ns,
            again_byte_ns,
            sync_ns: 0.0,
            buffered_byte_ns: buffered_byte_ns(block),
        })
    }
}

/// A few, because one can be slow; in a file of its own, so that they write out nothing else.
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

/// A byte in and out through a program's own buffer: look at it, put it down, step on, test for the end.
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

/// A loop that moved less than it should measured something else.
fn done(moved: usize, wanted: usize) -> io::Result<()> {
    if moved == wanted { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_the_order_that_every_machine_has() {
        let dir = tempfile::tempdir().unwrap();
        let prices = measure(dir.path()).unwrap();
        let all = [prices.file_read_ns, prices.file_write_ns, prices.pipe_ns, prices.call_ns, prices.sync_ns];
        assert!(all.iter().all(|ns| (10.0..1e10).contains(ns)), "{prices:?}");
        assert!(prices.byte_ns < prices.call_ns && prices.buffered_byte_ns < prices.call_ns, "{prices:?}");
        assert!(prices.byte_ns > 0.0 && prices.buffered_byte_ns > 0.0, "{prices:?}");
        assert!(prices.page_write_ns > prices.file_write_ns, "{prices:?}");
        assert!(prices.again_byte_ns > 0.0 && prices.again_byte_ns < prices.call_ns, "{prices:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        assert!(measure(Path::new("/no/such/directory")).is_err());
    }

    #[test]
    fn a_price_is_a_low_one() {
        assert_eq!(low(vec![3.0, 1.0, 2.0]), 1.0);
        assert_eq!(low((0..16).map(f64::from).collect()), 2.0);
        assert_eq!(low(Vec::new()), 0.001);
    }

    #[test]
    fn the_median_of_little() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![0.0]), 0.001);
    }
}
