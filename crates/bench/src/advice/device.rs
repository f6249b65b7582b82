//! The bytes that a sync writes to the block device, by the kernel's counters.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{fdatasync, major, minor, stat};

/// Syncs of a batch, and batches. The price is that of the cheapest batch: other programs write, too.
const SYNCS: u64 = 8;
const BATCHES: usize = 3;
/// Unit of the kernel's counters, for devices of every sector size (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// Returns the bytes that the device got for one fdatasync(2) of a small record at the end of a file. `None` if the file
/// system is not on one block device, or if the kernel does not count its writes.
pub fn bytes_of_sync(directory: &Path) -> Option<f64> {
    let device = stat(directory).ok()?.st_dev;
    let counters = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let written = || -> Option<u64> {
        let text = fs::read_to_string(&counters).ok()?;
        Some(text.split_whitespace().nth(6)?.parse::<u64>().ok()? * SECTOR_BYTES)
    };
    let file = tempfile::tempfile_in(directory).ok()?;
    synced(&file, 0)?;
    let batch = |number: usize| -> Option<u64> {
        let before = written()?;
        for at in 0..SYNCS {
            synced(&file, 1 + number as u64 * SYNCS + at)?;
        }
        Some(written()? - before)
    };
    let batches: Option<Vec<u64>> = (0..BATCHES).map(batch).collect();
    let least = batches?.into_iter().min()?;
    (least > 0).then_some(least as f64 / SYNCS as f64)
}

fn synced(file: &File, record: u64) -> Option<()> {
    const RECORD: [u8; 64] = [b'w'; 64];
    file.write_all_at(&RECORD, record * RECORD.len() as u64).ok()?;
    fdatasync(file).ok()
}
