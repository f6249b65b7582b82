//! Rust's std as a contender: BufReader and BufWriter, used in the simplest way.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::BoxError;

const NAMES: [&str; 8] = ["pressure", "temperature", "humidity", "wind", "battery", "rain", "light", "noise"];

fn bytes(from: impl BufRead, to: &mut impl Write) -> std::io::Result<u64> {
    let mut units = 0;
    for byte in from.bytes() {
        to.write_all(&[byte?])?;
        units += 1;
    }
    Ok(units)
}

fn lines(mut from: impl BufRead, to: &mut impl Write) -> std::io::Result<u64> {
    let (mut line, mut units) = (Vec::new(), 0);
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        line.clear();
        units += 1;
    }
    Ok(units)
}

/// Writes the lines that every contender of this job writes: see `reading` in frame.h.
pub fn formatted(to: &mut impl Write, count: u64) -> std::io::Result<u64> {
    for i in 0..count {
        let name = NAMES[(i & 7) as usize];
        let number = ((i * 7919) & 0xfffff) as i32 - 500_000;
        let value = f64::from(number) * 0.00123456789;
        writeln!(to, "{name} {number} {value:.6}")?;
    }
    Ok(count)
}

fn run(job: &str, from: &str, to: &str, count: u64) -> Result<u64, BoxError> {
    let mut to = BufWriter::new(File::options().write(true).create(true).truncate(false).open(to)?);
    let from = || File::open(from).map(BufReader::new);
    let units = match job {
        "bytes" => bytes(from()?, &mut to)?,
        "lines" => lines(from()?, &mut to)?,
        "formatted" => formatted(&mut to, count)?,
        other => return Err(format!("no job is called {other}").into()),
    };
    to.flush()?;
    Ok(units)
}

/// struct timeval and struct rusage of 64-bit Linux.
#[repr(C)]
#[derive(Default)]
struct Timeval {
    seconds: i64,
    micros: i64,
}

#[repr(C)]
#[derive(Default)]
struct Usage {
    user: Timeval,
    system: Timeval,
    others: [i64; 14],
}

unsafe extern "C" {
    fn getrusage(who: i32, usage: *mut Usage) -> i32;
}

/// Returns the user, system and exact CPU nanoseconds of this process.
fn cpu_times() -> [i64; 3] {
    let mut usage = Usage::default();
    // SAFETY: `usage` has the layout of struct rusage and outlives the call; 0 is RUSAGE_SELF.
    unsafe { getrusage(0, &raw mut usage) };
    let nanos = |time: &Timeval| time.seconds * 1_000_000_000 + time.micros * 1000;
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    [nanos(&usage.user), nanos(&usage.system), cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec]
}

/// Runs as a contender, with the arguments and the output of libweir/bench/frame.c.
pub fn child(arguments: &[String]) -> Result<(), BoxError> {
    let [job, _, from, to, count, _, passes, _] = arguments else {
        return Err("arguments: JOB NAME IN OUT COUNT BUFFER_BYTES PASSES IDLE_THREADS".into());
    };
    let (count, passes): (u64, u32) = (count.parse()?, passes.parse()?);
    let (before, started) = (cpu_times(), Instant::now());
    let mut units = 0;
    for _ in 0..passes {
        units += run(job, from, to, count)?;
    }
    let (elapsed, after) = (started.elapsed().as_nanos(), cpu_times());
    let [user, system, cpu] = std::array::from_fn(|i| after[i] - before[i]);
    println!("{user} {system} {cpu} {elapsed} {units}");
    Ok(())
}
