//! Files that were closed within a gap.

use super::*;

#[test]
fn a_file_closed_in_the_gap_gets_the_bytes_after_its_position() {
    let closed = |direction, advance| {
        HashMap::from_iter([(
            FILE,
            FdProgress {
                advance: Some(advance),
                access: Some(direction),
                unmoved: false,
                unknown_at_start: 0,
            },
        )])
    };
    let mut gap = gap_with((100, 5000), &[], Some(fds_at_end(&[(PIPE, None)], &[])));
    gap.closed = closed(In, 5000);
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), In)),
        [(Some(FILE), 100, 5000)],
        "read to its end"
    );
    gap.closed = closed(In, 3000);
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), In)),
        [(None, 100, 5000)],
        "or not to its end"
    );
    gap.transferred = IoTotals { write_calls: 100, written_bytes: 5000, ..IoTotals::default() };
    gap.closed = closed(Out, 3000);
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), Out)),
        [(None, 40, 2000), (Some(FILE), 60, 3000)]
    );
    gap.closed = closed(Out, 6000);
    assert_eq!(
        rounded(shares(&gap, &WindowActivity::default(), Out)),
        [(None, 100, 5000)],
        "other processes wrote to it"
    );
}

/// A process writes file after file. The mark at the gap's start is at the end of the first, and the window shows no other.
#[test]
fn a_file_at_its_end_gets_no_bytes_of_later_files() {
    let mut gap = gap_with((0, 0), &[(FILE, Out, 100, 100)], None);
    gap.transferred = IoTotals { write_calls: 7000, written_bytes: 7000, ..IoTotals::default() };
    let at_its_end =
        |unmoved| FdProgress { advance: Some(0), access: Some(Out), unmoved, unknown_at_start: 100 };
    gap.closed = HashMap::from_iter([(FILE, at_its_end(false))]);
    let given = |gap: &ProcessGap| rounded(shares(gap, &WindowActivity::default(), Out));
    assert_eq!(given(&gap), [(None, 7000, 7000)]);
    gap.closed = HashMap::from_iter([(FILE, at_its_end(true))]);
    assert_eq!(given(&gap), [(Some(FILE), 7000, 7000)], "pwrite(2) may write the same block again");
}

/// Bytes that the window recorded were not moved between the reads of the totals and of the position.
#[test]
fn a_closed_file_is_credited_with_unrecorded_bytes_only() {
    let credited = |recorded| {
        let mut gap = gap_with((5000, 5000), &[(FILE, In, recorded, recorded)], Some(fds_at_end(&[], &[])));
        let closed = FdProgress {
            advance: Some(4900),
            access: Some(In),
            unknown_at_start: 150,
            ..FdProgress::default()
        };
        gap.closed = HashMap::from_iter([(FILE, closed)]);
        rounded(shares(&gap, &WindowActivity::default(), In))
    };
    assert_eq!(credited(40), [(Some(FILE), 5000, 5000)]);
    assert_eq!(credited(100)[0], (None, 100, 100));
}
