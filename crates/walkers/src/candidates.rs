//! Streams that were found by a search: an object that was moved leaves its old self behind, which looks as good.

use std::collections::BTreeMap;

use crate::pending::Whole;

/// What looks like a stream.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    /// Where the object is. It moves; its buffer does not, and is its address for everybody else.
    pub at: u64,
    /// It is as it was made, and one that was used is never so again: a copy from which it was made.
    pub fresh: bool,
    /// What it would be.
    pub whole: Whole,
}

/// The streams among them. Of those that have one buffer and agree, one. Of those that contradict each other the
/// ones that are known to be left behind are out: `left_behind` is asked of each, with all of them. Nothing
/// if that does not decide it.
pub(crate) fn settled(
    seen: Vec<Sighting>,
    left_behind: impl Fn(&Sighting, &[Sighting]) -> bool,
) -> Vec<Whole> {
    let mut of_buffer: BTreeMap<u64, Vec<Sighting>> = BTreeMap::new();
    for one in seen {
        of_buffer.entry(one.whole.buffer.address).or_default().push(one);
    }
    of_buffer.into_values().filter_map(|same| agreed(same, &left_behind)).collect()
}

fn agreed(mut same: Vec<Sighting>, left_behind: &impl Fn(&Sighting, &[Sighting]) -> bool) -> Option<Whole> {
    if !agree(&same) {
        same.retain(|one| !one.fresh);
    }
    if !agree(&same) {
        let all = same.clone();
        same.retain(|one| !left_behind(one, &all));
    }
    // Which of several that agree will be written to next cannot be told.
    let one = same.len() == 1;
    let settled = if agree(&same) { same.into_iter().next().map(|one| one.whole) } else { None };
    settled.map(|whole| Whole { moves: whole.moves.filter(|_| one), ..whole })
}

/// Where they are.
pub(crate) fn addresses(all: &[Sighting]) -> Vec<u64> {
    all.iter().map(|one| one.at).collect()
}

fn agree(all: &[Sighting]) -> bool {
    let told = |one: &Sighting| {
        let buffer = &one.whole.buffer;
        (buffer.fd, buffer.pending_bytes, buffer.unread_bytes)
    };
    all.windows(2).all(|two| told(&two[0]) == told(&two[1]))
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Buffer, RuntimeId};

    use super::*;

    fn seen(at: u64, address: u64, pending_bytes: u64, fresh: bool) -> Sighting {
        let whole = Whole::of(Buffer {
            walker: RuntimeId::GO,
            address,
            fd: 1,
            mode: None,
            buffer_bytes: 100,
            pending_bytes,
            pending: Vec::new(),
            unread_bytes: 0,
            unread: Vec::new(),
        });
        Sighting { at, fresh, whole }
    }

    fn found(seen: Vec<Sighting>) -> Vec<(u64, u64)> {
        let left_behind = |one: &Sighting, _all: &[Sighting]| one.at == 7;
        let found = settled(seen, left_behind).into_iter();
        found.map(|one| (one.buffer.address, one.buffer.pending_bytes)).collect()
    }

    #[test]
    fn what_contradicts_itself_is_not_believed() {
        assert_eq!(found(vec![seen(1, 50, 5, false), seen(2, 60, 6, false)]), [(50, 5), (60, 6)]);
        assert_eq!(found(vec![seen(1, 50, 5, false), seen(2, 50, 5, false)]), [(50, 5)], "they agree");
        assert_eq!(found(vec![seen(1, 50, 5, false), seen(2, 50, 0, false)]), []);
        assert_eq!(found(vec![seen(1, 50, 5, false), seen(2, 50, 0, true)]), [(50, 5)]);
        assert_eq!(found(vec![seen(7, 50, 5, false), seen(2, 50, 0, false)]), [(50, 0)]);
        assert_eq!(found(vec![seen(7, 50, 5, false), seen(2, 50, 0, false), seen(3, 50, 1, false)]), []);
    }
}
