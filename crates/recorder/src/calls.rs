//! Records calls: a [`RawCall`] changes the descriptor table of its process, its bytes are added to the streams of its
//! descriptors, and the calls that findings need become events of the recording. Calls that the kernel counted arrive as
//! [`RawCounts`] and are added as they are.

use std::sync::{Arc, PoisonError};

use weir_model::trace::{Call, EventKind, FIRST_CALLS, Op, Rename, StreamCounts};
use weir_sys::iovec::UIO_MAXIOV;
use weir_sys::syscalls;
use weir_trace_api::{RawCall, RawCounts, RawEvent};

use crate::{Recorder, buffer_snapshots, fd_revalidation, fd_table, streams};

/// Number of events above which [`Recorder::with_every_call`] has no effect: the limit leaves room for the
/// events that findings need.
const MAX_EVERY_CALL_EVENTS: usize = 20_000;
/// Limit of events of one rare call (such as lseek) on one descriptor: a loop must not fill the recording.
const MAX_REPEATED_EVENTS: u32 = 64;

/// The largest result of a call: a number of bytes, a descriptor, a pipe's size or a number of requests. The kernel moves whole pages
/// up to this number of bytes (MAX_RW_COUNT in its fs.h); the other results are ints.
const MAX_RESULT: i64 = i32::MAX as i64;
/// The largest errno: MAX_ERRNO of the kernel's err.h.
const MAX_ERROR: i64 = 4095;
/// The most bytes of one stream, moved or asked for: 64 PiB, a year at 2 GB/s.
pub(super) const MAX_STREAM_BYTES: u64 = 1 << 56;

/// Changes a result that no kernel gives: a process can have one set by its own tracer, and such numbers must not make sums
/// overflow.
pub(super) fn limit_result(call: &mut RawCall) {
    // These return an offset and an address.
    let most = match call.op {
        Op::Lseek | Op::Mmap => i64::MAX,
        Op::Recvmmsg | Op::Sendmmsg => MAX_RESULT * UIO_MAXIOV as i64,
        _ => MAX_RESULT,
    };
    call.result = call.result.clamp(-MAX_ERROR, most);
}

impl Recorder {
    /// Records a call: applies it to the descriptor table, counts it, and adds its event if it has one.
    pub(super) fn record_call(&mut self, raw: &RawEvent, call: &RawCall, at_s: f64) {
        let pid = raw.pid;
        let image = self.image(pid, at_s);
        self.other_calls.add((pid, image), call);
        self.untracked.note_call(pid, call);
        let transfers = call.op.reads() || call.op.writes() || call.op.copies();
        let mut is_event = !transfers;
        if transfers && !call.counted {
            is_event = self.add_call(pid, image, call, raw.ns);
            is_event |= self.every_call && self.events.len() < MAX_EVERY_CALL_EVENTS;
            // Rules would take what a peek copied for bytes that were read.
            is_event &= !(call.op.reads() && syscalls::leaves_input(call.op, &call.args));
        }
        let fd = fd_table::event_fd(call);
        let file = self.apply_to_table(pid, call, fd);
        if let Some(file) = file.filter(|_| call.op.opens() && at_s < self.latest_snapshot_s) {
            buffer_snapshots::correct_file(&mut self.events, (pid, fd), at_s, file);
        }
        let last_call_ns = self.live_process(pid, at_s).last_call_ns.insert(raw.tid, raw.ns).unwrap_or(0);
        if let (Some(file), true) = (file, call.result >= 0 && !call.counted) {
            let lasted_s = self.longest_duration(call.began_ns.unwrap_or(0).max(last_call_ns), at_s);
            self.streams.add_rare_call((pid, image, fd, file), call, at_s, lasted_s);
            self.track_position(file, call);
            self.untracked.note_mapping(&self.files, pid, file, call);
        }
        let rename = self.learn_names(pid, call, raw.ns);
        if (is_event || call.counted) && self.within_repeat_limit(pid, call, fd) {
            let event = Call {
                requested_bytes: streams::requested_bytes(call),
                position: call.position,
                head: call.head.clone(),
                tail: call.tail,
                paths: call.paths.clone(),
                rename: rename.map(Box::new),
                ..Call::new(call.op, fd, file, call.args, call.result)
            };
            self.push_event(at_s, pid, raw.tid, EventKind::Call(event));
        }
    }

    /// Returns the seconds from `began_ns` to the end of a call at `at_s`. Returns None if nothing is known of its begin (0), or only a
    /// time in or before the last gap, which may be that of an earlier call.
    fn longest_duration(&self, began_ns: u64, at_s: f64) -> Option<f64> {
        let began_s = self.seconds(began_ns);
        (began_ns > 0 && began_s >= self.window_start_s).then_some(at_s - began_s)
    }

    /// Applies a call to the descriptor table. Returns the file of descriptor `fd`.
    fn apply_to_table(&mut self, pid: u32, call: &RawCall, fd: i32) -> Option<u32> {
        // The file of a closed descriptor is known only before the call, that of an opened one only afterwards.
        self.with_table(pid, |table, files| {
            // After a gap the file of a closed descriptor is unknown.
            let closes = matches!(call.op, Op::Close | Op::Dup2 | Op::Dup3);
            let is_unknown = closes && table.get(&fd).is_some_and(|known| known.stale);
            let file_before = match is_unknown || call.op.opens() {
                true => None,
                false => fd_revalidation::lookup(table, files, pid, fd),
            };
            fd_table::apply_call(table, files, call, pid);
            file_before.or_else(|| table.get(&fd).map(|known| known.file))
        })
    }

    /// Remembers which paths exist after a call. Returns the paths of a successful rename.
    fn learn_names(&mut self, pid: u32, call: &RawCall, ns: u64) -> Option<Rename> {
        if call.paths.is_empty() {
            return None;
        }
        let table = Arc::clone(&self.live_process(pid, 0.0).descriptors);
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        self.existing_names.learn((&mut table, &mut self.files), call, pid, ns)
    }

    /// Adds a call that the kernel did not count to its streams. Returns whether the call also becomes an
    /// event.
    fn add_call(&mut self, pid: u32, image: u32, call: &RawCall, ns: u64) -> bool {
        let mut is_event = false;
        for (fd, direction) in fd_table::transfer_fds(call, pid) {
            if call.result == -i64::from(libc::EBADF) {
                continue;
            }
            let file = self.file_of(pid, fd);
            let regular = self.files.is_regular(file);
            let after_fork = self.live_process(pid, 0.0).writes_after_fork < FIRST_CALLS;
            let relative = ns.saturating_sub(self.start_ns);
            is_event |=
                self.streams.add_call((pid, image, fd, file, direction), call, relative, regular, after_fork);
            if after_fork && call.op.writes() {
                self.live_process(pid, 0.0).writes_after_fork += 1;
            }
        }
        is_event
    }

    /// Returns false if the recording already has [`MAX_REPEATED_EVENTS`] of this rare call on this descriptor.
    fn within_repeat_limit(&mut self, pid: u32, call: &RawCall, fd: i32) -> bool {
        if !matches!(
            call.op,
            Op::Lseek | Op::Fsync | Op::Fdatasync | Op::SyncFileRange | Op::Mmap | Op::Fadvise
        ) && !call.op.submits()
        {
            return true;
        }
        let count = self.live_process(pid, 0.0).repeated_calls.entry((call.op, fd)).or_default();
        *count += 1;
        *count <= MAX_REPEATED_EVENTS
    }

    /// Adds the counters of a stream that a backend kept, and the last seek that it did not report.
    pub(super) fn record_counts(&mut self, pid: u32, tid: u32, mut counts: RawCounts, at_s: f64) {
        counts.counts.bytes = counts.counts.bytes.min(MAX_STREAM_BYTES);
        counts.counts.max_requested_bytes = counts.counts.max_requested_bytes.min(MAX_STREAM_BYTES);
        let (fd, image) = (counts.counts.fd, self.image(pid, at_s));
        let Some(file) = self.file_of_counts(pid, image, &counts.counts) else { return };
        self.other_calls.add_unreported_seeks((pid, image), file, &counts);
        if let Some((ns, to)) = counts.last_unreported_seek {
            let seek = EventKind::Call(streams::lseek_call(fd, file, to));
            self.push_event(self.seconds(ns), pid, tid, seek);
        }
        self.streams.add_kernel_counts(image, file, counts, self.start_ns);
    }

    /// Returns the open file of a backend's counters. Counters without calls and bytes have only the time for which a call blocked in a
    /// gap: they are those of the stream that last used the descriptor, which can be closed by now. Without such a stream, they have none.
    fn file_of_counts(&mut self, pid: u32, image: u32, counts: &StreamCounts) -> Option<u32> {
        if counts.calls > 0 || counts.seeks > 0 || counts.bytes > 0 {
            return Some(self.file_of(pid, counts.fd));
        }
        let known =
            self.with_table(pid, |table, files| fd_revalidation::lookup(table, files, pid, counts.fd));
        known.or_else(|| self.streams.last_file(pid, image, counts.fd, counts.direction))
    }
}
