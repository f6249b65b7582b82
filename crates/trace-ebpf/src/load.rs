//! Loads the programs into the kernel, and finds out why when it will not have them.

use std::collections::{HashMap as Names, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use aya_obj::btf::BtfFeatures;
use aya_obj::{EbpfSectionKind, Object};
use weir_sys::Error;

use super::kernel_types::{self, KernelTypes};
use super::wire::{Counts, Library, LibraryKey, ProcessState, StreamKey};
use crate::bpf_syscall::{self, Common};
use crate::ring_buffer::RingBuffer;
use crate::syscall_classes;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// (program, tracepoint, whether it is needed at all). The first, at the exit of system calls, is the one that
/// costs; it comes and goes.
const PROGRAMS: [(&str, &str, bool); 5] = [
    ("on_sys_exit", "sys_exit", true),
    ("on_fork", "sched_process_fork", true),
    ("on_exec", "sched_process_exec", true),
    ("on_exit", "sched_process_exit", true),
    ("before_exec", "sched_prepare_exec", false),
];

/// The oldest that takes all programs that are needed.
const FIRST_KERNEL: (u32, u32) = (6, 16);

/// Room for events, which the kernel fills with zeros: a burst is over before this is full.
const EVENT_BYTES: u32 = 1 << 22;
/// Where every call is looked at, and the reader may be late.
const EVENT_BYTES_EXACT: u32 = 1 << 23;

/// The programs and maps, loaded. Dropped, everything is gone from the kernel.
pub(super) struct Loaded {
    calls: OwnedFd,
    calls_link: Option<OwnedFd>,
    _lives: Vec<OwnedFd>,
    pub events: RingBuffer,
    pub processes: Processes,
    same_processes: Option<Processes>,
    pub streams: HashMap<MapData, StreamKey, Counts>,
    libraries: Option<HashMap<MapData, LibraryKey, Library>>,
    tallies: PerCpuArray<MapData, u64>,
    /// By weir itself: streams that it has taken away, processes that it has put in.
    taken: u64,
    given: HashSet<u32>,
    /// Buffers can be seen at execve(2).
    pub sees_exec: bool,
}

/// What the kernel knows of processes.
pub(super) type Processes = HashMap<MapData, u32, ProcessState>;

/// What the kernel has tallied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tallies {
    pub calls: u64,
    pub lost: u64,
    pub compat: u64,
    pub streams: u64,
}

fn refuse(reason: impl Into<String>) -> Error {
    Error::Backend { backend: "ebpf", reason: reason.into() }
}

/// The innermost cause says what the kernel said.
fn cause(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let refused = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    refuse(match refused {
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel refuses it (EPERM): it needs root, or CAP_BPF and CAP_PERFMON".into()
        }
        _ => format!("{error}: {innermost}"),
    })
}

/// Why a kernel that lets weir load programs takes not all of them: before this one its tracepoint at the end of a thread does
/// not say whether it is the last of its process.
fn of_older_kernel() -> Option<Error> {
    let (major, minor) = kernel_version();
    let older = (major, minor) < FIRST_KERNEL;
    let (first_major, first_minor) = FIRST_KERNEL;
    let reason = format!("it needs Linux {first_major}.{first_minor} or later, and this is {major}.{minor}");
    older.then(|| refuse(reason))
}

/// Major and minor, as uname(2) has them.
fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Loads everything; nothing is attached to the calls yet.
pub(super) fn load(exact: bool) -> Result<Loaded, Error> {
    let event_bytes = if exact { EVENT_BYTES_EXACT } else { EVENT_BYTES };
    let (kernel, prepared) = beside(kernel_types, || Prepared::of(event_bytes));
    let (Prepared { mut object, types, wanted, mut maps }, kernel) = (prepared?, kernel?);
    object.relocate_btf(&kernel.structs).map_err(|error| cause(&error))?;
    relocate_maps(&mut object, &wanted, &maps)?;
    let load_one = |(name, tracepoint, _)| load_program(&object, name, kernel.tracepoint(tracepoint), &types);
    // The kernel takes as long to check the first as all the others.
    let (first, others) = beside(
        || load_one(PROGRAMS[0]),
        || PROGRAMS[1..].iter().map(|&program| load_one(program)).collect::<Vec<_>>(),
    );
    let mut programs = Vec::new();
    for (loaded, (.., needed)) in std::iter::once(first).chain(others).zip(PROGRAMS) {
        match loaded {
            Ok(program) => programs.push(program),
            Err(error) if needed => return Err(of_older_kernel().unwrap_or(error)),
            Err(_) => {}
        }
    }
    let sees_exec = programs.len() == PROGRAMS.len();
    let calls = programs.remove(0);
    let attached: io::Result<_> =
        programs.iter().map(|program| bpf_syscall::attach(program.as_fd())).collect();
    let same_processes = maps.get("processes").and_then(same);
    Ok(Loaded {
        calls,
        calls_link: None,
        _lives: attached.map_err(|error| cause(&error))?,
        events: take_events(&mut maps, event_bytes)?,
        processes: take(&mut maps, "processes")?,
        same_processes,
        streams: take(&mut maps, "streams")?,
        libraries: Some(take(&mut maps, "libraries")?),
        tallies: take(&mut maps, "tallies")?,
        taken: 0,
        given: HashSet::new(),
        sees_exec,
    })
}

/// Does the first on another thread meanwhile.
fn beside<T: Send, U>(one: impl FnOnce() -> T + Send, other: impl FnOnce() -> U) -> (T, U) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

/// A few of the kernel's types: to find them among all takes as long as all that is prepared without them.
fn kernel_types() -> Result<KernelTypes, Error> {
    let tracepoints = PROGRAMS.map(|(_, tracepoint, _)| tracepoint);
    KernelTypes::of_this_kernel(&tracepoints).map_err(|error| {
        refuse(format!("{}: {error}: the kernel needs CONFIG_DEBUG_INFO_BTF", kernel_types::PATH))
    })
}

/// The programs as they were compiled, and their maps in the kernel, which live as long as these.
struct Prepared {
    object: Object,
    types: OwnedFd,
    wanted: Vec<(String, aya_obj::Map)>,
    maps: Names<String, MapData>,
}

impl Prepared {
    fn of(event_bytes: u32) -> Result<Self, Error> {
        let mut object = Object::parse(OBJECT).map_err(|error| cause(&error))?;
        let classes = syscall_classes::table();
        let room = u64::from(event_bytes).to_le_bytes();
        let known = [("classes", (classes.as_slice(), true)), ("event_bytes", (room.as_slice(), true))];
        object.patch_map_data(Names::from(known)).map_err(|error| cause(&error))?;
        if let Some(events) = object.maps.get_mut("events") {
            events.set_max_entries(event_bytes);
        }
        let types = load_types(&mut object)?;
        let wanted: Vec<_> = object.maps.drain().collect();
        let mut maps = Names::new();
        for (name, map) in &wanted {
            let data =
                MapData::create(map.clone(), name, Some(types.as_fd())).map_err(|error| cause(&error))?;
            if map.section_kind() == EbpfSectionKind::Rodata {
                bpf_syscall::fill_and_freeze(data.fd().as_fd(), map.data()).map_err(|error| cause(&error))?;
            }
            maps.insert(name.clone(), data);
        }
        Ok(Self { object, types, wanted, maps })
    }
}

/// What every kernel since 5.15 knows of BTF; the programs need no more.
fn load_types(object: &mut Object) -> Result<OwnedFd, Error> {
    let known = BtfFeatures::new(true, true, true, false, true, false, false, false);
    let types = object.fixup_and_sanitize_btf(&known).map_err(|error| cause(&error))?;
    let types = types.ok_or_else(|| refuse("its programs came without their types"))?;
    bpf_syscall::load_types(&types.to_bytes()).map_err(|error| cause(&error))
}

/// Puts the maps and what they call into the programs.
fn relocate_maps(
    object: &mut Object,
    wanted: &[(String, aya_obj::Map)],
    made: &Names<String, MapData>,
) -> Result<(), Error> {
    let texts: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let numbered = wanted.iter().map(|(name, map)| (name.as_str(), made[name].fd().as_fd().as_raw_fd(), map));
    object.relocate_maps(numbered, &texts).map_err(|error| cause(&error))?;
    object.relocate_calls(&texts).map_err(|error| cause(&error))
}

fn load_program(
    object: &Object,
    name: &str,
    handler: Option<u32>,
    types: &OwnedFd,
) -> Result<OwnedFd, Error> {
    let handler = handler.ok_or_else(|| refuse(format!("the kernel has no tracepoint for {name}")))?;
    let function =
        object.programs.get(name).and_then(|program| object.functions.get(&program.function_key()));
    let function = function.ok_or_else(|| refuse(format!("program {name} is missing")))?;
    let common = Common { license: &object.license, types: types.as_fd() };
    bpf_syscall::load_program(name, function, &common, handler).map_err(|(error, log)| match log.as_str() {
        "" => cause(&error),
        log => refuse(format!("program {name}: {error}: {log}")),
    })
}

fn take<T: TryFrom<Map, Error = MapError>>(
    maps: &mut Names<String, MapData>,
    name: &str,
) -> Result<T, Error> {
    let data = maps.remove(name).ok_or_else(|| refuse(format!("map {name} is missing")))?;
    Map::from_map_data(data).and_then(T::try_from).map_err(|error| cause(&error))
}

fn take_events(maps: &mut Names<String, MapData>, bytes: u32) -> Result<RingBuffer, Error> {
    let map = maps.get("events").ok_or_else(|| refuse("map events is missing"))?;
    let own = map.fd().as_fd().try_clone_to_owned();
    own.and_then(|ring| RingBuffer::of(ring, bytes as usize)).map_err(|error| cause(&error))
}

/// Another handle of a map; None: no more descriptors are to be had.
fn same(map: &MapData) -> Option<Processes> {
    let own = map.fd().as_fd().try_clone_to_owned().ok()?;
    Map::from_map_data(MapData::from_fd(own).ok()?).and_then(Processes::try_from).ok()
}

impl Loaded {
    /// The map of known libraries, once.
    pub fn take_libraries(&mut self) -> Result<HashMap<MapData, LibraryKey, Library>, Error> {
        self.libraries.take().ok_or_else(|| refuse("map libraries is taken"))
    }

    /// Calls are seen from here on.
    pub fn attach_calls(&mut self) -> Result<(), Error> {
        if self.calls_link.is_none() {
            self.calls_link = Some(bpf_syscall::attach(self.calls.as_fd()).map_err(|error| cause(&error))?);
        }
        Ok(())
    }

    /// Calls are no longer seen, and cost nothing.
    pub fn detach_calls(&mut self) {
        self.calls_link = None;
    }

    /// Lets a program back to the tracepoint soon: the kernel does that behind an RCU grace period that begins after
    /// [`Loaded::detach_calls`] (kernel/tracepoint.c), and on an idle system none may for long. The inode of a pipe is freed
    /// behind one, so that closing it has one begin at once.
    pub fn hasten(&self) {
        let _closed = rustix::pipe::pipe();
    }

    /// The same map, for another thread, once.
    pub fn take_same_processes(&mut self) -> Option<Processes> {
        self.same_processes.take()
    }

    /// From here on the kernel follows a process.
    pub fn follow(&mut self, pid: u32, state: ProcessState) -> Result<(), MapError> {
        self.given.insert(pid);
        self.processes.insert(pid, state, 0)
    }

    /// Takes a stream away.
    pub fn forget(&mut self, key: StreamKey) {
        if self.streams.remove(&key).is_ok() {
            self.taken += 1;
        }
    }

    /// Whether there may be streams in their map: to walk through an empty one takes 100 us.
    pub fn holds_streams(&self) -> bool {
        self.sum(5).is_none_or(|held| held != self.taken)
    }

    /// Whether there may be processes that are followed.
    pub fn follows_any(&self) -> bool {
        self.sum(6).is_none_or(|born| born.wrapping_add(self.given.len() as u64) != 0)
    }

    /// Over all CPUs, each of which may have taken away what another has added.
    fn sum(&self, which: u32) -> Option<u64> {
        let values = self.tallies.get(&which, 0).ok()?;
        Some(values.iter().fold(0, |sum, &value| sum.wrapping_add(value)))
    }

    /// All calls seen, and those of them that name a file (open it, remove it …), for whoever asks often.
    pub fn calls_and_opens(&self) -> (u64, u64) {
        (self.sum(0).unwrap_or(0), self.sum(4).unwrap_or(0))
    }

    /// What there is to say of the calls.
    pub fn tallies(&self) -> Tallies {
        let sum = |which| self.sum(which).unwrap_or(0);
        Tallies { calls: sum(0), lost: sum(1), compat: sum(2), streams: sum(3) }
    }
}
