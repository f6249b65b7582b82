//! The streams of one process that have pending bytes, and their age.

use weir_model::Untrusted;
use weir_model::top::PendingStream;
use weir_model::trace::{Buffer, RuntimeId};

use crate::survey::process_reader::{ImageState, ProcessReader, Reading};

/// Snapshots between two searches for new streams.
const SEARCH_EVERY: u32 = 16;
/// Limit of a preview in bytes: the survey copies one for each stream.
const PREVIEW_BYTES: usize = 64;

/// The pending streams of a process.
pub(super) struct PendingStreams {
    /// The parent, until the process calls execve(2).
    parent: Option<u32>,
    snapshots: u32,
    known: Option<Vec<KnownStream>>,
    unanswered: bool,
    left_out: bool,
    /// The process has run since the last snapshot, or has none.
    awaits_snapshot: bool,
    /// The time of the last snapshot.
    read_s: f64,
}

/// A stream with pending bytes at the last snapshot.
struct KnownStream {
    walker: RuntimeId,
    address: u64,
    fd: i32,
    path: Untrusted,
    bytes: u64,
    /// The first pending bytes.
    pending: Vec<u8>,
    since_s: f64,
    from_before: bool,
}

impl PendingStreams {
    /// Creates the streams of an image that has no snapshot yet.
    pub fn new(parent: Option<u32>) -> PendingStreams {
        PendingStreams {
            parent,
            snapshots: 0,
            known: None,
            unanswered: false,
            left_out: false,
            awaits_snapshot: false,
            read_s: 0.0,
        }
    }

    /// Takes a buffer snapshot. `now_s` is the time by any monotonic clock, in seconds. Returns false if the time of the
    /// sample is over.
    pub fn take_snapshot(&mut self, pid: u32, reader: &mut ProcessReader, now_s: f64) -> bool {
        let search_again = self.snapshots % SEARCH_EVERY == SEARCH_EVERY - 1;
        let image = ImageState { parent: self.parent, is_new: self.snapshots == 0, search_again };
        let reading = reader.buffers(pid, image);
        self.left_out = reading == Reading::OutOfTime;
        self.unanswered = reading == Reading::NoAnswer;
        self.awaits_snapshot &= self.left_out;
        match reading {
            Reading::Answer(found) => self.update(found, now_s),
            Reading::NoAnswer | Reading::OutOfTime => self.known = None,
        }
        !self.left_out
    }

    /// Notes that the last sample had no time for this process.
    pub fn leave_out(&mut self) {
        (self.known, self.left_out) = (None, true);
    }

    /// Notes that this sample does not need the buffers: the process runs, or may not be read.
    pub fn set_not_due(&mut self) {
        (self.left_out, self.awaits_snapshot) = (false, false);
    }

    /// Notes that the last snapshot, if there is one, is out of date.
    pub fn await_snapshot(&mut self) {
        self.awaits_snapshot = true;
    }

    /// Returns whether the last snapshot is out of date, or there is none and one is due.
    pub fn awaits_snapshot(&self) -> bool {
        self.awaits_snapshot
    }

    /// Returns whether a snapshot is due and no earlier one shows pending bytes.
    pub fn is_unread(&self) -> bool {
        self.awaits_snapshot && !self.has_pending()
    }

    /// Returns whether the last sample had no time for this process.
    pub fn is_left_out(&self) -> bool {
        self.left_out
    }

    /// Notes that a read of the process's memory gave no answer.
    pub fn set_unanswered(&mut self) {
        self.unanswered = true;
    }

    /// Returns whether the last read of the process's memory gave no answer.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Forgets the last snapshot.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Returns whether there are pending bytes.
    pub fn has_pending(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    /// Returns the pending streams at the last snapshot, with their age then, or none before the first one.
    pub fn waiting(&self) -> Option<Vec<PendingStream>> {
        let waiting = |stream: &KnownStream| PendingStream {
            walker: stream.walker,
            fd: stream.fd,
            path: stream.path.clone(),
            pending_bytes: stream.bytes,
            waits_s: (self.read_s - stream.since_s).max(0.0),
            from_before: stream.from_before,
            preview: String::from_utf8_lossy(&stream.pending[..stream.pending.len().min(PREVIEW_BYTES)])
                .into_owned()
                .into(),
        };
        Some(self.known.as_ref()?.iter().map(waiting).collect())
    }

    fn update(&mut self, found: Vec<(Buffer, Untrusted)>, now_s: f64) {
        let (first, before) = (self.snapshots == 0, self.known.take().unwrap_or_default());
        let with = found.into_iter().filter(|(one, _)| one.pending_bytes > 0 && one.fd >= 0);
        let known = with.map(|(one, path)| {
            let known = before.iter().find(|known| known.matches(&one));
            KnownStream {
                since_s: known.map_or(now_s, |known| known.since_s),
                from_before: known.map_or(first, |known| known.from_before),
                path,
                walker: one.walker,
                address: one.address,
                fd: one.fd,
                bytes: one.pending_bytes,
                pending: one.pending,
            }
        });
        self.known = Some(known.collect());
        self.snapshots = self.snapshots.wrapping_add(1);
        self.read_s = now_s;
    }
}

impl KnownStream {
    /// Returns whether `buffer` is the same stream with the same bytes, and perhaps more. If a program repeats one line,
    /// a flush and new bytes look like the old bytes until their number falls.
    fn matches(&self, buffer: &Buffer) -> bool {
        (self.walker, self.address, self.fd) == (buffer.walker, buffer.address, buffer.fd)
            && buffer.pending_bytes >= self.bytes
            && buffer.pending.starts_with(&self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(fd: i32, text: &str) -> Buffer {
        Buffer {
            buffer_bytes: 4096,
            pending_bytes: text.len() as u64,
            pending: text.into(),
            ..Buffer::empty(RuntimeId::GLIBC, 0x1000, fd)
        }
    }

    /// Returns number, age and `from_before` of the pending bytes after snapshots with these texts.
    fn after(snapshots: &[(f64, &[&str])]) -> Vec<(u64, f64, bool)> {
        let mut streams = PendingStreams::new(None);
        for (now_s, texts) in snapshots {
            let found = texts.iter().map(|text| (buffer(1, text), "/1".into())).collect();
            streams.update(found, *now_s);
        }
        let waiting = streams.waiting().unwrap();
        assert!(waiting.iter().all(|one| (one.fd, one.path.exact()) == (1, "/1")));
        waiting.iter().map(|one| (one.pending_bytes, one.waits_s, one.from_before)).collect()
    }

    #[test]
    fn an_age_is_that_of_the_first_byte() {
        assert_eq!(after(&[(1.0, &["ab"])]), [(2, 0.0, true)]);
        assert_eq!(after(&[(1.0, &["ab"]), (3.0, &["abc"])]), [(3, 2.0, true)]);
        assert_eq!(after(&[(1.0, &["abc"]), (3.0, &["ab"])]), [(2, 0.0, false)]);
        assert_eq!(after(&[(1.0, &["abc"]), (3.0, &["xbcd"])]), [(4, 0.0, false)]);
        assert_eq!(after(&[(1.0, &["ab"]), (2.0, &[]), (3.0, &["ab"])]), [(2, 0.0, false)]);
        assert_eq!(after(&[(1.0, &[]), (2.0, &["abc"]), (5.0, &["abc"])]), [(3, 3.0, false)]);
    }

    #[test]
    fn an_outdated_snapshot_does_not_get_older() {
        let mut streams = PendingStreams::new(None);
        streams.await_snapshot();
        assert!(streams.is_unread());
        streams.update(vec![(buffer(1, "ab"), "/1".into())], 1.0);
        streams.update(vec![(buffer(1, "ab"), "/1".into())], 3.0);
        streams.await_snapshot();
        assert!(!streams.is_unread(), "it has pending bytes");
        assert_eq!(streams.waiting().unwrap()[0].waits_s, 2.0);
        streams.update(Vec::new(), 4.0);
        assert!(streams.is_unread(), "they may be new");
        streams.set_not_due();
        assert!(!streams.is_unread(), "it runs");
    }

    #[test]
    fn streams_without_a_descriptor_or_with_nothing_are_left_out() {
        let mut streams = PendingStreams::new(None);
        assert_eq!(streams.waiting(), None);
        let found = [buffer(-1, "memory"), buffer(2, "")].map(|one| (one, Untrusted::default()));
        streams.update(found.into(), 1.0);
        assert_eq!(streams.waiting(), Some(Vec::new()));
    }
}
