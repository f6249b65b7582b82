//! Attribution of gaps by the kinds of evidence.

mod closed_files;

use foldhash::HashMap;
use weir_model::trace::IoTotals;

use super::*;
use Direction::{In, Out};

fn window(streams: &[(FdFile, Direction, u64, u64)]) -> WindowActivity {
    let active =
        |calls, bytes| StreamActivity { calls, bytes, first_s: 1.0, last_s: 1.0, partly_counted: false };
    streams
        .iter()
        .map(|&(fd_file, direction, calls, bytes)| ((fd_file, direction), active(calls, bytes)))
        .collect()
}

/// Returns a gap from 1.0 to 2.0 s after a window of 0.1 s.
fn gap_with(
    transferred: (u64, u64),
    window_before: &[(FdFile, Direction, u64, u64)],
    fds_at_end: Option<FdsAtGapEnd>,
) -> ProcessGap {
    let open_at_start = window_before.iter().map(|one| one.0).collect();
    let transferred =
        IoTotals { read_calls: transferred.0, read_bytes: transferred.1, ..IoTotals::default() };
    ProcessGap {
        from_s: 1.0,
        to_s: 2.0,
        window_start_s: 0.9,
        transferred,
        window_before: window(window_before),
        fds_at_end,
        closed: HashMap::default(),
        open_at_start,
        short_lived: HashMap::default(),
    }
}

fn fds_at_end(still_open: &[(FdFile, Option<i64>)], new: &[(FdFile, Option<i64>)]) -> FdsAtGapEnd {
    let of = |list: &[(FdFile, Option<i64>)]| -> HashMap<FdFile, FdProgress> {
        list.iter()
            .map(|&(fd_file, advance)| {
                (fd_file, FdProgress { advance, access: Some(In), unmoved: false, unknown_at_start: 0 })
            })
            .collect()
    };
    let fds = still_open.iter().chain(new).map(|one| one.0.0).collect();
    FdsAtGapEnd { still_open: of(still_open), new: of(new), fds }
}

fn rounded(shares: Vec<(Option<FdFile>, CallsAndBytes)>) -> Vec<(Option<FdFile>, u64, u64)> {
    let mut all: Vec<_> = shares
        .into_iter()
        .map(|(fd_file, amount)| (fd_file, amount.calls.round() as u64, amount.bytes.round() as u64))
        .collect();
    all.sort_unstable();
    all
}

const FILE: FdFile = (3, 7);
const PIPE: FdFile = (0, 1);

#[test]
fn a_file_gets_the_bytes_of_its_advance() {
    let window_before = [(FILE, In, 100, 100)];
    let gap = gap_with((5000, 5000), &window_before, Some(fds_at_end(&[(FILE, Some(5000))], &[])));
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
    assert_eq!(shares(&gap, &WindowActivity::default(), Out), []);
    // The position is read later than the totals.
    let gap = gap_with((5000, 5000), &window_before, Some(fds_at_end(&[(FILE, Some(5080))], &[])));
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
}

/// A program writes single bytes to one file, and in the gap lines to another: the calls that the first leaves are the second's.
#[test]
fn a_file_of_unknown_call_size_gets_the_remaining_calls() {
    let other = (4, 8);
    let at_end = fds_at_end(&[(FILE, Some(50_000)), (other, Some(110_000))], &[]);
    let gap = gap_with((70_000, 160_000), &[(FILE, In, 100, 100)], Some(at_end));
    let found = rounded(shares(&gap, &WindowActivity::default(), In));
    assert_eq!(found, [(Some(FILE), 50_000, 50_000), (Some(other), 20_000, 110_000)]);
    // More calls of the known size than there were: the shares are scaled.
    let at_end = fds_at_end(&[(FILE, Some(50_000)), (other, Some(110_000))], &[]);
    let gap = gap_with((40_000, 160_000), &[(FILE, In, 100, 100)], Some(at_end));
    let found = rounded(shares(&gap, &WindowActivity::default(), In));
    assert_eq!(found.iter().map(|one| one.1).sum::<u64>(), 40_000);
}

#[test]
fn a_file_opened_and_closed_in_the_gap_is_unknown() {
    let window_before = [(FILE, In, 10, 40_960), (PIPE, In, 10, 10)];
    // Another file has the descriptor by now; its position says how much was read.
    let other = (3, 8);
    let gap = gap_with(
        (1000, 4_096_000),
        &window_before,
        Some(fds_at_end(&[(PIPE, None)], &[(other, Some(8192))])),
    );
    let found = rounded(shares(&gap, &window(&[(other, In, 2, 8192)]), In));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (None, 998, 4_087_808));
    assert_eq!(found[1], (Some(other), 2, 8192));
}

#[test]
fn a_pipe_continues_if_the_windows_used_nothing_else() {
    let (window_before, after) = ([(PIPE, In, 100, 300)], window(&[(PIPE, In, 100, 300)]));
    let gap = gap_with((1000, 3000), &window_before, Some(fds_at_end(&[(PIPE, None)], &[])));
    assert_eq!(rounded(shares(&gap, &after, In)), [(Some(PIPE), 1000, 3000)]);
    // The process also read a file that it closed.
    let churns = gap_with(
        (1000, 3000),
        &[window_before[0], (FILE, In, 5, 50)],
        Some(fds_at_end(&[(PIPE, None)], &[])),
    );
    assert_eq!(rounded(shares(&churns, &after, In)), [(None, 1000, 3000)]);
    // The process also read another file afterwards.
    let churns = window(&[(PIPE, In, 100, 300), ((9, 90), In, 1, 1)]);
    let churns: WindowActivity = churns
        .into_iter()
        .map(|(key, one)| (key, StreamActivity { first_s: 2.0, last_s: 2.5, ..one }))
        .collect();
    assert_eq!(rounded(shares(&gap, &churns, In)), [(None, 1000, 3000)]);
    // The kernel does not count every call on a socket.
    let mut socket = window(&[(PIPE, In, 100, 300)]);
    socket.values_mut().for_each(|one| one.partly_counted = true);
    assert_eq!(rounded(shares(&gap, &socket, In)), [(None, 1000, 3000)]);
}

#[test]
fn a_file_read_at_startup_is_ignored() {
    let mut gap = gap_with(
        (1000, 3000),
        &[(PIPE, In, 100, 300), (FILE, In, 5, 50)],
        Some(fds_at_end(&[(PIPE, None)], &[])),
    );
    gap.window_before.get_mut(&(FILE, In)).unwrap().last_s = 0.91;
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(Some(PIPE), 1000, 3000)]);
}

#[test]
fn startup_files_are_ignored_beside_many_calls_of_one_size() {
    let script = (5, 50);
    let window_before = [(FILE, In, 2500, 292), (script, In, 2, 233)];
    let after = window(&[(FILE, In, 1400, 0)]);
    let spins = |transferred| gap_with(transferred, &window_before, Some(fds_at_end(&[(FILE, None)], &[])));
    assert_eq!(rounded(shares(&spins((480_000, 0)), &after, In)), [(Some(FILE), 480_000, 0)]);
    // So many bytes did not come by reads at end of file, so the process may have read other files.
    assert_eq!(rounded(shares(&spins((5000, 5_000_000)), &after, In)), [(None, 5000, 5_000_000)]);
    // The closed file had a larger part of the calls.
    let window_before = [(FILE, In, 100, 3), (script, In, 2, 233)];
    let reads = gap_with((480_000, 0), &window_before, Some(fds_at_end(&[(FILE, None)], &[])));
    assert_eq!(rounded(shares(&reads, &after, In)), [(None, 480_000, 0)]);
}

#[test]
fn a_process_at_end_of_file_continues_until_its_exit() {
    let window_before = [(FILE, In, 1400, 0)];
    let ended = |transferred| {
        rounded(shares(&gap_with(transferred, &window_before, None), &WindowActivity::default(), In))
    };
    assert_eq!(ended((480_000, 4)), [(Some(FILE), 480_000, 4)]);
    assert_eq!(ended((480_000, 480_000)), [(None, 480_000, 480_000)]);
}

#[test]
fn a_process_that_exits_in_the_gap_continues_with_calls_of_one_size() {
    let window_before = [(FILE, In, 100, 100)];
    assert_eq!(
        rounded(shares(&gap_with((500, 500), &window_before, None), &WindowActivity::default(), In)),
        [(Some(FILE), 500, 500)]
    );
    // Calls may become larger if there is only one stream.
    assert_eq!(
        rounded(shares(&gap_with((500, 900), &window_before, None), &WindowActivity::default(), In)),
        [(Some(FILE), 500, 900)]
    );
    let two = [(FILE, In, 100, 100), (PIPE, In, 100, 100)];
    assert_eq!(
        rounded(shares(&gap_with((500, 900), &two, None), &WindowActivity::default(), In)),
        [(None, 500, 900)]
    );
    assert_eq!(
        rounded(shares(&gap_with((500, 9000), &window_before, None), &WindowActivity::default(), In)),
        [(None, 500, 9000)]
    );
    assert_eq!(
        rounded(shares(&gap_with((5, 900), &[], None), &WindowActivity::default(), In)),
        [(None, 5, 900)]
    );
}

#[test]
fn the_position_of_a_shared_file_is_ignored() {
    let window_before = [(FILE, In, 100, 300)];
    let gap = gap_with((10, 30), &window_before, Some(fds_at_end(&[(FILE, Some(5000))], &[])));
    let after = window(&[(FILE, In, 100, 300)]);
    assert_eq!(rounded(shares(&gap, &after, In)), [(Some(FILE), 10, 30)]);
    let at_its_end = |transferred| {
        let gap = gap_with(transferred, &window_before, Some(fds_at_end(&[(FILE, Some(5000))], &[])));
        rounded(shares(&gap, &WindowActivity::default(), In))
    };
    assert_eq!(at_its_end((10, 30)), [(Some(FILE), 10, 30)], "it used no other stream");
    assert_eq!(at_its_end((10, 900)), [(None, 10, 900)], "the sizes differ");
}

#[test]
fn a_window_begins_with_its_first_call() {
    let window_before = [(FILE, In, 100, 300)];
    let gap = gap_with((1000, 3000), &window_before, Some(fds_at_end(&[(FILE, Some(9000))], &[])));
    let mut after = window(&[(FILE, In, 100, 300)]);
    for one in after.values_mut() {
        (one.first_s, one.last_s) = (gap.to_s + 0.004, gap.to_s + 0.006);
    }
    assert_eq!(rounded(shares(&gap, &after, In)), [(Some(FILE), 1000, 3000)]);
}

#[test]
fn a_file_without_advance_gets_nothing_unless_its_calls_do_not_move_it() {
    let (window_before, after) = ([(FILE, In, 100, 300)], window(&[(FILE, In, 100, 300)]));
    // The file may have been closed and opened again.
    let mut gap = gap_with((1000, 3000), &window_before, Some(fds_at_end(&[(FILE, Some(0))], &[])));
    assert_eq!(rounded(shares(&gap, &after, In)), [(None, 1000, 3000)]);
    gap.fds_at_end.as_mut().unwrap().still_open.get_mut(&FILE).unwrap().unmoved = true;
    assert_eq!(rounded(shares(&gap, &after, In)), [(Some(FILE), 1000, 3000)]);
}

#[test]
fn the_only_file_gets_the_bytes_between_two_reads() {
    let window_before = [(FILE, In, 100, 100)];
    let mut gap = gap_with((5000, 5000), &window_before, Some(fds_at_end(&[(FILE, Some(4000))], &[])));
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(Some(FILE), 5000, 5000)]);
    gap = gap_with((5000, 5000), &[window_before[0], ((4, 8), In, 3, 3)], gap.fds_at_end);
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), In)),
        [(None, 1000, 1000), (Some(FILE), 4000, 4000)]
    );
}

#[test]
fn a_file_opened_at_the_end_of_the_gap_gets_no_earlier_bytes() {
    let new = (3, 9);
    let gap = gap_with((1000, 1000), &[], Some(fds_at_end(&[(PIPE, None)], &[(new, Some(0))])));
    assert_eq!(rounded(shares(&gap, &window(&[(new, In, 30, 30)]), In)), [(None, 1000, 1000)]);
    // A stream that was used only afterwards gets nothing.
    assert_eq!(rounded(shares(&gap, &window(&[(PIPE, In, 30, 30)]), In)), [(None, 1000, 1000)]);
}

#[test]
fn a_short_lived_file_gets_the_bytes_that_snapshots_show() {
    let (one, other) = ((4, 20), (4, 21));
    let progress = |advance| FdProgress {
        advance: Some(advance),
        access: Some(In),
        unmoved: false,
        unknown_at_start: 0,
    };
    let window_before = [(FILE, In, 10, 10_000)];
    let mut gap = gap_with((100, 100_000), &window_before, Some(fds_at_end(&[(FILE, Some(0))], &[])));
    gap.short_lived = HashMap::from_iter([(one, progress(5000)), (other, progress(0))]);
    let after = window(&window_before);
    // The rest is unknown: other files were opened in the gap.
    assert_eq!(rounded(shares(&gap, &after, In)), [(None, 95, 95_000), (Some(one), 5, 5000)]);
    // The process exited in the gap.
    gap.fds_at_end = None;
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), In)),
        [(None, 95, 95_000), (Some(one), 5, 5000)]
    );
    // The position exceeds all bytes that were read, so lseek(2) set it.
    gap.short_lived = HashMap::from_iter([(one, progress(5_000_000))]);
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(None, 100, 100_000)]);
}

#[test]
fn bytes_are_given_to_the_descriptor_that_the_windows_used() {
    let (by_number, file) = ((0, 5), (3, 5));
    let around = [(by_number, In, 100, 0)];
    let gap = gap_with((1000, 0), &around, Some(fds_at_end(&[(file, Some(0)), (PIPE, None)], &[])));
    assert_eq!(rounded(shares(&gap, &window(&around), In)), [(Some(by_number), 1000, 0)]);
    // The advance is attributed to that descriptor too.
    let mut advanced = gap.clone();
    advanced.transferred.read_bytes = 4;
    advanced.fds_at_end = Some(fds_at_end(&[(file, Some(4)), (PIPE, None)], &[]));
    assert_eq!(rounded(shares(&advanced, &window(&around), In)), [(Some(by_number), 1000, 4)]);
    // Another stream was read afterwards.
    let other = window(&[(PIPE, In, 100, 0)]);
    assert_eq!(rounded(shares(&gap, &other, In)), [(None, 1000, 0)]);
}

#[test]
fn a_process_that_reads_file_after_file_is_not_given_to_the_last() {
    const LAST: FdFile = (3, 8);
    let window_before = [(FILE, In, 100, 100), (LAST, In, 30, 30)];
    let mut gap = gap_with((5000, 5000), &window_before, None);
    gap.open_at_start = HashSet::from_iter([LAST]);
    gap.window_before.get_mut(&(FILE, In)).unwrap().last_s = 0.95;
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(None, 5000, 5000)]);
    // A library that was read at startup does not count.
    gap.window_before.get_mut(&(FILE, In)).unwrap().calls = 3;
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(Some(LAST), 5000, 5000)]);
}

/// A process that waits for a CPU or for the terminal makes no calls at the end of a window.
#[test]
fn a_process_that_pauses_before_the_gap_continues() {
    let window_before = [(PIPE, In, 100, 3100)];
    let mut gap = gap_with((1000, 31_000), &window_before, Some(fds_at_end(&[(PIPE, None)], &[])));
    pause(&mut gap);
    let after = window(&[(PIPE, In, 100, 3100)]);
    assert_eq!(rounded(shares(&gap, &after, In)), [(Some(PIPE), 1000, 31_000)]);
    let unknown = [(None, 1000, 31_000)];
    // Another stream, or none, was used afterwards.
    let other = (4, 8);
    let both = fds_at_end(&[(PIPE, None), (other, None)], &[]);
    let mut two = gap_with((1000, 31_000), &window_before, Some(both));
    pause(&mut two);
    assert_eq!(rounded(shares(&two, &window(&[(other, In, 100, 3100)]), In)), unknown);
    assert_eq!(rounded(shares(&two, &window(&[(PIPE, In, 100, 3100), (other, In, 100, 3100)]), In)), unknown);
    // Calls of another size: the process did something else in the gap.
    gap.transferred.read_bytes = 310_000;
    assert_eq!(rounded(shares(&gap, &after, In)), [(None, 1000, 310_000)]);
    // The other direction was not paused, so the process did something else since.
    let mut turned = gap_with((1000, 31_000), &window_before, Some(fds_at_end(&[(PIPE, None)], &[])));
    pause(&mut turned);
    turned.window_before.extend(window(&[(other, Out, 100, 3100)]));
    assert_eq!(rounded(shares(&turned, &after, In)), unknown);
}

#[test]
fn a_process_that_pauses_and_exits_in_the_gap_continues_with_calls_of_one_size() {
    let ended = |transferred| {
        let mut gap = gap_with(transferred, &[(PIPE, In, 100, 3100)], None);
        pause(&mut gap);
        rounded(shares(&gap, &WindowActivity::default(), In))
    };
    assert_eq!(ended((100, 3100)), [(Some(PIPE), 100, 3100)]);
    assert_eq!(ended((100, 31_000)), [(None, 100, 31_000)]);
    // A message before a long computation says nothing about the next message.
    let mut gap = gap_with((1, 20), &[(PIPE, In, 1, 20)], None);
    pause(&mut gap);
    assert_eq!(rounded(shares(&gap, &WindowActivity::default(), In)), [(None, 1, 20)]);
}

/// Moves the last calls of the window before to the middle of that window.
fn pause(gap: &mut ProcessGap) {
    let middle_s = (gap.window_start_s + gap.from_s) / 2.0;
    gap.window_before.values_mut().for_each(|one| (one.first_s, one.last_s) = (gap.window_start_s, middle_s));
}
