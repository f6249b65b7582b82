//! Buffering mode of a stream: from buffer snapshots, or deduced from its calls.

use foldhash::{HashMap, HashMapExt};

use super::{Buffer, EventKind, Histogram, Process, Recording, RuntimeId, SnapshotMoment, StreamCounts};
use crate::{Direction, Mode};

/// Buffer sizes of C libraries and runtimes are multiples of this; sizes of a program's records rarely are.
const BLOCK: u64 = 512;

/// The mode of a stream and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedMode {
    /// Observed mode; `Mixed` for several.
    pub mode: Mode,
    /// Size of the user-space buffer, if a snapshot has it.
    pub buffer_bytes: Option<u64>,
    /// The mode is from a snapshot; otherwise it is deduced from the calls.
    pub walked: bool,
}

/// Deduces the mode from the calls of a stream; `None` if there are too few calls.
///
/// * none: copies inside the kernel, calls below 512 bytes, or calls of one size that is no buffer size;
/// * line: at least 90 % of the writes end with a newline;
/// * full: all calls but the last have one size, a multiple of 512, or are whole lines that almost fill a block;
/// * mixed: anything else.
pub fn mode_of_calls(counts: &StreamCounts) -> Option<Mode> {
    let moving = counts.calls.saturating_sub(counts.errors + counts.again + counts.zeros);
    if moving == 0 {
        return None;
    }
    if counts.in_kernel >= moving || counts.asked_max == 1 {
        return Some(Mode::None);
    }
    let writes = counts.direction == Direction::Out;
    if writes && moving > 1 && counts.newline_ends * 10 >= moving * 9 {
        return Some(if moving > 2 && fills_blocks(counts, moving) { Mode::Full } else { Mode::Line });
    }
    let sized = asked_alike(counts, moving);
    if sized && counts.asked_max >= BLOCK && counts.asked_max.is_multiple_of(BLOCK) && (moving > 1 || !writes)
    {
        return Some(Mode::Full);
    }
    // One short call may be the flush at exit or a whole short file.
    if moving == 1 {
        return None;
    }
    let small = counts.asked.below(BLOCK) == counts.asked.total();
    Some(if small || (sized && writes && counts.bytes == counts.asked_max.saturating_mul(moving)) {
        Mode::None
    } else {
        Mode::Mixed
    })
}

/// Returns whether the calls but one almost fill blocks of a buffer's size. Some libraries write the whole lines that fit.
fn fills_blocks(counts: &StreamCounts, moving: u64) -> bool {
    let Some(block) = counts.asked_max.checked_next_power_of_two() else { return false };
    let least = block - block / 8;
    block >= 8 * BLOCK && counts.asked_max >= least && counts.bytes >= least.saturating_mul(moving - 1)
}

/// Returns whether all calls but the last request as many bytes as the largest request.
fn asked_alike(counts: &StreamCounts, moving: u64) -> bool {
    let slot = Histogram::slot(counts.asked_max);
    let total = counts.asked.total();
    let alike = counts.asked.0.get(slot).is_some_and(|&count| count + 1 >= total);
    // A slot has sizes up to twice its smallest. The moved bytes show whether they are equal, except for reads, which
    // are often short.
    let whole = counts.asked_max.saturating_mul(moving);
    let sums_up = counts.bytes <= whole && counts.bytes >= whole.saturating_sub(counts.asked_max);
    alike && (counts.direction == Direction::In || !counts.exact || counts.short > 0 || sums_up)
}

/// One stream of a buffer snapshot.
#[derive(Debug)]
struct SnapshotEntry<'a> {
    at_s: f64,
    moment: SnapshotMoment,
    buffer: &'a Buffer,
    files: &'a [(i32, u32)],
}

/// An index of the buffer snapshots of a recording by process and descriptor, to entry up the modes of many streams.
#[derive(Debug)]
pub struct StreamModes<'a> {
    recording: &'a Recording,
    processes: HashMap<u32, &'a Process>,
    snapshots: HashMap<(u32, i32), Vec<SnapshotEntry<'a>>>,
}

impl Recording {
    /// Builds the index of the snapshots.
    pub fn modes(&self) -> StreamModes<'_> {
        let mut snapshots: HashMap<(u32, i32), Vec<SnapshotEntry>> = HashMap::new();
        for event in &self.events {
            let EventKind::Buffers { moment, buffers, files, .. } = &event.kind else { continue };
            // `snapshot_mode` reads backwards: the last snapshot first, and in it the first stream of a descriptor.
            for buffer in buffers.iter().rev() {
                let entry = SnapshotEntry { at_s: event.at_s, moment: *moment, buffer, files };
                snapshots.entry((event.pid, buffer.fd)).or_default().push(entry);
            }
        }
        StreamModes { recording: self, processes: self.processes_by_pid(), snapshots }
    }
}

impl StreamModes<'_> {
    /// Returns the mode of a stream in the last snapshot of its image, else [`mode_of_calls`].
    pub fn of(&self, counts: &StreamCounts) -> Option<ObservedMode> {
        if !counts.is_known() {
            return None;
        }
        let deduced =
            || Some(ObservedMode { mode: mode_of_calls(counts)?, buffer_bytes: None, walked: false });
        self.snapshot_mode(counts).or_else(deduced)
    }

    fn snapshot_mode(&self, counts: &StreamCounts) -> Option<ObservedMode> {
        let snapshots = self.snapshots.get(&(counts.pid, counts.fd))?;
        let process = self.processes.get(&counts.pid);
        let image = |at_s: f64| process.and_then(|process| process.image_at(at_s)).map(|(number, _)| number);
        let own = snapshots.iter().rev().filter(|entry| {
            image(entry.at_s).is_none_or(|now| now == counts.image as usize)
                && self.leads_to_same_file(counts, entry.files)
        });
        // glibc's exit(3) flushes all streams and sets them to unbuffered, so that their mode at exit is not the mode
        // of the run.
        let is_exit_of_glibc = |entry: &&SnapshotEntry| {
            let (moment, buffer) = (entry.moment, entry.buffer);
            moment == SnapshotMoment::Exit
                && buffer.walker == RuntimeId::GLIBC
                && buffer.mode == Some(Mode::None)
        };
        // A stream without a mode was never used: the program bypasses it.
        own.filter(|entry| !is_exit_of_glibc(entry))
            .filter_map(|entry| Some((entry.buffer.mode?, entry.buffer.buffer_bytes)))
            .next()
            .map(|(mode, bytes)| ObservedMode {
                mode,
                buffer_bytes: (bytes > 0).then_some(bytes),
                walked: true,
            })
    }

    /// Returns whether the stream's descriptor led to the stream's file at a snapshot with these open files. The kernel
    /// reuses descriptors, so that a descriptor may lead to another file before or after.
    fn leads_to_same_file(&self, counts: &StreamCounts, files: &[(i32, u32)]) -> bool {
        let file = |number: u32| self.recording.file(number);
        let path = |number: u32| file(number).map(|file| &file.path).filter(|path| !path.is_empty());
        let same =
            |file: u32| file == counts.file || path(file).is_some_and(|one| Some(one) == path(counts.file));
        files.iter().find(|(fd, _)| *fd == counts.fd).is_none_or(|&(_, file)| same(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(direction: Direction, sizes: &[u64]) -> StreamCounts {
        let mut counts = StreamCounts::new(1, 0, 1, 0, direction);
        for &size in sizes {
            counts.calls += 1;
            counts.bytes += size;
            counts.sizes.add(size, 1);
            counts.asked.add(size, 1);
            counts.asked_max = counts.asked_max.max(size);
        }
        counts
    }

    fn of(sizes: &[u64]) -> Option<Mode> {
        mode_of_calls(&counts(Direction::Out, sizes))
    }

    #[test]
    fn tiny_and_odd_writes_have_no_buffer() {
        assert_eq!(of(&[1; 50]), Some(Mode::None));
        assert_eq!(of(&[3, 80, 17, 200]), Some(Mode::None));
        assert_eq!(of(&[9999; 4]), Some(Mode::None));
        let copied = StreamCounts { in_kernel: 3, ..counts(Direction::Out, &[70_000, 80_000, 123]) };
        assert_eq!(mode_of_calls(&copied), Some(Mode::None));
    }

    #[test]
    fn newline_ends_mean_line_mode() {
        let lines = |ends: u64| StreamCounts {
            newline_ends: ends,
            ..counts(Direction::Out, &[30, 41, 22, 80, 77, 1, 5, 9, 600, 7])
        };
        assert_eq!(mode_of_calls(&lines(9)), Some(Mode::Line));
        assert_eq!(mode_of_calls(&lines(8)), Some(Mode::Mixed));
        let blocks = StreamCounts { newline_ends: 4, ..counts(Direction::Out, &[4087, 4063, 4070, 2400]) };
        assert_eq!(mode_of_calls(&blocks), Some(Mode::Full), "as many whole lines as fit into 4 KiB");
        let bytes = StreamCounts { newline_ends: 40, ..counts(Direction::Out, &[1; 40]) };
        assert_eq!(mode_of_calls(&bytes), Some(Mode::None), "newlines written one at a time");
    }

    #[test]
    fn calls_of_one_buffer_size_mean_full_mode() {
        assert_eq!(of(&[4096, 4096, 4096, 17]), Some(Mode::Full));
        assert_eq!(of(&[4096, 4096]), Some(Mode::Full));
        assert_eq!(of(&[4096, 5000, 7168, 17]), Some(Mode::Mixed), "one power of two, several sizes");
        assert_eq!(of(&[4096, 100, 4096, 100]), Some(Mode::Mixed));
        assert_eq!(of(&[5000, 5000, 17]), Some(Mode::Mixed));
    }

    #[test]
    fn reads_are_judged_by_their_requests() {
        let mut read = counts(Direction::In, &[4096; 3]);
        (read.bytes, read.zeros, read.calls) = (4100, 1, 3);
        assert_eq!(mode_of_calls(&read), Some(Mode::Full));
        assert_eq!(mode_of_calls(&counts(Direction::In, &[1; 9])), Some(Mode::None));
    }

    #[test]
    fn too_few_calls_give_no_mode() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[100]), None);
        let ended = StreamCounts { zeros: 1, ..counts(Direction::In, &[0]) };
        assert_eq!(mode_of_calls(&ended), None);
    }

    #[test]
    fn requests_of_any_size_have_a_mode() {
        let mut huge = counts(Direction::Out, &[4096; 3]);
        huge.asked_max = u64::MAX;
        assert_eq!(mode_of_calls(&huge), Some(Mode::Mixed));
        huge.newline_ends = 3;
        assert_eq!(mode_of_calls(&huge), Some(Mode::Line));
    }
}
