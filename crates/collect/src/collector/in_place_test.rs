//! The same sources give the same log, whether they are read in the buffer of the log or not.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::framing::{Framing, Oversize};
use crate::options::{Flush, LogOptions};
use crate::sink::{LogSink, RotationPolicy, SinkOptions};

/// The treatment of the bytes of the sources.
#[derive(Clone, Copy, Debug)]
struct Policy {
    framing: Framing,
    max: usize,
    oversize: Oversize,
    rotate_bytes: Option<u64>,
}

/// The bytes that one read of one of the two sources gets.
type Read = (usize, Vec<u8>);

fn options(log: &Path, policy: Policy, flush: Flush) -> LogOptions {
    LogOptions {
        framing: policy.framing,
        max_record_bytes: policy.max,
        oversize: policy.oversize,
        flush,
        rotation: RotationPolicy { bytes: policy.rotate_bytes, ..RotationPolicy::default() },
        ack: true,
        ..LogOptions::of_lines(log)
    }
}

/// The bytes of all files in their order, the counts of both sources, and the acknowledgements of both.
type Outcome = (Vec<u8>, Vec<(u64, u64, u64, u64)>, Vec<Option<u64>>);

fn collect(policy: Policy, flush: Flush, reads: &[Read]) -> Outcome {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("log");
    let options = options(&log, policy, flush);
    let sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
    let mut collector = Collector::new(options, sink);
    let mut intakes = ["a", "b"].map(|name| {
        let mut intake = Intake::new(name.into(), None, &collector.options);
        intake.acks = true;
        intake
    });
    for (source, bytes) in reads {
        let in_place = collector.can_receive_in_place(&intakes[*source]);
        assert!(flush != Flush::None || !in_place, "each record has a write of its own");
        let received = collector.receive(&mut intakes[*source], |buffer| {
            assert_eq!(buffer.len(), CHUNK);
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_ne!(received, Received::End);
    }
    for intake in &mut intakes {
        assert!(collector.end(intake));
    }
    let records = collector.sink.counts().records;
    let acknowledged = intakes.iter_mut().map(|intake| intake.acknowledge(records)).collect();
    let counts = intakes.iter().map(|intake| &intake.counts);
    let counts = counts.map(|counts| (counts.records, counts.bytes, counts.refused, counts.split)).collect();
    assert!(collector.sink.close().result.is_ok());
    let mut files: Vec<_> =
        dir.path().read_dir().expect("files").map(|file| file.expect("one").path()).collect();
    // A finished file has a stamp behind the name of the log, so it comes after it; the log is the newest.
    files.sort();
    files.rotate_left(1);
    let bytes = files.iter().flat_map(|file| std::fs::read(file).expect("read")).collect();
    (bytes, counts, acknowledged)
}

fn policies() -> impl Strategy<Value = Policy> {
    let framing = prop_oneof![
        Just(Framing::Delimiter(b'\n')),
        Just(Framing::Delimiter(0)),
        (40..400usize).prop_map(Framing::Length),
        Just(Framing::Prefix(1)),
    ];
    let oversize = prop_oneof![Just(Oversize::Split), Just(Oversize::Cut), Just(Oversize::Refuse)];
    let rotate_bytes = prop_oneof![Just(None), (200_000..900_000u64).prop_map(Some)];
    (framing, 20..200usize, oversize, rotate_bytes)
        .prop_map(|(framing, max, oversize, rotate_bytes)| Policy { framing, max, oversize, rotate_bytes })
}

fn reads() -> impl Strategy<Value = Vec<Read>> {
    let bytes = prop_oneof![Just(b'\n'), Just(0), Just(3), 0..=255u8];
    let read = prop_oneof![
        prop::collection::vec(bytes, 1..50),
        (1..CHUNK, 50..300usize).prop_map(|(length, line)| {
            (0..length).map(|at| if at % line == 0 { b'\n' } else { b'x' }).collect()
        }),
    ];
    prop::collection::vec((0..2usize, read), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_log_is_the_same_as_without(policy in policies(), reads in reads()) {
        let without = collect(policy, Flush::None, &reads);
        for flush in [Flush::Line, Flush::Full] {
            let with = collect(policy, flush, &reads);
            prop_assert!(with.0 == without.0, "{} and {} bytes", with.0.len(), without.0.len());
            prop_assert_eq!(&with.1, &without.1);
            prop_assert_eq!(&with.2, &without.2);
        }
    }
}

#[test]
fn a_read_goes_to_the_buffer_of_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let policy = Policy {
        framing: Framing::Delimiter(b'\n'),
        max: 100,
        oversize: Oversize::Split,
        rotate_bytes: None,
    };
    let options = options(&dir.path().join("log"), policy, Flush::Line);
    let sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
    let mut collector = Collector::new(options, sink);
    let mut intake = Intake::new("a".into(), None, &collector.options);
    assert!(collector.can_receive_in_place(&intake));
    let read = |bytes: &'static [u8]| {
        move |buffer: &mut [u8]| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    };
    collector.receive_in_place(&mut intake, read(b"one\ntwo\nth"));
    assert_eq!((collector.sink.pending_bytes(), intake.held.as_slice()), (8, &b"th"[..]));
    collector.receive_in_place(&mut intake, read(b"ree\n"));
    assert_eq!(
        (collector.sink.pending_bytes(), intake.held.as_slice(), intake.counts.records),
        (14, &b""[..], 3)
    );
    let nothing = |_: &mut [u8]| Err(rustix::io::Errno::AGAIN);
    assert_eq!(collector.receive_in_place(&mut intake, nothing), Received::Nothing);
    assert_eq!(collector.sink.pending_bytes(), 14);
}
