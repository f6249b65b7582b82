//! Buffering mode of a stream: from buffer snapshots, or deduced from its calls.

use foldhash::{HashMap, HashMapExt};

use super::{
    Buffer, EventKind, Histogram, OpenFile, Process, Recording, RuntimeId, SnapshotMoment, StreamCounts,
};
use crate::{Direction, Mode, StreamKind, Untrusted};

/// Buffer sizes of C libraries and runtimes are multiples of this; sizes of a program's records rarely are.
const BLOCK: u64 = 512;

/// The access modes of open(2).
const O_RDONLY: i32 = 0;
const O_WRONLY: i32 = 1;
const O_ACCMODE: i32 = 3;

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
    let moving = counts.moving_calls();
    if moving == 0 {
        return None;
    }
    if counts.in_kernel >= moving || counts.max_requested_bytes == 1 {
        return Some(Mode::None);
    }
    let writes = counts.direction == Direction::Out;
    if writes && moving > 1 && counts.newline_ends * 10 >= moving * 9 {
        return Some(if moving > 2 && fills_blocks(counts, moving) { Mode::Full } else { Mode::Line });
    }
    let sized = asked_alike(counts, moving);
    if sized
        && counts.max_requested_bytes >= BLOCK
        && counts.max_requested_bytes.is_multiple_of(BLOCK)
        && (moving > 1 || !writes)
    {
        return Some(Mode::Full);
    }
    // One short call may be the flush at exit or a whole short file.
    if moving == 1 {
        return None;
    }
    let small = counts.requested_sizes.below(BLOCK) == counts.requested_sizes.total();
    Some(if small || (sized && writes && counts.bytes == counts.max_requested_bytes.saturating_mul(moving)) {
        Mode::None
    } else {
        Mode::Mixed
    })
}

/// Returns whether the calls but one almost fill blocks of a buffer's size. Some libraries write the whole lines that fit.
fn fills_blocks(counts: &StreamCounts, moving: u64) -> bool {
    let Some(block) = counts.max_requested_bytes.checked_next_power_of_two() else { return false };
    let least = block - block / 8;
    block >= 8 * BLOCK
        && counts.max_requested_bytes >= least
        && counts.bytes >= least.saturating_mul(moving - 1)
}

/// Returns whether all calls but the last request as many bytes as the largest request.
fn asked_alike(counts: &StreamCounts, moving: u64) -> bool {
    let slot = Histogram::slot(counts.max_requested_bytes);
    let total = counts.requested_sizes.total();
    let alike = counts.requested_sizes.0.get(slot).is_some_and(|&count| count + 1 >= total);
    // A slot has sizes up to twice its smallest. The moved bytes show whether they are equal, except for reads, which
    // are often short.
    let whole = counts.max_requested_bytes.saturating_mul(moving);
    let sums_up = counts.bytes <= whole && counts.bytes >= whole.saturating_sub(counts.max_requested_bytes);
    alike && (counts.direction == Direction::In || !counts.exact || counts.short > 0 || sums_up)
}

/// One stream of a buffer snapshot.
#[derive(Debug)]
struct SnapshotEntry {
    /// Position among the entries of all keys, which are in the order of time.
    position: usize,
    at_s: f64,
    /// Open file of the descriptor, if the snapshot has it.
    file: Option<u32>,
    mode: Mode,
    buffer_bytes: u64,
}

impl SnapshotEntry {
    /// Returns whether the calls of a stream show that it has no such buffer. A read of a buffered stream requests at least what
    /// its buffer holds. `opened` is the file by which the snapshot's stream was open, if the snapshot has it: one that was only
    /// read wrote nothing, and the other way round.
    fn is_refuted_by(&self, counts: &StreamCounts, opened: Option<&OpenFile>) -> bool {
        let buffered = matches!(self.mode, Mode::Full | Mode::Line) && self.buffer_bytes > 0;
        let is_short_read =
            counts.direction == Direction::In && counts.requested_sizes.below(self.buffer_bytes) > 0;
        let other_way = match counts.direction {
            Direction::In => O_WRONLY,
            Direction::Out => O_RDONLY,
            Direction::Both => return false,
        };
        let is_file = |file: &&OpenFile| file.kind == StreamKind::File;
        let is_other_way = opened.filter(is_file).is_some_and(|file| file.flags & O_ACCMODE == other_way);
        buffered && is_short_read || is_other_way
    }
}

/// The file of a descriptor in a snapshot: openings of one path are one file. The kernel reuses descriptors, so that a
/// descriptor may lead to another file before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FileKey<'a> {
    Path(&'a Untrusted),
    Number(u32),
    /// The snapshot does not have the descriptor's file, so that it can be any.
    Unknown,
}

/// The key of [`StreamModes`]: process, descriptor and its file.
type SnapshotKey<'a> = (u32, i32, FileKey<'a>);

/// An index of the buffer snapshots of a recording by process, descriptor and file, to look up the modes of many streams.
#[derive(Debug)]
pub struct StreamModes<'a> {
    recording: &'a Recording,
    processes: HashMap<u32, &'a Process>,
    snapshots: HashMap<SnapshotKey<'a>, Vec<SnapshotEntry>>,
}

impl Recording {
    /// Builds the index of the snapshots.
    pub fn modes(&self) -> StreamModes<'_> {
        let mut modes =
            StreamModes { recording: self, processes: self.processes_by_pid(), snapshots: HashMap::new() };
        let mut position = 0;
        for event in &self.events {
            let EventKind::Buffers { moment, buffers, files, .. } = &event.kind else { continue };
            // `snapshot_mode` reads backwards: the last snapshot first, and in it the first stream of a descriptor.
            for buffer in buffers.iter().rev() {
                // A stream without a mode was never used: the program bypasses it.
                let Some(mode) = buffer.mode.filter(|mode| !is_exit_of_glibc(*moment, buffer, *mode)) else {
                    continue;
                };
                let file = files.iter().find(|(fd, _)| *fd == buffer.fd);
                let key = file.map_or(FileKey::Unknown, |(_, number)| modes.file_key(*number));
                let (at_s, buffer_bytes) = (event.at_s, buffer.buffer_bytes);
                let file = file.map(|(_, number)| *number);
                let entry = SnapshotEntry { position, at_s, file, mode, buffer_bytes };
                modes.snapshots.entry((event.pid, buffer.fd, key)).or_default().push(entry);
                position += 1;
            }
        }
        modes
    }
}

/// glibc's exit(3) flushes all streams and sets them to unbuffered, so that their mode at exit is not the mode of the run.
fn is_exit_of_glibc(moment: SnapshotMoment, buffer: &Buffer, mode: Mode) -> bool {
    moment == SnapshotMoment::Exit && buffer.walker == RuntimeId::GLIBC && mode == Mode::None
}

impl<'a> StreamModes<'a> {
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
        let process = self.processes.get(&counts.pid);
        let image = |at_s: f64| process.and_then(|process| process.image_at(at_s)).map(|(number, _)| number);
        let last = |file: FileKey<'a>| {
            let entries = self.snapshots.get(&(counts.pid, counts.fd, file))?.iter().rev();
            let mut entries =
                entries.filter(|entry| image(entry.at_s).is_none_or(|now| now == counts.image as usize));
            // An opening without a snapshot of its own has the mode of another one of the path, unless its calls refute it: a
            // program can open a file by a stream first and then for calls without a buffer.
            let is_own = |entry: &&SnapshotEntry| entry.file == Some(counts.file);
            let own = entries.clone().find(is_own);
            own.or_else(|| {
                entries.find(|entry| {
                    let opened = entry.file.and_then(|number| self.recording.file(number));
                    !entry.is_refuted_by(counts, opened)
                })
            })
        };
        let found = [last(self.file_key(counts.file)), last(FileKey::Unknown)];
        let entry = found.into_iter().flatten().max_by_key(|entry| entry.position)?;
        let bytes = entry.buffer_bytes;
        Some(ObservedMode { mode: entry.mode, buffer_bytes: (bytes > 0).then_some(bytes), walked: true })
    }

    fn file_key(&self, number: u32) -> FileKey<'a> {
        let path = self.recording.file(number).map(|file| &file.path);
        path.filter(|path| !path.is_empty()).map_or(FileKey::Number(number), FileKey::Path)
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
            counts.requested_sizes.add(size, 1);
            counts.max_requested_bytes = counts.max_requested_bytes.max(size);
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
        huge.max_requested_bytes = u64::MAX;
        assert_eq!(mode_of_calls(&huge), Some(Mode::Mixed));
        huge.newline_ends = 3;
        assert_eq!(mode_of_calls(&huge), Some(Mode::Line));
    }
}
