//! One look into a process: what is in its buffers, since when, and what it is doing.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use weir_model::StreamKind;
use weir_model::peek::{MainThreadState, Peek, PeekStream, PipePeer, escaped};
use weir_model::trace::Buffer;
use weir_sys::memory::ProcessMemory;
use weir_sys::open_files::{fdinfo, kind_at};
use weir_sys::proc::{self, ThreadState};
use weir_sys::process_access::{self, AccessProblem};
use weir_sys::syscalls;
use weir_walkers::{PendingBytes, Walker, walkers, walkers_missing};

/// Between two looks, where the first cannot tell since when bytes wait.
const BETWEEN: Duration = Duration::from_millis(200);
/// How often a process that runs is looked at, and the pauses between.
const LOOKS: usize = 8;
const BETWEEN_LOOKS: Duration = Duration::from_micros(700);
/// What a preview has when not all bytes are asked for.
const PREVIEW_BYTES: usize = 256;

/// Looks; `full`: with all bytes that wait.
pub fn peek(pid: u32, full: bool) -> Result<Peek, AccessProblem> {
    process_access::check(pid)?;
    let look = Look::until_steady(pid);
    let idle = idle_s(pid);
    let (_, comm, command) = proc::names(pid);
    let mut streams: Vec<PeekStream> = look.streams(pid, full);
    let since = match idle {
        Some(idle) if idle >= BETWEEN.as_secs_f64() => Some(idle),
        _ => None,
    };
    let waits = |one: &PeekStream| one.pending_bytes > 0;
    if since.is_none() && streams.iter().any(waits) {
        look.wait_and_compare(pid, &mut streams);
    } else {
        streams.iter_mut().filter(|one| waits(one)).for_each(|one| one.since_s = since);
    }
    process_access::check(pid)?;
    Ok(Peek {
        pid,
        comm,
        command,
        threads: proc::threads(pid).len() as u64,
        state: state(pid),
        idle_s: idle,
        streams,
        unseen: walkers_missing(pid),
    })
}

struct Look {
    walkers: Vec<Box<dyn Walker>>,
    memory: ProcessMemory,
    buffers: Vec<Buffer>,
    pending: Vec<PendingBytes>,
    written: Option<u64>,
}

impl Look {
    /// A stream that changes while it is read is not believed: a process that runs, and in which nothing seems to
    /// wait, is looked at again.
    fn until_steady(pid: u32) -> Look {
        let mut look = Look::at(pid, walkers(pid));
        for _ in 1..LOOKS {
            if !look.pending.is_empty() || !proc::is_running(pid) {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
            look = Look::at(pid, look.walkers);
        }
        look
    }

    fn at(pid: u32, walkers: Vec<Box<dyn Walker>>) -> Look {
        let memory = ProcessMemory { pid };
        let written = writes(pid);
        let buffers = walkers.iter().flat_map(|walker| walker.buffers(&memory)).collect();
        let pending = walkers.iter().flat_map(|walker| walker.pending(&memory)).collect();
        Look { walkers, memory, buffers, pending, written }
    }

    fn streams(&self, pid: u32, full: bool) -> Vec<PeekStream> {
        let ends = Ends::of(pid, &self.buffers);
        let mut found: Vec<PeekStream> =
            self.buffers.iter().map(|one| self.stream(pid, one, full, &ends)).collect();
        let place = |fd: i32| self.pending.iter().position(|one| one.fd == fd).unwrap_or(usize::MAX);
        found.sort_by_key(|one| (place(one.fd), one.fd));
        found
    }

    fn stream(&self, pid: u32, one: &Buffer, full: bool, ends: &Ends) -> PeekStream {
        let pending = self.pending.iter().find(|all| all.stream == one.address && all.fd == one.fd);
        let all = pending.map_or(one.pending.as_slice(), |pending| &pending.bytes);
        let shown = match (one.pending_bytes, full) {
            (0, _) => one.unread.as_slice(),
            (_, true) => all,
            (_, false) => &all[..all.len().min(PREVIEW_BYTES)],
        };
        let path = proc::descriptor(pid, one.fd).unwrap_or_default();
        PeekStream {
            walker: one.walker,
            fd: one.fd,
            kind: kind(pid, one.fd),
            peers: ends.peers(pid, &path),
            path,
            mode: one.mode,
            buffer_bytes: one.buffer_bytes,
            pending_bytes: one.pending_bytes,
            since_s: None,
            unread_bytes: one.unread_bytes,
            locked: pending.and_then(|pending| pending.locked),
            can_be_flushed: pending.is_some_and(|pending| !pending.drain_stores.is_empty()),
            preview: escaped(shown),
            preview_bytes: shown.len() as u64,
        }
    }

    /// What is there still, with no write of the process in between, has waited at least so long.
    fn wait_and_compare(&self, pid: u32, streams: &mut [PeekStream]) {
        std::thread::sleep(BETWEEN);
        let again: Vec<Buffer> =
            self.walkers.iter().flat_map(|walker| walker.buffers(&self.memory)).collect();
        if self.written.is_none() || writes(pid) != self.written {
            return;
        }
        for stream in streams {
            let before = self.buffers.iter().find(|one| one.fd == stream.fd && one.walker == stream.walker);
            let same = |before: &Buffer| {
                let after = again.iter().find(|one| one.address == before.address && one.fd == before.fd);
                after.is_some_and(|after| after.pending.starts_with(&before.pending))
            };
            if stream.pending_bytes > 0 && before.is_some_and(same) {
                stream.since_s = Some(BETWEEN.as_secs_f64());
            }
        }
    }
}

/// Calls that wrote, as the kernel counts them.
fn writes(pid: u32) -> Option<u64> {
    proc::io(pid).map(|io| io.write_calls)
}

fn state(pid: u32) -> MainThreadState {
    if proc::status(pid).is_some_and(|status| status.state.starts_with(['T', 't'])) {
        return MainThreadState::Stopped;
    }
    match proc::thread_state(pid) {
        ThreadState::Running => MainThreadState::Running,
        ThreadState::Waiting { number, args } => {
            let op = syscalls::op(number);
            let name = match number {
                libc::SYS_restart_syscall => restarted(pid),
                _ => syscalls::name(number),
            };
            let fd = op.and_then(|op| syscalls::descriptor(op, &args));
            MainThreadState::Asleep { call: name.unwrap_or_default().to_string(), fd }
        }
        ThreadState::Unknown => MainThreadState::Asleep { call: String::new(), fd: None },
    }
}

/// A call that was stopped goes on under another name; where in the kernel it is tells its own.
fn restarted(pid: u32) -> Option<&'static str> {
    let place = fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
    ["nanosleep", "poll", "futex"].into_iter().find(|name| place.contains(name))
}

/// Since when no thread of it has run: the scheduler notes when it last did, by a clock of the processor that it
/// ran on. What that clock says now weir reads in its own entry, on the same processor. These clocks leave out time
/// that the processor was not the machine's own, so it is so long at least.
fn idle_s(pid: u32) -> Option<f64> {
    if proc::is_running(pid) {
        return None;
    }
    let threads = proc::threads(pid);
    let own = sched_getaffinity(None).ok()?;
    let idle: Option<Vec<f64>> = threads.iter().map(|tid| thread_idle_ms(pid, *tid)).collect();
    let _unchanged = sched_setaffinity(None, &own);
    idle?.into_iter().reduce(f64::min).map(|idle| idle / 1e3)
}

fn thread_idle_ms(pid: u32, tid: u32) -> Option<f64> {
    let mut its = CpuSet::new();
    its.set(proc::last_processor(tid)?);
    sched_setaffinity(None, &its).ok()?;
    let now = last_ran_ms("thread-self")?;
    Some((now - last_ran_ms(&format!("{pid}/task/{tid}"))?).max(0.0))
}

fn last_ran_ms(thread: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{thread}/sched")).ok()?;
    let line = text.lines().find(|line| line.starts_with("se.exec_start"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn kind(pid: u32, fd: i32) -> StreamKind {
    let Ok(status) = rustix::fs::stat(format!("/proc/{pid}/fd/{fd}")) else { return StreamKind::Other };
    kind_at(&proc::descriptor(pid, fd).unwrap_or_default(), status.st_mode)
}

/// Who has the pipes open that a process writes to or reads from.
struct Ends(HashMap<String, Vec<(u32, bool)>>);

impl Ends {
    fn of(pid: u32, buffers: &[Buffer]) -> Ends {
        let pipes = buffers.iter().filter_map(|one| proc::descriptor(pid, one.fd));
        let mut ends: HashMap<String, Vec<(u32, bool)>> =
            pipes.filter(|path| path.starts_with("pipe:")).map(|path| (path, Vec::new())).collect();
        let others = if ends.is_empty() { Vec::new() } else { proc::numbers("/proc") };
        for other in others {
            for fd in proc::numbers(&format!("/proc/{other}/fd")) {
                let Some(path) = proc::descriptor(other, fd as i32) else { continue };
                if let Some(end) = ends.get_mut(&path) {
                    end.push((other, writes_to(other, fd)));
                }
            }
        }
        Ends(ends)
    }

    /// The readers of what it writes, or the writers of what it reads.
    fn peers(&self, pid: u32, path: &str) -> Vec<PipePeer> {
        let Some(all) = self.0.get(path) else { return Vec::new() };
        let own = all.iter().filter(|end| end.0 == pid).any(|end| end.1);
        let mut pids: Vec<u32> =
            all.iter().filter(|end| end.1 != own && end.0 != pid).map(|end| end.0).collect();
        pids.dedup();
        pids.into_iter().map(|pid| PipePeer { pid, comm: proc::names(pid).1 }).collect()
    }
}

fn writes_to(pid: u32, fd: u32) -> bool {
    fdinfo(pid, fd as i32).is_some_and(|info| info.flags & libc::O_ACCMODE != libc::O_RDONLY)
}
