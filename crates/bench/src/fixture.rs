//! Tests only: synthetic runs that are computed from given prices, so that tests can compare the results with the
//! prices.

use std::collections::BTreeMap;

use crate::axes::{CacheState, Sync, SyncKind, Workload};
use crate::directory::{BenchDirectory, DirectoryRequest};
use crate::document::{Started, document};
use crate::figures::Figures;
use crate::plan::Axes;
use crate::run::{Measurement, Sample, Track};
use weir_model::bench::{BenchDocument, Round};

pub const CALL_NS: f64 = 500.0;
pub const BYTE_NS: f64 = 0.25;
pub const BLOCK_NS: f64 = 800.0;
pub const SYNC_NS: f64 = 600_000.0;
/// Cost of one fread and one fwrite without a system call.
pub const PASS_NS: f64 = 20.0;
const BUFFER: u64 = 4096;

pub fn axes() -> Axes {
    Axes {
        workloads: vec![Workload::Copy],
        methods: vec!["syscall".into(), "stdio".into()],
        records: crate::plan::TEXTBOOK_RECORDS.into(),
        buffers: vec![None],
        modes: vec![None],
        syncs: vec![Sync::of(SyncKind::None)],
        caches: vec![CacheState::Warm],
        advices: vec![None],
        bytes: 100_000_000,
        vector_records: 16,
        queue_depth: 8,
        registered: false,
    }
}

/// Returns the figures of a cell at the given prices, multiplied by `slow`.
fn figures(track: &Track, slow: f64) -> Figures {
    let cell = &track.cell;
    let library = cell.method == "stdio";
    let each = if library { cell.record_bytes.max(BUFFER) } else { cell.record_bytes };
    let writes = cell.bytes.div_ceil(each);
    let files = if cell.workload == Workload::Copy { 2 } else { 1 };
    let blocks = cell.bytes as f64 / each.max(4096) as f64;
    let passes = if library { cell.bytes as f64 / cell.record_bytes as f64 } else { 0.0 };
    let waits = cell.sync.kind.in_every_write();
    let syncs = if waits { writes as f64 } else { 0.0 };
    let work_ns = (writes * files) as f64 * CALL_NS
        + cell.bytes as f64 * BYTE_NS
        + blocks * BLOCK_NS
        + passes * PASS_NS * files as f64 / 2.0;
    let elapsed_s = (work_ns + syncs * SYNC_NS) / 1e9 * slow;
    let mut calls = BTreeMap::from([("write".to_string(), writes), ("openat".to_string(), files)]);
    if files == 2 {
        calls.insert("read".into(), writes);
    }
    Figures { elapsed_s, cpu_s: work_ns / 1e9 * slow, transfer_s: elapsed_s, calls, ..Figures::default() }
}

/// Returns tracks with `rounds` samples each; all times of round 2 are doubled.
pub fn measurement(axes: &[Axes], rounds: usize) -> Measurement {
    let cells = axes.iter().flat_map(|axes| axes.cells(1).unwrap());
    let mut tracks: Vec<Track> = cells
        .map(|cell| Track {
            measured_bytes: cell.bytes,
            cannot: cell.cannot.clone(),
            remark: None,
            verified: true,
            cached_before: None,
            samples: Vec::new(),
            twins: Vec::new(),
            has_twin: false,
            wall_s: 0.1,
            work_s: 0.05,
            cell,
        })
        .collect();
    crate::rounds::choose_twins(&mut tracks);
    for round in 0..rounds {
        let slow = if round == 2 { 2.0 } else { 1.0 };
        for track in tracks.iter_mut().filter(|track| track.cannot.is_none()) {
            track.samples.push(Sample { round, figures: figures(track, slow) });
            if track.has_twin {
                track.twins.push(Sample { round, figures: figures(track, slow * 1.01) });
            }
        }
    }
    Measurement { tracks, rounds: vec![Round::default(); rounds], complete: true, error: None, seed: 1 }
}

/// Returns the document of such a run.
pub fn run(axes: &[Axes], rounds: usize) -> BenchDocument {
    let outer = tempfile::tempdir().unwrap();
    let directories = [BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1).unwrap()];
    let started = Started { command: vec!["weir".into()], at: std::time::SystemTime::now() };
    document(
        &measurement(axes, rounds),
        &directories,
        &crate::published::select(&["tlpi-13-1".into()]).unwrap(),
        started,
    )
}
