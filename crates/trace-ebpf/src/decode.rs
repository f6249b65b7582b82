//! The kernel's events as reports.

use std::path::PathBuf;

use foldhash::HashMap;
use weir_model::trace::{Buffer, Exit, Histogram, IoTotals, Op, RuntimeId, SnapshotMoment, StreamCounts};
use weir_model::{Direction, Mode};
use weir_sys::proc::{self, ResourceUsage};
use weir_sys::syscalls;
use weir_trace_api::{EventSink, RawCall, RawCounts, RawEvent, RawEventKind, RawFile, WorkingDirectory};

use super::wire::{self, BufferSeen, Call, Counts, Head, Identity, Life, PathCall};

/// glibc's _IO_UNBUFFERED and _IO_LINE_BUF.
const UNBUFFERED: u32 = 0x2;
const LINE_BUFFERED: u32 = 0x200;

/// What the engine itself has to know of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Nothing.
    Plain,
    /// What a process moved through a stream that it has closed.
    Closed(u32),
    /// A new process.
    Fork(u32),
    /// A process runs something else; its executable.
    Exec { pid: u32, exe: PathBuf, plain: bool },
    /// A process has ended; it used descriptors above 63.
    Exit { pid: u32, exit: Exit, high: bool },
}

/// Buffers come one an event, and the event that they belong to follows.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    gathered: HashMap<u32, Gathered>,
}

/// Buffers of one look so far.
#[derive(Debug)]
struct Gathered {
    ns: u64,
    pid: u32,
    moment: SnapshotMoment,
    buffers: Vec<Buffer>,
    files: Vec<(i32, RawFile, String)>,
}

impl Decoder {
    /// Reports one event.
    pub fn take(&mut self, bytes: &[u8], sink: &mut EventSink) -> Note {
        let Some(head) = wire::read::<Head>(bytes) else { return Note::Plain };
        if head.kind != wire::KIND_BUFFER {
            self.flush(head.tid, sink);
        }
        let report = |kind| RawEvent { ns: head.ns, pid: head.pid, tid: head.tid, kind };
        match head.kind {
            wire::KIND_BUFFER => self.gather(bytes),
            wire::KIND_CALL => call(bytes).into_iter().for_each(|kind| sink(report(kind))),
            wire::KIND_COUNTS => {
                if let Some(counts) = wire::read::<Counts>(bytes) {
                    report_counts(&counts, head.ns, sink);
                    return Note::Closed(head.pid);
                }
            }
            wire::KIND_FORK | wire::KIND_EXEC | wire::KIND_EXIT => {
                if let Some(life) = wire::read::<Life>(bytes) {
                    return report_life(&life, sink);
                }
            }
            _ => {}
        }
        Note::Plain
    }

    fn gather(&mut self, bytes: &[u8]) {
        let Some(seen) = wire::read::<BufferSeen>(bytes) else { return };
        let moment = match seen.moment {
            1 => SnapshotMoment::Fork,
            2 => SnapshotMoment::Exec,
            3 => SnapshotMoment::Exit,
            4 => SnapshotMoment::Signal,
            _ => SnapshotMoment::Sample,
        };
        let group = self.gathered.entry(seen.head.tid);
        let (ns, pid) = (seen.head.ns, seen.head.pid);
        let group =
            group.or_insert_with(|| Gathered { ns, pid, moment, buffers: Vec::new(), files: Vec::new() });
        group.buffers.push(buffer(&seen));
        group.files.extend(file(&seen.file).map(|file| (seen.head.fd, file, wire::text(&seen.name))));
    }

    fn flush(&mut self, tid: u32, sink: &mut EventSink) {
        let Some(Gathered { ns, pid, moment, buffers, files }) = self.gathered.remove(&tid) else { return };
        let mut say = |kind| sink(RawEvent { ns, pid, tid, kind });
        for (fd, file, name) in files {
            say(RawEventKind::File { fd, file, name });
        }
        say(RawEventKind::Buffers { moment, buffers, blocked_in: String::new(), open_files: Vec::new() });
    }
}

fn buffer(seen: &BufferSeen) -> Buffer {
    let size = seen.end.saturating_sub(seen.base);
    let mode = if seen.base == 0 {
        None
    } else if seen.flags & UNBUFFERED != 0 {
        Some(Mode::None)
    } else if seen.flags & LINE_BUFFERED != 0 {
        Some(Mode::Line)
    } else {
        Some(Mode::Full)
    };
    let preview =
        |bytes: u64, most: usize| seen.data[..(bytes as usize).min(most).min(wire::PREVIEW)].to_vec();
    let pending = preview(seen.pending, wire::PREVIEW);
    let unread = if seen.pending == 0 { preview(seen.unread, 64) } else { Vec::new() };
    Buffer {
        walker: RuntimeId::GLIBC,
        address: seen.address,
        fd: seen.head.fd,
        mode,
        buffer_bytes: size,
        pending_bytes: seen.pending,
        pending,
        unread_bytes: seen.unread,
        unread,
    }
}

/// The kernel's own device numbers have 20 bits of minor; stat(2) shows them otherwise.
fn device(dev: u64) -> u64 {
    rustix::fs::makedev((dev >> 20) as u32, (dev & 0xf_ffff) as u32)
}

fn file(identity: &Identity) -> Option<RawFile> {
    (identity.key != 0).then(|| RawFile {
        key: identity.key,
        dev: device(identity.dev),
        ino: identity.ino,
        mode: identity.mode,
        flags: identity.flags as i32,
        size_bytes: identity.size,
        block_bytes: 1u32.checked_shl(identity.block_bits).unwrap_or(0),
        pipe_bytes: (identity.pipe_pages > 0).then(|| u64::from(identity.pipe_pages) * 4096),
    })
}

/// A call and what is behind its descriptor: before it, or after it when the call has made the descriptor.
fn call(bytes: &[u8]) -> Vec<RawEventKind> {
    let Some(seen) = wire::read::<Call>(bytes) else { return Vec::new() };
    let Some(op) = syscalls::op(i64::from(seen.nr)) else { return Vec::new() };
    let named = wire::read::<PathCall>(bytes);
    let paths = named.map_or_else(Vec::new, |event| {
        event.path.iter().map(|path| wire::text(path)).filter(|path| !path.is_empty()).collect()
    });
    let directory = named
        .map(|event| if event.moved != 0 { WorkingDirectory::Changed } else { WorkingDirectory::Unchanged });
    let counted = seen.counted != 0;
    let waits = matches!(op, Op::Fsync | Op::Fdatasync | Op::SyncFileRange);
    let call = RawCall {
        // The move of an offset is in the counters of its stream.
        counted: counted || op == Op::Lseek,
        requested_bytes: counted.then_some(seen.args[2]),
        head: seen.data[..(seen.data_bytes as usize).min(wire::HEAD)].to_vec(),
        tail: u8::try_from(seen.tail).ok(),
        paths,
        directory,
        position: (counted && seen.file.mode & 0o170_000 == 0o100_000).then_some(seen.file.pos),
        began_ns: Some(seen.args[5]).filter(|&ns| waits && ns > 0),
        ..RawCall::new(op, seen.args, seen.result)
    };
    let behind =
        file(&seen.file).map(|file| RawEventKind::File { fd: seen.head.fd, file, name: String::new() });
    let call = RawEventKind::Call(call);
    match behind {
        Some(behind) if op.makes_descriptor() => vec![call, behind],
        Some(behind) => vec![behind, call],
        None => vec![call],
    }
}

/// The counters of a stream, with what is behind it.
pub(super) fn report_counts(counts: &Counts, ns: u64, sink: &mut EventSink) {
    if counts.doubted != 0 {
        return; // nothing was counted since, and the descriptor may be another file's
    }
    let (pid, fd) = (counts.head.pid, counts.head.fd);
    let mut say = |kind| sink(RawEvent { ns, pid, tid: counts.head.tid, kind });
    if let Some(file) = file(&counts.file) {
        say(RawEventKind::File { fd, file, name: String::new() });
    }
    let moved: u64 = counts.sizes.iter().sum();
    let other: u64 = counts.asked_other.iter().sum();
    let mut asked = counts.asked_other.to_vec();
    // What asked for as much as it moved is not counted twice in the kernel: it is what is left, and where
    // some calls were short the shares are by size.
    let same = moved.saturating_sub(other);
    for (slot, &count) in counts.sizes.iter().enumerate() {
        asked[slot] +=
            if moved == 0 { 0 } else { (u128::from(count) * u128::from(same) / u128::from(moved)) as u64 };
    }
    let direction = if counts.writes != 0 { Direction::Out } else { Direction::In };
    let flow = StreamCounts {
        calls: moved + counts.errors + counts.again,
        bytes: counts.bytes + counts.sizes[1], // of single bytes the sizes say all
        errors: counts.errors,
        again: counts.again,
        zeros: counts.zeros,
        short: counts.shorts,
        sizes: Histogram(counts.sizes.to_vec()),
        asked: Histogram(asked),
        asked_max: counts.asked_max,
        newline_ends: counts.newline_ends,
        jumps: counts.jumps,
        again_bytes: counts.again_bytes,
        unaligned: counts.unaligned,
        in_kernel: counts.in_kernel,
        seeks: counts.seeks,
        ..StreamCounts::new(pid, 0, fd, 0, direction)
    };
    say(RawEventKind::Counts(Box::new(RawCounts {
        counts: flow,
        first_ns: counts.first_ns,
        last_ns: counts.last_ns,
        unreported_seeks: counts.seeks.saturating_sub(wire::TOLD_SEEKS),
        last_unreported_seek: (counts.seeks > wire::TOLD_SEEKS).then_some((counts.seek_ns, counts.position)),
    })));
}

/// wait(2)'s status.
pub(super) fn exit_of(status: u32) -> Exit {
    Exit::of_status(status as i32)
}

/// The first of them, as far as there was room.
fn arguments(life: &Life) -> Vec<String> {
    proc::split_nul(&life.arguments[..(life.argument_bytes as usize).min(wire::PATH)])
}

fn report_life(life: &Life, sink: &mut EventSink) -> Note {
    let pid = life.head.pid;
    let mut say = |kind| sink(RawEvent { ns: life.head.ns, pid, tid: life.head.tid, kind });
    match life.head.kind {
        wire::KIND_FORK => {
            say(RawEventKind::Fork { child: life.other, shares_files: life.flags != 0 });
            Note::Fork(life.other)
        }
        wire::KIND_EXEC => {
            let exe = wire::text(&life.path);
            say(RawEventKind::Exec { exe: exe.clone(), comm: wire::text(&life.comm), argv: arguments(life) });
            Note::Exec { pid, exe: exe.into(), plain: life.flags & 1 != 0 }
        }
        _ => {
            let exit = exit_of(life.other);
            if let Exit::Signal(number) = exit {
                say(RawEventKind::Signal { number });
            }
            Note::Exit { pid, exit, high: life.flags != 0 }
        }
    }
}

/// The report of an exit comes last, when the counters have been swept. `read`: by the kernel, not by the program.
pub(super) fn exit_report(bytes: &[u8], read: IoTotals) -> Option<RawEvent> {
    let life = wire::read::<Life>(bytes)?;
    let io = IoTotals {
        read_calls: life.read_calls,
        write_calls: life.write_calls,
        read_bytes: life.read_bytes,
        written_bytes: life.written_bytes,
    };
    let (user_ns, system_ns) = times(life.user_ns, life.system_ns, life.run_ns);
    let (queued_ns, fetched_bytes) = (Some(life.queued_ns), Some(life.fetched_bytes));
    let spent = ResourceUsage { user_ns, system_ns, queued_ns, fetched_bytes };
    let kind = RawEventKind::Exit { exit: exit_of(life.other), io: Some(io.since(read)), usage: spent };
    Some(RawEvent { ns: life.head.ns, pid: life.head.pid, tid: life.head.tid, kind })
}

/// User and system time: the exact time on a processor, in the shares that the kernel's ticks fell into.
fn times(user_ns: u64, system_ns: u64, run_ns: u64) -> (u64, u64) {
    let ticks = u128::from(user_ns) + u128::from(system_ns);
    // Too short for a tick: as good as all of it is the kernel's, starting and ending it.
    let user = (u128::from(run_ns) * u128::from(user_ns)).checked_div(ticks).unwrap_or(0) as u64;
    (user, run_ns - user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_in_sum_and_shared_by_ticks() {
        assert_eq!(times(30, 10, 400), (300, 100));
        assert_eq!(times(0, 0, 7), (0, 7));
        assert_eq!(times(u64::MAX, u64::MAX, 9), (4, 5));
    }
}
