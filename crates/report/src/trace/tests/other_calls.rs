//! Tests of the lines about calls without bytes and about submitted operations.

use weir_model::trace::{Op, OtherCalls};

use super::*;

#[test]
fn calls_that_move_no_bytes_are_counted_by_kind() {
    let mut recording = clean();
    assert!(!screen_at(&of(&recording, &[], ""), 80).contains("move no bytes"), "nothing is made up");
    let one = |op, calls, errors: &[(i32, u64)]| OtherCalls {
        pid: 4711,
        image: 0,
        op,
        calls,
        errors: errors.iter().copied().collect(),
        submitted: 0,
        exact: true,
    };
    recording.other_calls = vec![
        one(Op::Openat, 400, &[(2, 288), (13, 2)]),
        one(Op::Openat, 12, &[]),
        one(Op::Close, 131, &[]),
        one(Op::Lseek, 14, &[(29, 3)]),
    ];
    let text = screen_at(&of(&recording, &[], ""), 80);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "557 calls that move no bytes (stat, ioctl, poll … are not traced) openat 412 (290 failed: ENOENT 288, \
                EACCES 2) · close 131 · lseek 14 (3 failed: ESPIPE)";
    assert!(flat.contains(expected), "{text}");
    recording.other_calls[0].exact = false;
    recording.other_calls.extend(Op::ALL[32..41].iter().map(|&op| one(op, 2, &[])));
    let trace = of(&recording, &[], "");
    let flat =
        |all: bool| screen(&trace, all, &Style::default()).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(false).contains("at least 575 calls that move no bytes ("), "{}", flat(false));
    assert!(
        flat(false).contains("10 calls of 5 other kinds") && !flat(true).contains("other kinds"),
        "{}",
        flat(true)
    );
}

#[test]
fn submitted_operations_are_not_counted_as_calls() {
    let mut recording = clean();
    let errors = [(4, 1)].into();
    let ring = OtherCalls {
        pid: 4711,
        image: 0,
        op: Op::IoUringEnter,
        calls: 9,
        errors,
        submitted: 1200,
        exact: true,
    };
    recording.other_calls = vec![ring];
    recording.exact = false;
    let flat = |recording: &Recording| {
        let text = screen_at(&of(recording, &[], ""), 80);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let expected = "1,200 operations submitted to the kernel; their bytes are in no row io_uring_enter 9 (1 failed: EINTR) \
                submitted 1,200";
    assert!(flat(&recording).contains(expected), "{}", flat(&recording));
    assert!(
        !flat(&recording).contains("every call counted") && !flat(&recording).contains("that move no bytes")
    );
    recording.other_calls[0].exact = false;
    assert!(flat(&recording).contains("at least 1,200 operations"), "{}", flat(&recording));
    // A ring that the kernel polls makes no calls at all.
    recording.other_calls.clear();
    assert!(!flat(&recording).contains("every call counted"), "{}", flat(&recording));
    recording.exact = true;
    assert!(flat(&recording).contains("every call counted"), "{}", flat(&recording));
}
