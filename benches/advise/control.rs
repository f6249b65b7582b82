//! A control: the same plain calls, timed around a calibration and among the runs. Their ratio is how much the machine changed
//! in between, whatever weir predicts.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use rustix::fs::fdatasync;

use crate::BoxError;
use crate::bench_dir::BenchDir;

/// Records of a control with syncs and of one without: some tens of milliseconds.
const SYNCED: u32 = 64;
const WRITTEN: u32 = 20_000;
const RECORD: [u8; 200] = [b'c'; 200];

/// Returns the nanoseconds of a record that is written with one call, and synced if `sync`.
pub fn record_ns(bench: &BenchDir, sync: bool) -> Result<f64, BoxError> {
    let path = bench.path("control");
    let mut file = File::create(&path)?;
    let put = |file: &mut File| -> Result<(), BoxError> {
        file.write_all(&RECORD)?;
        if sync {
            fdatasync(&*file)?;
        }
        Ok(())
    };
    // The first sync of a file also writes its inode.
    put(&mut file)?;
    let records = if sync { SYNCED } else { WRITTEN };
    let start = Instant::now();
    for _ in 0..records {
        put(&mut file)?;
    }
    let ns = start.elapsed().as_nanos() as f64 / f64::from(records);
    std::fs::remove_file(&path)?;
    Ok(ns)
}
