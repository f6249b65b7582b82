use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A record and its mark.
type MarkedRecord = (Vec<u8>, Option<Mark>);

/// Returns the records of `data`, which arrives in pieces of the given sizes, with their marks, and the refused ones.
fn divide(mut splitter: Splitter, data: &[u8], pieces: &[usize]) -> (Vec<MarkedRecord>, u64) {
    let (mut records, mut refused, mut held, mut at) = (Vec::new(), 0, Vec::new(), 0);
    let mut sizes = pieces.iter().copied().cycle();
    while at < data.len() {
        let end = (at + sizes.next().unwrap_or(1).max(1)).min(data.len());
        held.extend_from_slice(&data[at..end]);
        at = end;
        loop {
            let consumed = match splitter.next(&held) {
                SplitStep::Record { bytes, consumed, mark } => {
                    records.push((bytes.to_vec(), mark));
                    consumed
                }
                SplitStep::Skip { consumed, refused: more } => {
                    refused += more;
                    consumed
                }
                SplitStep::NeedMore => break,
            };
            assert!(consumed > 0, "no progress");
            held.drain(..consumed);
        }
    }
    if let Some(last) = splitter.last(&held) {
        records.push((last.to_vec(), Some(Mark::Unfinished)));
    }
    (records, refused)
}

fn newline(max: usize, oversize: Oversize) -> Splitter {
    Splitter::new(Framing::Delimiter(b'\n'), max, oversize)
}

fn words(records: &[MarkedRecord]) -> Vec<(&str, Option<Mark>)> {
    records.iter().map(|(bytes, mark)| (std::str::from_utf8(bytes).expect("text"), *mark)).collect()
}

#[test]
fn an_empty_message_of_syslog_is_no_record() {
    for pieces in [[1], [3], [100]] {
        let (records, refused) =
            divide(Splitter::of_syslog(5, Oversize::Cut), b"\n\nab\n\nlonger\n\nc", &pieces);
        let expected = [("ab", None), ("longe", Some(Mark::Cut)), ("c", Some(Mark::Unfinished))];
        assert_eq!((words(&records), refused), (expected.to_vec(), 0));
    }
    assert_eq!(Splitter::of_syslog(5, Oversize::Cut).run(b"ab\n", 100), Run::default());
}

#[test]
fn framings_are_parsed() {
    for (text, framing) in [
        ("newline", Framing::Delimiter(b'\n')),
        ("nul", Framing::Delimiter(0)),
        ("delim:;", Framing::Delimiter(b';')),
        ("delim:\\x1e", Framing::Delimiter(0x1e)),
        ("delim::", Framing::Delimiter(b':')),
        ("len:9999", Framing::Length(9999)),
        ("prefix:u16", Framing::Prefix(2)),
    ] {
        assert_eq!(text.parse(), Ok(framing), "{text}");
    }
    for text in
        ["", "lines", "len:0", "len:-1", "len:99999999999", "delim:", "delim:ab", "prefix:u64", "nul:1"]
    {
        assert!(text.parse::<Framing>().is_err(), "{text}");
    }
}

#[test]
fn an_unfinished_record_is_kept_and_marked() {
    let (records, _) = divide(newline(100, Oversize::Split), b"one\n\ntwo", &[2]);
    assert_eq!(words(&records), [("one", None), ("", None), ("two", Some(Mark::Unfinished))]);
    let (records, _) = divide(Splitter::new(Framing::Length(3), 100, Oversize::Split), b"abcdefgh", &[2]);
    assert_eq!(words(&records), [("abc", None), ("def", None), ("gh", Some(Mark::Unfinished))]);
    let (records, _) =
        divide(Splitter::new(Framing::Prefix(2), 100, Oversize::Split), b"\0\x03abc\0\x03de", &[1]);
    assert_eq!(words(&records), [("abc", None), ("de", Some(Mark::Unfinished))]);
}

#[test]
fn a_record_that_is_too_long_is_split_cut_or_refused() {
    let data = b"1234567\nab\n";
    for pieces in [&[1], &[3], &[100]] {
        let (records, _) = divide(newline(3, Oversize::Split), data, pieces);
        assert_eq!(
            words(&records),
            [("123", Some(Mark::Split)), ("456", Some(Mark::Split)), ("7", None), ("ab", None)]
        );
        let (records, _) = divide(newline(3, Oversize::Cut), data, pieces);
        assert_eq!(words(&records), [("123", Some(Mark::Cut)), ("ab", None)]);
        let (records, refused) = divide(newline(3, Oversize::Refuse), data, pieces);
        assert_eq!((words(&records), refused), (vec![("ab", None)], 1));
    }
    let data = b"\x071234567\x02ab";
    for pieces in [&[1], &[3], &[100]] {
        let splitter = |oversize| Splitter::new(Framing::Prefix(1), 3, oversize);
        let (records, _) = divide(splitter(Oversize::Split), data, pieces);
        assert_eq!(
            words(&records),
            [("123", Some(Mark::Split)), ("456", Some(Mark::Split)), ("7", None), ("ab", None)]
        );
        let (records, _) = divide(splitter(Oversize::Cut), data, pieces);
        assert_eq!(words(&records), [("123", Some(Mark::Cut)), ("ab", None)]);
        let (records, refused) = divide(splitter(Oversize::Refuse), data, pieces);
        assert_eq!((words(&records), refused), (vec![("ab", None)], 1));
    }
}

#[test]
fn a_run_ends_before_the_limit_and_before_a_long_record() {
    let splitter = newline(5, Oversize::Split);
    assert_eq!(splitter.run(b"ab\ncd\nef", 100), Run { bytes: 6, records: 2 });
    assert_eq!(splitter.run(b"ab\ncd\nef", 5), Run { bytes: 3, records: 1 });
    assert_eq!(
        splitter.run(b"abcd\n", 2),
        Run { bytes: 5, records: 1 },
        "one record is longer than the limit"
    );
    assert_eq!(splitter.run(b"ab\n123456\ncd\n", 100), Run { bytes: 3, records: 1 });
    let fixed = Splitter::new(Framing::Length(4), 100, Oversize::Split);
    assert_eq!(fixed.run(b"123456789", 100), Run { bytes: 8, records: 2 });
    assert_eq!(fixed.run(b"123456789", 7), Run { bytes: 4, records: 1 });
    assert_eq!(fixed.run(b"123", 7), Run::default());
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        Just(Framing::Delimiter(b'\n')),
        (1usize..9).prop_map(Framing::Length),
        prop_oneof![Just(1usize), Just(2), Just(4)].prop_map(Framing::Prefix),
    ]
}

proptest! {
    /// The records do not depend on how the bytes arrive.
    #[test]
    fn pieces_do_not_matter(
        framing in framing(), data in vec(prop_oneof![Just(b'\n'), Just(0u8), 0u8..20], 0..200),
        pieces in vec(1usize..20, 1..8), max in 1usize..12, kind in 0usize..3,
    ) {
        let oversize = [Oversize::Split, Oversize::Cut, Oversize::Refuse][kind];
        let whole = divide(Splitter::new(framing, max, oversize), &data, &[data.len().max(1)]);
        prop_assert_eq!(divide(Splitter::new(framing, max, oversize), &data, &pieces), whole);
    }

    /// Nothing is lost: split records, put together again, are the bytes.
    #[test]
    fn splitting_keeps_every_byte(data in vec(0u8..20, 0..200), pieces in vec(1usize..20, 1..8), max in 1usize..12) {
        let (records, _) = divide(newline(max, Oversize::Split), &data, &pieces);
        let mut joined = Vec::new();
        for (bytes, mark) in records {
            joined.extend_from_slice(&bytes);
            if mark.is_none() { joined.push(b'\n') }
        }
        prop_assert_eq!(joined, data);
    }

    /// A run is the same records as single steps.
    #[test]
    fn a_run_is_steps(framing in framing(), data in vec(prop_oneof![Just(b'\n'), 0u8..4], 0..100), limit in 1usize..100) {
        let mut splitter = Splitter::new(framing, 8, Oversize::Split);
        let run = splitter.run(&data, limit);
        let (mut at, mut records) = (0, 0);
        while at < run.bytes {
            let SplitStep::Record { consumed, mark: None, .. } = splitter.next(&data[at..]) else { panic!("no whole record") };
            at += consumed;
            records += 1;
        }
        prop_assert_eq!(Run { bytes: at, records }, run);
        prop_assert!(run.bytes <= limit || run.records == 1);
    }
}
