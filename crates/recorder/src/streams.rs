//! Adds the calls of each stream of the recording, from the counters of a backend or call by call. A stream is
//! one descriptor of one image in one direction.

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::{Call, FAILED_CALLS, FIRST_CALLS, Op, StreamCounts};
use weir_sys::syscalls;
use weir_trace_api::{RawCall, RawCounts};

/// Block size of common file systems, for the count of unaligned calls.
const BLOCK: u64 = 4096;

/// PID, index of the image, descriptor, file id and direction.
pub(super) type StreamKey = (u32, u32, i32, u32, Direction);

/// The state of a stream that the next call is compared with.
#[derive(Debug, Default, Clone, Copy)]
struct StreamState {
    /// Offset in bytes at which the next call starts, if it is known.
    position: Option<u64>,
    /// Offset in bytes at which the last call that moved bytes ended. A later lseek(2) does not change it.
    last_end: Option<u64>,
    /// Largest end of any call, in bytes.
    max_end: u64,
    /// Number of first calls that became events.
    reported: u32,
    failed: u32,
    /// Number of writes that ended with a restart code of the kernel.
    restarted: u32,
}

/// The counters of all streams.
#[derive(Debug, Default)]
pub(super) struct StreamTotals {
    pub all: Vec<StreamCounts>,
    index: HashMap<StreamKey, usize>,
    by_process: HashMap<u32, Vec<usize>>,
    states: HashMap<usize, StreamState>,
    /// Activity of each stream since the last [`StreamTotals::take_recent`], by PID and index.
    recent: HashMap<u32, HashMap<usize, RecentStream>>,
}

/// Activity of a stream in one sampling window.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct RecentStream {
    pub calls: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
}

/// Returns the number of bytes that a call asks for.
pub(super) fn requested_bytes(call: &RawCall) -> u64 {
    call.requested_bytes.or_else(|| syscalls::requested_bytes(call.op, &call.args)).unwrap_or(0)
}

/// The bytes of one call in one direction.
#[derive(Debug, Clone, Copy)]
struct CallBytes {
    moved: u64,
    requested: u64,
}

impl CallBytes {
    /// Returns the bytes of a call; none for the input of a call that leaves its input unread, such as a peek.
    fn of(call: &RawCall, direction: Direction) -> Self {
        if direction == Direction::In && syscalls::leaves_input(call.op, &call.args) {
            return Self { moved: 0, requested: 0 };
        }
        Self { moved: call.result.max(0) as u64, requested: requested_bytes(call) }
    }
}

/// Returns an lseek(2) call of which only the new position is known.
pub(super) fn lseek_call(fd: i32, file: u32, to: u64) -> Call {
    Call::new(Op::Lseek, fd, Some(file), [fd as u64, to, libc::SEEK_SET as u64, 0, 0, 0], to as i64)
}

/// Returns whether the program repeats the call after this result: EAGAIN, EINTR, or a restart code of the
/// kernel (512 and up).
fn is_retry(result: i64) -> bool {
    // A seccomp supervisor can return any number.
    let error = result.wrapping_neg();
    error == i64::from(libc::EAGAIN)
        || error == i64::from(libc::EINTR)
        || error >= -syscalls::RESTART_CODES.end()
}

impl StreamTotals {
    fn index_of(&mut self, key: StreamKey, at_s: f64) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            let (pid, image, fd, file, direction) = key;
            let mut stream = StreamCounts::new(pid, image, fd, file, direction);
            stream.first_s = at_s;
            self.by_process.entry(pid).or_default().push(self.all.len());
            self.all.push(stream);
            self.all.len() - 1
        })
    }

    /// Returns the activity of a process's streams since the last call of this method.
    pub fn take_recent(&mut self, pid: u32) -> HashMap<usize, RecentStream> {
        self.recent.remove(&pid).unwrap_or_default()
    }

    /// Forgets the position of a stream after a gap, in which other calls may have moved it.
    pub fn forget_position(&mut self, index: usize) {
        if let Some(state) = self.states.get_mut(&index) {
            (state.position, state.last_end) = (None, None);
        }
    }

    fn add_recent(&mut self, index: usize, calls: u64, bytes: u64, (first_s, last_s): (f64, f64)) {
        let of_process = self.recent.entry(self.all[index].pid).or_default();
        let recent = of_process.entry(index).or_insert(RecentStream { first_s, ..RecentStream::default() });
        recent.calls += calls;
        recent.bytes += bytes;
        recent.last_s = recent.last_s.max(last_s);
    }

    /// Returns the descriptors and files of an image that lseek(2) was called on.
    pub fn seeked_files(&self, pid: u32, image: u32) -> HashSet<(i32, u32)> {
        let seeks = |stream: &&StreamCounts| stream.image == image && stream.seeks > 0;
        let own = self.of_process(pid).iter().map(|&index| &self.all[index]);
        own.filter(seeks).map(|stream| (stream.fd, stream.file)).collect()
    }

    /// Returns the indices of a process's streams.
    pub fn of_process(&self, pid: u32) -> &[usize] {
        self.by_process.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// Returns the open file of the latest stream of a descriptor.
    pub fn last_file(&self, pid: u32, image: u32, fd: i32, direction: Direction) -> Option<u32> {
        let own = self.of_process(pid).iter().map(|&index| &self.all[index]);
        let same =
            |stream: &&StreamCounts| (stream.image, stream.fd, stream.direction) == (image, fd, direction);
        own.rev().find(same).map(|stream| stream.file)
    }

    /// Returns the index of a stream, which is created if no call of it was observed.
    pub fn add_unobserved(&mut self, key: StreamKey, at_s: f64) -> usize {
        self.index_of(key, at_s)
    }

    /// Adds the counters of a backend to the stream of this image and file.
    pub fn add_kernel_counts(&mut self, image: u32, file: u32, counts: RawCounts, start_ns: u64) {
        let seconds = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e9;
        let RawCounts { counts: added, first_ns, last_ns, .. } = counts;
        let times = (seconds(first_ns), seconds(last_ns));
        let index = self.index_of((added.pid, image, added.fd, file, added.direction), times.0);
        if added.calls > 0 {
            self.add_recent(index, added.calls, added.bytes, times);
        }
        let stream = &mut self.all[index];
        stream.add(&StreamCounts { first_s: stream.first_s, last_s: times.1, ..added });
    }

    /// Adds one call. Returns whether the call also becomes an event.
    pub fn add_call(
        &mut self,
        key: StreamKey,
        call: &RawCall,
        ns: u64,
        regular: bool,
        after_fork: bool,
    ) -> bool {
        let at_s = ns as f64 / 1e9;
        let index = self.index_of(key, at_s);
        let bytes = CallBytes::of(call, key.4);
        self.add_recent(index, 1, bytes.moved, (at_s, at_s));
        let state = self.states.entry(index).or_default();
        let stream = &mut self.all[index];
        let requested = bytes.requested;
        if !is_retry(call.result) || stream.calls == 0 {
            stream.last_s = at_s;
        }
        stream.calls += 1;
        stream.requested_sizes.add(requested, 1);
        stream.max_requested_bytes =
            stream.max_requested_bytes.max(requested.min(crate::calls::MAX_STREAM_BYTES));
        stream.in_kernel += u64::from(call.op.copies());
        if let Some(ns) = call.blocked_ns {
            *stream.wait_s.get_or_insert(0.0) += ns as f64 / 1e9;
        }
        let writes = key.4 == Direction::Out;
        if call.result >= 0 {
            count_moved(stream, state, (call, bytes), regular);
        } else if is_retry(call.result) {
            stream.again += 1;
        } else {
            stream.errors += 1;
        }
        if state.reported < FIRST_CALLS || (after_fork && writes) {
            state.reported += 1;
            return true;
        }
        let failed = call.result < 0 && !is_retry(call.result);
        let short = writes && call.result >= 0 && bytes.moved < requested;
        state.failed += u32::from(failed || short);
        // The process may be killed in it, and then misses its bytes.
        let is_restarted = writes && call.result <= *syscalls::RESTART_CODES.end();
        state.restarted += u32::from(is_restarted);
        (failed || short) && state.failed <= FAILED_CALLS || is_restarted && state.restarted <= FAILED_CALLS
    }

    /// Adds a seek or sync to the descriptor's streams. `lasted_s` is the longest possible duration of the
    /// call, if it is known.
    pub fn add_rare_call(
        &mut self,
        (pid, image, fd, file): (u32, u32, i32, u32),
        call: &RawCall,
        at_s: f64,
        lasted_s: Option<f64>,
    ) {
        match call.op {
            Op::Lseek => {
                for direction in [Direction::In, Direction::Out] {
                    if let Some(&index) = self.index.get(&(pid, image, fd, file, direction)) {
                        self.all[index].seeks += 1;
                        self.states.entry(index).or_default().position = u64::try_from(call.result).ok();
                    }
                }
            }
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => {
                let index = self.index_of((pid, image, fd, file, Direction::Out), at_s);
                let stream = &mut self.all[index];
                stream.syncs += 1;
                stream.last_s = stream.last_s.max(at_s);
                stream.timed_syncs += u64::from(lasted_s.is_some());
                stream.sync_s += lasted_s.unwrap_or(0.0);
            }
            _ => {}
        }
    }
}

fn count_moved(
    stream: &mut StreamCounts,
    state: &mut StreamState,
    (call, CallBytes { moved, requested }): (&RawCall, CallBytes),
    regular: bool,
) {
    stream.bytes += moved;
    stream.sizes.add(moved, 1);
    if moved < requested {
        *(if moved == 0 { &mut stream.zeros } else { &mut stream.short }) += 1;
    }
    stream.newline_ends += u64::from(moved > 1 && call.tail == Some(b'\n'));
    let explicit = call.op.offset_argument(&call.args);
    if !regular || moved == 0 {
        return;
    }
    let Some(from) = explicit.or(call.position).or(state.position) else {
        return;
    };
    stream.jumps += u64::from(state.last_end.is_some_and(|ended| ended != from));
    let to = from.saturating_add(moved);
    stream.unaligned += u64::from(from % BLOCK != 0 || to % BLOCK != 0);
    stream.again_bytes += to.min(state.max_end).saturating_sub(from);
    state.max_end = state.max_end.max(to);
    (state.position, state.last_end) = (Some(to), Some(to));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(requested: u64, result: i64) -> RawCall {
        RawCall { position: Some(0), ..RawCall::new(Op::Read, [0, 0, requested, 0, 0, 0], result) }
    }

    #[test]
    fn calls_are_counted_by_how_they_ended() {
        let mut streams = StreamTotals::default();
        let key = (1, 0, 0, 0, Direction::In);
        for result in [10, 4, 0, -i64::from(libc::EAGAIN), -512, -i64::from(libc::EIO)] {
            streams.add_call(key, &read(10, result), 0, false, false);
        }
        let stream = &streams.all[0];
        assert_eq!((stream.calls, stream.bytes, stream.short, stream.zeros), (6, 14, 1, 1));
        assert_eq!((stream.again, stream.errors), (2, 1));
        assert_eq!(stream.sizes.total(), 3);
        assert_eq!(stream.requested_sizes.total(), 6);
    }

    #[test]
    fn a_peek_moves_no_bytes() {
        let mut streams = StreamTotals::default();
        let peek = RawCall::new(Op::Recvfrom, [5, 0, 100, libc::MSG_PEEK as u64, 0, 0], 100);
        streams.add_call((1, 0, 5, 0, Direction::In), &peek, 0, false, false);
        streams.add_call((1, 0, 5, 0, Direction::In), &RawCall { result: 0, ..peek }, 0, false, false);
        let tee = RawCall::new(Op::Tee, [6, 7, 100, 0, 0, 0], 100);
        for (fd, direction) in [(6, Direction::In), (7, Direction::Out)] {
            streams.add_call((1, 0, fd, 1, direction), &tee, 0, false, false);
        }
        let counted = streams.all.iter().map(|stream| (stream.fd, stream.calls, stream.bytes, stream.zeros));
        assert_eq!(counted.collect::<Vec<_>>(), [(5, 2, 0, 0), (6, 1, 0, 0), (7, 1, 100, 0)]);
    }

    #[test]
    fn an_interrupted_call_is_not_the_last_one() {
        let mut totals = StreamTotals::default();
        let key = (1, 0, 3, 7, Direction::In);
        for (ns, result) in [(1_000_000_000, -512), (2_000_000_000, 10), (3_000_000_000, -512)] {
            totals.add_call(key, &read(10, result), ns, false, false);
        }
        assert_eq!((totals.all[0].first_s, totals.all[0].last_s, totals.all[0].calls), (1.0, 2.0, 3));
    }

    #[test]
    fn bytes_read_again_are_recognised_by_the_seek() {
        let mut streams = StreamTotals::default();
        let key = (1, 0, 3, 0, Direction::In);
        streams.add_call(key, &RawCall { position: None, ..read(4096, 4096) }, 0, true, false);
        assert_eq!(
            (streams.all[0].again_bytes, streams.all[0].jumps),
            (0, 0),
            "the first position is unknown"
        );
        for to in [0, 0, 4096, 8192] {
            let call = RawCall { op: Op::Lseek, result: to, ..read(0, 0) };
            streams.add_rare_call((1, 0, 3, 0), &call, 0.0, None);
            streams.add_call(key, &RawCall { position: None, ..read(4096, 4096) }, 0, true, false);
        }
        // The last two seeks lead to the current position.
        assert_eq!((streams.all[0].again_bytes, streams.all[0].jumps, streams.all[0].seeks), (4096, 1, 4));
    }

    #[test]
    fn bytes_read_again_are_recognised_by_their_position() {
        let mut streams = StreamTotals::default();
        let key = (1, 0, 0, 0, Direction::In);
        for position in [0, 4096, 0] {
            let call = RawCall { position: Some(position), ..read(4096, 4096) };
            streams.add_call(key, &call, 0, true, false);
        }
        assert_eq!(
            (streams.all[0].again_bytes, streams.all[0].jumps, streams.all[0].unaligned),
            (4096, 1, 0)
        );
    }
}
