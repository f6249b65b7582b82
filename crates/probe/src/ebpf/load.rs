//! Loads the programs into the kernel, and finds out why when it will not have them.

use std::io;

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf, EbpfLoader};

use super::classes;
use super::wire::{Counts, Library, LibraryKey, ProcessState, StreamKey};
use crate::Error;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// Its program at the exit of system calls is the one that costs; it comes and goes.
const CALLS: &str = "on_sys_exit";
/// (program, tracepoint, since which kernel it is useful; 0: always needed)
const LIVES: &[(&str, &str, bool)] = &[
    ("on_fork", "sched_process_fork", true),
    ("on_exec", "sched_process_exec", true),
    ("on_exit", "sched_process_exit", true),
    ("before_exec", "sched_prepare_exec", false),
];

/// The programs and maps, loaded. Dropped, everything is gone from the kernel.
pub(super) struct Loaded {
    ebpf: Ebpf,
    calls: Option<BtfTracePointLinkId>,
    pub events: RingBuf<MapData>,
    pub processes: HashMap<MapData, u32, ProcessState>,
    pub streams: HashMap<MapData, StreamKey, Counts>,
    libraries: Option<HashMap<MapData, LibraryKey, Library>>,
    tallies: PerCpuArray<MapData, u64>,
    /// Buffers can be seen at execve(2).
    pub sees_exec: bool,
}

/// What the kernel has tallied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tallies {
    pub calls: u64,
    pub lost: u64,
    pub compat: u64,
    pub streams: u64,
}

fn refuse(reason: impl Into<String>) -> Error {
    Error::Engine { engine: "ebpf", reason: reason.into() }
}

/// The innermost cause says what the kernel said.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let refused = innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    match refused {
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel refuses it (EPERM): it needs root, or CAP_BPF and CAP_PERFMON".into()
        }
        _ => format!("{error}: {innermost}"),
    }
}

fn take<T: TryFrom<aya::maps::Map, Error = aya::maps::MapError>>(
    ebpf: &mut Ebpf,
    name: &str,
) -> Result<T, Error> {
    let map = ebpf.take_map(name).ok_or_else(|| refuse(format!("map {name} is missing")))?;
    T::try_from(map).map_err(|error| refuse(cause(&error)))
}

/// Loads everything; nothing is attached to the calls yet.
pub(super) fn load() -> Result<Loaded, Error> {
    let btf = Btf::from_sys_fs().map_err(|error| {
        refuse(format!("/sys/kernel/btf/vmlinux: {}: the kernel needs CONFIG_DEBUG_INFO_BTF", cause(&error)))
    })?;
    let classes = classes::table();
    let mut ebpf = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("classes", &classes, true)
        .load(OBJECT)
        .map_err(|error| refuse(cause(&error)))?;
    program(&mut ebpf, CALLS)?.load("sys_exit", &btf).map_err(|error| refuse(cause(&error)))?;
    let mut sees_exec = true;
    for &(name, tracepoint, needed) in LIVES {
        let program = program(&mut ebpf, name)?;
        let attached = program.load(tracepoint, &btf).and_then(|()| program.attach().map(drop));
        match attached {
            Ok(()) => {}
            Err(error) if needed => return Err(refuse(cause(&error))),
            Err(_) => sees_exec = false,
        }
    }
    Ok(Loaded {
        calls: None,
        events: take(&mut ebpf, "events")?,
        processes: take(&mut ebpf, "processes")?,
        streams: take(&mut ebpf, "streams")?,
        libraries: Some(take(&mut ebpf, "libraries")?),
        tallies: take(&mut ebpf, "tallies")?,
        ebpf,
        sees_exec,
    })
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, Error> {
    let program = ebpf.program_mut(name).ok_or_else(|| refuse(format!("program {name} is missing")))?;
    program.try_into().map_err(|error: aya::programs::ProgramError| refuse(cause(&error)))
}

impl Loaded {
    /// The map of known libraries, once.
    pub fn take_libraries(&mut self) -> Result<HashMap<MapData, LibraryKey, Library>, Error> {
        self.libraries.take().ok_or_else(|| refuse("map libraries is taken"))
    }

    /// Calls are seen from here on.
    pub fn attach_calls(&mut self) -> Result<(), Error> {
        if self.calls.is_none() {
            let link = program(&mut self.ebpf, CALLS)?.attach().map_err(|error| refuse(cause(&error)))?;
            self.calls = Some(link);
        }
        Ok(())
    }

    /// Calls are no longer seen, and cost nothing.
    pub fn detach_calls(&mut self) -> Result<(), Error> {
        if let Some(link) = self.calls.take() {
            program(&mut self.ebpf, CALLS)?.detach(link).map_err(|error| refuse(cause(&error)))?;
        }
        Ok(())
    }

    /// Sums over all CPUs.
    pub fn tallies(&self) -> Tallies {
        let sum = |which| self.tallies.get(&which, 0).map_or(0, |values| values.iter().sum());
        Tallies { calls: sum(0), lost: sum(1), compat: sum(2), streams: sum(3) }
    }
}
