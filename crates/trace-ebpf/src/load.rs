//! Loads the BPF programs and maps, and explains why the kernel refuses them.

use std::collections::{HashMap as Names, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use aya_obj::btf::BtfFeatures;
use aya_obj::{EbpfSectionKind, Object};
use weir_sys::{Error, limits};

use super::attach::{HookChoice, ProgramLoader, attach_all};
use super::blind_spots::Tallies;
use super::hooks::{self, ProgramSettings};
use super::kernel_types::KernelTypes;
use super::shared_types::{self, Library, LibraryKey, ProcessState, StreamCounters, StreamKey};
use crate::bpf_syscall::{self, ProgramContext, ProgramKind};
use crate::btf_types::make_pointer_functions_static;
use crate::ring_buffer::RingBuffer;
use crate::syscall_classes;
use crate::test_settings;

/// A compiled object, for some kernels.
struct ObjectFile {
    bytes: &'static [u8],
    /// Global functions may have pointer arguments (Linux 5.12): the verifier checks them once, and not at each call.
    global_pointers: bool,
}

static OBJECT: ObjectFile = ObjectFile {
    bytes: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o")),
    global_pointers: true,
};
/// The object for kernels whose programs may not allocate the entries of maps (BEFORE_6_1 in bpf/maps.h).
static OBJECT_BEFORE_6_1: ObjectFile = ObjectFile {
    bytes: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace-before-6.1.bpf.o")),
    global_pointers: false,
};

/// Size of the ring buffer. The kernel zeroes it when it is created; a sampling window ends before 4 MiB are full.
const EVENT_BYTES: u32 = 1 << 22;
/// Size of the ring buffer with --exact, where the backend may fall behind for longer.
const EVENT_BYTES_EXACT: u32 = 1 << 23;

/// The loaded programs and maps. Dropping the value removes them from the kernel.
pub(super) struct Loaded {
    calls: OwnedFd,
    calls_link: Option<OwnedFd>,
    /// Programs of the other abilities, attached.
    _links: Vec<OwnedFd>,
    /// A second descriptor of each loaded program, to ask how many of its runs were skipped.
    programs: Vec<OwnedFd>,
    /// Its entry 0 is 1 in a sampling gap, if the program at system calls stays attached in gaps.
    pause: Option<aya::maps::Array<MapData, u32>>,
    pub events: RingBuffer,
    pub processes: ProcessMap,
    processes_copies: Vec<ProcessMap>,
    pub streams: HashMap<MapData, StreamKey, StreamCounters>,
    libraries: Option<HashMap<MapData, LibraryKey, Library>>,
    tallies: PerCpuArray<MapData, u64>,
    /// Entries that weir has deleted from `streams`.
    deleted_streams: u64,
    /// Entries that weir has added to `processes`.
    added_processes: HashSet<u32>,
    /// Phrases for the report: what the hooks of this kernel do not show.
    pub losses: Vec<&'static str>,
    /// The hook of each ability.
    pub hooks: Vec<HookChoice>,
}

/// The map of traced processes.
pub(super) type ProcessMap = HashMap<MapData, u32, ProcessState>;

/// Handles of the map of traced processes for the tracer thread: for a command's start, and for the end of Go programs.
const PROCESSES_COPIES: usize = 2;

/// The reason if the kernel refuses all programs.
pub(super) const NO_PERMISSION: &str =
    "the kernel refuses it (EPERM): it needs root, or CAP_BPF and CAP_PERFMON";

/// The first PID namespace, which BPF programs number processes by (PROC_PID_INIT_INO in the kernel's linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
const PID_NAMESPACE: &str = "weir runs in a PID namespace of its own, as in a container, and the kernel counts processes by their PIDs \
     outside; start weir outside, or the container with --pid=host";

pub(super) fn unusable(reason: impl Into<String>) -> Error {
    Error::Backend { backend: "ebpf", reason: reason.into() }
}

/// Converts an error to its innermost cause, which is the kernel's.
fn cause(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let system = innermost.downcast_ref::<io::Error>();
    unusable(match system.and_then(io::Error::raw_os_error) {
        Some(libc::EPERM | libc::EACCES) => NO_PERMISSION.into(),
        _ => format!("{error}: {innermost}{}", system.map_or("", limits::advice)),
    })
}

/// Loads everything and attaches all programs except the one at system calls. `btf`: the file with the kernel's BTF.
pub(super) fn load(exact: bool, btf: Option<&Path>) -> Result<Loaded, Error> {
    // In another namespace the programs would find none of the processes that weir names.
    if std::fs::read_link("/proc/self/ns/pid").is_ok_and(|space| space.as_os_str() != FIRST_PID_NAMESPACE) {
        return Err(unusable(PID_NAMESPACE));
    }
    let event_bytes = if exact { EVENT_BYTES_EXACT } else { EVENT_BYTES };
    let (kernel, prepared) = in_parallel(|| kernel_types(btf), || PreparedObject::new(&OBJECT, event_bytes));
    let (kernel, mut prepared) = (kernel?, prepared?);
    if !kernel.allocates_entries || test_settings::takes_old_object() {
        drop(prepared);
        prepared = PreparedObject::new(&OBJECT_BEFORE_6_1, event_bytes)?;
    }
    let settings = ProgramSettings::of(&kernel);
    prepared.object.relocate_btf(&kernel.structs).map_err(|error| cause(&error))?;
    prepared.finish(settings)?;
    let attached = attach_all(&ProgramLoader { prepared: &prepared, kernel: &kernel, settings })?;
    let mut maps = prepared.maps;
    let copies = std::iter::repeat_with(|| maps.get("processes").and_then(duplicate));
    let processes_copies = copies.take(PROCESSES_COPIES).flatten().collect();
    let pause = if settings.pauses_by_flag { Some(take_map(&mut maps, "sampling")?) } else { None };
    Ok(Loaded {
        calls: attached.calls,
        programs: attached.programs,
        calls_link: None,
        _links: attached.links,
        pause,
        events: open_ring_buffer(&maps, event_bytes)?,
        processes: take_map(&mut maps, "processes")?,
        processes_copies,
        streams: take_map(&mut maps, "streams")?,
        libraries: Some(take_map(&mut maps, "libraries")?),
        tallies: take_map(&mut maps, "tallies")?,
        deleted_streams: 0,
        added_processes: HashSet::new(),
        losses: attached.losses,
        hooks: attached.hooks,
    })
}

/// Runs `one` on a new thread and `other` on this one; both on this one if no thread can be started.
pub(super) fn in_parallel<T: Send, U>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> U) -> (T, U) {
    let one = &Mutex::new(Some(one));
    let run_one = || one.lock().unwrap_or_else(PoisonError::into_inner).take().map(|one| one());
    let (first, other) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run_one).ok();
        let other = other();
        let join = |thread: ScopedJoinHandle<'_, Option<T>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (thread.map_or_else(run_one, join), other)
    });
    (first.expect("it runs once"), other)
}

fn kernel_types(btf: Option<&Path>) -> Result<KernelTypes, Error> {
    let (tracepoints, functions) = (hooks::tracepoints(), hooks::functions());
    let needs_functions =
        |kernel: &KernelTypes| ProgramSettings::of(kernel).pauses_by_flag || kernel.preemptible_tracepoints;
    KernelTypes::of_this_kernel(btf, &tracepoints, &functions, needs_functions)
        .map_err(|error| unusable(format!("the kernel's BTF: {error}")))
}

/// The compiled object, and its maps in the kernel.
pub(super) struct PreparedObject {
    pub object: Object,
    /// The object's own BTF, loaded.
    pub btf: OwnedFd,
    maps: Names<String, MapData>,
}

impl PreparedObject {
    /// Parses the object, sets its constants, and creates its maps.
    fn new(file: &ObjectFile, event_bytes: u32) -> Result<Self, Error> {
        let mut object = Object::parse(file.bytes).map_err(|error| cause(&error))?;
        let classes = syscall_classes::table();
        let ring_bytes = u64::from(event_bytes).to_le_bytes();
        let constants =
            [("classes", (classes.as_slice(), true)), ("event_bytes", (ring_bytes.as_slice(), true))];
        object.patch_map_data(Names::from(constants)).map_err(|error| cause(&error))?;
        if let Some(events) = object.maps.get_mut("events") {
            events.set_max_entries(event_bytes);
        }
        let btf = load_btf(&mut object, file.global_pointers)?;
        let mut maps = Names::new();
        for (name, map) in &object.maps {
            let data =
                MapData::create(map.clone(), name, Some(btf.as_fd())).map_err(|error| cause(&error))?;
            maps.insert(name.clone(), data);
        }
        Ok(Self { object, btf, maps })
    }

    /// Sets the constants that depend on the kernel, and resolves the programs' references to maps.
    fn finish(&mut self, settings: ProgramSettings) -> Result<(), Error> {
        let flags = [settings.preemptible, settings.pauses_by_flag].map(|flag| u32::from(flag).to_le_bytes());
        let constants =
            [("preemptible", (flags[0].as_slice(), true)), ("pauses_by_flag", (flags[1].as_slice(), true))];
        self.object.patch_map_data(Names::from(constants)).map_err(|error| cause(&error))?;
        let definitions: Vec<_> = self.object.maps.drain().collect();
        for (name, map) in &definitions {
            if map.section_kind() == EbpfSectionKind::Rodata {
                let fd = self.maps[name].fd().as_fd();
                bpf_syscall::fill_and_freeze(fd, map.data()).map_err(|error| cause(&error))?;
            }
        }
        relocate_maps(&mut self.object, &definitions, &self.maps)
    }
}

/// Loads the object's BTF, reduced to the features that every kernel since 5.10 supports.
fn load_btf(object: &mut Object, global_pointers: bool) -> Result<OwnedFd, Error> {
    let features = BtfFeatures::new(true, true, true, false, true, false, false, false);
    let btf = object.fixup_and_sanitize_btf(&features).map_err(|error| cause(&error))?;
    let btf = btf.ok_or_else(|| unusable("the BPF object has no BTF"))?;
    let mut bytes = btf.to_bytes();
    if !global_pointers {
        make_pointer_functions_static(&mut bytes);
    }
    bpf_syscall::load_btf(&bytes).map_err(|error| cause(&error))
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

/// Loads a program. `preemption`: the BTF numbers of the kernel's functions that disable and enable preemption; without them the
/// program's calls of them become no operations.
pub(super) fn load_program(
    prepared: &PreparedObject,
    name: &str,
    kind: ProgramKind,
    preemption: Option<[u32; 2]>,
) -> Result<OwnedFd, Error> {
    let object = &prepared.object;
    let function =
        object.programs.get(name).and_then(|program| object.functions.get(&program.function_key()));
    let mut function = function.ok_or_else(|| unusable(format!("program {name} is missing")))?.clone();
    bpf_syscall::resolve_kernel_calls(
        &mut function.instructions,
        &hooks::PREEMPTION.map(|(call, _)| call),
        preemption,
    );
    let context = ProgramContext { license: &object.license, btf: prepared.btf.as_fd() };
    bpf_syscall::load_program(name, &function, &context, kind).map_err(|(error, log)| match log.as_str() {
        "" => cause(&error),
        log => unusable(format!("program {name}: {error}: {log}")),
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

    /// Attaches the program at system calls, or ends a sampling gap in which it stayed attached.
    pub fn attach_calls(&mut self) -> Result<(), Error> {
        self.reattach_calls().map_err(|error| cause(&error))
    }

    /// As [`Self::attach_calls`], with the error of the system call.
    pub fn reattach_calls(&mut self) -> io::Result<()> {
        self.pause(false);
        if self.calls_link.is_none() {
            self.calls_link = Some(bpf_syscall::attach(self.calls.as_fd())?);
        }
        Ok(())
    }

    /// Detaches the program at system calls, which then cost nothing.
    pub fn detach_calls(&mut self) {
        self.calls_link = None;
    }

    /// Begins a sampling gap: detaches the program at system calls, or has it return at once ([`ProgramSettings`]).
    pub fn pause_calls(&mut self) {
        if !self.pause(true) {
            self.detach_calls();
            self.start_grace_period();
        }
    }

    /// Sets whether the program at system calls returns at once. Returns false if it is detached for that instead.
    fn pause(&mut self, paused: bool) -> bool {
        let set = |map: &mut aya::maps::Array<MapData, u32>| map.set(0, u32::from(paused), 0).is_ok();
        self.pause.as_mut().is_some_and(set)
    }

    /// Starts an RCU grace period, which the kernel waits for before it attaches a program to a tracepoint again
    /// (kernel/tracepoint.c). An idle system may not start one for long. The kernel frees a pipe's inode after a grace period,
    /// so closing a pipe starts one.
    fn start_grace_period(&self) {
        let _closed = rustix::pipe::pipe();
    }

    /// Returns another handle of the map `processes`, for another thread. Returns None after [`PROCESSES_COPIES`] calls.
    pub fn take_processes_copy(&mut self) -> Option<ProcessMap> {
        self.processes_copies.pop()
    }

    /// Adds a process to the traced ones.
    pub fn add_process(&mut self, pid: u32, state: ProcessState) -> Result<(), MapError> {
        self.added_processes.insert(pid);
        self.processes.insert(pid, state, 0)
    }

    /// Removes a process from the traced ones.
    pub fn remove_process(&mut self, pid: u32) {
        let _unknown = self.processes.remove(&pid);
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
            lost_processes: sum(shared_types::TALLY_LOST_PROCESSES),
            unknown_bytes: sum(shared_types::TALLY_UNKNOWN_BYTES),
            cut_walks: sum(shared_types::TALLY_CUT_WALKS),
            skipped_runs: self
                .programs
                .iter()
                .map(|program| bpf_syscall::skipped_runs(program.as_fd()))
                .sum(),
        }
    }
}
