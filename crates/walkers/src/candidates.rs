//! Resolves contradictions between streams that a search found: an object that was moved leaves a copy at its old
//! address that looks as valid.

use std::collections::BTreeMap;

use weir_model::trace::Buffer;

use crate::stream_buffer::StreamBuffer;

/// An object that looks like a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamCandidate {
    /// Address of the object. The object may move; its buffer does not, and identifies the stream.
    pub at: u64,
    /// The object is in its initial state, to which it never returns after its first use. Such an object may be the
    /// copy that a used one was made from.
    pub untouched: bool,
    pub stream: StreamBuffer,
}

/// Returns the valid streams, without duplicates of the same buffer. `is_stale` decides which candidates to drop
/// where several contradict each other; it gets one of them and all of them. If they still contradict each other,
/// none is returned.
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
    // Of several copies that agree, the one that will be written next is unknown.
    let one = same.len() == 1;
    let resolve = if agree(&same) { same.into_iter().next().map(|one| one.stream) } else { None };
    resolve.map(|stream| StreamBuffer {
        watch_address: stream.watch_address.filter(|_| one),
        note: stream.note.filter(|_| one),
        buffer: Buffer { found_by_search: true, ..stream.buffer },
        ..stream
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
            walker: RuntimeId::GO,
            address,
            fd: 1,
            mode: None,
            buffer_bytes: 100,
            pending_bytes,
            pending: Vec::new(),
            unread_bytes: 0,
            unread: Vec::new(),
            found_by_search: false,
            has_write_address: false,
        });
        StreamCandidate { at, untouched, stream }
    }

    fn found(found_candidates: Vec<StreamCandidate>) -> Vec<(u64, u64)> {
        let is_stale = |one: &StreamCandidate, _all: &[StreamCandidate]| one.at == 7;
        let found = resolve(found_candidates, is_stale);
        assert!(found.iter().all(|one| one.buffer.found_by_search), "{found:?}");
        let found = found.into_iter();
        found.map(|one| (one.buffer.address, one.buffer.pending_bytes)).collect()
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
