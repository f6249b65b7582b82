//! The streams of one process that have bytes pending, and since when.

use weir_model::top::PendingStream;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::proc::descriptor;

use crate::process_buffers::ProcessBuffers;

/// So often a search for streams that are new is made, in looks.
const SEARCH_EVERY: u32 = 16;
/// So many bytes of what is pending are shown.
const PREVIEW: usize = 64;

/// The streams of a process.
pub(super) struct PendingStreams {
    buffers: ProcessBuffers,
    looks: u32,
    seen: Option<Vec<Seen>>,
    now_s: f64,
}

/// A stream with bytes pending.
struct Seen {
    walker: RuntimeId,
    address: u64,
    fd: i32,
    path: String,
    bytes: u64,
    /// The first of them.
    pending: Vec<u8>,
    since_s: f64,
    from_before: bool,
}

impl PendingStreams {
    pub fn new(buffers: ProcessBuffers) -> PendingStreams {
        PendingStreams { buffers, looks: 0, seen: None, now_s: 0.0 }
    }

    /// Looks into the process, at a time of any clock that only goes on.
    pub fn look(&mut self, pid: u32, now_s: f64) {
        if self.looks % SEARCH_EVERY == SEARCH_EVERY - 1 {
            self.buffers.search_again(weir_sys::clock::now_ns());
        }
        let found = self.buffers.snapshot(pid);
        self.take(found, now_s, |fd| descriptor(pid, fd));
    }

    /// Nothing is known of them now.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    /// Does anything wait?
    pub fn has_pending(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| !seen.is_empty())
    }

    /// Time goes on also when nobody looks.
    pub fn at(&mut self, now_s: f64) {
        self.now_s = now_s;
    }

    /// What waits; None before the first look.
    pub fn waiting(&self) -> Option<Vec<PendingStream>> {
        let waiting = |seen: &Seen| PendingStream {
            walker: seen.walker,
            fd: seen.fd,
            path: seen.path.clone(),
            pending_bytes: seen.bytes,
            waits_s: (self.now_s - seen.since_s).max(0.0),
            from_before: seen.from_before,
            preview: String::from_utf8_lossy(&seen.pending[..seen.pending.len().min(PREVIEW)]).into_owned(),
        };
        Some(self.seen.as_ref()?.iter().map(waiting).collect())
    }

    fn take(&mut self, found: Vec<Buffer>, now_s: f64, path: impl Fn(i32) -> Option<String>) {
        let (first, before) = (self.looks == 0, self.seen.take().unwrap_or_default());
        let with = found.into_iter().filter(|one| one.pending_bytes > 0 && one.fd >= 0);
        let seen = with.map(|one| {
            let known = before.iter().find(|seen| seen.is(&one));
            Seen {
                since_s: known.map_or(now_s, |seen| seen.since_s),
                from_before: known.map_or(first, |seen| seen.from_before),
                path: path(one.fd).unwrap_or_default(),
                walker: one.walker,
                address: one.address,
                fd: one.fd,
                bytes: one.pending_bytes,
                pending: one.pending,
            }
        });
        self.seen = Some(seen.collect());
        self.looks = self.looks.wrapping_add(1);
        self.now_s = now_s;
    }
}

impl Seen {
    /// The same stream with the same bytes and perhaps more. Of a program that always writes the same line one
    /// cannot tell whether it is the same line still: if it wrote in between, there are fewer sooner or later.
    fn is(&self, one: &Buffer) -> bool {
        (self.walker, self.address, self.fd) == (one.walker, one.address, one.fd)
            && one.pending_bytes >= self.bytes
            && one.pending.starts_with(&self.pending)
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
        }
    }

    /// What is said of them after looks that found these texts in the stream of descriptor 1.
    fn after(looks: &[(f64, &[&str])]) -> Vec<(u64, f64, bool)> {
        let mut streams = PendingStreams::new(ProcessBuffers::default());
        for (now_s, texts) in looks {
            let found = texts.iter().map(|text| buffer(1, text)).collect();
            streams.take(found, *now_s, |fd| Some(format!("/{fd}")));
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
        streams.take(vec![buffer(-1, "memory"), buffer(2, "")], 1.0, |_| None);
        assert_eq!(streams.waiting(), Some(Vec::new()));
    }
}
