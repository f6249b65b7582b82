//! Adds up the calls of each flow: from the kernel's counters, or call by call.

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::{Call, Op, StreamCounts};
use weir_sys::syscalls;
use weir_trace_api::{RawCall, RawCounts};

/// The first calls of a flow, and the first writes after a fork, are told one by one.
pub(super) const FIRST_CALLS: u32 = 8;
/// So many failures and short counts of a flow are told.
const FAILED_CALLS: u32 = 32;
const BLOCK: u64 = 4096;

pub(super) type StreamKey = (u32, u32, i32, u32, Direction);

/// Where a flow stands, for what depends on its last call.
#[derive(Debug, Default, Clone, Copy)]
struct Place {
    position: Option<u64>,
    /// Where the last call that moved bytes ended, whatever was sought since.
    ended: Option<u64>,
    high: u64,
    told: u32,
    failed: u32,
}

/// All flows.
#[derive(Debug, Default)]
pub(super) struct StreamTotals {
    pub all: Vec<StreamCounts>,
    index: HashMap<StreamKey, usize>,
    by_process: HashMap<u32, Vec<usize>>,
    places: HashMap<usize, Place>,
    /// What each flow of a process did since that was taken last.
    recent: HashMap<u32, HashMap<usize, RecentStream>>,
}

/// What a flow did in some time.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct RecentStream {
    pub calls: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
}

/// What a call asked for.
pub(super) fn asked(call: &RawCall) -> u64 {
    call.requested_bytes.or_else(|| syscalls::requested_bytes(call.op, &call.args)).unwrap_or(0)
}

/// lseek(2) to a place, of which only the place is known.
pub(super) fn seek(fd: i32, file: u32, to: u64) -> Call {
    Call {
        op: Op::Lseek,
        fd,
        file: Some(file),
        args: [fd as u64, to, libc::SEEK_SET as u64, 0, 0, 0],
        result: to as i64,
        asked: 0,
        position: None,
        head: Vec::new(),
        tail: None,
        paths: Vec::new(),
        rename: None,
    }
}

/// A signal or an empty pipe came between: the call is made again (the kernel's own codes are 512 and up).
fn is_again(result: i64) -> bool {
    let error = -result;
    error == i64::from(libc::EAGAIN) || error == i64::from(libc::EINTR) || error >= 512
}

impl StreamTotals {
    fn get(&mut self, key: StreamKey, at_s: f64) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            let (pid, image, fd, file, direction) = key;
            let mut flow = StreamCounts::new(pid, image, fd, file, direction);
            flow.first_s = at_s;
            self.by_process.entry(pid).or_default().push(self.all.len());
            self.all.push(flow);
            self.all.len() - 1
        })
    }

    /// What the flows of a process did since the last time.
    pub fn take_recent(&mut self, pid: u32) -> HashMap<usize, RecentStream> {
        self.recent.remove(&pid).unwrap_or_default()
    }

    /// Nobody saw what came next: the next call may go on from elsewhere.
    pub fn forget_place(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(&index) {
            (place.position, place.ended) = (None, None);
        }
    }

    fn note_recent(&mut self, index: usize, calls: u64, bytes: u64, (first_s, last_s): (f64, f64)) {
        let of_process = self.recent.entry(self.all[index].pid).or_default();
        let recent = of_process.entry(index).or_insert(RecentStream { first_s, ..RecentStream::default() });
        recent.calls += calls;
        recent.bytes += bytes;
        recent.last_s = recent.last_s.max(last_s);
    }

    /// Descriptors of open files whose position was set by lseek(2) lately, or before.
    pub fn seeking(&self, pid: u32, image: u32) -> HashSet<(i32, u32)> {
        let seeks = |flow: &&StreamCounts| flow.image == image && flow.seeks > 0;
        let own = self.of_process(pid).iter().map(|&index| &self.all[index]);
        own.filter(seeks).map(|flow| (flow.fd, flow.file)).collect()
    }

    /// The flows of a process.
    pub fn of_process(&self, pid: u32) -> &[usize] {
        self.by_process.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// A flow of which nothing was seen, perhaps.
    pub fn unseen(&mut self, key: StreamKey, at_s: f64) -> usize {
        self.get(key, at_s)
    }

    /// Counters that were kept elsewhere, of this image and file.
    pub fn add_counts(&mut self, image: u32, file: u32, counts: RawCounts, start_ns: u64) {
        let seconds = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e9;
        let RawCounts { counts: more, first_ns, last_ns, .. } = counts;
        let times = (seconds(first_ns), seconds(last_ns));
        let index = self.get((more.pid, image, more.fd, file, more.direction), times.0);
        self.note_recent(index, more.calls, more.bytes, times);
        let flow = &mut self.all[index];
        flow.add(&StreamCounts { first_s: flow.first_s, last_s: times.1, ..more });
    }

    /// One call; true when it is worth an event of its own.
    pub fn add_call(
        &mut self,
        key: StreamKey,
        call: &RawCall,
        ns: u64,
        regular: bool,
        after_fork: bool,
    ) -> bool {
        let at_s = ns as f64 / 1e9;
        let index = self.get(key, at_s);
        self.note_recent(index, 1, call.result.max(0) as u64, (at_s, at_s));
        let place = self.places.entry(index).or_default();
        let flow = &mut self.all[index];
        let asked = asked(call);
        flow.last_s = at_s;
        flow.calls += 1;
        flow.asked.add(asked, 1);
        flow.asked_max = flow.asked_max.max(asked);
        flow.in_kernel += u64::from(call.op.copies());
        let writes = key.4 == Direction::Out;
        if call.result >= 0 {
            count_moved(flow, place, call, regular);
        } else if is_again(call.result) {
            flow.again += 1;
        } else {
            flow.errors += 1;
        }
        if place.told < FIRST_CALLS || (after_fork && writes) {
            place.told += 1;
            return true;
        }
        let failed = call.result < 0 && !is_again(call.result);
        let short = writes && call.result >= 0 && (call.result as u64) < asked;
        place.failed += u32::from(failed || short);
        (failed || short) && place.failed <= FAILED_CALLS
    }

    /// A rare call of a descriptor that belongs to its flows; how long it lasted at the most, where that is known.
    pub fn note(
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
                        self.places.entry(index).or_default().position = u64::try_from(call.result).ok();
                    }
                }
            }
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => {
                let index = self.get((pid, image, fd, file, Direction::Out), at_s);
                let flow = &mut self.all[index];
                flow.syncs += 1;
                flow.last_s = flow.last_s.max(at_s);
                flow.timed_syncs += u64::from(lasted_s.is_some());
                flow.sync_s += lasted_s.unwrap_or(0.0);
            }
            _ => {}
        }
    }
}

fn count_moved(flow: &mut StreamCounts, place: &mut Place, call: &RawCall, regular: bool) {
    let (moved, asked) = (call.result as u64, asked(call));
    flow.bytes += moved;
    flow.sizes.add(moved, 1);
    if moved < asked {
        *(if moved == 0 { &mut flow.zeros } else { &mut flow.short }) += 1;
    }
    flow.newline_ends += u64::from(moved > 1 && call.tail == Some(b'\n'));
    let own = syscalls::offset(call.op, &call.args);
    if !regular || moved == 0 {
        return;
    }
    let Some(from) = own.or(call.position).or(place.position) else {
        return;
    };
    flow.jumps += u64::from(place.ended.is_some_and(|ended| ended != from));
    let to = from + moved;
    flow.unaligned += u64::from(from % BLOCK != 0 || to % BLOCK != 0);
    flow.again_bytes += to.min(place.high).saturating_sub(from);
    place.high = place.high.max(to);
    (place.position, place.ended) = (Some(to), Some(to));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(asked: u64, result: i64) -> RawCall {
        RawCall { position: Some(0), ..RawCall::new(Op::Read, [0, 0, asked, 0, 0, 0], result) }
    }

    #[test]
    fn calls_are_counted_by_how_they_ended() {
        let mut flows = StreamTotals::default();
        let key = (1, 0, 0, 0, Direction::In);
        for result in [10, 4, 0, -i64::from(libc::EAGAIN), -512, -i64::from(libc::EIO)] {
            flows.add_call(key, &read(10, result), 0, false, false);
        }
        let flow = &flows.all[0];
        assert_eq!((flow.calls, flow.bytes, flow.short, flow.zeros), (6, 14, 1, 1));
        assert_eq!((flow.again, flow.errors), (2, 1));
        assert_eq!(flow.sizes.total(), 3);
        assert_eq!(flow.asked.total(), 6);
    }

    #[test]
    fn bytes_read_again_after_a_seek_are_seen_by_where_it_went() {
        let mut flows = StreamTotals::default();
        let key = (1, 0, 3, 0, Direction::In);
        flows.add_call(key, &RawCall { position: None, ..read(4096, 4096) }, 0, true, false);
        assert_eq!((flows.all[0].again_bytes, flows.all[0].jumps), (0, 0), "nobody knows where it began");
        for to in [0, 0, 4096, 8192] {
            let call = RawCall { op: Op::Lseek, result: to, ..read(0, 0) };
            flows.note((1, 0, 3, 0), &call, 0.0, None);
            flows.add_call(key, &RawCall { position: None, ..read(4096, 4096) }, 0, true, false);
        }
        // The last two went where the file was already.
        assert_eq!((flows.all[0].again_bytes, flows.all[0].jumps, flows.all[0].seeks), (4096, 1, 4));
    }

    #[test]
    fn bytes_read_again_are_seen_by_their_place() {
        let mut flows = StreamTotals::default();
        let key = (1, 0, 0, 0, Direction::In);
        for position in [0, 4096, 0] {
            let call = RawCall { position: Some(position), ..read(4096, 4096) };
            flows.add_call(key, &call, 0, true, false);
        }
        assert_eq!((flows.all[0].again_bytes, flows.all[0].jumps, flows.all[0].unaligned), (4096, 1, 0));
    }
}
