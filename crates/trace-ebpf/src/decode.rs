//! Decodes the kernel's events into raw events.

use std::path::PathBuf;

use foldhash::HashMap;
use rustix::param::page_size;
use weir_model::trace::{Buffer, Exit, Histogram, IoTotals, Op, RuntimeId, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Mode, Untrusted};
use weir_sys::proc::{self, ResourceUsage};
use weir_sys::syscalls;
use weir_trace_api::{EventSink, RawCall, RawCounts, RawEvent, RawEventKind, RawFile, WorkingDirectory};

use super::shared_types::{
    self, BufferEvent, CallEvent, DirectoryEvent, EventHead, LifecycleEvent, OpenFile, PathCallEvent,
    StreamCounters,
};
use super::wide_text::WideText;

/// glibc's _IO_UNBUFFERED and _IO_LINE_BUF.
const UNBUFFERED: u32 = 0x2;
const LINE_BUFFERED: u32 = 0x200;

/// Read-ahead bytes in a report: a line of text.
const UNREAD_PREVIEW_BYTES: usize = 64;

/// A change of the backend's state that an event causes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProcessChange {
    Unchanged,
    /// A stream of this process was closed.
    StreamClosed(u32),
    /// This process was created.
    Forked(u32),
    /// `plain`: the C library has the program's only buffers.
    Executed {
        pid: u32,
        exe: PathBuf,
        plain: bool,
    },
    /// `high_fds`: counters of the process may still be in the map of streams.
    Exited {
        pid: u32,
        exit: Exit,
        high_fds: bool,
    },
}

/// Decodes events one by one. The kernel emits one event per buffer; the decoder collects the buffers of a snapshot until the
/// thread's next event.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    snapshots: HashMap<u32, PartialSnapshot>,
}

/// The buffers of a snapshot that has not ended yet.
#[derive(Debug)]
struct PartialSnapshot {
    ns: u64,
    pid: u32,
    moment: SnapshotMoment,
    buffers: Vec<Buffer>,
    files: Vec<(i32, RawFile, Untrusted)>,
}

impl Decoder {
    /// Decodes one event and sends the resulting raw events to `sink`. An exit is not sent: see [`exit_event`].
    pub fn decode(&mut self, bytes: &[u8], sink: &mut EventSink) -> ProcessChange {
        let Some(head) = shared_types::read::<EventHead>(bytes) else { return ProcessChange::Unchanged };
        match head.kind {
            shared_types::KIND_BUFFER => {}
            // Every other thread has ended, and the thread that called execve(2) has taken over the TID of the first one.
            shared_types::KIND_EXEC | shared_types::KIND_EXIT => self.flush_process(head.pid, sink),
            _ => self.flush(head.tid, sink),
        }
        match head.kind {
            shared_types::KIND_BUFFER => self.add_buffer(bytes),
            shared_types::KIND_CALL => {
                let raw = |kind| RawEvent { ns: head.ns, pid: head.pid, tid: head.tid, kind };
                call(bytes).into_iter().for_each(|kind| sink(raw(kind)));
            }
            shared_types::KIND_DIRECTORY => {
                if let Some(event) = shared_types::read::<DirectoryEvent>(bytes) {
                    let kind = RawEventKind::Directory(working_directory(&event));
                    sink(RawEvent { ns: head.ns, pid: head.pid, tid: head.tid, kind });
                }
            }
            shared_types::KIND_COUNTERS => {
                if let Some(counters) = shared_types::read::<StreamCounters>(bytes) {
                    send_counters(&counters, head.ns, sink);
                    return ProcessChange::StreamClosed(head.pid);
                }
            }
            shared_types::KIND_FORK | shared_types::KIND_EXEC | shared_types::KIND_EXIT => {
                if let Some(event) = shared_types::read::<LifecycleEvent>(bytes) {
                    return send_lifecycle(&event, sink);
                }
            }
            _ => {}
        }
        ProcessChange::Unchanged
    }

    fn add_buffer(&mut self, bytes: &[u8]) {
        let Some(event) = shared_types::read::<BufferEvent>(bytes) else { return };
        let moment = match event.moment {
            shared_types::MOMENT_FORK => SnapshotMoment::Fork,
            shared_types::MOMENT_EXEC => SnapshotMoment::Exec,
            shared_types::MOMENT_EXIT => SnapshotMoment::Exit,
            shared_types::MOMENT_SIGNAL => SnapshotMoment::Signal,
            _ => SnapshotMoment::Sample,
        };
        let (ns, pid) = (event.head.ns, event.head.pid);
        let snapshot = self.snapshots.entry(event.head.tid).or_insert_with(|| PartialSnapshot {
            ns,
            pid,
            moment,
            buffers: Vec::new(),
            files: Vec::new(),
        });
        snapshot.buffers.push(buffer(&event));
        let name = shared_types::text(&event.name);
        snapshot.files.extend(file(&event.file).map(|file| (event.head.fd, file, name)));
    }

    /// Sends the snapshots of all threads of a process, in order of time.
    fn flush_process(&mut self, pid: u32, sink: &mut EventSink) {
        let of_process = self.snapshots.iter().filter(|(_, snapshot)| snapshot.pid == pid);
        let mut threads: Vec<(u64, u32)> = of_process.map(|(tid, snapshot)| (snapshot.ns, *tid)).collect();
        threads.sort_unstable();
        threads.into_iter().for_each(|(_, tid)| self.flush(tid, sink));
    }

    /// Sends the thread's snapshot, if there is one.
    fn flush(&mut self, tid: u32, sink: &mut EventSink) {
        let Some(snapshot) = self.snapshots.remove(&tid) else { return };
        let PartialSnapshot { ns, pid, moment, buffers, files } = snapshot;
        let mut send = |kind| sink(RawEvent { ns, pid, tid, kind });
        for (fd, file, name) in files {
            send(RawEventKind::File { fd, file, name });
        }
        send(RawEventKind::Buffers {
            moment,
            buffers,
            blocked_in: String::new(),
            open_files: Vec::new(),
            read_until_ns: None,
        });
    }
}

fn buffer(event: &BufferEvent) -> Buffer {
    let mode = if event.base == 0 {
        None
    } else if event.flags & UNBUFFERED != 0 {
        Some(Mode::None)
    } else if event.flags & LINE_BUFFERED != 0 {
        Some(Mode::Line)
    } else {
        Some(Mode::Full)
    };
    let preview = |bytes: u64, most: usize| {
        event.data[..usize::try_from(bytes).unwrap_or(usize::MAX).min(most).min(event.data.len())].to_vec()
    };
    let bytes = preview(event.pending, event.data.len());
    let wide = WideText::of(event);
    let pending = if event.pending == 0 { wide.text } else { bytes };
    let has_pending = event.pending > 0 || event.wide > 0;
    let unread = if has_pending { Vec::new() } else { preview(event.unread, UNREAD_PREVIEW_BYTES) };
    Buffer {
        mode,
        buffer_bytes: event.end.saturating_sub(event.base),
        pending_bytes: event.pending.saturating_add(wide.bytes),
        pending,
        unconverted_bytes: if wide.is_exact { 0 } else { wide.bytes },
        unread_bytes: event.unread,
        unread,
        ..Buffer::empty(RuntimeId::GLIBC, event.address, event.head.fd)
    }
}

/// Converts the kernel's dev_t, which has 20 bits of minor number, into that of stat(2).
fn device(dev: u64) -> u64 {
    rustix::fs::makedev((dev >> 20) as u32, (dev & 0xf_ffff) as u32)
}

fn file(open_file: &OpenFile) -> Option<RawFile> {
    (open_file.key != 0).then(|| RawFile {
        key: open_file.key,
        dev: device(open_file.dev),
        ino: open_file.ino,
        mode: open_file.mode,
        flags: open_file.flags as i32,
        size_bytes: open_file.size,
        block_bytes: 1u32.checked_shl(open_file.block_bits).unwrap_or(0),
        pipe_bytes: (open_file.pipe_pages > 0).then(|| u64::from(open_file.pipe_pages) * page_size() as u64),
    })
}

/// The event has the components of the path from the last to the first.
fn working_directory(event: &DirectoryEvent) -> WorkingDirectory {
    let names = &event.names[..(event.name_bytes as usize).min(event.names.len())];
    let mut components: Vec<&[u8]> = names.split(|&byte| byte == 0).filter(|name| !name.is_empty()).collect();
    components.reverse();
    let path = [b"/", components.join(&b'/').as_slice()].concat();
    let path = (event.complete != 0).then(|| Untrusted::of_bytes(&path));
    WorkingDirectory { dev: device(event.dev), ino: event.ino, path }
}

/// Returns a call and the file of its descriptor. The file comes first, unless the call has created the descriptor.
fn call(bytes: &[u8]) -> Vec<RawEventKind> {
    let Some(event) = shared_types::read::<CallEvent>(bytes) else { return Vec::new() };
    let Some(op) = syscalls::op(i64::from(event.nr)) else { return Vec::new() };
    let path_call = shared_types::read::<PathCallEvent>(bytes);
    let paths = path_call.map_or_else(Vec::new, |event| {
        event.path.iter().map(|path| shared_types::text(path)).filter(|path| !path.is_empty()).collect()
    });
    let counted = event.counted != 0;
    let is_sync = matches!(op, Op::Fsync | Op::Fdatasync | Op::SyncFileRange);
    let call = RawCall {
        // An lseek(2) is in the counters of its stream too.
        counted: counted || op == Op::Lseek,
        requested_bytes: counted.then_some(event.args[2]),
        head: event.data[..(event.data_bytes as usize).min(event.data.len())].to_vec(),
        tail: u8::try_from(event.tail).ok(),
        paths,
        position: (counted && event.file.mode & 0o170_000 == 0o100_000).then_some(event.file.pos),
        began_ns: Some(event.args[5]).filter(|&ns| is_sync && ns > 0),
        ..RawCall::new(op, event.args, event.result)
    };
    let file = file(&event.file).map(|file| RawEventKind::File {
        fd: event.head.fd,
        file,
        name: Untrusted::default(),
    });
    let call = RawEventKind::Call(call);
    match file {
        Some(file) if op.makes_descriptor() => vec![call, file],
        Some(file) => vec![file, call],
        None => vec![call],
    }
}

/// Sends the counters of a stream after its file. Stale counters have only the time for which calls blocked; they are sent
/// without the file, because the descriptor may refer to another one by now.
pub(super) fn send_counters(counters: &StreamCounters, ns: u64, sink: &mut EventSink) {
    if counters.stale != 0 && counters.wait_ns == 0 {
        return;
    }
    let (pid, fd) = (counters.head.pid, counters.head.fd);
    let mut send = |kind| sink(RawEvent { ns, pid, tid: counters.head.tid, kind });
    if let Some(file) = file(&counters.file).filter(|_| counters.stale == 0) {
        send(RawEventKind::File { fd, file, name: Untrusted::default() });
    }
    let direction = if counters.writes != 0 { Direction::Out } else { Direction::In };
    let moved: u64 = counters.sizes.iter().sum();
    let counts = StreamCounts {
        calls: moved + counters.errors + counters.again,
        bytes: counters.bytes + counters.sizes[1], // the kernel does not add the bytes of one-byte calls
        errors: counters.errors,
        again: counters.again,
        zeros: counters.zeros,
        short: counters.shorts,
        sizes: Histogram(counters.sizes.to_vec()),
        requested_sizes: Histogram(requested_sizes(counters)),
        max_requested_bytes: counters.max_requested_bytes,
        newline_ends: counters.newline_ends,
        jumps: counters.jumps,
        again_bytes: counters.again_bytes,
        unaligned: counters.unaligned,
        in_kernel: counters.in_kernel,
        seeks: counters.seeks,
        wait_s: Some(counters.wait_ns as f64 / 1e9),
        ..StreamCounts::new(pid, 0, fd, 0, direction)
    };
    let emitted_seeks = u64::from(shared_types::EMITTED_SEEKS);
    send(RawEventKind::Counts(Box::new(RawCounts {
        counts,
        first_ns: counters.first_ns,
        last_ns: counters.last_ns,
        unreported_seeks: counters.seeks.saturating_sub(emitted_seeks),
        last_unreported_seek: (counters.seeks > emitted_seeks)
            .then_some((counters.seek_ns, counters.position)),
    })));
}

/// The histogram of the requested bytes. The kernel counts only calls whose requested size is in another slot than the size
/// moved. The others are spread over the slots like the sizes moved.
fn requested_sizes(counters: &StreamCounters) -> Vec<u64> {
    let moved: u64 = counters.sizes.iter().sum();
    let others = counters.other_requested_sizes;
    let same = u128::from(moved.saturating_sub(others.iter().sum()));
    let share = |count: u64| (u128::from(count) * same).checked_div(u128::from(moved)).unwrap_or(0) as u64;
    counters.sizes.iter().zip(others).map(|(&count, other)| other + share(count)).collect()
}

/// Converts a status of wait(2) to an exit.
pub(super) fn exit_of(status: u32) -> Exit {
    Exit::of_status(status as i32)
}

/// The arguments in the event's first bytes of argv.
fn arguments(event: &LifecycleEvent) -> Vec<Untrusted> {
    let bytes = &event.arguments[..(event.argument_bytes as usize).min(event.arguments.len())];
    proc::split_nul(bytes)
}

fn send_lifecycle(event: &LifecycleEvent, sink: &mut EventSink) -> ProcessChange {
    let pid = event.head.pid;
    let mut send = |kind| sink(RawEvent { ns: event.head.ns, pid, tid: event.head.tid, kind });
    match event.head.kind {
        shared_types::KIND_FORK => {
            send(RawEventKind::Fork { child: event.child, shares_files: event.flags & 1 != 0 });
            ProcessChange::Forked(event.child)
        }
        shared_types::KIND_EXEC => {
            let exe = shared_types::text(&event.path);
            let comm = shared_types::text(&event.comm);
            send(RawEventKind::Exec { exe: exe.clone(), comm, argv: arguments(event) });
            ProcessChange::Executed { pid, exe: exe.exact().into(), plain: event.flags & 1 != 0 }
        }
        _ => {
            let exit = exit_of(event.status);
            if let Exit::Signal(number) = exit {
                send(RawEventKind::Signal { number });
            }
            ProcessChange::Exited { pid, exit, high_fds: event.flags != 0 }
        }
    }
}

/// Decodes an exit. The backend sends it after the counters that are still in the map. `image_reads` are the kernel's own
/// reads at execve(2), which are subtracted.
pub(super) fn exit_event(bytes: &[u8], image_reads: IoTotals) -> Option<RawEvent> {
    let event = shared_types::read::<LifecycleEvent>(bytes)?;
    let io = IoTotals {
        read_calls: event.read_calls,
        write_calls: event.write_calls,
        read_bytes: event.read_bytes,
        written_bytes: event.written_bytes,
    };
    let (user_ns, system_ns) = cpu_times(event.user_ns, event.system_ns, event.run_ns);
    let (queued_ns, fetched_bytes) = (Some(event.queued_ns), Some(event.fetched_bytes));
    let usage = ResourceUsage { user_ns, system_ns, queued_ns, fetched_bytes };
    let kind = RawEventKind::Exit { exit: exit_of(event.status), io: Some(io.since(image_reads)), usage };
    Some(RawEvent { ns: event.head.ns, pid: event.head.pid, tid: event.head.tid, kind })
}

/// Splits the exact CPU time into user and system time, in the ratio of the tick-based times.
fn cpu_times(user_ns: u64, system_ns: u64, run_ns: u64) -> (u64, u64) {
    let ticks = u128::from(user_ns) + u128::from(system_ns);
    // A process without a tick spends nearly all of its time in the kernel, in exec and exit.
    let user = (u128::from(run_ns) * u128::from(user_ns)).checked_div(ticks).unwrap_or(0) as u64;
    (user, run_ns - user)
}

#[cfg(test)]
mod tests;
