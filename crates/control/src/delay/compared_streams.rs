//! Writes the bytes of streams that a search found and of which no growth was seen, if their file shows that they are not written.
//!
//! A program that fills a buffer and then waits shows no growth: the bytes may be those of a flush that is not noted yet, or of an old
//! copy. If they stay the same, the file is compared with the buffer while the process is stopped.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_model::trace::RuntimeId;
use weir_walkers::PendingBytes;

use super::write_ahead::{ThreadActivity, drain_stream, thread_activity};
use crate::foreign_file::TargetThread;
use crate::rescue::ambiguous_streams;
use crate::supervise::Tracees;

/// The longest wait for a search that begins after the bytes were put. It shows all copies of a writer, so that all bytes can be
/// written; a comparison before it can leave some of them for good. With a large heap it comes later.
const SEARCH_WAIT: Duration = Duration::from_millis(500);

/// The wait after a write that did not happen, because the process could not be stopped in time or was in a write itself. It
/// doubles each time, up to `RETRY_DOUBLED` times, because each attempt reads the end of the file and stops the process.
const RETRY: Duration = Duration::from_millis(5);
const RETRY_DOUBLED: u32 = 8;

/// The streams of which it is unknown whether their bytes are written, by process and stream address.
#[derive(Default)]
pub(super) struct ComparedStreams {
    seen: HashMap<(u32, u64), SeenBytes>,
}

struct SeenBytes {
    bytes: Vec<u8>,
    since: Instant,
    /// Whether all memory had been searched before the last comparison with the file; None before the first.
    compared: Option<bool>,
    /// The attempts in a row that wrote not all bytes although the file showed that they are not written.
    failures: u32,
    /// The earliest time of the next write after those.
    retry_at: Instant,
}

/// Returns whether only the file can show that bytes of this stream are not written.
fn needs_comparison(one: &PendingBytes) -> bool {
    let leaves_copies = [RuntimeId::RUST, RuntimeId::GO].contains(&one.walker);
    leaves_copies && one.can_show_by_file() && (!one.copies.is_empty() || one.early_len() == 0)
}

impl ComparedStreams {
    /// Notes the streams of a process, and writes the bytes of those that are the same for `due_age`.
    pub fn write_due(
        &mut self,
        tracees: &mut Tracees,
        (pid, tid): (u32, u32),
        pending: &[PendingBytes],
        due_age: Duration,
    ) {
        let is_there = |stream: u64| pending.iter().any(|one| one.stream == stream && needs_comparison(one));
        self.seen.retain(|(owner, stream), _| *owner != pid || is_there(*stream));
        let mut due = Vec::new();
        for one in pending.iter().filter(|one| needs_comparison(one)) {
            let ahead = tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes);
            let seen = self.seen.entry((pid, one.stream)).or_insert_with(|| SeenBytes::new(one));
            if seen.bytes != one.bytes {
                *seen = SeenBytes::new(one);
            }
            let all_found = tracees.last_search(pid).is_some_and(|begun| begun > seen.since);
            let is_new =
                seen.compared.is_none() || all_found && seen.compared == Some(false) || seen.is_retry_due();
            let wait = if all_found { due_age } else { due_age.max(SEARCH_WAIT) };
            if ahead < one.bytes.len() && is_new && seen.since.elapsed() >= wait {
                seen.compared = Some(all_found);
                let shown = ambiguous_streams::unwritten_len(tracees, (pid, tid), one, all_found);
                let stream = DueStream { stream: one.stream, bytes: one.bytes.clone(), all_found };
                due.extend(shown.is_some().then_some(stream));
            }
        }
        let written = if due.is_empty() { Vec::new() } else { write_if_unwritten(tracees, pid, tid, &due) };
        for one in &due {
            let Some(seen) = self.seen.get_mut(&(pid, one.stream)) else { continue };
            seen.note_attempt(written.contains(&one.stream));
        }
    }

    pub fn forget(&mut self, pid: u32) {
        self.seen.retain(|(owner, _), _| *owner != pid);
    }
}

impl SeenBytes {
    fn new(one: &PendingBytes) -> SeenBytes {
        let now = Instant::now();
        SeenBytes { bytes: one.bytes.clone(), since: now, compared: None, failures: 0, retry_at: now }
    }

    fn note_attempt(&mut self, is_written: bool) {
        self.retry_at = Instant::now() + RETRY * (1 << self.failures.min(RETRY_DOUBLED));
        self.failures = if is_written { 0 } else { self.failures + 1 };
    }

    fn is_retry_due(&self) -> bool {
        self.failures > 0 && self.retry_at <= Instant::now()
    }
}

/// A stream whose bytes are due.
struct DueStream {
    stream: u64,
    bytes: Vec<u8>,
    /// All memory was searched after the bytes were put.
    all_found: bool,
}

/// Stops the process and writes the bytes of those streams that are still the same, as far as the file still shows that they are
/// not written. Returns the streams whose bytes it wrote completely.
fn write_if_unwritten(tracees: &mut Tracees, pid: u32, tid: u32, streams: &[DueStream]) -> Vec<u64> {
    let mut written = Vec::new();
    if tracees.hold(pid) && thread_activity(tracees, pid) != ThreadActivity::Writing {
        let pending = tracees.pending_and_ambiguous_when_held(pid, tid);
        for one in pending.into_iter().filter(needs_comparison) {
            let is_same = |due: &&DueStream| (due.stream, &due.bytes) == (one.stream, &one.bytes);
            let Some(due) = streams.iter().find(is_same) else { continue };
            if let Some(len) = ambiguous_streams::unwritten_len(tracees, (pid, tid), &one, due.all_found) {
                let one = one.with_decided(len);
                drain_stream(tracees, pid, &TargetThread::new(tid), &one, len, false);
                if tracees.written_ahead.prefix_len(pid, one.stream, &one.bytes) >= len {
                    written.push(one.stream);
                }
            }
        }
    }
    tracees.release(pid);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_did_not_happen_is_tried_again_later() {
        let now = Instant::now();
        let mut seen =
            SeenBytes { bytes: vec![1], since: now, compared: Some(true), failures: 0, retry_at: now };
        assert!(!seen.is_retry_due(), "it was not tried");
        let waits = (0..12).map(|_| {
            let begun = Instant::now();
            seen.note_attempt(false);
            assert!(!seen.is_retry_due());
            let wait = seen.retry_at - begun;
            seen.retry_at = Instant::now();
            assert!(seen.is_retry_due());
            wait
        });
        let waits: Vec<Duration> = waits.collect();
        assert!(waits[0] >= RETRY && waits.windows(2).take(8).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait < Duration::from_secs(2)), "{waits:?}");
        seen.note_attempt(true);
        seen.retry_at = Instant::now();
        assert!(!seen.is_retry_due(), "all bytes are written");
    }
}
