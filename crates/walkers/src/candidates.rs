//! Resolves contradictions between streams that a search found: an object that was moved leaves a copy at its old
//! address, which looks valid too.

use std::collections::BTreeMap;

use weir_model::trace::Buffer;

use crate::pending_bytes::StreamCopy;
use crate::stream_buffer::StreamBuffer;

/// An object that looks like a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamCandidate {
    /// Address of the object. The object may move; its buffer does not, and identifies the stream.
    pub at: u64,
    /// The object is in its initial state, to which it never returns after its first use. It may be the stale copy of an object
    /// that was moved and then used.
    pub untouched: bool,
    pub stream: StreamBuffer,
}

/// Returns the valid streams, without duplicates of the same buffer. If candidates of one buffer contradict each other, `is_stale`
/// decides which to drop: it gets one of them, and the list of all. If the rest still contradict each other, the stream is the
/// candidate with the most bytes, and [`StreamBuffer::copies`] has all of them.
pub(crate) fn resolve(
    found_candidates: Vec<StreamCandidate>,
    is_stale: impl Fn(&StreamCandidate, &[StreamCandidate]) -> bool,
) -> Vec<StreamBuffer> {
    let mut of_buffer: BTreeMap<u64, Vec<StreamCandidate>> = BTreeMap::new();
    for one in found_candidates {
        of_buffer.entry(one.stream.buffer.address).or_default().push(one);
    }
    of_buffer.into_values().filter_map(|same| resolve_one(same, &is_stale)).collect()
}

fn resolve_one(
    mut same: Vec<StreamCandidate>,
    is_stale: &impl Fn(&StreamCandidate, &[StreamCandidate]) -> bool,
) -> Option<StreamBuffer> {
    if !agree(&same) {
        same.retain(|one| !one.untouched);
    }
    if !agree(&same) {
        let all = same.clone();
        same.retain(|one| !is_stale(one, &all));
    }
    let found = |stream: StreamBuffer| StreamBuffer {
        buffer: Buffer { found_by_search: true, ..stream.buffer },
        ..stream
    };
    if !agree(&same) {
        return ambiguous_stream(&same).map(found);
    }
    // Of several copies that agree, it is unknown which one the program writes to next.
    let one = same.len() == 1;
    same.into_iter().next().map(|one| found(one.stream)).map(|stream| StreamBuffer {
        watch_address: stream.watch_address.filter(|_| one),
        note: stream.note.filter(|_| one),
        ..stream
    })
}

/// Returns the candidate with the most pending bytes, with all candidates as its copies. None if one of them has read-ahead bytes.
fn ambiguous_stream(same: &[StreamCandidate]) -> Option<StreamBuffer> {
    let reads = same.iter().any(|one| one.stream.buffer.unread_bytes > 0);
    let most = same.iter().max_by_key(|one| one.stream.buffer.pending_bytes).filter(|_| !reads)?;
    let mut copies: Vec<StreamCopy> = Vec::new();
    for StreamCandidate { stream, .. } in same {
        let (fd, pending_bytes) = (stream.buffer.fd, stream.buffer.pending_bytes);
        match copies.iter_mut().find(|one| (one.fd, one.pending_bytes) == (fd, pending_bytes)) {
            Some(copy) => copy.note = None,
            None => copies.push(StreamCopy { fd, pending_bytes, note: stream.note }),
        }
    }
    let is_drained = |one: &StreamCandidate| one.stream.data_address.is_some();
    Some(StreamBuffer {
        data_address: Some(most.stream.buffer.address).filter(|_| same.iter().any(is_drained)),
        watch_address: None,
        note: None,
        drain_stores: Vec::new(),
        partial_stores: Vec::new(),
        unwritten: false,
        is_drained_when_stopped: false,
        copies,
        is_ambiguous: true,
        ..most.stream.clone()
    })
}

/// Returns the addresses of the candidates.
pub(crate) fn addresses(all: &[StreamCandidate]) -> Vec<u64> {
    all.iter().map(|one| one.at).collect()
}

fn agree(all: &[StreamCandidate]) -> bool {
    let counts = |one: &StreamCandidate| {
        let buffer = &one.stream.buffer;
        (buffer.fd, buffer.pending_bytes, buffer.unread_bytes)
    };
    all.windows(2).all(|two| counts(&two[0]) == counts(&two[1]))
}

#[cfg(test)]
mod tests {
    use weir_model::trace::RuntimeId;

    use super::*;

    fn found_candidates(at: u64, address: u64, pending_bytes: u64, untouched: bool) -> StreamCandidate {
        let stream = StreamBuffer::of(Buffer {
            buffer_bytes: 100,
            pending_bytes,
            ..Buffer::empty(RuntimeId::GO, address, 1)
        });
        StreamCandidate { at, untouched, stream }
    }

    fn found(found_candidates: Vec<StreamCandidate>) -> Vec<(u64, u64)> {
        let is_stale = |one: &StreamCandidate, _all: &[StreamCandidate]| one.at == 7;
        let found = resolve(found_candidates, is_stale);
        assert!(found.iter().all(|one| one.buffer.found_by_search), "{found:?}");
        let found = found.into_iter().filter(|one| !one.is_ambiguous);
        found.map(|one| (one.buffer.address, one.buffer.pending_bytes)).collect()
    }

    #[test]
    fn a_contradiction_names_all_numbers_of_bytes() {
        let same = [(1, 5), (2, 0), (3, 9), (4, 0)];
        let same = same.map(|(at, pending_bytes)| found_candidates(at, 50, pending_bytes, false));
        let found = resolve(same.to_vec(), |_, _| false);
        assert_eq!((found.len(), found[0].buffer.pending_bytes), (1, 9));
        assert_eq!(found[0].copies.iter().map(|one| one.pending_bytes).collect::<Vec<_>>(), [5, 0, 9]);
        assert!(crate::stream_buffer::buffers(found).is_empty(), "nobody shows it");
        let reads = |at, unread_bytes| {
            let mut one = found_candidates(at, 50, 0, false);
            one.stream.buffer.unread_bytes = unread_bytes;
            one
        };
        assert!(resolve(vec![reads(1, 3), reads(2, 4)], |_, _| false).is_empty());
    }

    #[test]
    fn contradicting_candidates_are_rejected() {
        assert_eq!(
            found(vec![found_candidates(1, 50, 5, false), found_candidates(2, 60, 6, false)]),
            [(50, 5), (60, 6)]
        );
        assert_eq!(
            found(vec![found_candidates(1, 50, 5, false), found_candidates(2, 50, 5, false)]),
            [(50, 5)],
            "they agree"
        );
        assert_eq!(found(vec![found_candidates(1, 50, 5, false), found_candidates(2, 50, 0, false)]), []);
        assert_eq!(
            found(vec![found_candidates(1, 50, 5, false), found_candidates(2, 50, 0, true)]),
            [(50, 5)]
        );
        assert_eq!(
            found(vec![found_candidates(7, 50, 5, false), found_candidates(2, 50, 0, false)]),
            [(50, 0)]
        );
        assert_eq!(
            found(vec![
                found_candidates(7, 50, 5, false),
                found_candidates(2, 50, 0, false),
                found_candidates(3, 50, 1, false)
            ]),
            []
        );
    }
}
