//! The streams of one process that have pending bytes, and their age.

use weir_model::top::PendingStream;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::proc::descriptor;

use crate::process_buffers::ProcessBuffers;

/// Snapshots between two searches for new streams.
const SEARCH_EVERY: u32 = 16;
/// Limit of a preview in bytes: the survey copies one for each stream.
const PREVIEW_BYTES: usize = 64;

/// The pending streams of a process.
pub(super) struct PendingStreams {
    buffers: ProcessBuffers,
    snapshots: u32,
    known: Option<Vec<KnownStream>>,
    now_s: f64,
}

/// A stream with pending bytes at the last snapshot.
struct KnownStream {
    walker: RuntimeId,
    address: u64,
    fd: i32,
    path: String,
    bytes: u64,
    /// The first pending bytes.
    pending: Vec<u8>,
    since_s: f64,
    from_before: bool,
}

impl PendingStreams {
    pub fn new(buffers: ProcessBuffers) -> PendingStreams {
        PendingStreams { buffers, snapshots: 0, known: None, now_s: 0.0 }
    }

    /// Takes a buffer snapshot. `now_s` is the time by any monotonic clock, in seconds.
    pub fn take_snapshot(&mut self, pid: u32, now_s: f64) {
        if self.snapshots % SEARCH_EVERY == SEARCH_EVERY - 1 {
            self.buffers.search_again(weir_sys::clock::now_ns());
        }
        let found = self.buffers.snapshot(pid);
        self.update(found, now_s, |fd| descriptor(pid, fd));
    }

    /// Forgets the last snapshot.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Returns whether there are pending bytes.
    pub fn has_pending(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    /// Sets the time from which ages are computed.
    pub fn set_time(&mut self, now_s: f64) {
        self.now_s = now_s;
    }

    /// Returns the pending streams, or none before the first snapshot.
    pub fn waiting(&self) -> Option<Vec<PendingStream>> {
        let waiting = |stream: &KnownStream| PendingStream {
            walker: stream.walker,
            fd: stream.fd,
            path: stream.path.clone(),
            pending_bytes: stream.bytes,
            waits_s: (self.now_s - stream.since_s).max(0.0),
            from_before: stream.from_before,
            preview: String::from_utf8_lossy(&stream.pending[..stream.pending.len().min(PREVIEW_BYTES)])
                .into_owned(),
        };
        Some(self.known.as_ref()?.iter().map(waiting).collect())
    }

    fn update(&mut self, found: Vec<Buffer>, now_s: f64, path: impl Fn(i32) -> Option<String>) {
        let (first, before) = (self.snapshots == 0, self.known.take().unwrap_or_default());
        let with = found.into_iter().filter(|one| one.pending_bytes > 0 && one.fd >= 0);
        let known = with.map(|one| {
            let known = before.iter().find(|known| known.matches(&one));
            KnownStream {
                since_s: known.map_or(now_s, |known| known.since_s),
                from_before: known.map_or(first, |known| known.from_before),
                path: path(one.fd).unwrap_or_default(),
                walker: one.walker,
                address: one.address,
                fd: one.fd,
                bytes: one.pending_bytes,
                pending: one.pending,
            }
        });
        self.known = Some(known.collect());
        self.snapshots = self.snapshots.wrapping_add(1);
        self.now_s = now_s;
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
            walker: RuntimeId::GLIBC,
            address: 0x1000,
            fd,
            mode: None,
            buffer_bytes: 4096,
            pending_bytes: text.len() as u64,
            pending: text.into(),
            unread_bytes: 0,
            unread: Vec::new(),
            found_by_search: false,
        }
    }

    /// Returns number, age and `from_before` of the pending bytes after snapshots with these texts.
    fn after(snapshots: &[(f64, &[&str])]) -> Vec<(u64, f64, bool)> {
        let mut streams = PendingStreams::new(ProcessBuffers::default());
        for (now_s, texts) in snapshots {
            let found = texts.iter().map(|text| buffer(1, text)).collect();
            streams.update(found, *now_s, |fd| Some(format!("/{fd}")));
        }
        let waiting = streams.waiting().unwrap();
        assert!(waiting.iter().all(|one| (one.fd, one.path.as_str()) == (1, "/1")));
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
    fn streams_without_a_descriptor_or_with_nothing_are_left_out() {
        let mut streams = PendingStreams::new(ProcessBuffers::default());
        assert_eq!(streams.waiting(), None);
        streams.update(vec![buffer(-1, "memory"), buffer(2, "")], 1.0, |_| None);
        assert_eq!(streams.waiting(), Some(Vec::new()));
    }
}
