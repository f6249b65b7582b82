//! Sorts the events of a recording by time. Nearly all arrive in order, and a late one (from another CPU's ring
//! buffer) is late by a few places. Moving these is cheaper than a sort, which copies all events while the user
//! waits for the report.

use std::cmp::Ordering;

use weir_model::trace::Event;

fn by_time(one: &Event, other: &Event) -> Ordering {
    one.at_s.total_cmp(&other.at_s)
}

/// Sorts the events by time. The sort is stable.
pub fn sort(events: &mut [Event]) {
    // Above one move per event a full sort is cheaper.
    let mut moves = events.len();
    for index in 1..events.len() {
        let (before, late) = events.split_at(index);
        if by_time(&before[index - 1], &late[0]).is_le() {
            continue;
        }
        let to = before.partition_point(|event| by_time(event, &late[0]).is_le());
        let Some(moves_left) = moves.checked_sub(index - to) else {
            return events.sort_by(by_time);
        };
        moves = moves_left;
        events[to..=index].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::trace::EventKind;

    use super::*;

    /// Returns events at these times; `tid` is the index of each.
    fn events(times: &[u8]) -> Vec<Event> {
        let numbered = times.iter().zip(0u32..);
        let event = |(&index, tid): (&u8, u32)| Event {
            at_s: index.into(),
            pid: 1,
            tid,
            kind: EventKind::Fork { child: 2 },
        };
        numbered.map(event).collect()
    }

    fn sorted(mut events: Vec<Event>) -> Vec<Event> {
        events.sort_by(by_time);
        events
    }

    #[test]
    fn late_events_and_reversed_events_are_sorted() {
        let late: Vec<u8> = (0..200).map(|index| if index % 9 == 4 { index - 3 } else { index }).collect();
        let backwards: Vec<u8> = (0..200).rev().collect();
        for times in [late, backwards, Vec::new(), vec![7]] {
            let mut actual = events(&times);
            sort(&mut actual);
            assert_eq!(actual, sorted(events(&times)));
        }
    }

    proptest! {
        #[test]
        fn the_order_equals_that_of_a_stable_sort(times in prop::collection::vec(0u8..20, 0..60)) {
            let mut actual = events(&times);
            sort(&mut actual);
            prop_assert_eq!(actual, sorted(events(&times)));
        }
    }
}
