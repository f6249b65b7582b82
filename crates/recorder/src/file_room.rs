//! The room for bytes in a written file: what a process wrote beyond the file's size in gaps went to other files, which it opened
//! and closed there, perhaps by the same descriptor.

use weir_model::Direction;
use weir_sys::open_files::current_size;

use crate::Recorder;
use crate::sampling_gaps::GapStream;
use crate::scaling::KernelTotal;

impl Recorder {
    /// Moves the bytes that a file has no room for from its stream to the unknown stream, with their share of the calls.
    pub(super) fn move_excess(
        &self,
        pid: u32,
        direction: Direction,
        missing: &mut Vec<(Option<GapStream>, KernelTotal)>,
    ) {
        if direction != Direction::Out {
            return;
        }
        let mut excess = KernelTotal::default();
        for (stream, sum) in missing.iter_mut() {
            let Some((image, Some((_, file)), _)) = *stream else { continue };
            let Some(room) = self.room(pid, image, file).filter(|room| *room < sum.bytes) else { continue };
            let bytes = sum.bytes - room;
            // The sizes of the other calls are unknown.
            let calls = (sum.calls as u128 * bytes as u128 / sum.bytes.max(1) as u128) as u64;
            let moved = KernelTotal { calls: calls.clamp(1, sum.calls.max(1)), bytes };
            (sum.calls, sum.bytes) = (sum.calls.saturating_sub(moved.calls), room);
            (excess.calls, excess.bytes) = (excess.calls + moved.calls, excess.bytes + moved.bytes);
        }
        if excess == KernelTotal::default() {
            return;
        }
        match missing.iter_mut().find(|(stream, _)| stream.is_none()) {
            Some((_, unknown)) => {
                (unknown.calls, unknown.bytes) = (unknown.calls + excess.calls, unknown.bytes + excess.bytes);
            }
            None => missing.push((None, excess)),
        }
    }

    /// Returns how many bytes a file has beyond those that were observed. None if that is no limit: the process has written a part
    /// of the file twice, or the size is unknown.
    fn room(&self, pid: u32, image: u32, file: u32) -> Option<u64> {
        let open_file = self.files.all.get(file as usize).filter(|_| self.files.is_regular(file))?;
        let size = current_size(open_file)?;
        let own = self.streams.of_process(pid).iter().map(|&index| &self.streams.all[index]);
        let mut own = own.filter(|stream| (stream.image, stream.file) == (image, file));
        let mut observed = 0_u64;
        let is_limit = own.all(|stream| {
            observed =
                observed.saturating_add(if stream.direction == Direction::Out { stream.bytes } else { 0 });
            stream.seeks == 0 && stream.jumps == 0 && stream.again_bytes == 0
        });
        is_limit.then(|| size.saturating_sub(observed))
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

    /// Returns the streams of a process that writes 200 bytes with 100 calls to a file, and 1,200 with 600 in a gap before its exit.
    fn streams(file_bytes: usize, again_bytes: u64) -> Vec<(i32, u64, u64, bool)> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs::write(&path, vec![0; file_bytes]).expect("a file");
        let status = fs::metadata(&path).expect("it exists");
        let mut recorder = Recorder::new(0, true);
        let mut record =
            |at: u64, kind| recorder.record(RawEvent { ns: at * MS, pid: NO_PID, tid: NO_PID, kind });
        let open = RawCall::new(Op::Openat, [0, 0, libc::O_WRONLY as u64, 0, 0, 0], 3);
        let paths = vec![path.to_str().expect("text").into()];
        record(10, RawEventKind::Call(RawCall { paths, ..open }));
        let file = RawFile {
            key: 1,
            dev: status.dev(),
            ino: status.ino(),
            mode: status.mode(),
            ..RawFile::default()
        };
        record(10, RawEventKind::File { fd: 3, file, name: Untrusted::default() });
        let counted = StreamCounts::new(NO_PID, 0, 3, 0, Direction::Out);
        let counts = StreamCounts { calls: 100, bytes: 200, again_bytes, ..counted };
        let (first_ns, last_ns, unreported_seeks) = (11 * MS, 39 * MS, 0);
        let counts = RawCounts { counts, first_ns, last_ns, unreported_seeks, last_unreported_seek: None };
        record(40, RawEventKind::Counts(Box::new(counts)));
        record(40, RawEventKind::Gap { until_ns: 40 * MS });
        let before = IoTotals { write_calls: 100, written_bytes: 200, ..IoTotals::default() };
        record(40, RawEventKind::GapEdge { totals: before, ends: false });
        let io = Some(IoTotals { write_calls: 700, written_bytes: 1400, ..IoTotals::default() });
        record(90, RawEventKind::Exit { exit: Exit::Code(0), io, usage: ResourceUsage::default() });
        let streams = recorder.finish().streams;
        streams.iter().map(|stream| (stream.fd, stream.calls, stream.bytes, stream.estimated)).collect()
    }

    #[test]
    fn bytes_beyond_the_size_of_a_file_are_those_of_an_unknown_stream() {
        assert_eq!(streams(1400, 0), [(3, 700, 1400, false)]);
        assert_eq!(streams(1000, 0), [(3, 500, 1000, true), (StreamCounts::UNKNOWN, 200, 400, true)]);
        assert_eq!(streams(1000, 64), [(3, 700, 1400, false)], "a part is written twice");
    }
}
