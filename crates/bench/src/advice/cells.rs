//! The cells of `weir bench` that give the prices.

use std::path::Path;

use super::pace::Pace;
use crate::error::Result;
use crate::plan::Cell;
use crate::selection::BenchSelection;

/// Buffer of the methods that have one: at this size the writes are a small part of a record's price.
pub const BUFFER_BYTES: u64 = 65_536;
/// Records of the cells that sync: a typical line of a log.
pub const SYNC_RECORD_BYTES: u64 = 200;
/// Blocks of the cells that sync more than a page.
pub const SYNC_BLOCK_BYTES: u64 = 16_384;
/// Calls of write(2): a line, a paragraph, a page, a pipe, a large block.
const WRITES: [u64; 5] = [64, 512, 4096, 65_536, 262_144];
/// Records through a buffer.
const RECORDS: [u64; 3] = [16, 128, 1024];
const BLOCKS: [u64; 2] = [65_536, 1 << 20];
/// Bytes of a cell: enough for 16 of the largest blocks, few enough to stay in the page cache.
const BYTES: u64 = 16 << 20;

/// Returns a selection of appended lines without a sync.
fn lines(method: &str, records: &[u64], directory: &Path) -> BenchSelection {
    BenchSelection {
        workloads: vec!["log".into()],
        methods: vec![method.into()],
        records: records.to_vec(),
        buffers: Vec::new(),
        modes: Vec::new(),
        syncs: vec!["none".into()],
        caches: Vec::new(),
        advices: Vec::new(),
        dirs: vec![directory.into()],
        file_systems: Vec::new(),
        bytes: Some(BYTES),
        vector_records: 16,
        queue_depth: 8,
        registered: false,
        published: Vec::new(),
    }
}

/// Returns the cells that sync each record or block.
pub fn syncs(directory: &Path) -> Result<Vec<Cell>> {
    let synced = BenchSelection {
        syncs: vec!["fdatasync".into(), "o_dsync".into()],
        ..lines("syscall", &[SYNC_RECORD_BYTES, SYNC_BLOCK_BYTES], directory)
    };
    Ok(synced.plan()?.cells)
}

/// Returns the other cells. Where write(2) is slow, each moves fewer bytes.
pub fn others(directory: &Path, pace: &Pace) -> Result<Vec<Cell>> {
    let buffered = |method| BenchSelection {
        buffers: vec![Some(BUFFER_BYTES)],
        modes: vec!["full".into()],
        ..lines(method, &RECORDS, directory)
    };
    let blocks = |method, records: &[u64]| BenchSelection {
        workloads: vec!["write".into()],
        ..lines(method, records, directory)
    };
    let at_end = BenchSelection { syncs: vec!["end".into()], ..blocks("syscall", &BLOCKS[1..]) };
    let selections = [
        lines("syscall", &WRITES, directory),
        buffered("stdio"),
        buffered("libweir"),
        blocks("mmap", &RECORDS[1..]),
        blocks("direct", &BLOCKS),
        blocks("io_uring", &BLOCKS),
        at_end,
    ];
    let mut cells = Vec::new();
    for selection in selections {
        cells.extend(selection.plan()?.cells);
    }
    for cell in &mut cells {
        let call_bytes = cell.buffer_bytes.unwrap_or(cell.record_bytes);
        cell.bytes = cell.bytes.min(call_bytes * pace.calls(u64::MAX / call_bytes));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_cell_that_can_be_measured() {
        let here = Path::new(".");
        let all: Vec<Cell> =
            [syncs(here), others(here, &Pace::of(here))].into_iter().flat_map(Result::unwrap).collect();
        for method in ["syscall", "stdio", "libweir", "mmap", "direct", "io_uring"] {
            assert!(all.iter().any(|cell| cell.method == method && cell.cannot.is_none()), "{method}");
        }
        let kinds = ["none", "end", "fdatasync", "o_dsync"];
        assert!(kinds.iter().all(|kind| all.iter().any(|cell| cell.sync.kind.name() == *kind)));
        assert!(all.len() < 25, "{} cells do not fit ten seconds", all.len());
    }
}
