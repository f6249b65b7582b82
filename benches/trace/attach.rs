//! Measures how long `weir trace --pid` stops a busy program, and checks that its output is unchanged.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bench_dir::BenchDir;
use crate::figure::{millis, summary};
use crate::targets::Target;
use crate::traced::weir;
use crate::{BoxError, process};

const ROUNDS: usize = 30;
/// The limit of a stop (docs/trace.md).
const MAX_S: f64 = 0.005;
/// Free bytes that the writer's file system needs: more than the writer writes in all rounds.
const ROOM: u64 = 2 << 30;

/// Indexes into the shared state file, see programs/writer.c.
const STOP: u64 = 0;
const WINDOW: u64 = 1;
const RECORDS: u64 = 2;
const GAPS: u64 = 3;

/// The busy program. Killed on drop.
struct Writer {
    child: Child,
    state: File,
    out: PathBuf,
    /// The directory of both files, removed on drop.
    _dir: TempDir,
}

impl Writer {
    fn start(bench: &BenchDir, windows: usize) -> Result<Self, BoxError> {
        // Prefers a tmpfs: waits for a disk are long gaps too.
        let shm = Path::new("/dev/shm");
        let room = rustix::fs::statvfs(shm).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        let parent = if room >= ROOM { shm.to_path_buf() } else { bench.path("") };
        let dir = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(parent)?;
        let (out, path) = (dir.path().join("out"), dir.path().join("state"));
        let state = File::options().read(true).write(true).create_new(true).open(&path)?;
        state.set_len((GAPS + windows as u64) * 8)?;
        let child = Command::new(bench.path("writer")).args([&out, &path]).spawn()?;
        let mut writer = Self { child, state, out, _dir: dir };
        let started = Instant::now();
        while writer.get(RECORDS)? == 0 {
            if let Some(status) = writer.child.try_wait()? {
                return Err(format!("writer: {status}").into());
            }
            if started.elapsed() > Duration::from_secs(10) {
                return Err("writer: wrote nothing in 10 s".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(writer)
    }

    fn get(&self, index: u64) -> Result<u64, BoxError> {
        let mut bytes = [0; 8];
        self.state.read_exact_at(&mut bytes, index * 8)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn set(&self, index: u64, value: u64) -> Result<(), BoxError> {
        Ok(self.state.write_all_at(&value.to_ne_bytes(), index * 8)?)
    }

    /// Returns the seconds of the longest gap that began in this window.
    fn gap(&self, window: usize) -> Result<f64, BoxError> {
        Ok(self.get(GAPS + window as u64)? as f64 / 1e9)
    }

    /// Ends the writer and returns the number of its records. Fails if they are not 0, 1, 2 … in order.
    fn end(&mut self) -> Result<u64, BoxError> {
        self.set(STOP, 1)?;
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("writer: {status}").into());
        }
        let records = self.get(RECORDS)?;
        let mut reader = std::io::BufReader::with_capacity(1 << 20, File::open(&self.out)?);
        let mut bytes = [0; 8];
        for number in 0..records {
            std::io::Read::read_exact(&mut reader, &mut bytes)?;
            if u64::from_ne_bytes(bytes) != number {
                return Err(format!("record {number} holds {}", u64::from_ne_bytes(bytes)).into());
            }
        }
        match std::io::Read::read(&mut reader, &mut bytes)? {
            0 => Ok(records),
            _ => Err("the writer's file is longer than what it wrote".into()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After `end` both calls do nothing: the child is already reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the longest gap of each round, with weir and in an equal time without.
fn rounds(
    bench: &BenchDir,
    options: &[&str],
    writer: &Writer,
    count: usize,
) -> Result<Vec<(f64, f64)>, BoxError> {
    let pid = writer.child.id().to_string();
    let mut gaps = Vec::new();
    for round in 0..count {
        let (with, without) = (2 * round + 1, 2 * round + 2);
        writer.set(WINDOW, with as u64)?;
        let seconds = process::seconds(weir(bench, options).args(["-t", "300ms", "-p", &pid]))?;
        writer.set(WINDOW, without as u64)?;
        std::thread::sleep(Duration::from_secs_f64(seconds));
        // Closes the window without weir before its gap is read. Gaps until the next window count for none.
        writer.set(WINDOW, 0)?;
        std::thread::sleep(Duration::from_millis(20));
        gaps.push((writer.gap(with)?, writer.gap(without)?));
    }
    Ok(gaps)
}

fn row(bench: &BenchDir, name: &str, options: &[&str]) -> Result<Target, BoxError> {
    let count = bench.pick(ROUNDS, 4);
    let mut writer = Writer::start(bench, 2 * count + 1)?;
    let gaps = rounds(bench, options, &writer, count)?;
    let longest = |pick: fn(&(f64, f64)) -> f64| gaps.iter().map(pick).fold(0.0, f64::max);
    let (with, without) = (longest(|gap| gap.0), longest(|gap| gap.1));
    let extra = (with - without).max(0.0);
    let each = summary(&gaps.iter().map(|gap| gap.0 - gap.1).collect::<Vec<_>>())?;
    let (order, unchanged) = match writer.end() {
        Ok(records) => (format!("{records} records in order"), true),
        Err(error) => (error.to_string(), false),
    };
    Ok(Target {
        name: format!("{count} times attached and detached, {name}"),
        target: format!("stops under {:.0} ms more, output unchanged", MAX_S * 1e3),
        measured: format!(
            "{:.2} ms (longest gap {:.2} with, {:.2} without; a round {}); {order}",
            extra * 1e3,
            with * 1e3,
            without * 1e3,
            millis(&each)
        ),
        reached: extra < MAX_S && unchanged,
    })
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    rows.push(row(bench, "default", &[])?);
    rows.push(row(bench, "--engine ptrace", &["--engine", "ptrace"])?);
    Ok(())
}
