//! Pauses of processes that did this and that.

use foldhash::HashMap;
use weir_model::trace::IoTotals;

use super::*;
use Direction::{In, Out};

fn burst(streams: &[(FdFile, Direction, u64, u64)]) -> WindowActivity {
    let active = |calls, bytes| StreamActivity { calls, bytes, first_s: 1.0, last_s: 1.0, apart: false };
    streams.iter().map(|&(place, way, calls, bytes)| ((place, way), active(calls, bytes))).collect()
}

/// From 1.0 to 2.0, behind a burst of a tenth.
fn pause(
    moved: (u64, u64),
    before: &[(FdFile, Direction, u64, u64)],
    table: Option<FdsAtGapEnd>,
) -> ProcessGap {
    let open = before.iter().map(|one| one.0).collect();
    let moved = IoTotals { read_calls: moved.0, read_bytes: moved.1, ..IoTotals::default() };
    ProcessGap {
        from_s: 1.0,
        to_s: 2.0,
        looked_s: 0.9,
        moved,
        before: burst(before),
        table,
        gone: HashMap::default(),
        open,
        glimpsed: HashMap::default(),
    }
}

fn table(kept: &[(FdFile, Option<i64>)], new: &[(FdFile, Option<i64>)]) -> FdsAtGapEnd {
    let of = |list: &[(FdFile, Option<i64>)]| -> HashMap<FdFile, FdProgress> {
        list.iter()
            .map(|&(place, advance)| (place, FdProgress { advance, way: Some(In), still: false, stood: 0 }))
            .collect()
    };
    let numbers = kept.iter().chain(new).map(|one| one.0.0).collect();
    FdsAtGapEnd { kept: of(kept), new: of(new), numbers }
}

fn rounded(shares: Vec<(Option<FdFile>, CallsAndBytes)>) -> Vec<(Option<FdFile>, u64, u64)> {
    let mut all: Vec<_> = shares
        .into_iter()
        .map(|(place, amount)| (place, amount.calls.round() as u64, amount.bytes.round() as u64))
        .collect();
    all.sort_unstable();
    all
}

const FILE: FdFile = (3, 7);
const PIPE: FdFile = (0, 1);

#[test]
fn a_file_got_as_much_as_it_has_moved_on() {
    let before = [(FILE, In, 100, 100)];
    let seen = pause((5000, 5000), &before, Some(table(&[(FILE, Some(5000))], &[])));
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
    assert_eq!(shares(&seen, &WindowActivity::default(), Out), []);
    // Read a moment later.
    let seen = pause((5000, 5000), &before, Some(table(&[(FILE, Some(5080))], &[])));
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
}

#[test]
fn what_was_opened_and_closed_in_it_is_not_known() {
    let before = [(FILE, In, 10, 40_960), (PIPE, In, 10, 10)];
    // Another file has the number by now, and stands where it was read to.
    let other = (3, 8);
    let seen = pause((1000, 4_096_000), &before, Some(table(&[(PIPE, None)], &[(other, Some(8192))])));
    let found = rounded(shares(&seen, &burst(&[(other, In, 2, 8192)]), In));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (None, 998, 4_087_808));
    assert_eq!(found[1], (Some(other), 2, 8192));
}

#[test]
fn a_pipe_goes_on_if_nothing_else_was_done_before_and_after() {
    let (before, after) = ([(PIPE, In, 100, 300)], burst(&[(PIPE, In, 100, 300)]));
    let seen = pause((1000, 3000), &before, Some(table(&[(PIPE, None)], &[])));
    assert_eq!(rounded(shares(&seen, &after, In)), [(Some(PIPE), 1000, 3000)]);
    // It read files of a moment, too.
    let churns = pause((1000, 3000), &[before[0], (FILE, In, 5, 50)], Some(table(&[(PIPE, None)], &[])));
    assert_eq!(rounded(shares(&churns, &after, In)), [(None, 1000, 3000)]);
    // So it did afterwards.
    let churns = burst(&[(PIPE, In, 100, 300), ((9, 90), In, 1, 1)]);
    let churns: WindowActivity = churns
        .into_iter()
        .map(|(key, one)| (key, StreamActivity { first_s: 2.0, last_s: 2.5, ..one }))
        .collect();
    assert_eq!(rounded(shares(&seen, &churns, In)), [(None, 1000, 3000)]);
    // Of a socket the kernel does not count every call.
    let mut socket = burst(&[(PIPE, In, 100, 300)]);
    socket.values_mut().for_each(|one| one.apart = true);
    assert_eq!(rounded(shares(&seen, &socket, In)), [(None, 1000, 3000)]);
}

#[test]
fn a_beginning_is_no_change_once_it_is_over() {
    let mut seen =
        pause((1000, 3000), &[(PIPE, In, 100, 300), (FILE, In, 5, 50)], Some(table(&[(PIPE, None)], &[])));
    seen.before.get_mut(&(FILE, In)).unwrap().last_s = 0.91;
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(Some(PIPE), 1000, 3000)]);
}

#[test]
fn files_of_a_beginning_are_no_change_beside_many_calls_of_the_same_size() {
    let script = (5, 50);
    let before = [(FILE, In, 2500, 292), (script, In, 2, 233)];
    let after = burst(&[(FILE, In, 1400, 0)]);
    let spins = |moved| pause(moved, &before, Some(table(&[(FILE, None)], &[])));
    assert_eq!(rounded(shares(&spins((480_000, 0)), &after, In)), [(Some(FILE), 480_000, 0)]);
    // It may have read others: so much did not come by calls that give nothing.
    assert_eq!(rounded(shares(&spins((5000, 5_000_000)), &after, In)), [(None, 5000, 5_000_000)]);
    // Nor is that known of one that read more of what it has closed.
    let before = [(FILE, In, 100, 3), (script, In, 2, 233)];
    let reads = pause((480_000, 0), &before, Some(table(&[(FILE, None)], &[])));
    assert_eq!(rounded(shares(&reads, &after, In)), [(None, 480_000, 0)]);
}

#[test]
fn who_read_nothing_and_ended_unseen_went_on_reading_nothing() {
    let before = [(FILE, In, 1400, 0)];
    let ended = |moved| rounded(shares(&pause(moved, &before, None), &WindowActivity::default(), In));
    assert_eq!(ended((480_000, 4)), [(Some(FILE), 480_000, 4)]);
    assert_eq!(ended((480_000, 480_000)), [(None, 480_000, 480_000)]);
}

#[test]
fn who_ended_unseen_went_on_if_its_calls_were_as_large() {
    let before = [(FILE, In, 100, 100)];
    assert_eq!(
        rounded(shares(&pause((500, 500), &before, None), &WindowActivity::default(), In)),
        [(Some(FILE), 500, 500)]
    );
    // Numbers that are counted up, if nothing else was read.
    assert_eq!(
        rounded(shares(&pause((500, 900), &before, None), &WindowActivity::default(), In)),
        [(Some(FILE), 500, 900)]
    );
    let two = [(FILE, In, 100, 100), (PIPE, In, 100, 100)];
    assert_eq!(
        rounded(shares(&pause((500, 900), &two, None), &WindowActivity::default(), In)),
        [(None, 500, 900)]
    );
    assert_eq!(
        rounded(shares(&pause((500, 9000), &before, None), &WindowActivity::default(), In)),
        [(None, 500, 9000)]
    );
    assert_eq!(
        rounded(shares(&pause((5, 900), &[], None), &WindowActivity::default(), In)),
        [(None, 5, 900)]
    );
}

#[test]
fn a_file_that_was_closed_in_it_got_what_it_is_longer() {
    let gone = |way, advance| {
        HashMap::from_iter([(
            FILE,
            FdProgress { advance: Some(advance), way: Some(way), still: false, stood: 0 },
        )])
    };
    let mut seen = pause((100, 5000), &[], Some(table(&[(PIPE, None)], &[])));
    seen.gone = gone(In, 5000);
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), In)),
        [(Some(FILE), 100, 5000)],
        "read to its end"
    );
    seen.gone = gone(In, 3000);
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), In)),
        [(None, 100, 5000)],
        "or not to its end"
    );
    seen.moved = IoTotals { write_calls: 100, written_bytes: 5000, ..IoTotals::default() };
    seen.gone = gone(Out, 3000);
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), Out)),
        [(None, 40, 2000), (Some(FILE), 60, 3000)]
    );
    seen.gone = gone(Out, 6000);
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), Out)),
        [(None, 100, 5000)],
        "others wrote into it"
    );
}

#[test]
fn a_file_that_others_move_too_says_nothing_by_its_position() {
    let before = [(FILE, In, 100, 300)];
    let seen = pause((10, 30), &before, Some(table(&[(FILE, Some(5000))], &[])));
    let after = burst(&[(FILE, In, 100, 300)]);
    assert_eq!(rounded(shares(&seen, &after, In)), [(Some(FILE), 10, 30)]);
    let at_its_end = |moved| {
        let seen = pause(moved, &before, Some(table(&[(FILE, Some(5000))], &[])));
        rounded(shares(&seen, &WindowActivity::default(), In))
    };
    assert_eq!(at_its_end((10, 30)), [(Some(FILE), 10, 30)], "it does nothing more, and did nothing else");
    assert_eq!(at_its_end((10, 900)), [(None, 10, 900)], "not by calls like those");
}

#[test]
fn what_a_process_does_first_after_a_pause_is_near_it_however_late_it_gets_a_processor() {
    let before = [(FILE, In, 100, 300)];
    let seen = pause((1000, 3000), &before, Some(table(&[(FILE, Some(9000))], &[])));
    let mut after = burst(&[(FILE, In, 100, 300)]);
    for one in after.values_mut() {
        (one.first_s, one.last_s) = (seen.to_s + 0.004, seen.to_s + 0.006);
    }
    assert_eq!(rounded(shares(&seen, &after, In)), [(Some(FILE), 1000, 3000)]);
}

#[test]
fn a_file_that_has_not_moved_on_was_not_read_unless_that_does_not_move_it() {
    let (before, after) = ([(FILE, In, 100, 300)], burst(&[(FILE, In, 100, 300)]));
    // Closed, and opened again: it stands where it stood by chance.
    let mut seen = pause((1000, 3000), &before, Some(table(&[(FILE, Some(0))], &[])));
    assert_eq!(rounded(shares(&seen, &after, In)), [(None, 1000, 3000)]);
    seen.table.as_mut().unwrap().kept.get_mut(&FILE).unwrap().still = true;
    assert_eq!(rounded(shares(&seen, &after, In)), [(Some(FILE), 1000, 3000)]);
}

#[test]
fn a_file_that_was_the_only_one_got_what_moved_between_two_looks_too() {
    let before = [(FILE, In, 100, 100)];
    let mut seen = pause((5000, 5000), &before, Some(table(&[(FILE, Some(4000))], &[])));
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
    seen = pause((5000, 5000), &[before[0], ((4, 8), In, 3, 3)], seen.table);
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), In)),
        [(None, 1000, 1000), (Some(FILE), 4000, 4000)]
    );
}

#[test]
fn what_was_opened_at_the_end_of_it_did_not_get_what_went_through_others() {
    let new = (3, 9);
    let seen = pause((1000, 1000), &[], Some(table(&[(PIPE, None)], &[(new, Some(0))])));
    assert_eq!(rounded(shares(&seen, &burst(&[(new, In, 30, 30)]), In)), [(None, 1000, 1000)]);
    // Nor is it known to have gone through what was used only afterwards.
    assert_eq!(rounded(shares(&seen, &burst(&[(PIPE, In, 30, 30)]), In)), [(None, 1000, 1000)]);
}

#[test]
fn a_file_that_was_opened_and_closed_in_it_got_what_it_was_seen_to_get() {
    let (one, other) = ((4, 20), (4, 21));
    let kept = |advance| FdProgress { advance: Some(advance), way: Some(In), still: false, stood: 0 };
    let before = [(FILE, In, 10, 10_000)];
    let mut seen = pause((100, 100_000), &before, Some(table(&[(FILE, Some(0))], &[])));
    seen.glimpsed = HashMap::from_iter([(one, kept(5000)), (other, kept(0))]);
    let after = burst(&before);
    // Nor did the rest go where something went before and after: there were others.
    assert_eq!(rounded(shares(&seen, &after, In)), [(None, 95, 95_000), (Some(one), 5, 5000)]);
    // It ended in the pause.
    seen.table = None;
    assert_eq!(
        rounded(shares(&seen, &WindowActivity::default(), In)),
        [(None, 95, 95_000), (Some(one), 5, 5000)]
    );
    // It stands behind all that was read: it was sought to there.
    seen.glimpsed = HashMap::from_iter([(one, kept(5_000_000))]);
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(None, 100, 100_000)]);
}

#[test]
fn a_number_that_an_open_file_has_only_while_it_is_read_is_that_of_the_file() {
    let (by_number, file) = ((0, 5), (3, 5));
    let around = [(by_number, In, 100, 0)];
    let seen = pause((1000, 0), &around, Some(table(&[(file, Some(0)), (PIPE, None)], &[])));
    assert_eq!(rounded(shares(&seen, &burst(&around), In)), [(Some(by_number), 1000, 0)]);
    // What it moved on by went through that number too.
    let mut moved = seen.clone();
    moved.moved.read_bytes = 4;
    moved.table = Some(table(&[(file, Some(4)), (PIPE, None)], &[]));
    assert_eq!(rounded(shares(&moved, &burst(&around), In)), [(Some(by_number), 1000, 4)]);
    // Something else was read afterwards.
    let other = burst(&[(PIPE, In, 100, 0)]);
    assert_eq!(rounded(shares(&seen, &other, In)), [(None, 1000, 0)]);
}

#[test]
fn who_uses_file_after_file_is_not_at_the_last_one_for_all_of_a_pause() {
    const LAST: FdFile = (3, 8);
    let before = [(FILE, In, 100, 100), (LAST, In, 30, 30)];
    let mut seen = pause((5000, 5000), &before, None);
    seen.open = HashSet::from_iter([LAST]);
    seen.before.get_mut(&(FILE, In)).unwrap().last_s = 0.95;
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(None, 5000, 5000)]);
    // A library at its beginning is nothing that it does.
    seen.before.get_mut(&(FILE, In)).unwrap().calls = 3;
    assert_eq!(rounded(shares(&seen, &WindowActivity::default(), In)), [(Some(LAST), 5000, 5000)]);
}
