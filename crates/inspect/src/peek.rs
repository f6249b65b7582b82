//! Reads the buffers of one process for `weir peek`: the pending bytes, their age, and the state of the main
//! thread.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::pipe_ends::PipeEnds;
use crate::write_in_progress::of_main_and_others;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};
use weir_model::peek::{MainThreadState, Peek, PeekStream, escaped};
use weir_model::trace::Buffer;
use weir_model::{StreamKind, Untrusted};
use weir_sys::clock::clock_ns;
use weir_sys::expendable::{Limits, NoAnswer, Rights, answer_of, failure_text};
use weir_sys::file_system::status_of_descriptor;
use weir_sys::memory::ProcessMemory;
use weir_sys::open_files::kind_at;
use weir_sys::proc::{self, ThreadState};
use weir_sys::process_access::{self, AccessProblem};
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{process_stat, syscalls};
use weir_walkers::{
    StreamPreview, USER_SEARCH_TIME, Walker, hidden_stdout_sentence, kept_records, previews, set_search_time,
    take_search_cut_of, unseen_sentence, walkers, walkers_missing,
};

/// Time between two buffer snapshots if the first one does not show the age of pending bytes.
const AGE_CHECK_DELAY: Duration = Duration::from_millis(200);
/// Number of buffer snapshots of a running process, and the time between them. Together they take about 5 ms,
/// which the user does not notice.
const MAX_SNAPSHOTS: usize = 8;
const SNAPSHOT_DELAY: Duration = Duration::from_micros(700);
/// Bytes of a preview without `--full`.
const PREVIEW_BYTES: u64 = 256;

/// The limits of a peek. A read of memory takes microseconds, and weir itself sleeps for 200 ms at most.
const LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: None };

/// The reason why a process's buffers could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekProblem {
    message: String,
    /// The process is gone, or a zombie.
    pub has_ended: bool,
}

impl PeekProblem {
    fn no_answer(pid: u32, failure: NoAnswer) -> PeekProblem {
        PeekProblem { message: failure_text(pid, failure), has_ended: false }
    }
}

impl std::fmt::Display for PeekProblem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl From<AccessProblem> for PeekProblem {
    fn from(problem: AccessProblem) -> PeekProblem {
        let has_ended = problem.has_ended();
        PeekProblem { message: problem.to_string(), has_ended }
    }
}

/// Reads the buffers of a process. With `full` the previews have all pending bytes, at most `most` of the process. Fails
/// if the process is gone, may not be read, or does not answer.
pub fn peek(process: ProcessIdentity, full: bool, most: u64) -> Result<Peek, PeekProblem> {
    let pid = process.pid();
    process_access::check_answers(pid)?;
    let preview_bytes = if full { most } else { PREVIEW_BYTES };
    let read = |_: &AtomicBool| {
        let peek = read(process, (preview_bytes, most));
        // The JSON document has no addresses, so they are sent beside it.
        let addresses = peek.iter().flat_map(|peek| &peek.streams).map(|one| one.address);
        let addresses: Vec<u64> = addresses.collect();
        serde_json::to_vec(&(peek, addresses)).unwrap_or_default()
    };
    let answer =
        answer_of(Rights::ReadingOnly, read, LIMITS, None).map_err(|why| PeekProblem::no_answer(pid, why))?;
    let answer: Result<(Result<Peek, PeekProblem>, Vec<u64>), _> = serde_json::from_slice(&answer);
    let (peek, addresses) = answer.map_err(|_| PeekProblem::no_answer(pid, NoAnswer::Ended))?;
    let mut peek = peek?;
    peek.streams.iter_mut().zip(addresses).for_each(|(stream, address)| stream.address = address);
    Ok(peek)
}

/// The most reads of a process that executes another program during each read. No ordinary process needs as many.
const MAX_IMAGES: usize = 3;

/// Reads a process. `most` has the most bytes of one stream, and of all streams.
fn read(process: ProcessIdentity, most: (u64, u64)) -> Result<Peek, PeekProblem> {
    let image = || process_stat::read(process.pid()).map(|stat| stat.image());
    for _ in 1..MAX_IMAGES {
        let before = image();
        let peek = read_image(process, most)?;
        // The walkers of a former program would read any memory of the next one.
        if image() == before {
            return Ok(peek);
        }
    }
    // A process can also change these addresses itself (PR_SET_MM), and must not be able to hide that way.
    read_image(process, most)
}

fn read_image(process: ProcessIdentity, most: (u64, u64)) -> Result<Peek, PeekProblem> {
    process_access::check_same(process)?;
    let pid = process.pid();
    set_search_time(USER_SEARCH_TIME);
    let snapshot = PeekSnapshot::until_steady(pid, most);
    let idle = idle_s(pid);
    let (_, comm, command) = proc::names(pid);
    let mut streams: Vec<PeekStream> = snapshot.streams(pid);
    let since = match idle {
        Some(idle) if idle >= AGE_CHECK_DELAY.as_secs_f64() => Some(idle),
        _ => None,
    };
    let has_pending = |one: &PeekStream| one.pending_bytes > 0;
    if since.is_none() && streams.iter().any(has_pending) {
        snapshot.wait_and_compare(pid, &mut streams);
    } else {
        streams.iter_mut().filter(|one| has_pending(one)).for_each(|one| one.since_s = since);
    }
    let (threads, state) = (proc::threads(pid).len() as u64, state(pid));
    let shown = streams.iter().map(|one| one.preview_bytes).sum();
    let (writing, other_writes) = of_main_and_others(pid, (most.0, most.1.saturating_sub(shown)));
    let mut unseen: Vec<String> = walkers_missing(pid).into_iter().chain(take_search_cut_of(pid)).collect();
    let records = kept_records(&snapshot.walkers, &snapshot.memory);
    if unseen.is_empty() {
        let known: Vec<i32> = streams.iter().map(|one| one.fd).collect();
        unseen.extend(unseen_sentence(pid, &snapshot.walkers, &known));
    }
    unseen.extend(hidden_stdout_sentence(pid));
    unseen.extend(records.map(|records| format!("{records}: weir flush cannot write them")));
    // After all reads, because they use the PID.
    process_access::check_same(process)?;
    Ok(Peek {
        pid,
        comm,
        command,
        threads,
        state,
        idle_s: idle,
        streams,
        writing,
        other_writes,
        unseen,
        restart: None,
    })
}

struct PeekSnapshot {
    walkers: Vec<Box<dyn Walker>>,
    memory: ProcessMemory,
    /// In the order in which the program would write them at exit.
    previews: Vec<StreamPreview>,
    writes_before: Option<u64>,
}

impl PeekSnapshot {
    /// Takes snapshots until one has pending bytes or the process sleeps: a walker rejects a stream that
    /// changes while it is read.
    fn until_steady(pid: u32, most: (u64, u64)) -> PeekSnapshot {
        let mut snapshot = PeekSnapshot::at(pid, walkers(pid), most);
        for _ in 1..MAX_SNAPSHOTS {
            if snapshot.previews.iter().any(|one| one.buffer.pending_bytes > 0) || !proc::is_running(pid) {
                break;
            }
            std::thread::sleep(SNAPSHOT_DELAY);
            snapshot = PeekSnapshot::at(pid, snapshot.walkers, most);
        }
        snapshot
    }

    fn at(pid: u32, walkers: Vec<Box<dyn Walker>>, (each, all): (u64, u64)) -> PeekSnapshot {
        let memory = ProcessMemory { pid };
        let writes_before = write_calls(pid);
        let previews = previews(&walkers, &memory, each, all);
        PeekSnapshot { walkers, memory, previews, writes_before }
    }

    /// Returns the streams, those with pending bytes first, the others by descriptor.
    fn streams(&self, pid: u32) -> Vec<PeekStream> {
        let pipe_ends = PipeEnds::of(pid, &self.previews);
        let mut found: Vec<PeekStream> =
            self.previews.iter().map(|one| self.stream(pid, one, &pipe_ends)).collect();
        found.sort_by_key(|one| if one.pending_bytes > 0 { (false, 0) } else { (true, one.fd) });
        found
    }

    fn stream(&self, pid: u32, preview: &StreamPreview, pipe_ends: &PipeEnds) -> PeekStream {
        let one = &preview.buffer;
        let shown = if one.pending_bytes == 0 { one.unread.as_slice() } else { one.pending.as_slice() };
        let path = proc::descriptor(pid, one.fd).unwrap_or_default();
        let is_open = !path.is_empty();
        PeekStream {
            walker: one.walker,
            fd: one.fd,
            kind: kind(pid, one.fd),
            peers: pipe_ends.peers(pid, &path),
            peers_complete: pipe_ends.is_complete,
            path,
            mode: one.mode,
            buffer_bytes: one.buffer_bytes,
            pending_bytes: one.pending_bytes,
            unconverted_bytes: one.unconverted_bytes,
            since_s: None,
            unread_bytes: one.unread_bytes,
            locked: preview.locked.filter(|_| one.pending_bytes > 0),
            can_be_flushed: preview.can_be_drained && one.pending_bytes > 0 && is_open,
            found_by_search: one.found_by_search,
            preview: escaped(shown),
            preview_bytes: shown.len() as u64,
            copy_of: None,
            copy_of_comm: Untrusted::default(),
            copied_bytes: 0,
            is_copy_cut: false,
            address: one.address,
        }
    }

    /// Takes a second snapshot. Bytes that are in both, without a write(2) in between, are at least as old as
    /// the time between the two.
    fn wait_and_compare(&self, pid: u32, streams: &mut [PeekStream]) {
        std::thread::sleep(AGE_CHECK_DELAY);
        let again: Vec<Buffer> =
            self.walkers.iter().flat_map(|walker| walker.buffers(&self.memory)).collect();
        if self.writes_before.is_none() || write_calls(pid) != self.writes_before {
            return;
        }
        for stream in streams {
            let mut buffers = self.previews.iter().map(|one| &one.buffer);
            let before = buffers.find(|one| one.fd == stream.fd && one.walker == stream.walker);
            let same = |before: &Buffer| {
                let after = again.iter().find(|one| one.address == before.address && one.fd == before.fd);
                let compared = &before.pending[..before.pending.len().min(PREVIEW_BYTES as usize)];
                after.is_some_and(|after| after.pending.starts_with(compared))
            };
            if stream.pending_bytes > 0 && before.is_some_and(same) {
                stream.since_s = Some(AGE_CHECK_DELAY.as_secs_f64());
            }
        }
    }
}

/// Returns the kernel's number of write calls of the process.
fn write_calls(pid: u32) -> Option<u64> {
    proc::io(pid).map(|io| io.write_calls)
}

fn state(pid: u32) -> MainThreadState {
    match proc::status(pid) {
        Some(status) if status.state.starts_with('t') && status.tracerpid > 0 => {
            let tracer = status.tracerpid as u32;
            return MainThreadState::StoppedByTracer { tracer, comm: proc::comm(tracer) };
        }
        Some(status) if status.state.starts_with(['T', 't']) => return MainThreadState::Stopped,
        _ => {}
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

/// Returns the name of a call that restart_syscall(2) continues, by the kernel function in which the thread
/// sleeps.
fn restarted(pid: u32) -> Option<&'static str> {
    let kernel_function = fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
    ["nanosleep", "poll", "futex"].into_iter().find(|name| kernel_function.contains(name))
}

/// The most threads whose last run is read, at about 1 ms each on a busy machine.
const MAX_IDLE_THREADS: usize = 512;

/// Returns the time since a thread of the process last ran, in seconds. The scheduler notes it by the clock of
/// the thread's CPU, so weir moves to that CPU and reads the clock in its own entry. The clock omits time that
/// a hypervisor took away, so the result is a lower limit. None if a thread runs, if there are more than
/// [`MAX_IDLE_THREADS`], or the time is unknown.
fn idle_s(pid: u32) -> Option<f64> {
    if proc::is_running(pid) {
        return None;
    }
    let threads = proc::threads(pid);
    if threads.len() > MAX_IDLE_THREADS {
        return None;
    }
    let affinity = sched_getaffinity(None).ok()?;
    let idle: Option<Vec<f64>> = threads.iter().map(|tid| thread_idle_ms(pid, *tid)).collect();
    let _unchanged = sched_setaffinity(None, &affinity);
    idle?.into_iter().reduce(f64::min).map(|idle| idle / 1e3)
}

fn thread_idle_ms(pid: u32, tid: u32) -> Option<f64> {
    let mut cpu = CpuSet::new();
    cpu.set(proc::last_processor(tid)?);
    sched_setaffinity(None, &cpu).ok()?;
    let now = last_ran_ms("thread-self")?;
    let last_ran = last_ran_ms(&format!("{pid}/task/{tid}"))?;
    let age = process_stat::read(tid)?.age_s(clock_ns(ClockId::Boottime));
    Some((now - last_ran).clamp(0.0, age * 1e3))
}

fn last_ran_ms(thread: &str) -> Option<f64> {
    parse_last_ran_ms(&fs::read_to_string(format!("/proc/{thread}/sched")).ok()?)
}

/// Parses when a thread last ran. None also for 0: the kernel forgets the time when it moves a thread that does not run to another CPU.
fn parse_last_ran_ms(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("se.exec_start"))?;
    line.rsplit(':').next()?.trim().parse().ok().filter(|ms| *ms > 0.0)
}

pub(crate) fn kind(pid: u32, fd: i32) -> StreamKind {
    let Ok(status) = status_of_descriptor(pid, fd) else { return StreamKind::Other };
    kind_at(proc::descriptor(pid, fd).unwrap_or_default().exact(), status.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_that_was_moved_asleep_is_unknown() {
        let file = |time: &str| {
            format!(
                "sleep (7, #threads: 1)\n---\nse.exec_start      :   {time}\nse.vruntime   :   8.000000\n"
            )
        };
        assert_eq!(parse_last_ran_ms(&file("29345678.123456")), Some(29_345_678.123_456));
        assert_eq!(parse_last_ran_ms(&file("0.000000")), None);
        assert_eq!((parse_last_ran_ms(&file("")), parse_last_ran_ms("")), (None, None));
    }

    /// A process of another user can have tens of thousands of threads, for each of which weir would move to another CPU.
    #[test]
    fn the_idle_time_of_very_many_threads_is_not_read() {
        const SCRIPT: &str = "import sys, threading, time\n\
            for _ in range(int(sys.argv[1])): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\
            print(flush=True)\ntime.sleep(60)";
        for (threads, is_read) in [("3", true), ("600", false)] {
            let mut python = std::process::Command::new("python3");
            let python = python.args(["-c", SCRIPT, threads]).stdout(std::process::Stdio::piped()).spawn();
            let mut child = python.expect("python3 starts");
            let mut byte = [0];
            let has_started = std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut byte);
            let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
            while proc::is_running(child.id()) && std::time::Instant::now() < end {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let idle = idle_s(child.id());
            child.kill().expect("a signal");
            child.wait().expect("its end");
            has_started.expect("its threads start");
            assert_eq!(idle.is_some(), is_read, "{threads} threads: {idle:?}");
        }
    }
}
