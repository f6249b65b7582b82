//! Rotation every 100 ms under full load: the delay of records, with and without it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::{Server, connect, weir_log};
use crate::figure::summary;
use crate::rounds::rounds;
use crate::targets::Target;

/// Time of a sample in seconds.
const SECONDS: u64 = 5;
/// Records whose delay is measured, a second.
const PROBES_S: u64 = 1000;
/// Load on a disk in bytes a second: half of what a slow SSD writes, so that the device's queue is not what is measured.
const DISK_LOAD: f64 = 100e6;
/// How much later a record may be in the log, of 1,000 records, because of the rotation.
const MAX_MORE_S: f64 = 0.020;
const PREFIX: &[u8] = b"probe ";
/// A measured record has its time with 20 digits.
const PROBE_BYTES: usize = PREFIX.len() + 21;
const LINE_BYTES: usize = 100;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let memory = tempfile::Builder::new().prefix("weir-bench-").tempdir_in("/dev/shm");
    let disk = bench.path("rotation");
    std::fs::create_dir_all(&disk)?;
    let mut places = vec![("disk", disk, Some(DISK_LOAD))];
    if let Ok(memory) = &memory {
        places.push(("tmpfs", memory.path().to_path_buf(), None));
    }
    let seconds = bench.pick(SECONDS, 1);
    for (name, directory, load) in places {
        let delays = rounds(bench.pick(5, 1), 2, |which| p999(&directory, which == 1, load, seconds))?;
        let of = |which: usize| summary(&delays.iter().map(|row| row[which]).collect::<Vec<_>>());
        let more: Vec<f64> = delays.iter().map(|row| row[1] - row[0]).collect();
        let more = summary(&more)?;
        let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
        rows.push(Target {
            name: format!("rotation every 100 ms under load, {name}: 99.9th percentile of a record's delay"),
            target: "at most 20 ms more than without".into(),
            measured: format!(
                "{} ms more, quartiles {} and {}; {} ms and {} ms without",
                ms(more.median),
                ms(more.q1),
                ms(more.q3),
                ms(of(1)?.median),
                ms(of(0)?.median)
            ),
            reached: more.median <= MAX_MORE_S,
        });
    }
    Ok(())
}

/// Returns the 99.9th percentile of the seconds from the send of a record until it is in the log. Fails if one is missing.
fn p999(directory: &Path, rotates: bool, load: Option<f64>, seconds: u64) -> Result<f64, BoxError> {
    let (socket, log) = (directory.join("s"), directory.join("out"));
    let mut command = weir_log(&socket, &log);
    if rotates {
        command.args(["--rotate-every", "100ms"]);
    }
    let server = Server::start(&mut command, &socket)?;
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let probes = seconds * PROBES_S;
    let delays = thread::scope(|scope| -> Result<Vec<f64>, BoxError> {
        let (stop, start) = (&stop, &start);
        let stream = connect(&socket)?;
        let loading = scope.spawn(move || send_load(stream, load, stop));
        let stream = connect(&socket)?;
        let probing = scope.spawn(move || send_probes(stream, probes, start));
        let delays = follow(&log, probes as usize, start);
        stop.store(true, Ordering::Relaxed);
        probing.join().map_err(|_| "the probe panicked")??;
        loading.join().map_err(|_| "the load panicked")??;
        delays
    });
    drop(server);
    for entry in std::fs::read_dir(directory)? {
        std::fs::remove_file(entry?.path())?;
    }
    let mut delays = delays?;
    delays.sort_by(f64::total_cmp);
    Ok(delays[delays.len() * 999 / 1000])
}

/// Sends lines at a rate, or as fast as the collector takes them.
fn send_load(mut stream: UnixStream, rate: Option<f64>, stop: &AtomicBool) -> std::io::Result<()> {
    let block = [&[b'x'; LINE_BYTES - 1][..], b"\n"].concat().repeat(640);
    let (start, mut sent) = (Instant::now(), 0.0);
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&block)?;
        sent += block.len() as f64;
        if let Some(rate) = rate {
            thread::sleep(Duration::from_secs_f64(sent / rate).saturating_sub(start.elapsed()));
        }
    }
    Ok(())
}

/// Sends records with the time of their send.
fn send_probes(mut stream: UnixStream, probes: u64, start: &Instant) -> std::io::Result<()> {
    for number in 0..probes {
        let at = Duration::from_micros(number * 1_000_000 / PROBES_S);
        thread::sleep(at.saturating_sub(start.elapsed()));
        stream.write_all(format!("probe {:020}\n", start.elapsed().as_nanos()).as_bytes())?;
    }
    Ok(())
}

/// Reads the log and the files that take its place, until it has seen all probes. Returns their delays.
fn follow(log: &Path, probes: usize, start: &Instant) -> Result<Vec<f64>, BoxError> {
    let mut file = File::open(log)?;
    let (mut delays, mut rest, mut block) = (Vec::new(), Vec::new(), vec![0; 1 << 20]);
    let end = Instant::now() + Duration::from_secs(120);
    while delays.len() < probes {
        if Instant::now() > end {
            return Err(format!("{} of {probes} records are not in the log", probes - delays.len()).into());
        }
        let count = file.read(&mut block)?;
        if count > 0 {
            let seen = start.elapsed();
            rest.extend_from_slice(&block[..count]);
            let mut at = 0;
            while let Some(record) = first_record(&rest[at..]) {
                if let Some(sent) = record.strip_prefix(PREFIX) {
                    let sent = Duration::from_nanos(std::str::from_utf8(sent)?.trim_end().parse()?);
                    delays.push(seen.saturating_sub(sent).as_secs_f64());
                }
                at += record.len();
            }
            rest.drain(..at);
        } else if let Some(next) = next_file(log, file.metadata()?.ino())? {
            // The collector may have written between the last read and the rename.
            match file.read(&mut block[..1])? {
                0 => file = File::open(next)?,
                _ => rest.push(block[0]),
            }
        } else {
            thread::sleep(Duration::from_micros(500));
        }
    }
    Ok(delays)
}

/// Returns the first whole record: its kind gives its length, so that the reader is faster than any load.
fn first_record(bytes: &[u8]) -> Option<&[u8]> {
    let length = if *bytes.first()? == PREFIX[0] { PROBE_BYTES } else { LINE_BYTES };
    bytes.get(..length)
}

/// Returns the file that follows the one with this inode: names of finished files sort, and the log itself is the last.
fn next_file(log: &Path, inode: u64) -> Result<Option<PathBuf>, BoxError> {
    if std::fs::metadata(log).is_ok_and(|found| found.ino() == inode) {
        return Ok(None);
    }
    let directory = log.parent().ok_or("the log has no directory")?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path != log && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("out")) {
            files.push(path);
        }
    }
    files.sort();
    files.push(log.to_path_buf());
    let is_own = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.ino() == inode);
    Ok(files.iter().position(is_own).and_then(|at| files.get(at + 1).cloned()).filter(|next| next.exists()))
}
