//! Turns the clocks and counters of a sample into figures: subtracts the cost of measuring, and scales a measured part
//! to the whole.

use std::collections::BTreeMap;

use crate::job::Measured;
use crate::plan::Cell;

/// Figures of one sample, scaled to the cell's bytes. Context switches and page faults are those of the sample. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)] // the fields are those of weir_model::bench::BenchRow
pub struct Figures {
    pub elapsed_s: f64,
    pub cpu_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub transfer_s: f64,
    pub sync_s: f64,
    pub close_s: f64,
    pub calls: BTreeMap<String, u64>,
    pub records: u64,
    pub syncs: u64,
    pub voluntary_switches: f64,
    pub involuntary_switches: f64,
    pub page_faults: f64,
    pub dirty_bytes: Option<u64>,
}

/// Scales the transfer time of a part to the whole. CPU time grows with the moved bytes. Waiting for the device grows
/// with the bytes that the device delivered: if read-ahead has read the whole file, the wait is already complete.
fn whole_transfer_s(transfer_s: f64, cpu_s: f64, scale: f64, device_scale: f64) -> f64 {
    let work_s = cpu_s.min(transfer_s);
    work_s * scale + (transfer_s - work_s) * scale.min(device_scale.max(1.0))
}

/// Returns whether a system call moves bytes; the others open, map, advise and sync.
pub fn moves_bytes(call: &str) -> bool {
    const MOVING: [&str; 14] = [
        "read",
        "write",
        "pread64",
        "pwrite64",
        "readv",
        "writev",
        "preadv",
        "pwritev",
        "preadv2",
        "pwritev2",
        "sendfile",
        "splice",
        "copy_file_range",
        "io_uring_enter",
    ];
    MOVING.contains(&call)
}

/// Returns whether a system call makes written bytes durable, or starts their writeback.
pub fn syncs_bytes(call: &str) -> bool {
    ["fsync", "fdatasync", "msync", "sync_file_range"].contains(&call)
}

impl Figures {
    /// Returns the figures of `measured`, scaled to the whole of `cell`. `from_device` is the number of bytes of a cold
    /// input that the device delivered, including read-ahead; 0 for a warm input.
    pub fn of(measured: &Measured, cell: &Cell, from_device: u64) -> Self {
        let bytes = cell.bytes;
        let scale = if measured.bytes_moved == 0 { 1.0 } else { bytes as f64 / measured.bytes_moved as f64 };
        let loop_s = measured.records as f64 * measured.empty_loop_ns / 1e9;
        let clock_s = measured.clock_reads as f64 * measured.clock_read_ns / 1e9;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let without = |seconds: f64, overhead: f64| (seconds - overhead).max(0.0);
        // If every write waits for the device, the output causes the wait, which grows with the records.
        let from_device = if cell.sync.kind.in_every_write() { 0 } else { from_device };
        let transfer_s = whole_transfer_s(
            without(seconds(measured.transfer_ns), loop_s),
            without(seconds(measured.cpu_ns), loop_s + clock_s),
            scale,
            bytes as f64 / from_device.max(1) as f64,
        );
        // Without a sync, sync_ns is only the cost of the clock reads.
        let sync_s = if measured.syncs == 0 { 0.0 } else { seconds(measured.sync_ns) * scale };
        let open_s = seconds(measured.open_ns);
        // Close writes at most one buffer, so its time does not grow with the file.
        let close_s = seconds(measured.close_ns);
        let times = |count: u64| (count as f64 * scale).round() as u64;
        let scaled_call = |(name, count): &(String, u64)| {
            // A sync at the end stays one call, but takes longer for more bytes.
            let grows = moves_bytes(name) || syncs_bytes(name) && cell.sync.kind.repeats();
            (name.clone(), if grows { times(*count) } else { *count })
        };
        Self {
            elapsed_s: open_s + transfer_s + sync_s + close_s,
            cpu_s: without(seconds(measured.cpu_ns), loop_s + clock_s) * scale,
            user_s: without(measured.user_us as f64 / 1e6, loop_s + clock_s) * scale,
            system_s: measured.system_us as f64 / 1e6 * scale,
            transfer_s,
            sync_s,
            close_s,
            calls: measured.calls.iter().map(scaled_call).collect(),
            records: times(measured.records),
            syncs: if cell.sync.kind.repeats() { times(measured.syncs) } else { measured.syncs },
            voluntary_switches: measured.voluntary_switches as f64,
            involuntary_switches: measured.involuntary_switches as f64,
            page_faults: measured.page_faults as f64,
            // The kernel counts whole pages; the last page can extend beyond the file.
            dirty_bytes: measured.dirty_bytes.map(|dirty| times(dirty).min(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plan::Axes;

    fn cell(bytes: u64, sync: &str) -> Cell {
        let syncs = vec![sync.parse().unwrap()];
        Axes { bytes, syncs, ..fixture::axes() }.cells(1).unwrap().remove(0)
    }

    fn of_bytes(bytes: u64) -> Cell {
        cell(bytes, "none")
    }

    #[test]
    fn one_sync_at_the_end_stays_one_and_repeated_ones_grow() {
        let synced = Measured { syncs: 1, calls: vec![("fsync".into(), 1)], sync_ns: 1000, ..measured() };
        assert_eq!(Figures::of(&synced, &cell(100_000, "end"), 0).calls["fsync"], 1);
        assert_eq!(Figures::of(&synced, &cell(100_000, "fsync:1000"), 0).calls["fsync"], 100);
        assert!((Figures::of(&synced, &cell(100_000, "end"), 0).sync_s - 1e-4).abs() < 1e-12);
    }

    fn measured() -> Measured {
        Measured {
            bytes_moved: 1000,
            records: 1000,
            open_ns: 5_000,
            transfer_ns: 1_000_000,
            close_ns: 2_000,
            cpu_ns: 900_000,
            user_us: 300,
            system_us: 600,
            calls: vec![("write".into(), 1000), ("openat".into(), 1)],
            clock_reads: 4,
            clock_read_ns: 25.0,
            empty_loop_ns: 1.0,
            dirty_bytes: Some(1000),
            ..Measured::default()
        }
    }

    #[test]
    fn a_whole_sample_loses_only_the_cost_of_measuring() {
        let figures = Figures::of(&measured(), &of_bytes(1000), 0);
        assert!((figures.elapsed_s - 1.006e-3).abs() < 1e-12, "{figures:?}");
        assert!((figures.cpu_s - 0.8989e-3).abs() < 1e-12, "{figures:?}");
        assert_eq!(figures.calls["write"], 1000);
    }

    #[test]
    fn a_part_is_scaled_but_open_and_close_are_not() {
        let figures = Figures::of(&measured(), &of_bytes(1_000_000), 0);
        assert!((figures.elapsed_s - (0.999 + 7e-6)).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures.calls["write"], figures.calls["openat"]), (1_000_000, 1));
        assert_eq!(figures.dirty_bytes, Some(1_000_000));
    }

    #[test]
    fn waiting_for_a_cold_input_is_scaled_by_the_bytes_from_the_device() {
        // 1 ms, of which 0.4 ms is CPU time; read-ahead has read all 4000 bytes, so the wait is complete.
        let cold = Measured { cpu_ns: 400_000, empty_loop_ns: 0.0, clock_read_ns: 0.0, ..measured() };
        let figures = Figures::of(&cold, &of_bytes(4000), 4000);
        assert!((figures.transfer_s - (0.4e-3 * 4.0 + 0.6e-3)).abs() < 1e-12, "{figures:?}");
        let half = Figures::of(&cold, &of_bytes(4000), 2000);
        assert!((half.transfer_s - (0.4e-3 * 4.0 + 0.6e-3 * 2.0)).abs() < 1e-12, "{half:?}");
        let synced = Figures::of(&cold, &cell(4000, "o_sync"), 4000);
        assert!((synced.transfer_s - 4e-3).abs() < 1e-12, "the wait is for the output: {synced:?}");
        let warm = Figures::of(&cold, &of_bytes(4000), 0);
        assert!((warm.transfer_s - 4e-3).abs() < 1e-12, "{warm:?}");
    }
}
