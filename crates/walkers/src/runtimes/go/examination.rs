//! Examines which of the objects that a search has found are in use.

use weir_sys::memory::Memory;

use super::GoStreams;
use super::live_objects::{LiveObjects, Use};
use crate::candidates::{self, StreamCandidate};
use crate::heap_search::note_search_cut;

/// How a read examines which objects are in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Examination {
    #[default]
    None,
    /// By the spans that the last examination has found: the process is stopped, and a search of a large heap takes long.
    KnownSpans,
    /// With a search for the spans.
    Search,
}

/// The result of the last examination.
#[derive(Debug, Default)]
pub(super) struct ExaminedObjects {
    pub live: LiveObjects,
    /// The Writers that are in use, and that note how many bytes they have written.
    pub writers: Vec<u64>,
    /// The last read made this examination. Otherwise the process may have changed its Writers since then.
    pub is_of_last_read: bool,
}

impl GoStreams {
    /// Drops the candidates that are no longer in use, unless the read makes no examination. Candidates whose use is unknown are
    /// not drained.
    pub(super) fn examine(
        &self,
        memory: &dyn Memory,
        all: &mut Vec<StreamCandidate>,
        examination: Examination,
    ) {
        let mut examined = self.examined.borrow_mut();
        examined.is_of_last_read = examination != Examination::None;
        if examination == Examination::None {
            return;
        }
        if !all.is_empty() {
            examined.live = self.live_objects(memory, all, examination, &examined.live);
            all.retain_mut(|one| keep_used(memory, one, &examined.live, examination));
        }
        examined.writers = all.iter().filter(|one| one.stream.note.is_some()).map(|one| one.at).collect();
        if !examined.writers.is_empty() {
            // Read now: a large program has tables of many megabytes, and may be stopped when they are needed.
            let _known = self.functions(memory);
        }
    }

    fn live_objects(
        &self,
        memory: &dyn Memory,
        all: &[StreamCandidate],
        examination: Examination,
        last: &LiveObjects,
    ) -> LiveObjects {
        let buffers = all.iter().map(|one| one.stream.buffer.address);
        let objects: Vec<u64> = buffers.chain(candidates::addresses(all)).collect();
        let goroutine_list = self.goroutine_list(memory);
        let known = (examination == Examination::KnownSpans)
            .then(|| last.read_again(self.pid, memory, goroutine_list))
            .flatten();
        known.unwrap_or_else(|| LiveObjects::search(self.pid, memory, goroutine_list, &objects))
    }
}

/// Returns false for a candidate that is not in use. Changes a candidate whose use is unknown so that it is not drained.
fn keep_used(
    memory: &dyn Memory,
    one: &mut StreamCandidate,
    live: &LiveObjects,
    examination: Examination,
) -> bool {
    let usage = live.use_of(memory, one.at);
    if usage == Use::Unknown && examination == Examination::Search && one.stream.buffer.pending_bytes > 0 {
        // Such bytes are not drained, and nothing else reports that.
        note_search_cut();
    }
    if usage != Use::Used {
        (one.stream.data_address, one.stream.note) = (None, None);
    }
    usage != Use::Freed
}
