//! How a stream is buffered: as a walker saw it in the program's memory, else as its calls look.

use foldhash::{HashMap, HashMapExt};

use super::{Buffer, EventKind, Histogram, Moment, Process, Recording, RuntimeId, StreamCounts};
use crate::{Direction, Mode};

/// Buffers of C libraries and runtimes are multiples of this; a program's own records seldom are.
const BLOCK: u64 = 512;

/// A stream's mode, and where it is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedMode {
    /// The mode.
    pub mode: Mode,
    /// Size of the user-space buffer, where a walker saw one.
    pub buffer_bytes: Option<u64>,
    /// A walker saw it; false: deduced from the calls.
    pub walked: bool,
}

/// What the calls of `flow` tell of the buffer they came from; None: there are too few of them to tell.
///
/// * none: bytes that the kernel moves itself, calls below 512 bytes, or all of one size that no buffer has;
/// * line: at least 90 % of the writes end in a newline;
/// * full: all but the last are of one size, a multiple of 512;
/// * mixed: anything else.
pub fn mode_of_calls(flow: &StreamCounts) -> Option<Mode> {
    let moving = flow.calls.saturating_sub(flow.errors + flow.again + flow.zeros);
    if moving == 0 {
        return None;
    }
    if flow.in_kernel >= moving || flow.asked_max == 1 {
        return Some(Mode::None);
    }
    let writes = flow.direction == Direction::Out;
    if writes && moving > 1 && flow.newline_ends * 10 >= moving * 9 {
        return Some(Mode::Line);
    }
    let sized = asked_alike(flow, moving);
    if sized && flow.asked_max >= BLOCK && flow.asked_max.is_multiple_of(BLOCK) && (moving > 1 || !writes) {
        return Some(Mode::Full);
    }
    // One short call may be what an exit flushed, or all that there was to read.
    if moving == 1 {
        return None;
    }
    let small = flow.asked.below(BLOCK) == flow.asked.total();
    Some(if small || (sized && writes && flow.bytes == flow.asked_max * moving) {
        Mode::None
    } else {
        Mode::Mixed
    })
}

/// Did all calls but the last ask for as much as the largest did?
fn asked_alike(flow: &StreamCounts, moving: u64) -> bool {
    let slot = Histogram::slot(flow.asked_max);
    let total = flow.asked.total();
    let alike = flow.asked.0.get(slot).is_some_and(|&count| count + 1 >= total);
    // The slot holds sizes up to twice its least; what a write moved tells them apart. Reads are often short.
    let whole = flow.asked_max.saturating_mul(moving);
    let sums_up = flow.bytes <= whole && flow.bytes >= whole.saturating_sub(flow.asked_max);
    alike && (flow.direction == Direction::In || !flow.exact || flow.short > 0 || sums_up)
}

/// What a walker saw of one descriptor.
#[derive(Debug)]
struct Look<'a> {
    at_s: f64,
    moment: Moment,
    buffer: &'a Buffer,
    files: &'a [(i32, u32)],
}

/// Modes of many flows of one recording: its looks by process and descriptor, gathered once.
#[derive(Debug)]
pub struct Modes<'a> {
    recording: &'a Recording,
    processes: HashMap<u32, &'a Process>,
    looks: HashMap<(u32, i32), Vec<Look<'a>>>,
}

impl Recording {
    /// To be asked for the modes of its flows.
    pub fn modes(&self) -> Modes<'_> {
        let mut looks: HashMap<(u32, i32), Vec<Look>> = HashMap::new();
        for event in &self.events {
            let EventKind::Buffers { moment, buffers, files, .. } = &event.kind else { continue };
            // The last look is asked first, and in it the first of several streams of one descriptor.
            for buffer in buffers.iter().rev() {
                let look = Look { at_s: event.at_s, moment: *moment, buffer, files };
                looks.entry((event.pid, buffer.fd)).or_default().push(look);
            }
        }
        Modes { recording: self, processes: self.processes_by_pid(), looks }
    }
}

impl Modes<'_> {
    /// The mode of `flow`: what a walker saw last of that descriptor while the same image ran, else
    /// [`mode_of_calls`].
    pub fn of(&self, flow: &StreamCounts) -> Option<ObservedMode> {
        if !flow.is_known() {
            return None;
        }
        let deduced = || Some(ObservedMode { mode: mode_of_calls(flow)?, buffer_bytes: None, walked: false });
        self.walked(flow).or_else(deduced)
    }

    fn walked(&self, flow: &StreamCounts) -> Option<ObservedMode> {
        let looks = self.looks.get(&(flow.pid, flow.fd))?;
        let process = self.processes.get(&flow.pid);
        let image = |at_s: f64| process.and_then(|process| process.image_at(at_s)).map(|(number, _)| number);
        let own = looks.iter().rev().filter(|look| {
            image(look.at_s).is_none_or(|now| now == flow.image as usize) && self.is_behind(flow, look.files)
        });
        // exit(3) takes the buffers from glibc's streams when it has written them out: what is seen of them then
        // says nothing of how they were.
        let taken = |look: &&Look| {
            let (moment, buffer) = (look.moment, look.buffer);
            moment == Moment::Exit && buffer.walker == RuntimeId::Glibc && buffer.mode == Some(Mode::None)
        };
        // A stream that was never used has no mode and no buffer: the program goes past it.
        own.filter(|look| !taken(look))
            .filter_map(|look| Some((look.buffer.mode?, look.buffer.buffer_bytes)))
            .next()
            .map(|(mode, bytes)| ObservedMode {
                mode,
                buffer_bytes: (bytes > 0).then_some(bytes),
                walked: true,
            })
    }

    /// Whether the descriptor of `flow` led to the file of `flow` at a look that knows these. Numbers of descriptors are
    /// given again: one that a stream had may be another file's before or after.
    fn is_behind(&self, flow: &StreamCounts, files: &[(i32, u32)]) -> bool {
        let file = |number: u32| self.recording.file(number);
        let path = |number: u32| file(number).map(|file| file.path.as_str()).filter(|path| !path.is_empty());
        let same =
            |file: u32| file == flow.file || path(file).is_some_and(|one| Some(one) == path(flow.file));
        files.iter().find(|(fd, _)| *fd == flow.fd).is_none_or(|&(_, file)| same(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(direction: Direction, sizes: &[u64]) -> StreamCounts {
        let mut flow = StreamCounts::new(1, 0, 1, 0, direction);
        for &size in sizes {
            flow.calls += 1;
            flow.bytes += size;
            flow.sizes.add(size, 1);
            flow.asked.add(size, 1);
            flow.asked_max = flow.asked_max.max(size);
        }
        flow
    }

    fn of(sizes: &[u64]) -> Option<Mode> {
        mode_of_calls(&flow(Direction::Out, sizes))
    }

    #[test]
    fn tiny_and_odd_writes_have_no_buffer() {
        assert_eq!(of(&[1; 50]), Some(Mode::None));
        assert_eq!(of(&[3, 80, 17, 200]), Some(Mode::None));
        assert_eq!(of(&[9999; 4]), Some(Mode::None));
        let copied = StreamCounts { in_kernel: 3, ..flow(Direction::Out, &[70_000, 80_000, 123]) };
        assert_eq!(mode_of_calls(&copied), Some(Mode::None));
    }

    #[test]
    fn lines_are_told_by_their_ends() {
        let lines = |ends: u64| StreamCounts {
            newline_ends: ends,
            ..flow(Direction::Out, &[30, 41, 22, 80, 77, 1, 5, 9, 600, 7])
        };
        assert_eq!(mode_of_calls(&lines(9)), Some(Mode::Line));
        assert_eq!(mode_of_calls(&lines(8)), Some(Mode::Mixed));
        let bytes = StreamCounts { newline_ends: 40, ..flow(Direction::Out, &[1; 40]) };
        assert_eq!(mode_of_calls(&bytes), Some(Mode::None), "newlines written one at a time");
    }

    #[test]
    fn a_full_buffer_leaves_by_calls_of_one_size_and_a_rest() {
        assert_eq!(of(&[4096, 4096, 4096, 17]), Some(Mode::Full));
        assert_eq!(of(&[4096, 4096]), Some(Mode::Full));
        assert_eq!(of(&[4096, 5000, 7168, 17]), Some(Mode::Mixed), "one power of two, several sizes");
        assert_eq!(of(&[4096, 100, 4096, 100]), Some(Mode::Mixed));
        assert_eq!(of(&[5000, 5000, 17]), Some(Mode::Mixed));
    }

    #[test]
    fn reads_are_told_by_what_they_ask_for() {
        let mut read = flow(Direction::In, &[4096; 3]);
        (read.bytes, read.zeros, read.calls) = (4100, 1, 3);
        assert_eq!(mode_of_calls(&read), Some(Mode::Full));
        assert_eq!(mode_of_calls(&flow(Direction::In, &[1; 9])), Some(Mode::None));
    }

    #[test]
    fn too_little_tells_nothing() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[100]), None);
        let ended = StreamCounts { zeros: 1, ..flow(Direction::In, &[0]) };
        assert_eq!(mode_of_calls(&ended), None);
    }
}
