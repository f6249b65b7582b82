//! One try: is it a good moment, then stop, write, store, and let go.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use weir_sys::proc::{self, ThreadState};
use weir_sys::ptrace::wait_until_gone;
use weir_walkers::{Pending, Store};

use super::blocked_call::BlockedCall;
use super::stopped_threads::{StopError, StoppedThreads};
use super::target_file::TargetFile;
use super::{DrainError, DrainResult, Obstacle, PendingStream, ProcessDrain};

/// Tries once. Whatever could not be done is in `flushed`, with the reason.
pub(super) fn attempt(
    drain: &mut ProcessDrain,
    waiting: &[PendingStream],
    until: Instant,
    flushed: &mut DrainResult,
) -> Result<(), DrainError> {
    let pid = drain.pid;
    let targets = targets(pid, waiting);
    if let Some(why) = before_stopping(pid, &drain.pending(), &targets) {
        waiting.iter().for_each(|one| flushed.note(pid, one, 0, one.bytes, Some(Obstacle::now(&why))));
        return Ok(());
    }
    let held = || {
        let hold = StoppedThreads::take(pid, &targets);
        let done = hold.map(|_hold| write_out(drain, &targets, flushed));
        // SAFETY: asks for a number.
        (unsafe { libc::gettid() }, done)
    };
    let joined = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("weir-flush".into()).spawn_scoped(scope, held);
        thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (task, done) = joined.map_err(|source| failed(pid, "clone", source))?;
    wait_until_gone(task);
    match done {
        Ok(done) => done,
        Err(StopError::Now(why)) => {
            waiting.iter().for_each(|one| flushed.note(pid, one, 0, one.bytes, Some(Obstacle::now(&why))));
            Ok(())
        }
        // It is looked at again, and found to be gone.
        Err(StopError::Ended) if Instant::now() < until => Ok(()),
        Err(StopError::Ended) => Err(weir_sys::process_access::AccessProblem::Gone(pid).into()),
        Err(StopError::Refused(source)) => Err(refused(pid, source)),
    }
}

/// The files that no thread may be writing to while their streams are changed.
fn targets(pid: u32, waiting: &[PendingStream]) -> Vec<String> {
    let mut targets: Vec<String> = waiting.iter().filter_map(|one| proc::descriptor(pid, one.fd)).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// What is in the way already, so that nothing is stopped for nothing.
fn before_stopping(pid: u32, pending: &[Pending], targets: &[String]) -> Option<String> {
    for tid in proc::threads(pid) {
        let ThreadState::Waiting { number, args } = proc::thread_state(tid) else { continue };
        let call = BlockedCall { number, args };
        if let Some(fd) = call.writes_to(pid, targets) {
            return Some(format!(
                "thread {tid} waits in {} to descriptor {fd}: who reads there is late",
                call.name()
            ));
        }
        if call.breaks() {
            return Some(format!("thread {tid} waits in {}, which a stop would break off", call.name()));
        }
    }
    // Streams that change all the time are not among those that could be read: then it is not known.
    let all_held = pending.iter().all(|one| one.locked == Some(true));
    pending.first().filter(|_| all_held).map(|one| lock_text(pid, one))
}

fn lock_text(pid: u32, one: &Pending) -> String {
    match thread_of(pid, one.holder) {
        Some(tid) => {
            let call = proc::waits_in(tid);
            let place = if call.is_empty() { String::new() } else { format!(", and is in {call}") };
            format!("thread {tid} holds the lock of the stream of descriptor {}{place}", one.fd)
        }
        None => format!("a thread holds the lock of the stream of descriptor {}", one.fd),
    }
}

/// The number of the thread that a runtime names so. glibc names it by its `struct pthread`, which has the number
/// at a place that is the same since 2.4.
fn thread_of(pid: u32, holder: u64) -> Option<u32> {
    const TID: [u64; 2] = [0x2d0, 0xd0];
    let threads = proc::threads(pid);
    let memory = weir_sys::memory::ProcessMemory { pid };
    let word = |at: u64| weir_sys::memory::Memory::i32(&memory, holder.checked_add(at)?);
    let direct = u32::try_from(holder).ok();
    let all = TID.into_iter().filter_map(word).filter_map(|tid| u32::try_from(tid).ok());
    direct.into_iter().chain(all).find(|tid| threads.contains(tid))
}

/// All threads are stopped where they may be.
fn write_out(
    drain: &mut ProcessDrain,
    targets: &[String],
    flushed: &mut DrainResult,
) -> Result<(), DrainError> {
    let pid = drain.pid;
    let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
    let memory = memory.map_err(|source| failed(pid, "open of its memory", source))?;
    for one in drain.pending() {
        let left = one.bytes.len() as u64;
        // A stream that came since was not minded when the threads were looked at.
        if !proc::descriptor(pid, one.fd).is_some_and(|target| targets.contains(&target)) {
            continue;
        }
        let seen = PendingStream::of(one.walker, one.stream, one.fd, left);
        match write_one(pid, &memory, &one) {
            Ok((written, why)) => flushed.note(pid, &seen, written, left - written, why),
            Err(why) => flushed.note(pid, &seen, 0, left, Some(why)),
        }
    }
    Ok(())
}

/// Returns how many bytes went and why not all, or why none.
fn write_one(pid: u32, memory: &File, one: &Pending) -> Result<(u64, Option<Obstacle>), Obstacle> {
    if one.locked == Some(true) {
        return Err(Obstacle::now(lock_text(pid, one)));
    }
    if one.emptied.is_empty() {
        return Err(Obstacle::refused("this stream cannot be emptied from outside"));
    }
    let text =
        |call: &str, error: &io::Error| Obstacle::refused(format!("{call}: {}", weir_sys::errno_text(error)));
    try_stores(memory, &one.emptied).map_err(|error| text("its memory", &error))?;
    let sink = TargetFile::of(pid, one.fd).map_err(|error| text("pidfd_getfd", &error))?;
    if !one.divides() && !sink.takes_all(one.bytes.len()) {
        let why = "not all of it fits into the pipe, and this stream cannot keep a part; its reader is late";
        return Err(Obstacle::now(why));
    }
    let put = sink.put(&one.bytes);
    let stores = match put.written {
        0 => Some(Vec::new()),
        all if all == one.bytes.len() => Some(one.emptied.clone()),
        some => one.left_after(some),
    };
    let why = match (&put.error, put.written == one.bytes.len()) {
        (Some(error), _) => Some(text("write", error)),
        (None, false) => Some(Obstacle::now("the pipe, socket or terminal is full: who reads there is late")),
        (None, true) => None,
    };
    let Some(stores) = stores else {
        let why = why.map_or(String::new(), |why| why.text);
        return Err(Obstacle::refused(format!("{} bytes will be written twice: {why}", put.written)));
    };
    store(memory, &stores).map_err(|error| text("write to its memory", &error))?;
    Ok((put.written as u64, why))
}

/// Stores what is there already, so that it is known before anything is written that it can be done.
fn try_stores(memory: &File, stores: &[Store]) -> io::Result<()> {
    for one in stores {
        let mut bytes = vec![0; one.bytes.len()];
        memory.read_exact_at(&mut bytes, one.address)?;
        memory.write_all_at(&bytes, one.address)?;
    }
    Ok(())
}

fn store(memory: &File, stores: &[Store]) -> io::Result<()> {
    stores.iter().try_for_each(|one| memory.write_all_at(&one.bytes, one.address))
}

fn failed(pid: u32, call: &'static str, source: io::Error) -> DrainError {
    DrainError::Call { label: proc::label(pid), call, source, advice: "" }
}

fn refused(pid: u32, source: io::Error) -> DrainError {
    let tracer = proc::threads(pid).into_iter().filter_map(proc::status).map(|status| status.tracerpid).max();
    match tracer.filter(|tracer| *tracer > 0) {
        Some(tracer) => DrainError::Traced { label: proc::label(pid), tracer: proc::label(tracer as u32) },
        None => DrainError::Call {
            label: proc::label(pid),
            call: "ptrace(PTRACE_SEIZE)",
            source,
            advice: "; it belongs to another user, or kernel.yama.ptrace_scope forbids it: run weir as root",
        },
    }
}
