//! One attempt to drain a process: checks the moment, stops the threads, writes, and empties the streams.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use weir_model::Untrusted;
use weir_model::trace::RuntimeId;
use weir_sys::expendable::{critical, outlive_parent, watch_parent};
use weir_sys::living_thread;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc::{self, ThreadState};
use weir_sys::process_access;
use weir_sys::ptrace::wait_until_gone;
use weir_walkers::{MemoryStore, PendingBytes};

use super::blocked_call::BlockedCall;
use super::stopped_threads::{StopError, StoppedThreads, await_late_calls, is_call_late, stuck_text};
use super::{DrainError, DrainResult, Obstacle, PendingStream, ProcessDrain};
use crate::foreign_file::{ForeignFile, ForeignFileError, TargetThread};
use crate::supervise::SUPERVISOR_NAME;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// The result says what was written.
    Noted,
    /// As `Noted`. Nothing was written: the process is stopped by job control, frozen, or in state D.
    Stuck,
    /// A thread ended meanwhile, and nothing was noted. The next attempt finds out whether the process is gone.
    ThreadEnded,
}

/// Makes one attempt, and notes in `result` what it wrote and why bytes are left.
pub(super) fn attempt(
    drain: &mut ProcessDrain,
    streams: &[PendingStream],
    deadline: Instant,
    result: &mut DrainResult,
) -> Result<AttemptEnd, DrainError> {
    let pid = drain.pid;
    let targets = target_files(pid, streams);
    if let Some(why) = obstacle_before_stop(pid, &drain.pending().streams, &targets) {
        // A process that cannot run does not end its call.
        let stuck = stuck_text(pid);
        note_obstacle(result, pid, streams, stuck.as_ref().unwrap_or(&why));
        return Ok(stuck.map_or(AttemptEnd::Noted, |_| AttemptEnd::Stuck));
    }
    match write_with_threads_stopped(drain, streams, &targets, result)? {
        Ok(()) => Ok(AttemptEnd::Noted),
        Err(StopError::NotNow(why)) => {
            note_obstacle(result, pid, streams, &why);
            Ok(AttemptEnd::Noted)
        }
        Err(StopError::Stuck(why)) => {
            note_obstacle(result, pid, streams, &why);
            Ok(AttemptEnd::Stuck)
        }
        Err(StopError::Ended) if Instant::now() < deadline => Ok(AttemptEnd::ThreadEnded),
        Err(StopError::Ended) => {
            process_access::check_same(drain.process)?;
            note_obstacle(result, pid, streams, "threads of it kept ending while weir stopped them");
            Ok(AttemptEnd::Noted)
        }
        Err(StopError::Ptrace(source)) => Err(ptrace_error(pid, source)),
    }
}

/// Notes that all streams keep their bytes.
fn note_obstacle(result: &mut DrainResult, pid: u32, streams: &[PendingStream], why: &str) {
    for stream in streams {
        result.note(pid, stream, 0, stream.bytes, Some(Obstacle::temporary(why)));
    }
}

/// Notes the streams that exceed the limit of bytes.
fn note_omitted(
    result: &mut DrainResult,
    pid: u32,
    streams: &[PendingStream],
    read: &[PendingBytes],
    most: u64,
) {
    let is_read =
        |one: &PendingStream| read.iter().any(|read| read.stream == one.address && read.fd == one.fd);
    for one in streams.iter().filter(|one| !is_read(one) && one.bytes > one.unconverted) {
        let why = format!("more than {} are pending in the process: see --limit", weir_model::Size(most));
        result.note(pid, one, 0, one.bytes, Some(Obstacle::permanent(why)));
    }
}

/// Stops all threads in a thread of its own, whose end detaches from tracees that have not stopped.
fn write_with_threads_stopped(
    drain: &mut ProcessDrain,
    streams: &[PendingStream],
    targets: &[Untrusted],
    result: &mut DrainResult,
) -> Result<Result<(), StopError>, DrainError> {
    let (process, pid) = (drain.process, drain.pid);
    let mut waits = std::mem::take(&mut drain.waits);
    // A message says that a thread of the program makes a call for weir that does not return.
    let (sender, late) = std::sync::mpsc::channel();
    let write = move || {
        // A stop of weir by the terminal (`stty tostop`) would leave the program's threads stopped. Children inherit the mask.
        weir_sys::signals::block(libc::SIGTTOU);
        let stopped = StoppedThreads::stop(process, targets, &mut waits);
        let written = stopped.and_then(|stopped| match drain.has_same_image() {
            true => Ok(write_streams(drain, streams, targets, &stopped, result)),
            false => Err(StopError::NotNow("it has just executed another program".into())),
        });
        drain.waits = waits;
        if is_call_late() {
            let _received = sender.send(());
            await_late_calls();
        }
        // SAFETY: gettid returns a number and has no other effect.
        (unsafe { libc::gettid() }, written)
    };
    let joined = std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().name("weir-flush".into()).spawn_scoped(scope, write);
        // A thread that was not started has dropped the sender.
        let (thread, is_late) = watch_parent(start, |limit| match late.recv_timeout(limit) {
            Err(RecvTimeoutError::Timeout) => None,
            received => Some(received.is_ok()),
        });
        if is_late {
            outlive_parent();
        }
        thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (task, written) = joined.map_err(|source| call_error(pid, "clone", source))?;
    wait_until_gone(task);
    match written {
        Ok(written) => written.map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

/// Returns the files that no thread may be writing to while their streams change.
fn target_files(pid: u32, streams: &[PendingStream]) -> Vec<Untrusted> {
    let mut targets: Vec<Untrusted> =
        streams.iter().filter_map(|stream| proc::descriptor(pid, stream.fd)).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Returns the reason why a stop would be useless or harmful now; None if there is no such reason.
fn obstacle_before_stop(pid: u32, pending: &[PendingBytes], targets: &[Untrusted]) -> Option<String> {
    for tid in proc::threads(pid) {
        let ThreadState::Waiting { number, args } = proc::thread_state(tid) else { continue };
        let call = BlockedCall { number, args };
        if let Some(fd) = call.writes_to(pid, targets) {
            let name = call.name();
            return Some(format!("thread {tid} blocks in {name} to descriptor {fd}: its reader is late"));
        }
        if call.shows_interruption() {
            return Some(format!("thread {tid} blocks in {}, which a stop would interrupt", call.name()));
        }
    }
    // `pending` lacks the streams that change all the time. If it is empty, nothing is known about locks.
    let all_locked = pending.iter().all(|one| one.locked == Some(true));
    pending.first().filter(|_| all_locked).map(|one| lock_text(pid, one))
}

fn lock_text(pid: u32, one: &PendingBytes) -> String {
    if one.walker == RuntimeId::GO {
        return format!("a goroutine is in a method of the bufio.Writer over descriptor {}", one.fd);
    }
    match lock_holder(pid, one.lock_owner) {
        Some(tid) => {
            let call = proc::current_syscall(tid);
            let state = if call.is_empty() { String::new() } else { format!(", and is in {call}") };
            format!("thread {tid} holds the lock of the stream of descriptor {}{state}", one.fd)
        }
        None => format!("a thread holds the lock of the stream of descriptor {}", one.fd),
    }
}

/// Returns the thread that a runtime's lock names: by its number, or by the address of glibc's `struct pthread`,
/// which has the number at a fixed offset since glibc 2.4.
fn lock_holder(pid: u32, holder: u64) -> Option<u32> {
    /// Offsets of `tid` in `struct pthread` on x86-64 and aarch64.
    const TID_OFFSETS: [u64; 2] = [0x2d0, 0xd0];
    let threads = proc::threads(pid);
    let memory = ProcessMemory { pid };
    let word = |offset: u64| memory.i32(holder.checked_add(offset)?);
    let by_number = u32::try_from(holder).ok();
    let by_address = TID_OFFSETS.into_iter().filter_map(word).filter_map(|tid| u32::try_from(tid).ok());
    by_number.into_iter().chain(by_address).find(|tid| threads.contains(tid))
}

/// Writes and empties the streams. All threads are stopped.
fn write_streams(
    drain: &mut ProcessDrain,
    streams: &[PendingStream],
    targets: &[Untrusted],
    stopped: &StoppedThreads<'_>,
    result: &mut DrainResult,
) -> Result<(), DrainError> {
    let pid = drain.pid;
    let tid = living_thread::of(pid);
    let memory = File::options().read(true).write(true).open(format!("/proc/{tid}/mem"));
    let memory = memory.map_err(|source| call_error(pid, "open of /proc/PID/mem", source))?;
    let threads = stopped.in_calls();
    let pending = drain.pending_of_stopped(&stopped.registers());
    if pending.is_partial {
        note_omitted(result, pid, streams, &pending.streams, drain.most);
    }
    let thread = TargetThread::new(tid);
    let mut emptied = HashSet::new();
    for one in pending.streams {
        let bytes = one.bytes.len() as u64;
        let stream = PendingStream {
            walker: one.walker,
            address: one.stream,
            fd: one.fd,
            bytes,
            unconverted: 0,
            copy: drain.copy(one.stream, one.fd, &one.bytes).cloned(),
        };
        let obstacle = obstacle_of_target(pid, one.fd, targets);
        let obstacle = obstacle.or_else(|| stream.copy.as_ref().map(|copy| Obstacle::copy(copy, bytes)));
        let written = match obstacle {
            Some(obstacle) => Err(obstacle),
            None if is_after_others(&one, &emptied) => Err(Obstacle::temporary(
                "the bytes of the C library's stream come before its own and are left",
            )),
            None => write_stream(&thread, &memory, &one, &threads),
        };
        if matches!(&written, Ok((written, _)) if *written == bytes) {
            emptied.insert(one.stream);
        }
        match written {
            Ok((written, obstacle)) => result.note(pid, &stream, written, bytes - written, obstacle),
            Err(obstacle) => result.note(pid, &stream, 0, bytes, Some(obstacle)),
        }
    }
    note_unconverted(result, pid, streams);
    Ok(())
}

/// Returns the reason why nothing can be written to a descriptor, if there is one.
fn obstacle_of_target(pid: u32, fd: i32, targets: &[Untrusted]) -> Option<Obstacle> {
    match proc::descriptor(pid, fd) {
        None => Some(Obstacle::permanent(format!(
            "the program has closed descriptor {fd}, so a write of these bytes fails (EBADF)"
        ))),
        // The threads were not checked for a stream that is new since.
        Some(target) if !targets.contains(&target) => {
            Some(Obstacle::temporary(format!("descriptor {fd} has been opened meanwhile")))
        }
        Some(_) => None,
    }
}

/// Notes the bytes that the program still converts, of each stream whose other bytes are written.
fn note_unconverted(result: &mut DrainResult, pid: u32, streams: &[PendingStream]) {
    const WHY: &str = "the program converts these bytes to another encoding before it writes them; weir does not write them";
    for one in streams.iter().filter(|one| one.unconverted > 0) {
        let mut known = result.streams.iter();
        if !known.any(|known| (known.address, known.fd) == (one.address, one.fd) && known.left_bytes > 0) {
            result.note(pid, one, 0, one.unconverted, Some(Obstacle::permanent(WHY)));
        }
    }
}

/// Returns whether the stream to which this one hands its bytes still has bytes of its own.
fn is_after_others(one: &PendingBytes, emptied: &HashSet<u64>) -> bool {
    one.inner.is_some_and(|inner| inner.pending_bytes > 0 && !emptied.contains(&inner.address))
}

/// Writes one stream. Returns the number of bytes written, and the obstacle if bytes are left.
fn write_stream(
    thread: &TargetThread,
    memory: &File,
    one: &PendingBytes,
    threads: &[u32],
) -> Result<(u64, Option<Obstacle>), Obstacle> {
    if one.locked == Some(true) {
        return Err(Obstacle::temporary(lock_text(thread.tid, one)));
    }
    if let Some(why) = one.outside.early_refusal {
        return Err(Obstacle::permanent(why));
    }
    if one.drain_stores.is_empty() && one.walker == RuntimeId::GO {
        return Err(Obstacle::temporary(
            "weir cannot tell now whether the program still uses this bufio.Writer",
        ));
    }
    if one.drain_stores.is_empty() {
        return Err(Obstacle::permanent(match one.walker {
            RuntimeId::RUST => {
                "a Rust program may have the number of a BufWriter's bytes in a register, and would write them twice; \
                 weir run --max-delay writes them in time"
            }
            _ => "this stream cannot be emptied from outside",
        }));
    }
    check_stores(memory, &one.drain_stores).map_err(|error| failed("its memory", &error))?;
    let file = ForeignFile::open(thread, one.fd, threads)
        .map_err(|error: ForeignFileError| Obstacle::permanent(error.to_string()))?
        .of_records(one.outside.record_end, false);
    if !one.can_drain_partially() && !file.takes_whole(one.bytes.len()) {
        let why = "not all of it fits into the pipe, and this stream cannot keep a part; its reader is late";
        return Err(Obstacle::temporary(why));
    }
    // Between the write and the stores the bytes are in the file and in the stream.
    critical(|| write_and_store(memory, &file, one))
}

/// Writes as many bytes as the file takes, and removes them from the stream.
fn write_and_store(
    memory: &File,
    file: &ForeignFile,
    one: &PendingBytes,
) -> Result<(u64, Option<Obstacle>), Obstacle> {
    let progress = file.write_available(&one.bytes);
    let stores = match progress.written {
        0 => Some(Vec::new()),
        all if all == one.bytes.len() => Some(one.drain_stores.clone()),
        some => one.partial_drain(some),
    };
    let obstacle = match (&progress.error, progress.written == one.bytes.len()) {
        (Some(error), _) => Some(failed("write", error)),
        (None, false) if file.begins_with_long_record(&one.bytes[progress.written..]) => {
            Some(Obstacle::permanent(
                "the next record is too long for one write to a pipe: the program writes it whole",
            ))
        }
        (None, false) => {
            Some(Obstacle::temporary("the pipe, socket or terminal is full: its reader is late"))
        }
        (None, true) => None,
    };
    let Some(stores) = stores else {
        let why = obstacle.map_or(String::new(), |obstacle| obstacle.text);
        let text = format!("{} bytes will be written twice: {why}", progress.written);
        return Err(Obstacle::permanent(text));
    };
    store(memory, &stores).map_err(|error| failed("write to its memory", &error))?;
    Ok((progress.written as u64, obstacle))
}

fn failed(call: &str, error: &io::Error) -> Obstacle {
    Obstacle::permanent(format!("{call}: {}", weir_sys::errno_text(error)))
}

/// Checks that the stores can succeed before any byte is written, by storing the present values.
fn check_stores(memory: &File, stores: &[MemoryStore]) -> io::Result<()> {
    for one in stores {
        let mut bytes = vec![0; one.bytes.len()];
        memory.read_exact_at(&mut bytes, one.address)?;
        memory.write_all_at(&bytes, one.address)?;
    }
    Ok(())
}

fn store(memory: &File, stores: &[MemoryStore]) -> io::Result<()> {
    stores.iter().try_for_each(|one| memory.write_all_at(&one.bytes, one.address))
}

fn call_error(pid: u32, call: &'static str, source: io::Error) -> DrainError {
    DrainError::Call { label: proc::label(pid), call, source, advice: "" }
}

/// Returns whether a thread, by its name, supervises the command of a `weir run`. Only the text of an error depends on it.
fn is_supervisor(tid: u32) -> bool {
    proc::comm(tid).exact() == SUPERVISOR_NAME
}

fn ptrace_error(pid: u32, source: io::Error) -> DrainError {
    let tracers = proc::threads(pid).into_iter().filter_map(proc::status).map(|status| status.tracerpid);
    match tracers.max().filter(|tracer| *tracer > 0) {
        Some(tracer) if is_supervisor(tracer as u32) => {
            let weir = proc::status(tracer as u32).map_or(tracer, |status| status.tgid);
            DrainError::Supervised { label: proc::label(pid), tracer: format!("process {weir}") }
        }
        Some(tracer) => DrainError::Traced { label: proc::label(pid), tracer: proc::label(tracer as u32) },
        None => DrainError::Call {
            label: proc::label(pid),
            call: "ptrace(PTRACE_SEIZE)",
            source,
            advice: "; it belongs to another user, or kernel.yama.ptrace_scope forbids it: run weir as root",
        },
    }
}
