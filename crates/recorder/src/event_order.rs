//! Events in order of time. Nearly all come so, and what does not is late by a little (two processors tell of what they did
//! at the same time): a sort would copy all of them, and the report waits for it.

use std::cmp::Ordering;

use weir_model::trace::Event;

fn in_time(one: &Event, other: &Event) -> Ordering {
    one.at_s.total_cmp(&other.at_s)
}

/// Sorts them, those of one moment as they came.
pub fn sort(events: &mut [Event]) {
    // So many may be moved one by one before a sort is the cheaper way.
    let mut moves = events.len();
    for at in 1..events.len() {
        let (before, late) = events.split_at(at);
        if in_time(&before[at - 1], &late[0]).is_le() {
            continue;
        }
        let to = before.partition_point(|event| in_time(event, &late[0]).is_le());
        let Some(left) = moves.checked_sub(at - to) else {
            return events.sort_by(in_time);
        };
        moves = left;
        events[to..=at].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::trace::EventKind;

    use super::*;

    /// Events whose numbers tell in which order they came.
    fn events(times: &[u8]) -> Vec<Event> {
        let numbered = times.iter().zip(0u32..);
        let event = |(&at, tid): (&u8, u32)| Event {
            at_s: at.into(),
            pid: 1,
            tid,
            kind: EventKind::Fork { child: 2 },
        };
        numbered.map(event).collect()
    }

    fn sorted(mut events: Vec<Event>) -> Vec<Event> {
        events.sort_by(in_time);
        events
    }

    #[test]
    fn what_is_late_by_a_little_and_what_is_not_in_order_at_all() {
        let late: Vec<u8> = (0..200).map(|at| if at % 9 == 4 { at - 3 } else { at }).collect();
        let backwards: Vec<u8> = (0..200).rev().collect();
        for times in [late, backwards, Vec::new(), vec![7]] {
            let mut mine = events(&times);
            sort(&mut mine);
            assert_eq!(mine, sorted(events(&times)));
        }
    }

    proptest! {
        #[test]
        fn as_a_stable_sort_does_it(times in prop::collection::vec(0u8..20, 0..60)) {
            let mut mine = events(&times);
            sort(&mut mine);
            prop_assert_eq!(mine, sorted(events(&times)));
        }
    }
}
