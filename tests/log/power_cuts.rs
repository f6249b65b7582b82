//! Power cuts at random moments: every acknowledged record is in the log, and the log ends with a whole one.
//!
//! `make campaign` makes 300 cuts on each file system ($WEIR_CUTS) and writes the counts to $WEIR_CUTS_FILE. What a cut is:
//! crates/libweir/tests/power_cuts.rs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Collector;
use crate::common::{disk_dir, is_root, skip, wait_for};

#[path = "../../crates/libweir/tests/power_cuts/volume.rs"]
#[allow(dead_code)]
mod volume;

use volume::{Volume, VolumeKind};

const SENDERS: usize = 4;
/// The longest time from the first acknowledgement to the cut.
const MAX_MOMENT_US: u64 = 30_000;

fn random_below(limit: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() % limit
}

fn record(sender: usize, number: u64) -> String {
    let letters = if number.is_multiple_of(17) { 6000 } else { number as usize * 37 % 400 };
    format!("{sender} {number} {}\n", "x".repeat(letters))
}

/// Sends records, several at a time, until the connection ends. Counts those that were acknowledged.
fn send(socket: &UnixStream, sender: usize, acknowledged: &AtomicU64) {
    let mut acks = BufReader::new(socket);
    let (mut sent, mut line) = (0, String::new());
    loop {
        let records: String = (1..=1 + sent % 3).map(|further| record(sender, sent + further)).collect();
        if (&*socket).write_all(records.as_bytes()).is_err() {
            return;
        }
        sent += 1 + sent % 3;
        while acknowledged.load(Ordering::Acquire) < sent {
            line.clear();
            if !matches!(acks.read_line(&mut line), Ok(1..)) {
                return;
            }
            acknowledged.store(line.trim().parse().expect("a number"), Ordering::Release);
        }
    }
}

fn arguments<'a>(log: &'a str, sync: &'a [&'a str]) -> Vec<&'a str> {
    [&["-o", log, "--listen", "unix:s", "--torn", "cut", "--ack"], sync].concat()
}

/// Cuts the power of a collector once. Returns the acknowledged counts of the senders.
fn cut(volume: &Volume, dir: &Path, sync: &[&str]) -> Vec<u64> {
    let log = volume.directory().join("out");
    let mut collector = Collector::start(dir, &arguments(log.to_str().expect("a path"), sync));
    let counts: Vec<AtomicU64> = (0..SENDERS).map(|_| AtomicU64::new(0)).collect();
    let sockets: Vec<UnixStream> =
        (0..SENDERS).map(|_| UnixStream::connect(dir.join("s")).expect("connected")).collect();
    let mut promised = Vec::new();
    std::thread::scope(|scope| {
        for (sender, (socket, count)) in sockets.iter().zip(&counts).enumerate() {
            scope.spawn(move || send(socket, sender, count));
        }
        wait_for("an acknowledgement", || counts.iter().any(|count| count.load(Ordering::Acquire) > 0));
        std::thread::sleep(Duration::from_micros(random_below(MAX_MOMENT_US)));
        volume.cut(|| {
            promised = counts.iter().map(|count| count.load(Ordering::Acquire)).collect();
            promised.iter().sum()
        });
        collector.signal(libc::SIGKILL);
        collector.child().wait().expect("it ends");
    });
    promised
}

/// Starts a collector on what the cut has left, and checks the log.
fn check(volume: &Volume, dir: &Path, sync: &[&str], promised: &[u64]) -> Result<(), String> {
    let log = volume.directory().join("out");
    let collector = Collector::start(dir, &arguments(log.to_str().expect("a path"), sync));
    assert_eq!(collector.stop(), 0);
    let content = std::fs::read_to_string(&log).map_err(|error| format!("{promised:?} promised: {error}"))?;
    let mut next = [1; SENDERS];
    for line in content.split_inclusive('\n') {
        let sender: usize = line.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(SENDERS);
        match next.get_mut(sender) {
            Some(number) if line == record(sender, *number) => *number += 1,
            _ => return Err(format!("{:?} is not the next record of {sender}", &line[..line.len().min(40)])),
        }
    }
    let lost = (0..SENDERS).find(|&sender| next[sender] <= promised[sender]);
    lost.map_or(Ok(()), |sender| {
        Err(format!("sender {sender}: {} of {} acknowledged records", next[sender] - 1, promised[sender]))
    })
}

/// The results of the cuts on one file system.
#[derive(Debug, Default)]
struct CutCounts {
    lost: Vec<String>,
    unmountable: u64,
    acknowledged: u64,
}

fn cut_often(kind: VolumeKind, cuts: u64, sync: &[&str]) -> Result<CutCounts, String> {
    let mut volume = Volume::make(kind)?;
    let mut counts = CutCounts::default();
    for number in 0..cuts {
        let dir = disk_dir();
        let promised = cut(&volume, dir.path(), sync);
        counts.acknowledged += promised.iter().sum::<u64>();
        if let Err(why) = volume.restart() {
            println!("cut {number}: {why}");
            counts.unmountable += 1;
            volume.renew()?;
            continue;
        }
        if let Err(why) = check(&volume, dir.path(), sync, &promised) {
            counts.lost.push(format!("cut {number}: {why}"));
        }
        for entry in volume.directory().read_dir().expect("the mount").flatten() {
            let _folder = std::fs::remove_file(entry.path());
        }
    }
    let left = volume.remove();
    assert!(left.is_empty(), "{left:?} stays mounted");
    Ok(counts)
}

fn note(kind: VolumeKind, cuts: u64, counts: &CutCounts) {
    let (name, lost) = (format!("log-{}", kind.name()), counts.lost.len());
    let unmountable = counts.unmountable;
    println!(
        "{name}: {cuts} cuts, {} acknowledged, {lost} lost, {unmountable} unmountable",
        counts.acknowledged
    );
    if let Some(path) = std::env::var_os("WEIR_CUTS_FILE") {
        let row = format!(
            "{{\"name\":\"{name}\",\"tried\":{cuts},\"lost\":{lost},\"left_behind\":0,\"unmountable\":{unmountable}}}\n"
        );
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the file of the counts");
    }
}

const SYNC: [&str; 2] = ["--sync", "record"];

#[test]
fn acknowledged_records_survive_a_power_cut() {
    let test = "acknowledged_records_survive_a_power_cut";
    if !is_root() {
        return skip(test, "mounting needs root");
    }
    match cut_often(VolumeKind::Ext4, 3, &SYNC) {
        Ok(counts) => assert!(counts.lost.is_empty() && counts.acknowledged > 0, "{counts:?}"),
        Err(why) => skip(test, &why),
    }
}

#[test]
#[ignore = "part of make campaign"]
fn acknowledged_records_survive_many_power_cuts() {
    let test = "acknowledged_records_survive_many_power_cuts";
    if !is_root() {
        return skip(test, "mounting needs root");
    }
    let cuts = std::env::var("WEIR_CUTS").map_or(4, |count| count.parse().expect("a number of cuts"));
    let wanted = std::env::var("WEIR_CUTS_ON");
    let chosen = |kind: &VolumeKind| {
        wanted.as_ref().map_or(true, |names| names.split(',').any(|name| name == kind.name()))
    };
    for kind in VolumeKind::ALL.into_iter().filter(chosen) {
        match cut_often(kind, cuts, &SYNC) {
            Ok(counts) => {
                note(kind, cuts, &counts);
                assert!(counts.lost.is_empty(), "{}: {counts:?}", kind.name());
                // btrfs: see crates/libweir/tests/power_cuts.rs.
                assert!(counts.unmountable == 0 || kind == VolumeKind::Btrfs, "{}: {counts:?}", kind.name());
            }
            Err(why) => skip(test, &format!("{}: {why}", kind.name())),
        }
    }
}

/// The cut loses records that nothing has synced, so it would show a lost acknowledged one.
#[test]
fn a_power_cut_loses_records_that_are_not_synced() {
    let test = "a_power_cut_loses_records_that_are_not_synced";
    if !is_root() {
        return skip(test, "mounting needs root");
    }
    let mut volume = match Volume::make(VolumeKind::Ext4) {
        Ok(volume) => volume,
        Err(why) => return skip(test, &why),
    };
    let (dir, log) = (disk_dir(), volume.directory().join("out"));
    let mut collector =
        Collector::start(dir.path(), &["-o", log.to_str().expect("a path"), "--listen", "unix:s"]);
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    let records: String = (1..=100).map(|number| record(0, number)).collect();
    socket.write_all(records.as_bytes()).expect("sent");
    wait_for("the log", || std::fs::metadata(&log).is_ok_and(|about| about.len() == records.len() as u64));
    volume.cut(|| 0);
    collector.signal(libc::SIGKILL);
    collector.child().wait().expect("it ends");
    volume.restart().expect("mounted");
    let left = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(left.len() < records.len(), "all {} bytes are there", left.len());
    assert!(volume.remove().is_empty());
}
