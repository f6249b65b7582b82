//! Turns the user's words into cells and directories, with the defaults.

use std::path::PathBuf;
use std::str::FromStr;

use weir_model::Mode;

use crate::axes::{Advice, CacheState, Sync, SyncKind, Workload, parse_mode};
use crate::directory::DirectoryRequest;
use crate::error::{Error, Result, suggestion};
use crate::ffi::methods;
use crate::plan::{Axes, Cell, TEXTBOOK_RECORDS, method};
use crate::published::{self, MeasurableTable};
use crate::{loop_image, machine};

/// Bytes of a job by default: the size of the textbook's file. Less on a machine with little memory.
const DEFAULT_BYTES: u64 = 100_000_000;
/// Bytes of a `log` job by default. Log lines are short, so 2 MiB are many lines.
const DEFAULT_LOG_BYTES: u64 = 2 << 20;
/// Record sizes of the `syscall` rows beside the grid, above the textbook's sizes, to find a knee there too.
const LARGE_RECORDS: [u64; 3] = [MIB / 4, MIB, 4 * MIB];
/// Record sizes of `copy1-copy2`: those of the published table of that name.
const COPY1_COPY2_RECORDS: [u64; 5] = [1, 64, 4096, 65536, MIB];
const MIB: u64 = 1 << 20;

/// Workload words beside the names of the workloads: one with its own axes, and all workloads.
const COMPOSED_WORKLOADS: [&str; 2] = ["copy1-copy2", "all"];

/// Selection of the cells in the user's words. An empty list or `None` means the default.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct BenchSelection {
    pub workloads: Vec<String>,
    pub methods: Vec<String>,
    /// Record sizes in bytes.
    pub records: Vec<u64>,
    /// Buffer sizes in bytes; `None` is the default buffer.
    pub buffers: Vec<Option<u64>>,
    pub modes: Vec<String>,
    pub syncs: Vec<String>,
    pub caches: Vec<String>,
    pub advices: Vec<String>,
    pub dirs: Vec<PathBuf>,
    pub file_systems: Vec<String>,
    /// Bytes of the whole job.
    pub bytes: Option<u64>,
    pub vector_records: u32,
    pub queue_depth: u32,
    /// Whether io_uring buffers are registered.
    pub registered: bool,
    /// Names of published tables, or beginnings of names.
    pub published: Vec<String>,
}

/// Everything that a run of `weir bench` measures.
pub struct BenchPlan {
    /// One for each row of the result.
    pub cells: Vec<Cell>,
    /// Directories and file systems; [`Cell::directory`] is an index in this list.
    pub directories: Vec<DirectoryRequest>,
    /// Published tables that the result shows beside the measured figures.
    pub published: Vec<&'static MeasurableTable>,
}

/// Returns every workload word.
pub fn workload_names() -> impl Iterator<Item = &'static str> {
    Workload::ALL.iter().map(|workload| workload.name()).chain(COMPOSED_WORKLOADS)
}

/// Returns every method name, and `all`.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    methods().into_iter().map(|method| method.name).chain(["all"])
}

/// Returns the names of the published tables.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    published::tables().iter().map(|table| table.id.as_str())
}

impl BenchSelection {
    /// Makes the plan. Fails with [`Error::Usage`] for an unknown word, for values out of range, and if there is
    /// nothing to measure.
    pub fn plan(&self) -> Result<BenchPlan> {
        let published = published::select(&self.published)?;
        if self.workloads.is_empty() && published.is_empty() {
            return Err(Error::Usage(
                "nothing to measure: give a WORKLOAD, such as 'weir bench copy', or --published".into(),
            ));
        }
        let directories = self.directories()?;
        let mut axes = Vec::new();
        for word in &self.workloads {
            axes.extend(self.axes_of_word(word)?);
        }
        if !published.is_empty() {
            let grid = self.grid(Workload::Copy)?;
            axes.extend(published.iter().flat_map(|table| table.axes(&grid)));
        }
        let mut cells: Vec<Cell> = Vec::new();
        for axes in axes {
            for cell in axes.cells(directories.len())? {
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
        Ok(BenchPlan { cells, directories, published })
    }

    fn directories(&self) -> Result<Vec<DirectoryRequest>> {
        if let Some(pair) = self.directory_pair() {
            return Ok(vec![pair]);
        }
        let mut directories: Vec<DirectoryRequest> =
            self.dirs.iter().cloned().map(DirectoryRequest::Dir).collect();
        // The images are created in the first directory; a tmpfs needs only a mount point there.
        let image_dir = self.dirs.first().cloned().unwrap_or_else(|| PathBuf::from("."));
        for name in &self.file_systems {
            loop_image::check_name(name)?;
            directories.push(DirectoryRequest::FileSystem(name.clone(), image_dir.clone()));
        }
        if directories.is_empty() {
            directories.push(DirectoryRequest::Dir(image_dir));
        }
        Ok(directories)
    }

    /// Returns the two directories of a copy from one to the other: only copies are measured, in two directories.
    fn directory_pair(&self) -> Option<DirectoryRequest> {
        let copies = |word: &String| word == Workload::Copy.name() || word == COMPOSED_WORKLOADS[0];
        let only_copies = !self.workloads.is_empty() && self.workloads.iter().all(copies);
        match self.dirs.as_slice() {
            [from, to] if only_copies && self.file_systems.is_empty() && self.published.is_empty() => {
                Some(DirectoryRequest::FromTo(from.clone(), to.clone()))
            }
            _ => None,
        }
    }

    /// Returns the axes of a workload word: several if the default has rows beside the grid.
    fn axes_of_word(&self, word: &str) -> Result<Vec<Axes>> {
        match word {
            "all" => {
                let each = Workload::ALL.iter().map(|workload| self.axes_of_word(workload.name()));
                Ok(each.collect::<Result<Vec<_>>>()?.concat())
            }
            "copy1-copy2" => {
                let mut axes = self.grid(Workload::Copy)?;
                if self.methods.is_empty() {
                    axes.methods = vec!["syscall".into(), "stdio".into()];
                }
                if self.records.is_empty() {
                    axes.records = COPY1_COPY2_RECORDS.into();
                }
                Ok(vec![axes])
            }
            _ => {
                let grid = self.grid(parse_workload(word)?)?;
                let beside = self.rows_beside(&grid);
                Ok([grid].into_iter().chain(beside).collect())
            }
        }
    }

    /// Returns the rows that are measured beside the grid if neither methods nor sizes nor modes were chosen: system calls
    /// with larger records, and the methods that a copying tool would use, so that the advice rests on figures.
    fn rows_beside(&self, grid: &Axes) -> Vec<Axes> {
        let chosen = !self.methods.is_empty() || !self.records.is_empty();
        let about_buffers = !self.buffers.is_empty() || !self.modes.is_empty();
        if chosen || about_buffers || grid.workloads == [Workload::Log] {
            return Vec::new();
        }
        let rows = |methods: &[&str], records: &[u64]| Axes {
            methods: methods.iter().map(|name| (*name).into()).collect(),
            records: records.into(),
            ..grid.clone()
        };
        let mut beside = vec![rows(&["syscall"], &LARGE_RECORDS)];
        if grid.workloads == [Workload::Copy] {
            beside.push(rows(&["copy_file_range", "sendfile", "mmap"], &[MIB]));
        }
        beside
    }

    /// Returns every axis of a workload, with defaults for axes without a choice.
    fn grid(&self, workload: Workload) -> Result<Axes> {
        let is_log = workload == Workload::Log;
        let default_records = if is_log { vec![64, 4096] } else { TEXTBOOK_RECORDS.into() };
        let default_bytes = || if is_log { DEFAULT_LOG_BYTES } else { default_bytes_for_memory() };
        let syncs = parse_all(&self.syncs, SyncKind::ALL.iter().map(|&kind| Sync::of(kind)), Sync::from_str)?;
        let caches = parse_all(&self.caches, CacheState::ALL.iter().copied(), CacheState::from_str)?;
        let advices = parse_all(&self.advices, Advice::ALL.iter().copied(), Advice::from_str)?;
        Ok(Axes {
            workloads: vec![workload],
            methods: self.methods_of(workload)?,
            records: if self.records.is_empty() { default_records } else { self.records.clone() },
            buffers: or_default(self.buffers.clone(), None),
            modes: self.modes_of(workload)?,
            syncs: or_default(syncs, Sync::of(SyncKind::None)),
            caches: or_default(caches, CacheState::Warm),
            advices: or_default(advices.into_iter().map(Some).collect(), None),
            bytes: self.bytes.unwrap_or_else(default_bytes),
            vector_records: self.vector_records,
            queue_depth: self.queue_depth,
            registered: self.registered,
        })
    }

    fn methods_of(&self, workload: Workload) -> Result<Vec<String>> {
        if self.methods.iter().any(|name| name == "all") {
            return Ok(methods().into_iter().map(|method| method.name.into()).collect());
        }
        if self.methods.is_empty() {
            let default: &[&str] = match workload {
                Workload::Log => &["syscall", "stdio"],
                _ => &["syscall", "stdio", "stdio-char"],
            };
            return Ok(default.iter().map(|name| (*name).into()).collect());
        }
        self.methods.iter().map(|name| method(name).map(|info| info.name.into())).collect()
    }

    /// Returns the buffering modes. A log differs most between modes: by default it is measured in all of them.
    fn modes_of(&self, workload: Workload) -> Result<Vec<Option<Mode>>> {
        if self.modes.is_empty() && workload == Workload::Log && self.methods.is_empty() {
            return Ok(vec![Some(Mode::None), Some(Mode::Line), Some(Mode::Full)]);
        }
        let parse = |text: &String| match text.as_str() {
            "default" => Ok(None),
            other => parse_mode(other).map(Some).map_err(Error::Usage),
        };
        Ok(or_default(self.modes.iter().map(parse).collect::<Result<Vec<_>>>()?, None))
    }
}

fn parse_workload(word: &str) -> Result<Workload> {
    Workload::from_str(word).map_err(|_| {
        let known: Vec<&str> = workload_names().collect();
        Error::Usage(format!("unknown workload '{word}'; {}", suggestion(word, known)))
    })
}

/// Returns the textbook's 100 MB, or less if two such files need more than a quarter of the available memory.
fn default_bytes_for_memory() -> u64 {
    let quarter = machine::meminfo_bytes("MemAvailable").unwrap_or(u64::MAX) / 4;
    let mut bytes = DEFAULT_BYTES;
    while bytes > 1_000_000 && bytes * 2 > quarter {
        bytes /= 10;
    }
    bytes
}

fn or_default<T>(values: Vec<T>, default: T) -> Vec<T> {
    if values.is_empty() { vec![default] } else { values }
}

/// Parses the words of one axis; `all` means every value.
fn parse_all<T>(
    words: &[String],
    all: impl Iterator<Item = T> + Clone,
    parse: fn(&str) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for word in words {
        match word.as_str() {
            "all" => values.extend(all.clone()),
            word => values.push(parse(word).map_err(Error::Usage)?),
        }
    }
    Ok(values)
}
