//! The room for bytes in a written file. Bytes that a process wrote in gaps and that exceed the file's size went to other files, which
//! it opened and closed there, perhaps by the same descriptor. Bytes of no known stream went to the files that have room for them.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use foldhash::HashSet;
use weir_model::trace::OpenFile;
use weir_model::{Direction, StreamKind};
use weir_sys::open_files::current_size;

use crate::Recorder;
use crate::sampling_gaps::GapStream;
use crate::scaling::KernelTotal;

/// Sizes are read a little later than the totals, and other files can have a few bytes: the two may differ by 1/32.
const TOLERANCE: u64 = 32;

/// The calls and bytes of a gap by stream; None is the unknown stream.
type Missing = Vec<(Option<GapStream>, KernelTotal)>;

/// The key of a file's room: device and inode. All openings that append share the room (None); another opening (its file id) can
/// write the bytes of others again.
type RoomKey = (u64, u64, Option<u32>);

/// The rooms of a process's files.
struct Rooms {
    /// The indices of the process's streams.
    streams: BTreeMap<RoomKey, Vec<usize>>,
    /// The rooms that were computed, without the bytes that were given to streams since. None is no limit.
    computed: BTreeMap<RoomKey, Option<u64>>,
}

impl Recorder {
    /// Moves the bytes that a file has no room for from its stream to the unknown stream, with their share of the calls; then those
    /// of the unknown stream to the files that the process wrote and that have room for just these.
    pub(super) fn move_excess(&self, pid: u32, direction: Direction, missing: &mut Missing) {
        if direction != Direction::Out || missing.is_empty() {
            return;
        }
        let mut rooms = self.rooms_of_process(pid);
        let mut excess = KernelTotal::default();
        for (stream, sum) in missing.iter_mut() {
            let Some((_, Some((_, file)), _)) = *stream else { continue };
            let Some(Some(room)) = self.room_of(&mut rooms, file) else { continue };
            let bytes = sum.bytes.saturating_sub(*room);
            *room -= sum.bytes - bytes;
            if bytes == 0 {
                continue;
            }
            // The sizes of the other calls are unknown.
            let moved =
                KernelTotal { calls: share(sum.calls, bytes, sum.bytes).clamp(1, sum.calls.max(1)), bytes };
            (sum.calls, sum.bytes) = (sum.calls.saturating_sub(moved.calls), sum.bytes - bytes);
            (excess.calls, excess.bytes) = (excess.calls + moved.calls, excess.bytes + moved.bytes);
        }
        if excess != KernelTotal::default() {
            add(missing, None, excess);
        }
        self.fill_room(pid, &mut rooms, missing);
    }

    /// Moves bytes from the unknown stream to the files that the process alone has written, if their room is that of all these bytes.
    fn fill_room(&self, pid: u32, rooms: &mut Rooms, missing: &mut Missing) {
        let unknown = missing.iter().find(|(stream, _)| stream.is_none()).map(|(_, sum)| *sum);
        let Some(unknown) = unknown.filter(|sum| sum.bytes > 0 && sum.calls > 0) else { return };
        let mut streams: BTreeMap<RoomKey, (GapStream, u64)> = BTreeMap::new();
        let written_by_others = LazyCell::new(|| self.inodes_of_other_writers(pid));
        let own = self.streams.of_process(pid).iter().map(|&index| &self.streams.all[index]);
        let own = own.filter(|stream| stream.direction == Direction::Out && stream.is_known());
        let own = own.map(|stream| (stream.image, Some((stream.fd, stream.file)), Direction::Out));
        for stream in own.chain(missing.iter().filter_map(|(stream, _)| *stream)) {
            let Some((_, file)) = stream.1 else { continue };
            let Some(key) = self.room_key(file) else { continue };
            if let Some(Some(room)) = self.room_of(rooms, file)
                && *room > 0
                && !written_by_others.contains(&(key.0, key.1))
            {
                // The latest opening is the one that the process still used.
                streams.insert(key, (stream, *room));
            }
        }
        let room: u64 = streams.values().map(|(_, room)| room).sum();
        if room.abs_diff(unknown.bytes) > unknown.bytes / TOLERANCE {
            return;
        }
        missing.retain(|(stream, _)| stream.is_some());
        // A file gets no more than it has; the rest went to others.
        let mut bytes = unknown.bytes.min(room);
        let mut calls = share(unknown.calls, bytes, unknown.bytes).max(1);
        let others = KernelTotal { calls: unknown.calls - calls, bytes: unknown.bytes - bytes };
        if others != KernelTotal::default() {
            add(missing, None, others);
        }
        let mut rest = room;
        for (stream, room) in streams.into_values() {
            let given = KernelTotal { calls: share(calls, room, rest), bytes: share(bytes, room, rest) };
            (calls, bytes, rest) = (calls - given.calls, bytes - given.bytes, rest - room);
            add(missing, Some(stream), given);
        }
    }

    fn rooms_of_process(&self, pid: u32) -> Rooms {
        let mut streams: BTreeMap<RoomKey, Vec<usize>> = BTreeMap::new();
        for &index in self.streams.of_process(pid) {
            if let Some(key) = self.room_key(self.streams.all[index].file) {
                streams.entry(key).or_default().push(index);
            }
        }
        Rooms { streams, computed: BTreeMap::new() }
    }

    /// Returns what limits the bytes of a regular file's stream.
    fn room_key(&self, file: u32) -> Option<RoomKey> {
        let open_file = self.files.all.get(file as usize).filter(|_| self.files.is_regular(file))?;
        Some((open_file.dev, open_file.ino, (!appends_to_file(open_file)).then_some(file)))
    }

    /// Returns the room of a regular file's stream, which is computed once.
    fn room_of<'r>(&self, rooms: &'r mut Rooms, file: u32) -> Option<&'r mut Option<u64>> {
        let key = self.room_key(file)?;
        let own = rooms.streams.get(&key).map_or(&[][..], Vec::as_slice);
        Some(rooms.computed.entry(key).or_insert_with(|| self.room(own, file)))
    }

    /// Returns how many bytes a file has beyond those that were observed. None if that is no limit: the process has written a part
    /// of the file twice, or the size is unknown. With O_APPEND, seeks do not matter, and all openings write behind each other.
    /// `own` are the indices of the process's streams that share the room.
    fn room(&self, own: &[usize], file: u32) -> Option<u64> {
        let open_file = self.files.all.get(file as usize)?;
        let size = current_size(open_file)?;
        let own = own.iter().map(|&index| &self.streams.all[index]);
        let (mut observed, mut openings, mut truncates) = (0_u64, 0, false);
        for stream in own {
            if stream.direction == Direction::Out {
                observed = observed.saturating_add(stream.bytes);
                openings += 1;
            }
            truncates |= self.files.all[stream.file as usize].flags & libc::O_TRUNC != 0;
            let is_moved = stream.seeks > 0 || stream.jumps > 0 || stream.again_bytes > 0;
            if is_moved && !appends_to_file(open_file) {
                return None;
            }
        }
        let is_limit = !appends_to_file(open_file) || observed <= size && !(truncates && openings > 1);
        is_limit.then(|| size.saturating_sub(observed))
    }

    /// Returns the inodes to which other processes wrote.
    fn inodes_of_other_writers(&self, pid: u32) -> HashSet<(u64, u64)> {
        let others = self.streams.all.iter().filter(|stream| stream.pid != pid);
        let writers = others.filter(|stream| stream.direction == Direction::Out && stream.bytes > 0);
        let files = writers.filter_map(|stream| self.files.all.get(stream.file as usize));
        files.map(|file| (file.dev, file.ino)).collect()
    }
}

fn appends_to_file(file: &OpenFile) -> bool {
    file.kind == StreamKind::File && file.appends()
}

/// Returns the part of `whole` that `part` is of `of`.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(of.max(1))) as u64
}

fn add(missing: &mut Missing, stream: Option<GapStream>, more: KernelTotal) {
    match missing.iter_mut().find(|(other, _)| *other == stream) {
        Some((_, sum)) => (sum.calls, sum.bytes) = (sum.calls + more.calls, sum.bytes + more.bytes),
        None => missing.push((stream, more)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use weir_model::Untrusted;
    use weir_model::trace::{Exit, IoTotals, Op, StreamCounts};
    use weir_sys::proc::ResourceUsage;
    use weir_trace_api::{RawCall, RawCounts, RawEvent, RawEventKind, RawFile};

    use super::*;

    const MS: u64 = 1_000_000;
    /// Above the kernel's largest PID.
    const NO_PID: u32 = 4_194_305;

    /// The observed calls of a process on a file before a gap.
    #[derive(Default)]
    struct Use {
        flags: i32,
        /// Calls and bytes of each opening but the last.
        earlier: &'static [(u64, u64)],
        again_bytes: u64,
        seeks: u64,
    }

    fn once(again_bytes: u64) -> Use {
        Use { again_bytes, ..Use::default() }
    }

    /// Returns the streams of a process that writes 200 bytes with 100 calls to a file, and 1,200 with 600 in a gap before its exit.
    fn streams(file_bytes: usize, before: Use) -> Vec<(i32, u64, u64, bool)> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs::write(&path, vec![0; file_bytes]).expect("a file");
        let status = fs::metadata(&path).expect("it exists");
        let mut recorder = Recorder::new(0, true);
        let mut record =
            |at: u64, kind| recorder.record(RawEvent { ns: at * MS, pid: NO_PID, tid: NO_PID, kind });
        let flags = libc::O_WRONLY | before.flags;
        let open = RawCall::new(Op::Openat, [0, 0, flags as u64, 0, 0, 0], 3);
        let file = RawFile {
            dev: status.dev(),
            ino: status.ino(),
            mode: status.mode(),
            flags,
            ..RawFile::default()
        };
        let openings: Vec<(u64, u64)> = before.earlier.iter().copied().chain([(100, 200)]).collect();
        for (opening, (calls, bytes)) in (1..).zip(&openings) {
            let paths = vec![path.to_str().expect("text").into()];
            record(10, RawEventKind::Call(RawCall { paths, ..open.clone() }));
            let file = RawFile { key: opening, ..file };
            record(10, RawEventKind::File { fd: 3, file, name: Untrusted::default() });
            let counted = StreamCounts::new(NO_PID, 0, 3, 0, Direction::Out);
            let Use { again_bytes, seeks, .. } = before;
            let counts = StreamCounts { calls: *calls, bytes: *bytes, again_bytes, seeks, ..counted };
            let is_last = opening == openings.len() as u64;
            let (first_ns, last_ns, unreported_seeks) = (11 * MS, if is_last { 39 } else { 12 } * MS, 0);
            let counts =
                RawCounts { counts, first_ns, last_ns, unreported_seeks, last_unreported_seek: None };
            record(39, RawEventKind::Counts(Box::new(counts)));
            if !is_last {
                record(39, RawEventKind::Call(RawCall::new(Op::Close, [3, 0, 0, 0, 0, 0], 0)));
            }
        }
        let observed = openings.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        record(40, RawEventKind::Gap { until_ns: 40 * MS });
        let totals = IoTotals { write_calls: observed.0, written_bytes: observed.1, ..IoTotals::default() };
        record(40, RawEventKind::GapEdge { totals, ends: false });
        let (write_calls, written_bytes) = (observed.0 + 600, observed.1 + 1200);
        let io = Some(IoTotals { write_calls, written_bytes, ..IoTotals::default() });
        record(90, RawEventKind::Exit { exit: Exit::Code(0), io, usage: ResourceUsage::default() });
        let streams = recorder.finish().streams;
        streams.iter().map(|stream| (stream.fd, stream.calls, stream.bytes, stream.estimated)).collect()
    }

    #[test]
    fn bytes_beyond_the_size_of_a_file_are_those_of_an_unknown_stream() {
        assert_eq!(streams(1400, once(0)), [(3, 700, 1400, false)]);
        assert_eq!(streams(1000, once(0)), [(3, 500, 1000, true), (StreamCounts::UNKNOWN, 200, 400, true)]);
        assert_eq!(streams(1000, once(64)), [(3, 700, 1400, false)], "a part is written twice");
    }

    /// PHP seeks to the end of each file that it opens to append.
    #[test]
    fn all_openings_that_append_share_the_size_of_the_file() {
        let flags = libc::O_APPEND;
        let sums = |file_bytes, earlier, seeks| {
            let found = streams(file_bytes, Use { flags, earlier, seeks, again_bytes: 0 });
            let sum = |known: bool| {
                let same = found.iter().filter(|stream| (stream.0 != StreamCounts::UNKNOWN) == known);
                same.fold((0, 0), |sum, stream| (sum.0 + stream.1, sum.1 + stream.2))
            };
            [sum(true), sum(false)]
        };
        assert_eq!(sums(1000, &[], 0), [(500, 1000), (200, 400)]);
        assert_eq!(sums(1000, &[], 5), [(500, 1000), (200, 400)]);
        assert_eq!(sums(1000, &[(1, 300)], 5), [(351, 1000), (350, 700)]);
        assert_eq!(sums(1700, &[(1, 300)], 5), [(701, 1700), (0, 0)]);
        assert_eq!(sums(400, &[(1, 300)], 5), [(701, 1700), (0, 0)], "the file was truncated meanwhile");
    }

    /// The windows show several openings, so that no activity tells which stream continued in the gap.
    #[test]
    fn a_file_with_room_for_all_unknown_bytes_has_them() {
        let flags = libc::O_APPEND;
        let found = |file_bytes| streams(file_bytes, Use { flags, earlier: &[(100, 200)], ..Use::default() });
        let unknown = |found: &[(i32, u64, u64, bool)]| {
            let unknown = found.iter().find(|stream| stream.0 == StreamCounts::UNKNOWN);
            unknown.map(|stream| (stream.1, stream.2))
        };
        let all = found(1600);
        assert_eq!(all, [(3, 100, 200, false), (3, 700, 1400, false)]);
        assert_eq!(unknown(&found(1620)), None, "the size was read a little later");
        assert_eq!(found(1620), all);
        assert_eq!(unknown(&found(1580)), Some((10, 20)));
        assert_eq!(unknown(&found(1000)), Some((600, 1200)));
        assert_eq!(unknown(&found(2000)), Some((600, 1200)), "the file may have had bytes before");
    }
}
