//! Power cuts at random moments: what libweir has promised is there, and a replaced file is the old or the new one.
//!
//! ext4 and xfs are cut by FS_IOC_SHUTDOWN without a flush of the log. btrfs has no such call: its image is on xfs, and the cut
//! is a clone (FICLONE) of the image, which is its state at one moment. Neither models a device that loses what it has
//! reported as written. `make campaign` makes 300 cuts each ($WEIR_CUTS) and writes the counts to $WEIR_CUTS_FILE.

#[path = "power_cuts/volume.rs"]
mod volume;
#[path = "power_cuts/writer.rs"]
mod writer;

use std::io::Write;
use std::time::Duration;

use volume::{Volume, VolumeKind};
use writer::{Writer, WriterKind};

/// The longest time from the start of the writer to the cut.
const MAX_MOMENT_US: u64 = 20_000;

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % limit
    }
}

fn skip(why: &str) {
    println!("SKIP power_cuts: {why}");
    if let Some(path) = std::env::var_os("WEIR_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _noted = file.and_then(|mut file| writeln!(file, "power_cuts: {why}"));
    }
}

#[test]
#[ignore = "part of make campaign"]
fn what_was_promised_survives_a_power_cut() {
    if !rustix::process::geteuid().is_root() {
        return skip("mounting needs root");
    }
    let wanted = std::env::var("WEIR_CUTS").ok().map(|count| count.parse().expect("a number of cuts"));
    for (seed, kind) in (1..).zip(VolumeKind::ALL) {
        let mut volume = match Volume::make(kind) {
            Ok(volume) => volume,
            Err(why) => {
                skip(&format!("{}: {why}", kind.name()));
                continue;
            }
        };
        let cuts = wanted.unwrap_or(4);
        let results =
            WriterKind::ALL.map(|writer| (writer, cut_often(&mut volume, writer, cuts, &mut Random(seed))));
        let left = volume.remove();
        for (writer, counts) in &results {
            report(&format!("{}-{}", kind.name(), writer.name()), cuts, counts, left.len());
        }
        let is_broken = |counts: &CutCounts| counts.unmountable > 0 && kind != VolumeKind::Btrfs;
        assert!(!results.iter().any(|(_, counts)| is_broken(counts)), "{}: {results:?}", kind.name());
        assert!(results.iter().all(|(_, counts)| counts.lost.is_empty()), "{}: {results:?}", kind.name());
        assert!(left.is_empty(), "{}: {left:?} stays mounted", kind.name());
    }
}

/// The same cuts lose records that nothing has synced, so they would show a broken promise.
#[test]
#[ignore = "part of make campaign"]
fn a_power_cut_loses_what_was_not_synced() {
    let volume = match rustix::process::geteuid().is_root() {
        true => Volume::make(VolumeKind::Ext4),
        false => Err("mounting needs root".into()),
    };
    match volume {
        Ok(mut volume) => {
            let mut lost =
                (0..50).map(|seed| cut_often(&mut volume, WriterKind::Unsynced, 4, &mut Random(seed)));
            assert!(lost.any(|counts| !counts.lost.is_empty()), "200 cuts lost nothing");
        }
        Err(why) => skip(&why),
    }
}

/// The results of the cuts of one writer.
#[derive(Debug, Default)]
struct CutCounts {
    /// A sentence for each cut after which a promise is broken.
    lost: Vec<String>,
    /// Cuts after which the kernel could not replay the file system's own log, so that nothing could be read. btrfs of
    /// Linux 6.18 fails so with EEXIST; no program can do anything about it.
    unmountable: u64,
}

/// Cuts the power at random moments.
fn cut_often(volume: &mut Volume, kind: WriterKind, cuts: u64, random: &mut Random) -> CutCounts {
    let mut counts = CutCounts::default();
    for number in 0..cuts {
        let writer = Writer::new(kind, volume.directory(), number);
        let promised = std::thread::scope(|scope| {
            let writing = scope.spawn(|| writer.write_until_cut());
            std::thread::sleep(Duration::from_micros(random.below(MAX_MOMENT_US)));
            // The cut begins after the promise was read, so all of that must survive.
            let promised = volume.cut(|| writer.promised());
            writer.stop();
            writing.join().expect("the writer ends");
            promised
        });
        if let Err(why) = volume.restart() {
            println!("cut {number}: {why}");
            counts.unmountable += 1;
            volume.renew().expect("a new file system");
        } else if let Err(why) = writer.check(promised) {
            counts.lost.push(format!("cut {number}, {promised} promised: {why}"));
        }
    }
    counts
}

fn report(name: &str, cuts: u64, counts: &CutCounts, left_behind: usize) {
    let (lost, unmountable) = (counts.lost.len(), counts.unmountable);
    println!("{name}: {cuts} cuts, {lost} lost, {unmountable} unmountable, {left_behind} left behind");
    if let Some(path) = std::env::var_os("WEIR_CUTS_FILE") {
        let row = format!(
            "{{\"name\":\"{name}\",\"tried\":{cuts},\"lost\":{lost},\"left_behind\":{left_behind},\"unmountable\":{unmountable}}}\n"
        );
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the file of the counts");
    }
}
