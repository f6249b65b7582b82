//! The /proc backend: samples processes through /proc, and needs no right but to read it.
//!
//! It records the start and end of processes, their totals, and how far file offsets have moved, but no single call.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use weir_model::trace::{BackendKind, Exit, IoTotals, SnapshotMoment, StreamCounts};
use weir_sys::Error;
use weir_sys::clock::now_ns;
use weir_sys::launch::reap;
use weir_sys::open_files::{FdInfo, direction_of, fdinfo};
use weir_sys::proc::{self, ResourceUsage};
use weir_trace_api::{
    BackendReport, BufferSnapshots, DeferredCleanup, EventSink, RawCounts, RawEvent, RawEventKind,
    TraceBackend, TraceHooks, TraceOptions, TraceRoot,
};

/// Between looks.
const EVERY: Duration = Duration::from_millis(50);

/// One process, as it was at the last look.
struct Known {
    exe: String,
    began_ns: u64,
    /// What was counted before it was watched.
    before: IoTotals,
    totals: IoTotals,
    times: (u64, u64),
    /// Where its files stood.
    positions: HashMap<i32, Position>,
}

#[derive(Clone, PartialEq)]
struct Position {
    path: String,
    flags: i32,
    at: u64,
}

struct Sampler<'s, 'c> {
    sink: &'s mut EventSink<'c>,
    snapshots: &'s mut dyn BufferSnapshots,
    known: HashMap<u32, Known>,
    ended: BackendReport,
    blind: BTreeSet<String>,
}

/// The backend.
#[derive(Debug, Default)]
pub struct ProcBackend {
    root: Option<TraceRoot>,
}

impl TraceBackend for ProcBackend {
    fn probe(_options: &TraceOptions) -> Result<Self, Error> {
        Ok(Self::default())
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Sample
    }

    fn attach(&mut self, root: TraceRoot) -> Result<(), Error> {
        self.root = Some(root);
        Ok(())
    }

    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error> {
        let missing = || Error::Backend { backend: "sample", reason: "there is nothing to trace".into() };
        sample(self.root.take().ok_or_else(missing)?, options, hooks)
    }

    fn detach(self: Box<Self>) -> DeferredCleanup {
        DeferredCleanup::default()
    }
}

/// Looks until the target has ended, the time is over or weir is to stop.
fn sample(
    target: TraceRoot,
    options: &TraceOptions,
    hooks: TraceHooks<'_, '_>,
) -> Result<BackendReport, Error> {
    let TraceHooks { sink, snapshots, tick } = hooks;
    let (root, began) = (target.pid(), now_ns());
    let ours = matches!(target, TraceRoot::Command(_));
    if let TraceRoot::Command(gated) = target {
        gated.release()?;
    }
    if proc::io(root).is_none() {
        let source =
            std::io::Error::from_raw_os_error(if proc::exists(root) { libc::EACCES } else { libc::ESRCH });
        return Err(Error::Process { call: "read of /proc/PID/io", pid: root, source });
    }
    let mut sampler =
        Sampler { sink, snapshots, known: HashMap::new(), ended: BackendReport::default(), blind: blind() };
    sampler.begin(root, None, now_ns(), ours);
    loop {
        let now = now_ns();
        let exit = if ours { ended_child(root) } else { None };
        if exit.is_some() || (!ours && !lives(root)) {
            sampler.leave(root, exit, now);
            if ours {
                reap(root);
            }
            break;
        }
        sampler.round(root, now);
        tick(now, sampler.sink);
        let stopped = !ours && options.stop.load(std::sync::atomic::Ordering::Relaxed);
        if stopped || options.limit.is_some_and(|limit| now - began >= limit.as_nanos() as u64) {
            break;
        }
        std::thread::sleep(EVERY);
    }
    Ok(sampler.finish(now_ns()))
}

fn blind() -> BTreeSet<String> {
    let all = [
        "single calls, their sizes, order and errors: only totals and positions of files were looked at",
        "processes that lived for less than 50 ms, and what was done in the last 50 ms of each",
        "which of pipes, sockets and terminals the bytes of a process went to",
    ];
    all.map(str::to_string).into()
}

/// How a child of weir's ended, if it has. It stays a zombie, to be looked at.
fn ended_child(pid: u32) -> Option<Exit> {
    // SAFETY: zero is a valid siginfo_t; the call fills it, and si_pid and si_status are set by it for a child.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let known = libc::waitid(libc::P_PID, pid, &mut info, flags) == 0 && info.si_pid() as u32 == pid;
        known.then(|| match info.si_code {
            libc::CLD_EXITED => Exit::Code(info.si_status()),
            _ => Exit::Signal(info.si_status()),
        })
    }
}

fn lives(pid: u32) -> bool {
    proc::status(pid).is_some_and(|status| !status.state.starts_with(['Z', 'X']))
}

impl Sampler<'_, '_> {
    fn tell(&mut self, ns: u64, pid: u32, kind: RawEventKind) {
        (self.sink)(RawEvent { ns, pid, tid: pid, kind });
    }

    /// A process that is seen for the first time.
    fn begin(&mut self, pid: u32, parent: Option<u32>, now: u64, from_its_start: bool) {
        let (exe, comm, argv) = proc::names(pid);
        let before = if from_its_start { IoTotals::default() } else { proc::io(pid).unwrap_or_default() };
        match parent {
            Some(parent) => self.tell(now, parent, RawEventKind::Fork { child: pid, shares_files: false }),
            None => self.tell(now, pid, RawEventKind::Begin),
        }
        self.tell(now, pid, RawEventKind::Totals(IoTotals::default()));
        if from_its_start
            && parent.and_then(|parent| self.known.get(&parent)).is_none_or(|known| known.exe != exe)
        {
            self.tell(now, pid, RawEventKind::Exec { exe: exe.clone(), comm, argv });
        }
        let known = Known {
            exe,
            began_ns: now,
            before,
            totals: IoTotals::default(),
            times: (0, 0),
            positions: positions(pid),
        };
        self.known.insert(pid, known);
    }

    /// Looks at the root and all below it.
    fn round(&mut self, root: u32, now: u64) {
        let mut seen = BTreeSet::new();
        let mut next = vec![root];
        while let Some(pid) = next.pop() {
            if !seen.insert(pid) || !lives(pid) {
                continue;
            }
            self.look_at(pid, now);
            for child in proc::children(pid) {
                if !self.known.contains_key(&child) && lives(child) {
                    self.begin(child, Some(pid), now, true);
                }
                next.push(child);
            }
        }
        // The root's end is the caller's to see: it may know how.
        let gone: Vec<u32> = self.known.keys().copied().filter(|pid| *pid != root && !lives(*pid)).collect();
        for pid in gone {
            self.leave(pid, None, now);
        }
    }

    fn look_at(&mut self, pid: u32, now: u64) {
        let (exe, comm, argv) = proc::names(pid);
        let Some(known) = self.known.get_mut(&pid) else { return };
        // Its threads' own counts, and those of children that it has waited for: nobody tells them apart here.
        known.totals = proc::io(pid).map_or(known.totals, |io| io.since(known.before));
        known.times = proc::cpu_times_ns(pid).unwrap_or(known.times);
        let (totals, changed) = (known.totals, !exe.is_empty() && known.exe != exe);
        if changed {
            known.exe = exe.clone();
            self.tell(now, pid, RawEventKind::Exec { exe, comm, argv });
        }
        self.tell(now, pid, RawEventKind::Totals(totals));
        self.follow_positions(pid, now);
        let buffers = self.snapshots.snapshot(pid, SnapshotMoment::Sample);
        if !buffers.is_empty() {
            let waits_in = proc::current_syscall(pid);
            self.tell(now, pid, RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, waits_in));
        }
    }

    /// Says how far each file has moved since the last look.
    fn follow_positions(&mut self, pid: u32, now: u64) {
        let Some(known) = self.known.get_mut(&pid) else { return };
        let (before, after) = (std::mem::take(&mut known.positions), positions(pid));
        let since = now.saturating_sub(EVERY.as_nanos() as u64);
        let counts: Vec<RawCounts> = after
            .iter()
            .filter_map(|(fd, position)| {
                let last = before.get(fd).filter(|last| last.path == position.path)?;
                let counts = moved(pid, *fd, position, last.at)?;
                Some(RawCounts {
                    counts,
                    first_ns: since,
                    last_ns: now,
                    unreported_seeks: 0,
                    last_unreported_seek: None,
                })
            })
            .collect();
        known.positions = after;
        for each in counts {
            self.tell(now, pid, RawEventKind::Counts(Box::new(each)));
        }
    }

    fn leave(&mut self, pid: u32, exit: Option<Exit>, now: u64) {
        let Some(mut known) = self.known.remove(&pid) else { return };
        // A zombie still has its counts.
        known.totals = proc::io(pid).map_or(known.totals, |io| io.since(known.before));
        known.times = proc::cpu_times_ns(pid).unwrap_or(known.times);
        self.unwatched(pid, &known, now);
        let (user_ns, system_ns) = known.times;
        let usage = ResourceUsage { user_ns, system_ns, ..ResourceUsage::default() };
        match exit {
            Some(exit) => {
                self.ended.exit = Some(exit);
                self.tell(now, pid, RawEventKind::Exit { exit, io: Some(known.totals), usage });
            }
            None => {
                self.blind.insert("how processes ended that weir did not start itself".to_string());
            }
        }
    }

    fn unwatched(&mut self, pid: u32, known: &Known, now: u64) {
        self.ended.gap_ns += now.saturating_sub(known.began_ns);
        self.tell(known.began_ns, pid, RawEventKind::Gap { until_ns: now });
        self.tell(now, pid, RawEventKind::Totals(known.totals));
    }

    fn finish(mut self, now: u64) -> BackendReport {
        for (pid, known) in std::mem::take(&mut self.known) {
            self.unwatched(pid, &known, now);
        }
        self.ended.blind_spots = self.blind.into_iter().collect();
        self.ended
    }
}

/// Where the descriptors of files stand.
fn positions(pid: u32) -> HashMap<i32, Position> {
    let of = |fd: i32| {
        let path = proc::descriptor(pid, fd)?;
        let FdInfo { position: at, flags, .. } = fdinfo(pid, fd)?;
        Some((fd, Position { path, flags, at }))
    };
    let files = |position: &(i32, Position)| position.1.path.starts_with('/');
    proc::descriptors(pid).into_iter().filter_map(of).filter(files).collect()
}

/// Bytes between two positions, of a descriptor that goes one way only. How many calls is not known,
/// and said as none; nor is what went after the last look.
fn moved(pid: u32, fd: i32, now: &Position, before: u64) -> Option<StreamCounts> {
    let bytes = now.at.checked_sub(before).filter(|bytes| *bytes > 0)?;
    Some(StreamCounts {
        bytes,
        exact: false,
        estimated: true,
        ..StreamCounts::new(pid, 0, fd, 0, direction_of(now.flags)?)
    })
}
