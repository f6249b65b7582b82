//! Finds out which copy of a stream a dead process used, if several contradict each other, by what its file ends with.
//!
//! A program that moves a writer leaves its old copy in memory, with an old number of bytes of the same buffer. A flush
//! writes the first bytes of the buffer and leaves them there; later bytes replace them from the first one on. So after
//! the pending bytes the buffer still has what the last flush wrote, and the file ends with that. This shows how many
//! bytes the flush had, and the buffer differs from them up to the number of bytes that were put since.

use std::os::unix::fs::FileExt;
use std::path::Path;

use weir_sys::file_system::{open_regular, status_of_descriptor};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::open_files::fdinfo;
use weir_walkers::PendingBytes;

use crate::supervise::Tracees;

/// `SURE` equal bytes show where the last flush began if `SURE_PIECES` of their pieces differ: a few log lines, each with its time or
/// number.
const SURE: usize = 128;
const SURE_PIECES: usize = 64;
const PIECE: usize = 16;
/// Fewer equal bytes than `CHANCE_BYTES`, or than 1/`CHANCE_PART` of the longest match, can be chance.
const CHANCE_BYTES: usize = 16;
const CHANCE_PART: usize = 16;
/// The part of the file that is compared, and the bound for all comparisons of a stream: they take 4 bytes of memory for each byte, and
/// some nanoseconds.
const FILE_BYTES: usize = 1 << 20;
const COMPARED_BYTES: usize = 16 << 20;

/// The number of pending bytes of a stream that its file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DecidedLen {
    len: usize,
    /// How many of the last of them are equal to the bytes that the last flush wrote at their place.
    equal: usize,
}

/// As [`Tracees::final_pending`], with a decision for each ambiguous stream which copy the process used, and without those that
/// have no bytes then. A stream that stays ambiguous keeps its copies.
pub(super) fn decided_at_end(tracees: &mut Tracees, pid: u32, tid: u32) -> Vec<PendingBytes> {
    let pending = tracees.final_pending(pid, tid);
    tracees.decide_fork_copies(pid, tid, &pending);
    let decided = pending.into_iter().map(|one| {
        let len = if one.copies.is_empty() { None } else { decided_len(tracees, pid, tid, &one, true) };
        match len {
            Some(decided) => one.with_decided(decided.len),
            None => one,
        }
    });
    decided.filter(|one| !one.bytes.is_empty()).collect()
}

/// Returns how many bytes of a stream are not written, as its file shows while the process is stopped; None if it does not show it.
/// `all_found`: the memory was searched after the last bytes were put. Otherwise the process may use a copy with fewer bytes that
/// is not found yet.
pub(crate) fn unwritten_len(
    tracees: &Tracees,
    (pid, tid): (u32, u32),
    one: &PendingBytes,
    all_found: bool,
) -> Option<usize> {
    let DecidedLen { len, equal } = decided_len(tracees, pid, tid, one, false)?;
    Some(if all_found { len } else { len - equal }).filter(|len| *len > 0)
}

/// Returns the result of [`live_len`] for a stream; None if the pending bytes stay unknown. `has_ended`: all threads have ended, and no
/// flush has written the bytes unless a thread was killed in it. Otherwise all of them may be written.
fn decided_len(
    tracees: &Tracees,
    pid: u32,
    tid: u32,
    one: &PendingBytes,
    has_ended: bool,
) -> Option<DecidedLen> {
    if let Some(inherited) = tracees.ambiguous_at_fork(pid, one.stream) {
        // The parent has the same bytes; how many, is unknown.
        return inherited.starts_with(&one.bytes).then_some(DecidedLen { len: 0, equal: 0 });
    }
    let part = compared_part(one.buffer_bytes, one.copies.len() + 2)?;
    let buffer = ProcessMemory { pid: tid }.bytes(one.data_address?, one.buffer_bytes as usize);
    let ahead = tracees.written_ahead.streams(pid).find(|ahead| ahead.stream == one.stream);
    let ahead = ahead.map_or(&[][..], |ahead| &ahead.bytes);
    let position = fdinfo(tid, one.fd)?.position.checked_sub(ahead.len() as u64)?;
    let is_file = status_of_descriptor(tid, one.fd).is_ok_and(|about| about.is_file());
    if !is_file || !buffer.starts_with(ahead) || (buffer.len() as u64) < one.buffer_bytes {
        return None;
    }
    // Of a copy for another descriptor, this one has no bytes.
    let own =
        |copy: &weir_walkers::StreamCopy| if copy.fd == one.fd { copy.pending_bytes as usize } else { 0 };
    let mut lens: Vec<usize> = one.copies.iter().map(own).filter(|len| *len >= ahead.len()).collect();
    if !has_ended {
        lens.extend([ahead.len(), one.bytes.len()]);
    }
    lens.sort_unstable();
    lens.dedup();
    if position == 0 {
        // Before the first write to the file the number only grows.
        let has_one_owner = one.copies.iter().all(|copy| copy.fd == one.fd);
        return lens
            .last()
            .map(|len| DecidedLen { len: *len, equal: 0 })
            .filter(|_| has_one_owner && has_ended);
    }
    let file = file_end(tid, one.fd, position, part)?;
    live_len(&buffer, &file, &lens)
}

/// Returns how many of the last bytes of a file are compared with a buffer of this size for each of some numbers of pending bytes. It is at
/// least twice the buffer: its last flush must be found. None if that takes too long.
fn compared_part(buffer_bytes: u64, numbers: usize) -> Option<usize> {
    let least = usize::try_from(buffer_bytes).ok()?.checked_mul(2)?;
    let most = COMPARED_BYTES / numbers.max(1);
    (least <= most).then(|| FILE_BYTES.min(most).max(least))
}

/// Reads the last bytes of a file before a position, at most `most`.
fn file_end(tid: u32, fd: i32, position: u64, most: usize) -> Option<Vec<u8>> {
    let file = open_regular(Path::new(&format!("/proc/{tid}/fd/{fd}"))).ok()?;
    let len = position.min(most as u64);
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, position - len).ok()?;
    Some(bytes)
}

/// Returns which of `lens`, in ascending order, is the number of pending bytes, as the end of the file shows. None if it does not show it.
fn live_len(buffer: &[u8], file: &[u8], lens: &[usize]) -> Option<DecidedLen> {
    // No flush can have had more bytes than the file.
    let after = |len: usize| buffer.get(len..file.len().min(buffer.len())).unwrap_or_default();
    let found: Vec<EqualBytes> = lens.iter().map(|len| EqualBytes::find(after(*len), file)).collect();
    let equal_at_end = |index: usize| found[index].at_end.first().copied().unwrap_or(0);
    let live = (0..lens.len()).max_by_key(|index| (equal_at_end(*index), std::cmp::Reverse(*index)))?;
    let (len, equal) = (lens[live], equal_at_end(live));
    let flushed = len + equal;
    let is_chance = |bytes: usize| bytes < CHANCE_BYTES.max(equal / CHANCE_PART);
    // A write past the buffer can end with bytes that look like those of a flush; then that flush is elsewhere.
    let is_alone =
        found[live].longest == equal && found[live].at_end.get(1).is_none_or(|next| is_chance(*next));
    let is_other_stale = |other: usize| match lens[other] {
        more if more > len && more <= flushed => more >= len + SURE,
        // The kill may have cut a flush of more bytes.
        more if more > flushed && file.ends_with(&buffer[..flushed]) => false,
        _ => is_chance(equal_at_end(other)) && found[other].longest < equal,
    };
    let mut others = (0..lens.len()).filter(|other| *other != live);
    // Only one place is possible for the flush of a full buffer, which is the usual one in Go.
    let share = if flushed == buffer.len() { 4 } else { 1 };
    let pieces = different_pieces(&after(len)[..equal]);
    let is_sure = equal >= SURE / share && pieces >= SURE_PIECES / share && is_alone;
    // The last flush as far as the file has it. More equal bytes than chance gives belong to it.
    let before = &file[..file.len() - equal];
    let pairs = buffer[..len].iter().rev().zip(before.iter().rev());
    let equal_before = pairs.take_while(|(put, flushed)| put == flushed).count();
    (is_sure && (len == 0 || equal_before < SURE) && others.all(is_other_stale))
        .then_some(DecidedLen { len, equal: equal_before })
}

/// Returns the number of different pieces of some bytes, at most [`SURE_PIECES`].
fn different_pieces(bytes: &[u8]) -> usize {
    let mut pieces = std::collections::HashSet::new();
    let is_enough = |piece| pieces.insert(piece) && pieces.len() == SURE_PIECES;
    let _ = bytes.windows(PIECE).any(is_enough);
    pieces.len()
}

/// Where a file has the first bytes of a text.
#[derive(Debug, PartialEq, Eq)]
struct EqualBytes {
    /// How many it has at its end: the longest, and the next one.
    at_end: Vec<usize>,
    /// How many it has anywhere, at most.
    longest: usize,
}

impl EqualBytes {
    /// Searches a file as Knuth, Morris and Pratt.
    fn find(text: &[u8], file: &[u8]) -> EqualBytes {
        // The longest proper beginning of each beginning of the text with which that ends.
        let mut border = vec![0u32; text.len() + 1];
        let step = |border: &[u32], mut len: usize, byte: u8| {
            while len > 0 && text.get(len) != Some(&byte) {
                len = border[len] as usize;
            }
            len + usize::from(text.get(len) == Some(&byte))
        };
        for at in 1..text.len() {
            border[at + 1] = step(&border, border[at] as usize, text[at]) as u32;
        }
        let (mut len, mut longest) = (0, 0);
        for byte in file {
            len = step(&border, len, *byte);
            longest = longest.max(len);
        }
        let at_end = [len, border[len] as usize].into_iter().take_while(|len| *len > 0);
        EqualBytes { at_end: at_end.collect(), longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1024;

    /// A writer of lines, its file, and the number of bytes of each copy that a move has left.
    #[derive(Default)]
    struct Writer {
        buffer: Vec<u8>,
        len: usize,
        file: Vec<u8>,
        copies: Vec<usize>,
    }

    impl Writer {
        fn new() -> Writer {
            Writer { buffer: vec![0; SIZE], copies: vec![0], ..Writer::default() }
        }

        fn put(&mut self, bytes: &[u8]) {
            if self.len + bytes.len() > SIZE {
                self.flush();
            }
            if bytes.len() >= SIZE {
                return self.file.extend(bytes);
            }
            self.buffer[self.len..self.len + bytes.len()].copy_from_slice(bytes);
            self.len += bytes.len();
        }

        fn flush(&mut self) {
            self.file.extend(&self.buffer[..self.len]);
            self.len = 0;
        }

        fn live(&self) -> Option<usize> {
            let mut lens: Vec<usize> = self.copies.iter().copied().chain([self.len]).collect();
            lens.sort_unstable();
            lens.dedup();
            live_len(&self.buffer, &self.file, &lens).map(|decided| decided.len)
        }
    }

    fn line(number: usize) -> String {
        format!("{number} hello world, this is a line of a log\n")
    }

    #[test]
    fn equal_bytes_at_the_end_and_anywhere() {
        let found = |text: &str, file: &str| {
            let EqualBytes { at_end, longest } = EqualBytes::find(text.as_bytes(), file.as_bytes());
            (at_end, longest)
        };
        assert_eq!(found("abab", "xxabab"), (vec![4, 2], 4));
        assert_eq!(found("abcd", "abcxab"), (vec![2], 3));
        assert_eq!(found("abcd", "abcde"), (vec![], 4));
        assert_eq!(found("aaa", "aaaaaa"), (vec![3, 2], 3));
        assert_eq!([found("", "a"), found("a", "")], [(vec![], 0), (vec![], 0)]);
    }

    #[test]
    fn a_large_buffer_is_not_compared() {
        assert_eq!(compared_part(8 << 10, 4), Some(FILE_BYTES));
        assert_eq!(compared_part(8 << 10, 64), Some(COMPARED_BYTES / 64));
        assert_eq!([compared_part(1 << 20, 8), compared_part(2 << 20, 4)], [Some(2 << 20), Some(4 << 20)]);
        assert_eq!(
            [compared_part(1 << 30, 3), compared_part(u64::MAX, 3), compared_part(2 << 20, 5)],
            [None; 3]
        );
        assert_eq!(different_pieces(&(0..=255).collect::<Vec<u8>>()), SURE_PIECES);
        assert_eq!(different_pieces(&[0; 1 << 20]), 1);
    }

    #[test]
    fn the_number_of_bytes_since_the_last_flush() {
        let mut writer = Writer::new();
        for number in 0..60 {
            writer.put(line(number).as_bytes());
        }
        assert!(writer.len > 0 && writer.len < SIZE - 200, "{}", writer.len);
        assert_eq!(writer.live(), Some(writer.len), "it was moved before the first byte");
        let moved = writer.len;
        writer.flush();
        writer.copies = vec![moved];
        assert_eq!(writer.live(), Some(0), "it was moved before the flush");
    }

    #[test]
    fn equal_lines_tell_nothing() {
        let mut writer = Writer::new();
        for _ in 0..60 {
            writer.put(b"hello world, this is a line of a log\n");
        }
        assert_eq!(writer.live(), None);
    }

    #[test]
    fn a_write_past_the_buffer_hides_the_last_flush() {
        let mut writer = Writer::new();
        for number in 0..60 {
            writer.put(line(number).as_bytes());
        }
        writer.put(&[b'x'; 2 * SIZE]);
        writer.put(line(60).as_bytes());
        assert_eq!(writer.live(), None);
    }

    #[test]
    fn a_flush_that_a_kill_has_cut() {
        let mut writer = Writer::new();
        for number in 0..20 {
            writer.put(line(number).as_bytes());
        }
        writer.file.extend(&writer.buffer[..500]);
        assert_eq!(writer.live(), None);
    }

    /// The search has found only an old copy, with more bytes than the program has put since the last flush.
    #[test]
    fn a_copy_with_too_many_bytes_alone() {
        let mut writer = Writer::new();
        for number in 0..60 {
            writer.put(line(number).as_bytes());
        }
        for more in [1, 10, 100, 300] {
            let shown = live_len(&writer.buffer, &writer.file, &[0, writer.len + more]);
            assert!(shown.is_none_or(|shown| shown.len - shown.equal <= writer.len), "{more}: {shown:?}");
        }
        let shown = live_len(&writer.buffer, &writer.file, &[0, writer.len]);
        assert!(shown.is_some_and(|shown| shown.len == writer.len && shown.equal < SURE), "{shown:?}");
    }

    /// Any answer is the truth, for lines of any length, long runs of one byte, and moves and flushes at any time.
    #[test]
    fn no_answer_is_wrong() {
        let mut state = 20261129u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let (mut known, mut unknown) = (0, 0);
        for run in 0..2000 {
            let mut writer = Writer::new();
            let (has_flushes, copies, long) = (draw(3) == 0, draw(20) as usize + 1, draw(3) * 90 + 100);
            for number in 0..draw(300) {
                let letter = char::from(b'a' + (number % 26) as u8);
                let bytes = match draw(long) {
                    0 => letter.to_string().repeat(SIZE + draw(500) as usize) + "\n",
                    1..=5 if has_flushes => {
                        writer.flush();
                        continue;
                    }
                    _ => format!("{number} {}\n", letter.to_string().repeat(draw(80) as usize)),
                };
                writer.put(bytes.as_bytes());
                if draw(20) == 0 {
                    writer.copies.push(writer.len);
                }
                if writer.copies.len() > copies {
                    writer.copies.remove(0);
                }
            }
            match writer.live() {
                Some(len) => {
                    assert_eq!(len, writer.len, "run {run}");
                    known += 1;
                }
                None => unknown += 1,
            }
        }
        assert!(known > 200, "{known} {unknown}");
    }
}
