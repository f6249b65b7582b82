//! From the command line to cells and places: the defaults live here.

use std::path::PathBuf;
use std::str::FromStr;

use weir_bench::axes::{Advice, CacheState, Sync, SyncKind, Workload, parse_mode};
use weir_bench::error::suggestion;
use weir_bench::ffi::methods;
use weir_bench::place::PlaceRequest;
use weir_bench::plan::{Axes, Cell, TEXTBOOK_RECORDS, method};
use weir_bench::published::{self, Table};
use weir_bench::{Error, Result, image, machine};
use weir_model::Mode;

use super::Args;

/// Everything that will be measured.
pub struct Plan {
    /// The rows.
    pub cells: Vec<Cell>,
    /// Where.
    pub places: Vec<PlaceRequest>,
    /// Tables to show beside ours.
    pub published: Vec<&'static Table>,
}

/// The textbook's file; less where memory is small.
const DEFAULT_BYTES: u64 = 100_000_000;
/// Lines are few and short: a log of this size shows it all.
const DEFAULT_LOG_BYTES: u64 = 2 << 20;
const MIB: u64 = 1 << 20;

/// Makes the plan.
pub fn plan(args: &Args) -> Result<Plan> {
    let published = published::select(&args.published)?;
    if args.workloads.is_empty() && published.is_empty() {
        return Err(Error::Usage(
            "what to measure? give a WORKLOAD, such as 'weir bench copy', or --published".into(),
        ));
    }
    let places = places(args)?;
    let mut axes = Vec::new();
    for word in &args.workloads {
        axes.extend(axes_of(args, word)?);
    }
    if !published.is_empty() {
        let base = base(args, Workload::Copy)?;
        axes.extend(published.iter().flat_map(|table| table.axes(&base)));
    }
    let mut cells: Vec<Cell> = Vec::new();
    for axes in axes {
        for cell in axes.cells(places.len())? {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    Ok(Plan { cells, places, published })
}

fn places(args: &Args) -> Result<Vec<PlaceRequest>> {
    let mut places: Vec<PlaceRequest> = args.dir.iter().cloned().map(PlaceRequest::Dir).collect();
    // Images are made where the files would be; a tmpfs needs only a mount point there.
    let home = args.dir.first().cloned().unwrap_or_else(|| PathBuf::from("."));
    for name in &args.fs {
        image::check_name(name)?;
        places.push(PlaceRequest::FileSystem(name.clone(), home.clone()));
    }
    if places.is_empty() {
        places.push(PlaceRequest::Dir(home));
    }
    Ok(places)
}

/// Words that stand for several workloads or for one with its own axes.
const COMPOSED: [&str; 2] = ["copy1-copy2", "all"];

/// Every workload word.
pub fn workload_names() -> impl Iterator<Item = &'static str> {
    Workload::ALL.iter().map(|workload| workload.name()).chain(COMPOSED)
}

/// Every method, and `all`.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    methods().into_iter().map(|method| method.name).chain(["all"])
}

/// Every published table.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    published::tables().iter().map(|table| table.id.as_str())
}

/// The axes of one workload word; several where a default has rows beside the grid.
fn axes_of(args: &Args, word: &str) -> Result<Vec<Axes>> {
    match word {
        "all" => {
            let each = Workload::ALL.iter().map(|workload| axes_of(args, workload.name()));
            Ok(each.collect::<Result<Vec<_>>>()?.concat())
        }
        "copy1-copy2" => {
            let mut axes = base(args, Workload::Copy)?;
            if args.method.is_empty() {
                axes.methods = vec!["syscall".into(), "stdio".into()];
            }
            if args.records.is_empty() {
                axes.records = vec![1, 64, 4096, 65536, MIB];
            }
            Ok(vec![axes])
        }
        _ => {
            let workload =
                workload_names().find(|name| *name == word).and_then(|name| Workload::from_str(name).ok());
            let workload = workload.ok_or_else(|| {
                let all: Vec<&str> = workload_names().collect();
                Error::Usage(format!("'{word}' is no workload; {}", suggestion(word, all)))
            })?;
            let axes = base(args, workload)?;
            let beside = beside_the_grid(args, &axes);
            Ok([axes].into_iter().chain(beside).collect())
        }
    }
}

/// Without methods and records given, also measured are: system calls with larger records than the
/// textbook's, so that the knee is found where it lies beyond them, and what a copying tool would use, so
/// that the advice rests on figures.
fn beside_the_grid(args: &Args, axes: &Axes) -> Vec<Axes> {
    if !args.method.is_empty() || !args.records.is_empty() || axes.workloads == [Workload::Log] {
        return Vec::new();
    }
    let rows = |methods: &[&str], records: &[u64]| Axes {
        methods: methods.iter().map(|name| (*name).into()).collect(),
        records: records.into(),
        ..axes.clone()
    };
    let mut beside = vec![rows(&["syscall"], &[MIB / 4, MIB, 4 * MIB])];
    if axes.workloads == [Workload::Copy] {
        beside.push(rows(&["copy_file_range", "sendfile", "mmap"], &[MIB]));
    }
    beside
}

fn base(args: &Args, workload: Workload) -> Result<Axes> {
    let is_log = workload == Workload::Log;
    let records = match args.records.iter().map(|size| size.0).collect::<Vec<_>>() {
        given if !given.is_empty() => given,
        _ if is_log => vec![64, 4096],
        _ => TEXTBOOK_RECORDS.into(),
    };
    let default_bytes = || if is_log { DEFAULT_LOG_BYTES } else { scaled_default() };
    Ok(Axes {
        workloads: vec![workload],
        methods: methods_of(args, workload)?,
        records,
        buffers: or_one(args.buffer.iter().map(|size| size.map(|size| size.0)).collect(), None),
        modes: modes(args, is_log)?,
        syncs: or_one(
            words(&args.sync, SyncKind::ALL.iter().map(|&kind| Sync::of(kind)), Sync::from_str)?,
            Sync::of(SyncKind::None),
        ),
        caches: or_one(
            words(&args.cache, CacheState::ALL.iter().copied(), CacheState::from_str)?,
            CacheState::Warm,
        ),
        advices: or_one(
            words(&args.advice, Advice::ALL.iter().copied(), Advice::from_str)?
                .into_iter()
                .map(Some)
                .collect(),
            None,
        ),
        bytes: args.size.map_or_else(default_bytes, |size| size.0),
        vector_records: args.vector,
        queue_depth: args.queue_depth,
        registered: args.registered,
    })
}

fn methods_of(args: &Args, workload: Workload) -> Result<Vec<String>> {
    if args.method.iter().any(|name| name == "all") {
        return Ok(methods().into_iter().map(|method| method.name.into()).collect());
    }
    if args.method.is_empty() {
        let default: &[&str] = match workload {
            Workload::Log => &["syscall", "stdio"],
            _ => &["syscall", "stdio", "stdio-char"],
        };
        return Ok(default.iter().map(|name| (*name).into()).collect());
    }
    args.method.iter().map(|name| method(name).map(|facts| facts.name.into())).collect()
}

/// A log is where the modes differ: by default it is measured in all of them.
fn modes(args: &Args, is_log: bool) -> Result<Vec<Option<Mode>>> {
    if args.mode.is_empty() && is_log && args.method.is_empty() {
        return Ok(vec![Some(Mode::None), Some(Mode::Line), Some(Mode::Full)]);
    }
    let parse = |text: &String| match text.as_str() {
        "default" => Ok(None),
        other => parse_mode(other).map(Some).map_err(Error::Usage),
    };
    Ok(or_one(args.mode.iter().map(parse).collect::<Result<Vec<_>>>()?, None))
}

/// The textbook's 100 MB where two such files fit in a quarter of the free memory, else what does.
fn scaled_default() -> u64 {
    let quarter = machine::meminfo_bytes("MemAvailable").unwrap_or(u64::MAX) / 4;
    let mut bytes = DEFAULT_BYTES;
    while bytes > 1_000_000 && bytes * 2 > quarter {
        bytes /= 10;
    }
    bytes
}

fn or_one<T>(values: Vec<T>, default: T) -> Vec<T> {
    if values.is_empty() { vec![default] } else { values }
}

/// The words of an axis, `all` being all of them.
fn words<T>(
    texts: &[String],
    all: impl Iterator<Item = T> + Clone,
    parse: fn(&str) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for text in texts {
        match text.as_str() {
            "all" => found.extend(all.clone()),
            other => found.push(parse(other).map_err(Error::Usage)?),
        }
    }
    Ok(found)
}

/// What `--list` shows.
pub fn list() -> String {
    let section = |title: &str, lines: Vec<(&str, &str)>| {
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: String = lines.iter().map(|(name, text)| format!("  {name:width$}  {text}\n")).collect();
        format!("{title}\n{lines}\n")
    };
    let mut workloads: Vec<_> = Workload::ALL.iter().map(|w| (w.name(), w.title())).collect();
    workloads.push(("copy1-copy2", "copy with read/write against fread/fwrite: the five questions"));
    workloads.push(("all", "all of copy, write, read, translate, log"));
    let methods = methods();
    let methods = methods.iter().map(|method| (method.name, method.title)).collect();
    let syncs = SyncKind::ALL.iter().map(|kind| (kind.name(), kind.title())).collect();
    let caches = CacheState::ALL.iter().map(|state| (state.name(), state.title())).collect();
    let advices = Advice::ALL.iter().map(|advice| (advice.name(), advice.title())).collect();
    let tables = published::tables().iter().map(|table| (table.id.as_str(), table.title.as_str())).collect();
    [
        section("Workloads", workloads),
        section("Methods (--method)", methods),
        section("Sync policies (--sync)", syncs),
        section("Cache states (--cache)", caches),
        section("Advices (--advice)", advices),
        section(
            "File systems that can be made (--fs)",
            image::names().into_iter().map(|name| (name, "")).collect(),
        ),
        section("Published tables (--published)", tables),
    ]
    .concat()
}
