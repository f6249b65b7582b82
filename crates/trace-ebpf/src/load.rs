//! Loads the BPF programs and maps, and explains why the kernel refuses them.

use std::collections::{HashMap as Names, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use aya_obj::btf::BtfFeatures;
use aya_obj::{EbpfSectionKind, Object};
use weir_sys::Error;

use super::kernel_types::{self, KernelTypes};
use super::shared_types::{self, Library, LibraryKey, ProcessState, StreamCounters, StreamKey};
use crate::bpf_syscall::{self, ProgramContext};
use crate::ring_buffer::RingBuffer;
use crate::syscall_classes;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// A BPF program and the tracepoint that it is attached to.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    tracepoint: &'static str,
    required: bool,
}

/// The program at the exit of system calls is first: it is the largest, and is attached and detached separately.
const PROGRAMS: [Program; 6] = [
    Program { name: "on_sys_exit", tracepoint: "sys_exit", required: true },
    Program { name: "on_fork", tracepoint: "sched_process_fork", required: true },
    Program { name: "on_exec", tracepoint: "sched_process_exec", required: true },
    Program { name: "on_exit", tracepoint: "sched_process_exit", required: true },
    Program { name: "on_switch", tracepoint: "sched_switch", required: true },
    Program { name: "before_exec", tracepoint: "sched_prepare_exec", required: false },
];

/// Since this kernel sched_process_exit says whether the thread is the last of its process.
const FIRST_KERNEL: (u32, u32) = (6, 16);

/// Size of the ring buffer. The kernel zeroes it when it is created; a sampling window ends before 4 MiB are full.
const EVENT_BYTES: u32 = 1 << 22;
/// Size of the ring buffer with --exact, where the backend may fall behind for longer.
const EVENT_BYTES_EXACT: u32 = 1 << 23;

/// The loaded programs and maps. Dropping the value removes them from the kernel.
pub(super) struct Loaded {
    calls: OwnedFd,
    calls_link: Option<OwnedFd>,
    _lifecycle_links: Vec<OwnedFd>,
    pub events: RingBuffer,
    pub processes: ProcessMap,
    processes_copy: Option<ProcessMap>,
    pub streams: HashMap<MapData, StreamKey, StreamCounters>,
    libraries: Option<HashMap<MapData, LibraryKey, Library>>,
    tallies: PerCpuArray<MapData, u64>,
    /// Entries that weir has deleted from `streams`.
    deleted_streams: u64,
    /// Entries that weir has added to `processes`.
    added_processes: HashSet<u32>,
    /// The kernel has the tracepoint for buffer snapshots at execve(2).
    pub sees_exec: bool,
}

/// The map of traced processes.
pub(super) type ProcessMap = HashMap<MapData, u32, ProcessState>;

/// Sums of the programs' tallies: recorded calls, dropped events, calls that were not decoded or not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tallies {
    pub calls: u64,
    pub lost_events: u64,
    pub compat_calls: u64,
    pub lost_streams: u64,
}

fn unusable(reason: impl Into<String>) -> Error {
    Error::Backend { backend: "ebpf", reason: reason.into() }
}

/// Converts an error to its innermost cause, which is the kernel's.
fn cause(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let errno = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    unusable(match errno {
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel refuses it (EPERM): it needs root, or CAP_BPF and CAP_PERFMON".into()
        }
        _ => format!("{error}: {innermost}"),
    })
}

/// Returns the error for a kernel that is too old; None if the kernel is recent enough.
fn kernel_too_old() -> Option<Error> {
    let (major, minor) = kernel_version();
    let (first_major, first_minor) = FIRST_KERNEL;
    let reason = format!("it needs Linux {first_major}.{first_minor} or later, and this is {major}.{minor}");
    ((major, minor) < FIRST_KERNEL).then(|| unusable(reason))
}

/// Returns major and minor version from uname(2).
fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Loads everything and attaches all programs except the one at system calls.
pub(super) fn load(exact: bool) -> Result<Loaded, Error> {
    let event_bytes = if exact { EVENT_BYTES_EXACT } else { EVENT_BYTES };
    let (kernel, prepared) = in_parallel(kernel_types, || PreparedObject::new(event_bytes));
    let (PreparedObject { mut object, btf, definitions, mut maps }, kernel) = (prepared?, kernel?);
    object.relocate_btf(&kernel.structs).map_err(|error| cause(&error))?;
    relocate_maps(&mut object, &definitions, &maps)?;
    let programs = load_programs(&object, &kernel, &btf)?;
    let sees_exec = programs.len() == PROGRAMS.len();
    let mut programs = programs.into_iter();
    let calls = programs.next().ok_or_else(|| unusable("program on_sys_exit is missing"))?;
    let links: io::Result<_> = programs.map(|program| bpf_syscall::attach(program.as_fd())).collect();
    let processes_copy = maps.get("processes").and_then(duplicate);
    Ok(Loaded {
        calls,
        calls_link: None,
        _lifecycle_links: links.map_err(|error| cause(&error))?,
        events: open_ring_buffer(&maps, event_bytes)?,
        processes: take_map(&mut maps, "processes")?,
        processes_copy,
        streams: take_map(&mut maps, "streams")?,
        libraries: Some(take_map(&mut maps, "libraries")?),
        tallies: take_map(&mut maps, "tallies")?,
        deleted_streams: 0,
        added_processes: HashSet::new(),
        sees_exec,
    })
}

/// Loads the programs in the order of [`PROGRAMS`], without optional ones that the kernel refuses.
fn load_programs(object: &Object, kernel: &KernelTypes, btf: &OwnedFd) -> Result<Vec<OwnedFd>, Error> {
    let load_one =
        |program: Program| load_program(object, program.name, kernel.tracepoint(program.tracepoint), btf);
    // The verifier takes as long for the first as for all others together.
    let (first, others) = in_parallel(
        || load_one(PROGRAMS[0]),
        || PROGRAMS[1..].iter().map(|&program| load_one(program)).collect::<Vec<_>>(),
    );
    let mut programs = Vec::new();
    for (loaded, program) in std::iter::once(first).chain(others).zip(PROGRAMS) {
        match loaded {
            Ok(program) => programs.push(program),
            Err(error) if program.required => return Err(kernel_too_old().unwrap_or(error)),
            Err(_) => {}
        }
    }
    Ok(programs)
}

/// Runs `one` on a new thread and `other` on this one.
fn in_parallel<T: Send, U>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> U) -> (T, U) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

fn kernel_types() -> Result<KernelTypes, Error> {
    let tracepoints = PROGRAMS.map(|program| program.tracepoint);
    KernelTypes::of_this_kernel(&tracepoints).map_err(|error| {
        unusable(format!("{}: {error}: the kernel needs CONFIG_DEBUG_INFO_BTF", kernel_types::PATH))
    })
}

/// The compiled object, and its maps in the kernel.
struct PreparedObject {
    object: Object,
    /// The object's own BTF, loaded.
    btf: OwnedFd,
    definitions: Vec<(String, aya_obj::Map)>,
    maps: Names<String, MapData>,
}

impl PreparedObject {
    /// Parses the object, sets its constants, and creates its maps.
    fn new(event_bytes: u32) -> Result<Self, Error> {
        let mut object = Object::parse(OBJECT).map_err(|error| cause(&error))?;
        let classes = syscall_classes::table();
        let ring_bytes = u64::from(event_bytes).to_le_bytes();
        let constants =
            [("classes", (classes.as_slice(), true)), ("event_bytes", (ring_bytes.as_slice(), true))];
        object.patch_map_data(Names::from(constants)).map_err(|error| cause(&error))?;
        if let Some(events) = object.maps.get_mut("events") {
            events.set_max_entries(event_bytes);
        }
        let btf = load_btf(&mut object)?;
        let definitions: Vec<_> = object.maps.drain().collect();
        let mut maps = Names::new();
        for (name, map) in &definitions {
            let data =
                MapData::create(map.clone(), name, Some(btf.as_fd())).map_err(|error| cause(&error))?;
            if map.section_kind() == EbpfSectionKind::Rodata {
                bpf_syscall::fill_and_freeze(data.fd().as_fd(), map.data()).map_err(|error| cause(&error))?;
            }
            maps.insert(name.clone(), data);
        }
        Ok(Self { object, btf, definitions, maps })
    }
}

/// Loads the object's BTF, reduced to the features that every kernel since 5.15 supports.
fn load_btf(object: &mut Object) -> Result<OwnedFd, Error> {
    let features = BtfFeatures::new(true, true, true, false, true, false, false, false);
    let btf = object.fixup_and_sanitize_btf(&features).map_err(|error| cause(&error))?;
    let btf = btf.ok_or_else(|| unusable("the BPF object has no BTF"))?;
    bpf_syscall::load_btf(&btf.to_bytes()).map_err(|error| cause(&error))
}

/// Resolves the programs' references to maps and functions.
fn relocate_maps(
    object: &mut Object,
    definitions: &[(String, aya_obj::Map)],
    created: &Names<String, MapData>,
) -> Result<(), Error> {
    let texts: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let maps =
        definitions.iter().map(|(name, map)| (name.as_str(), created[name].fd().as_fd().as_raw_fd(), map));
    object.relocate_maps(maps, &texts).map_err(|error| cause(&error))?;
    object.relocate_calls(&texts).map_err(|error| cause(&error))
}

fn load_program(
    object: &Object,
    name: &str,
    tracepoint: Option<u32>,
    btf: &OwnedFd,
) -> Result<OwnedFd, Error> {
    let tracepoint =
        tracepoint.ok_or_else(|| unusable(format!("the kernel has no tracepoint for {name}")))?;
    let function =
        object.programs.get(name).and_then(|program| object.functions.get(&program.function_key()));
    let function = function.ok_or_else(|| unusable(format!("program {name} is missing")))?;
    let context = ProgramContext { license: &object.license, btf: btf.as_fd() };
    bpf_syscall::load_program(name, function, &context, tracepoint).map_err(|(error, log)| {
        match log.as_str() {
            "" => cause(&error),
            log => unusable(format!("program {name}: {error}: {log}")),
        }
    })
}

fn take_map<T: TryFrom<Map, Error = MapError>>(
    maps: &mut Names<String, MapData>,
    name: &str,
) -> Result<T, Error> {
    let data = maps.remove(name).ok_or_else(|| unusable(format!("map {name} is missing")))?;
    Map::from_map_data(data).and_then(T::try_from).map_err(|error| cause(&error))
}

fn open_ring_buffer(maps: &Names<String, MapData>, bytes: u32) -> Result<RingBuffer, Error> {
    let map = maps.get("events").ok_or_else(|| unusable("map events is missing"))?;
    let ring = map.fd().as_fd().try_clone_to_owned();
    ring.and_then(|ring| RingBuffer::new(ring, bytes as usize)).map_err(|error| cause(&error))
}

/// Duplicates a map's descriptor. Returns None if the process has no free descriptor.
fn duplicate(map: &MapData) -> Option<ProcessMap> {
    let fd = map.fd().as_fd().try_clone_to_owned().ok()?;
    Map::from_map_data(MapData::from_fd(fd).ok()?).and_then(ProcessMap::try_from).ok()
}

impl Loaded {
    /// Returns the map of known libraries. Fails at the second call.
    pub fn take_libraries(&mut self) -> Result<HashMap<MapData, LibraryKey, Library>, Error> {
        self.libraries.take().ok_or_else(|| unusable("map libraries is taken"))
    }

    /// Attaches the program at system calls.
    pub fn attach_calls(&mut self) -> Result<(), Error> {
        if self.calls_link.is_none() {
            self.calls_link = Some(bpf_syscall::attach(self.calls.as_fd()).map_err(|error| cause(&error))?);
        }
        Ok(())
    }

    /// Detaches the program at system calls, which then cost nothing.
    pub fn detach_calls(&mut self) {
        self.calls_link = None;
    }

    /// Starts an RCU grace period, which the kernel waits for before it attaches a program to a tracepoint again
    /// (kernel/tracepoint.c). An idle system may not start one for long. The kernel frees a pipe's inode after a grace period,
    /// so closing a pipe starts one.
    pub fn start_grace_period(&self) {
        let _closed = rustix::pipe::pipe();
    }

    /// Returns a second handle of the map `processes`, for another thread. Returns None at the second call.
    pub fn take_processes_copy(&mut self) -> Option<ProcessMap> {
        self.processes_copy.take()
    }

    /// Adds a process to the traced ones.
    pub fn add_process(&mut self, pid: u32, state: ProcessState) -> Result<(), MapError> {
        self.added_processes.insert(pid);
        self.processes.insert(pid, state, 0)
    }

    /// Deletes a stream's counters.
    pub fn delete_stream(&mut self, key: StreamKey) {
        if self.streams.remove(&key).is_ok() {
            self.deleted_streams += 1;
        }
    }

    /// Returns whether `streams` may have entries. Iterating over the buckets of the empty map takes 100 us.
    pub fn has_streams(&self) -> bool {
        self.sum(shared_types::TALLY_STREAMS).is_none_or(|added| added != self.deleted_streams)
    }

    /// Returns whether `processes` may have entries.
    pub fn has_processes(&self) -> bool {
        let added = self.added_processes.len() as u64;
        self.sum(shared_types::TALLY_PROCESSES).is_none_or(|balance| balance.wrapping_add(added) != 0)
    }

    /// Sums a tally over all CPUs. The value of one CPU is negative if it deleted entries that another one added.
    fn sum(&self, tally: u32) -> Option<u64> {
        let values = self.tallies.get(&tally, 0).ok()?;
        Some(values.iter().fold(0, |sum, &value| sum.wrapping_add(value)))
    }

    /// Returns the number of recorded calls, and of those that name a file.
    pub fn calls_and_path_calls(&self) -> (u64, u64) {
        let sum = |tally| self.sum(tally).unwrap_or(0);
        (sum(shared_types::TALLY_CALLS), sum(shared_types::TALLY_PATH_CALLS))
    }

    pub fn tallies(&self) -> Tallies {
        let sum = |tally| self.sum(tally).unwrap_or(0);
        Tallies {
            calls: sum(shared_types::TALLY_CALLS),
            lost_events: sum(shared_types::TALLY_LOST_EVENTS),
            compat_calls: sum(shared_types::TALLY_COMPAT_CALLS),
            lost_streams: sum(shared_types::TALLY_LOST_STREAMS),
        }
    }
}
