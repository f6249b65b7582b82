//! Turns axes into cells, with a reason for each unsupported combination.

use std::path::Path;

use weir_model::Mode;

use crate::axes::{Advice, CacheState, Every, Sync, SyncKind, Workload, mode_number};
use crate::error::{Error, Result, suggestion};
use crate::ffi::{MethodAxis, MethodInfo, TEXT_LINE, methods};
use crate::job::Job;
use weir_model::bench::GroupKey;

/// The record sizes of the textbook's tables, in bytes.
pub const TEXTBOOK_RECORDS: [u64; 14] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536];
/// glibc's buffer on most file systems: their st_blksize.
const DEFAULT_BUFFER: u64 = 4096;
/// Buffer fills per sample; with 16, a partly filled last buffer changes the count by about 6 %.
const FILLINGS: u64 = 16;
/// Largest record, in bytes.
pub const MAX_RECORD: u64 = 1 << 30;

/// Every axis with its values. Each meaningful combination becomes a cell.
#[derive(Debug, Clone)]
pub struct Axes {
    /// Workloads; each has its own rows.
    pub workloads: Vec<Workload>,
    /// Names of methods as in [`MethodInfo::name`].
    pub methods: Vec<String>,
    /// Record sizes; for `log` line lengths.
    pub records: Vec<u64>,
    /// Sizes of the user-space buffer in bytes; `None` is the default.
    pub buffers: Vec<Option<u64>>,
    /// setvbuf(3) modes; `None` is the default.
    pub modes: Vec<Option<Mode>>,
    /// Sync policies; ignored for workloads without output.
    pub syncs: Vec<Sync>,
    /// Cache states of the input; ignored for workloads without input.
    pub caches: Vec<CacheState>,
    /// posix_fadvise(2) advice; `None` means no call.
    pub advices: Vec<Option<Advice>>,
    /// Bytes of the whole job.
    pub bytes: u64,
    /// Records per readv(2) or writev(2).
    pub vector_records: u32,
    /// io_uring requests in flight.
    pub queue_depth: u32,
    /// Whether io_uring buffers are registered.
    pub registered: bool,
}

/// One combination of axis values; a row of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Index in [`BenchPlan::directories`](crate::selection::BenchPlan::directories).
    pub directory: usize,
    /// The work of the measured program.
    pub workload: Workload,
    /// Name of the method.
    pub method: String,
    /// Bytes that one request of the program moves.
    pub record_bytes: u64,
    /// Size of the user-space buffer in bytes; `None` is the default.
    pub buffer_bytes: Option<u64>,
    /// setvbuf(3) mode; `None` is the default.
    pub mode: Option<Mode>,
    /// The call or flag that forces written bytes to the device, and its interval.
    pub sync: Sync,
    /// State of the page cache before each sample.
    pub cache: CacheState,
    /// posix_fadvise(2) advice on the input; `None` means no call.
    pub advice: Option<Advice>,
    /// Bytes of the whole job.
    pub bytes: u64,
    /// Records per readv(2) or writev(2); `None` for other methods.
    pub vector_records: Option<u32>,
    /// Requests in flight; `None` for methods without a queue.
    pub queue_depth: Option<u32>,
    /// Whether io_uring buffers are registered.
    pub registered: bool,
    /// The reason if the combination is unsupported.
    pub cannot: Option<String>,
}

/// Returns the method of this name. Fails with [`Error::Usage`] for an unknown name.
pub fn method(name: &str) -> Result<MethodInfo> {
    let known = methods();
    known.iter().find(|method| method.name == name).copied().ok_or_else(|| {
        let advice = suggestion(name, known.iter().map(|method| method.name));
        Error::Usage(format!("unknown method '{name}'; {advice}"))
    })
}

impl Axes {
    /// Returns every cell, for `directories` work directories. A combination that a method does not support is a
    /// cell with the reason.
    pub fn cells(&self, directories: usize) -> Result<Vec<Cell>> {
        self.check()?;
        let mut cells: Vec<Cell> = Vec::new();
        for &workload in &self.workloads {
            for directory in 0..directories {
                for &sync in &self.syncs {
                    for &cache in &self.caches {
                        for &advice in &self.advices {
                            let blank = self.blank(workload, directory, sync, cache, advice);
                            self.add_methods(&blank, &mut cells)?;
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn check(&self) -> Result<()> {
        let usage = |text: String| Err(Error::Usage(text));
        if self.bytes == 0 {
            return usage("--size 0: use at least 1".into());
        }
        if let Some(record) = self.records.iter().find(|&&record| record == 0 || record > MAX_RECORD) {
            return usage(format!("--records {record}: a record has 1 byte to 1 GiB"));
        }
        if !(1..=1024).contains(&self.vector_records) {
            return usage(format!(
                "--vector {}: readv(2) takes 1 to 1024 (IOV_MAX) records",
                self.vector_records
            ));
        }
        if !(1..=4096).contains(&self.queue_depth) {
            return usage(format!("--queue-depth {}: 1 to 4096", self.queue_depth));
        }
        Ok(())
    }

    fn blank(
        &self,
        workload: Workload,
        directory: usize,
        sync: Sync,
        cache: CacheState,
        advice: Option<Advice>,
    ) -> Cell {
        // Cache state and advice need an input, and sync needs an output. Without it, the axis has one value.
        let (input, output) = (workload.has_input(), workload.has_output());
        Cell {
            directory,
            workload,
            method: String::new(),
            record_bytes: 0,
            buffer_bytes: None,
            mode: None,
            sync: if output { sync } else { Sync::of(SyncKind::None) },
            cache: if input { cache } else { CacheState::Warm },
            advice: if input { advice } else { None },
            bytes: self.bytes,
            vector_records: None,
            queue_depth: None,
            registered: false,
            cannot: None,
        }
    }

    fn add_methods(&self, blank: &Cell, cells: &mut Vec<Cell>) -> Result<()> {
        for name in &self.methods {
            let info = method(name)?;
            let only_one = [None];
            let buffers = if info.has(MethodAxis::Buffer) { &self.buffers[..] } else { &only_one };
            let no_mode = [None];
            let modes = if info.has(MethodAxis::Mode) { &self.modes[..] } else { &no_mode };
            for &record_bytes in self.records_of(&info, blank.workload).iter() {
                for &buffer_bytes in buffers {
                    for &mode in modes {
                        let cell = Cell {
                            method: name.clone(),
                            record_bytes,
                            buffer_bytes,
                            mode,
                            vector_records: info.has(MethodAxis::Vector).then_some(self.vector_records),
                            queue_depth: info.has(MethodAxis::Queue).then_some(self.queue_depth),
                            registered: info.has(MethodAxis::Queue) && self.registered,
                            cannot: cannot(&info, blank.workload, blank.sync.kind),
                            ..blank.clone()
                        };
                        if !cells.contains(&cell) {
                            cells.push(cell);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the record sizes of a method. A byte-by-byte method has one size, except for the line lengths of a log.
    fn records_of(&self, info: &MethodInfo, workload: Workload) -> Vec<u64> {
        match info.has(MethodAxis::Record) || workload == Workload::Log {
            true => self.records.clone(),
            false => vec![1],
        }
    }
}

fn cannot(info: &MethodInfo, workload: Workload, sync: SyncKind) -> Option<String> {
    let reason = |reason: Option<&str>, of: &str| Some(reason.unwrap_or(of).to_string());
    if !info.has_workload(workload.number() as u32) {
        return reason(info.workload_reason, "it has no such workload");
    }
    if !info.has_sync(sync.number() as u32) {
        return reason(info.sync_reason, "it has no such sync policy");
    }
    None
}

impl Cell {
    /// Returns the job of a sample of `bytes` bytes.
    pub fn job(&self, bytes: u64, in_path: &Path, out_path: &Path) -> Job {
        Job {
            method: self.method.clone(),
            in_path: self.workload.has_input().then(|| in_path.into()),
            out_path: self.workload.has_output().then(|| out_path.into()),
            bytes,
            record_bytes: self.record_bytes,
            buffer_bytes: self.buffer_bytes.unwrap_or(0),
            sync_every_bytes: self.sync.interval_bytes(self.record_bytes),
            workload: self.workload.number() as u32,
            sync: self.sync.kind.number() as u32,
            mode: mode_number(self.mode),
            vector_records: self.vector_records.unwrap_or(1),
            queue_depth: self.queue_depth.unwrap_or(1),
            registered: self.registered,
            advice: self.advice.map_or(-1, Advice::number),
        }
    }

    /// Returns the smallest number of bytes of a sample: one record, one call of several records, one sync interval,
    /// or enough buffer fills that a partly filled last buffer does not change the result.
    pub fn unit_bytes(&self) -> u64 {
        let call = self.record_bytes.saturating_mul(u64::from(self.vector_records.unwrap_or(1)));
        let flight = call.saturating_mul(u64::from(self.queue_depth.unwrap_or(1)));
        if self.sync.kind.repeats() {
            return flight.max(self.sync.interval_bytes(self.record_bytes)).max(1);
        }
        let fillings = match method(&self.method) {
            Ok(info) if info.has(MethodAxis::Buffer) => {
                let buffer = match self.mode {
                    Some(Mode::None) => self.record_bytes,
                    Some(Mode::Line) => TEXT_LINE.max(self.record_bytes),
                    _ => self.buffer_bytes.unwrap_or(DEFAULT_BUFFER),
                };
                buffer.div_ceil(self.record_bytes).saturating_mul(self.record_bytes).saturating_mul(FILLINGS)
            }
            _ => 1,
        };
        flight.max(fillings).max(1)
    }

    /// Returns the bytes of memory that a sample needs for its buffers.
    pub fn memory_bytes(&self) -> u64 {
        let in_flight =
            u64::from(self.vector_records.unwrap_or(1)) * u64::from(self.queue_depth.unwrap_or(1));
        self.record_bytes
            .saturating_mul(in_flight)
            .saturating_add(self.buffer_bytes.unwrap_or(0).saturating_mul(2))
    }

    /// Returns the key that comparable rows share.
    pub fn group_key(&self, fs: &str, dir: &str) -> GroupKey {
        let every = self.sync.kind.repeats().then_some(self.sync.every);
        GroupKey {
            workload: self.workload.name().into(),
            bytes: self.bytes,
            fs: fs.into(),
            dir: dir.into(),
            cache: self.cache.name().into(),
            sync: self.sync.kind.name().into(),
            sync_every_records: every.and_then(|every| match every {
                Every::Records(records) => Some(records),
                Every::Bytes(_) => None,
            }),
            sync_every_bytes: every.and_then(|every| match every {
                Every::Bytes(bytes) => Some(bytes),
                Every::Records(_) => None,
            }),
            advice: self.advice.map(|advice| advice.name().into()),
        }
    }

    /// Returns a short label for progress and errors.
    pub fn label(&self) -> String {
        format!("{} {} {}", self.workload.name(), self.method, weir_model::Size(self.record_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Axes {
        Axes {
            workloads: vec![Workload::Copy],
            methods: vec!["syscall".into(), "stdio".into(), "stdio-char".into()],
            records: vec![1, 4096],
            buffers: vec![None],
            modes: vec![None],
            syncs: vec![Sync::of(SyncKind::None)],
            caches: vec![CacheState::Warm],
            advices: vec![None],
            bytes: 1 << 20,
            vector_records: 16,
            queue_depth: 8,
            registered: false,
        }
    }

    #[test]
    fn a_method_gets_only_its_axes() {
        let cells = Axes { buffers: vec![None, Some(1024)], ..axes() }.cells(1).unwrap();
        let count = |name: &str| cells.iter().filter(|cell| cell.method == name).count();
        assert_eq!((count("syscall"), count("stdio"), count("stdio-char")), (2, 4, 2));
    }

    #[test]
    fn an_unsupported_combination_is_a_cell_with_the_reason() {
        let cells = Axes { methods: vec!["sendfile".into()], workloads: vec![Workload::Write], ..axes() }
            .cells(1)
            .unwrap();
        assert!(cells.iter().all(|cell| cell.cannot.is_some()) && cells.len() == 2, "{cells:?}");
    }

    #[test]
    fn an_axis_that_a_workload_ignores_has_one_value() {
        let wide = Axes {
            workloads: vec![Workload::Write, Workload::Read],
            methods: vec!["syscall".into()],
            caches: vec![CacheState::Warm, CacheState::Cold],
            syncs: vec![Sync::of(SyncKind::None), Sync::of(SyncKind::End)],
            ..axes()
        };
        let cells = wide.cells(1).unwrap();
        let count = |workload| cells.iter().filter(|cell| cell.workload == workload).count();
        assert_eq!((count(Workload::Write), count(Workload::Read)), (4, 4));
    }

    #[test]
    fn a_sample_has_whole_calls_and_enough_buffer_fills() {
        let units = |axes: Axes| axes.cells(1).unwrap().iter().map(Cell::unit_bytes).collect::<Vec<_>>();
        let stdio = |modes| Axes { methods: vec!["stdio".into()], records: vec![1, 1000], modes, ..axes() };
        assert_eq!(units(stdio(vec![None])), [16 * 4096, 16 * 5000]);
        assert_eq!(units(stdio(vec![Some(Mode::None)])), [16, 16_000], "each record is a call");
        let many = Axes {
            methods: vec!["vector".into(), "io_uring".into(), "syscall".into()],
            records: vec![64],
            ..axes()
        };
        assert_eq!(units(many.clone()), [64 * 16, 64 * 8, 64]);
        let synced =
            Axes { workloads: vec![Workload::Write], syncs: vec!["fsync:16".parse().unwrap()], ..many };
        assert_eq!(units(synced), [64 * 16, 64 * 16, 64 * 16]);
    }

    #[test]
    fn bad_axes_are_usage_errors() {
        for bad in [
            Axes { bytes: 0, ..axes() },
            Axes { records: vec![0], ..axes() },
            Axes { methods: vec!["sycall".into()], ..axes() },
            Axes { vector_records: 0, ..axes() },
            Axes { queue_depth: 9999, ..axes() },
        ] {
            assert!(matches!(bad.cells(1), Err(Error::Usage(_))));
        }
    }
}
