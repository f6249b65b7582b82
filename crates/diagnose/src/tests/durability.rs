//! Tests of the rules sync-tiny-writes and sync-every-write.

use weir_model::Severity::*;
use weir_model::StreamKind;
use weir_model::trace::Op;

use crate::testing::*;

const O_DSYNC: i32 = 0o10000;

#[test]
fn small_writes_that_wait_for_the_device_are_found_with_their_time() {
    let mut builder = recording(0.5);
    let file = builder.file("/d/log", File);
    builder.open_file(file).flags |= O_DSYNC;
    builder.stream(1, 3, file, Out, 500, 40);
    let finding = builder.finding("sync-tiny-writes");
    // 500 × 600 µs, all but one of them needless.
    assert_eq!(finding.severity, High);
    assert!((finding.gain.unwrap().elapsed_s - 0.2994).abs() < 1e-6, "{finding:#?}");
    builder.no_finding("tiny-writes");
}

#[test]
fn measured_waits_count_instead_of_the_price() {
    let mut builder = recording(6.75);
    builder.0.prices.sync_ns = 400_000.0;
    let file = builder.file("/d/journal", File);
    builder.open_file(file).flags = 0o10000;
    builder.stream(1, 3, file, Out, 600, 100).wait_s = Some(6.6);
    (builder.root().user_s, builder.root().system_s) = (0.02, 0.05);
    let finding = builder.finding("sync-tiny-writes");
    assert!((finding.gain.unwrap().elapsed_s - 6.64).abs() < 0.02, "{finding:#?}");
    // On a file system in memory nothing waits, whatever the price.
    builder.0.counts[0].wait_s = Some(0.0);
    builder.no_finding("sync-tiny-writes");
    builder.root().system_s = 5.0;
    builder.no_finding("sync-tiny-writes");
}

#[test]
fn pwritev2_with_a_flag_waits_as_well() {
    let run = |flags: u64| {
        let mut builder = recording(0.5);
        let file = builder.file("/d/log", File);
        builder.stream(1, 3, file, Out, 500, 40);
        for call in 0..8 {
            builder.call(0.01 * f64::from(call), 1, Op::Pwritev2, 3, file, b"x").args[5] = flags;
        }
        builder
    };
    assert_eq!(run(2).severity("sync-tiny-writes"), High);
    run(0).no_finding("sync-tiny-writes");
}

#[test]
fn large_synced_writes_and_memory_file_systems_do_not_count() {
    let mut builder = recording(0.5);
    let file = builder.file("/d/log", File);
    builder.open_file(file).flags |= O_DSYNC;
    builder.stream(1, 3, file, Out, 500, 65_536);
    // tmpfs: 500 calls within a millisecond.
    let stream = builder.stream(1, 4, file, Out, 500, 40);
    stream.last_s = 0.001;
    builder.no_finding("sync-tiny-writes");
}

#[test]
fn synced_blocks_are_at_most_a_warning() {
    let run = |bytes| {
        let mut builder = recording(0.5);
        let file = builder.file("/d/pages", File);
        builder.open_file(file).flags |= O_DSYNC;
        builder.stream(1, 3, file, Out, 500, bytes);
        builder
    };
    assert_eq!(run(4095).severity("sync-tiny-writes"), High);
    assert_eq!(run(4096).severity("sync-tiny-writes"), Warn);
    assert_eq!(run(16_384).severity("sync-tiny-writes"), Warn);
}

/// Returns the recording of sqlite3 with 300 inserts, each in a transaction of its own; in one transaction they take 16 ms.
fn autocommits(elapsed_s: f64) -> RecordingBuilder {
    let mut builder = recording(elapsed_s);
    builder.0.prices.sync_ns = 450_000.0;
    let (database, directory) = (builder.file("/d/t.db", File), builder.file("/d", StreamKind::Other));
    builder.stream(1, 3, database, Out, 604, 4096).syncs = 301;
    for _transaction in 0..301 {
        let journal = builder.file("/d/t.db-journal", File);
        builder.stream(1, 4, journal, Out, 8, 1088).syncs = 2;
        builder.stream(1, 5, directory, Out, 0, 0).syncs = 1;
    }
    builder
}

#[test]
fn a_journal_and_its_directory_are_synced_for_the_same_writes() {
    let finding = autocommits(0.64).finding("sync-every-write");
    // 1,204 × 450 µs; a warning, because the transactions may be intended.
    assert_eq!((finding.severity, finding.path.exact()), (Warn, "/d/t.db"));
    assert!((finding.gain.unwrap().elapsed_s - 0.54).abs() < 0.01, "{finding:#?}");
    assert_eq!((finding.evidence["syncs"], finding.evidence["syncs_beside"]), (301.0, 903.0));
    assert!(
        finding.why.contains(", and 903 times for ") && finding.why.contains("beside it"),
        "{}",
        finding.why
    );
    let mut sampled = autocommits(0.64);
    sampled.0.counts.iter_mut().for_each(|counts| counts.exact = false);
    let why = sampled.finding("sync-every-write").why;
    assert!(why.contains(", and about 903 times for "), "{why}");
    // Two writes per sync, and the syncs are not most of the run.
    autocommits(2.0).no_finding("sync-every-write");
}

#[test]
fn a_journal_that_is_made_anew_costs_more_than_its_syncs() {
    let gain_s = |builder: &mut RecordingBuilder| builder.finding("sync-every-write").gain.unwrap().elapsed_s;
    let mut builder = autocommits(0.64);
    let syncs_s = gain_s(&mut builder);
    builder.root().system_s = 0.08;
    assert!((gain_s(&mut builder) - syncs_s - 0.08).abs() < 0.001);
    let why = builder.finding("sync-every-write").why;
    assert!(why.ends_with(", and its calls take about 80.0 ms of CPU time."), "{why}");
    // Never more than the time from the first call to the last.
    builder.root().system_s = 0.5;
    assert!(gain_s(&mut builder) <= 0.64);
    // Half of the calls are on other files.
    builder.root().system_s = 0.08;
    let other = builder.file("/d/other", File);
    builder.stream(1, 6, other, Out, 604 + 301 * 8, 4096);
    assert!((gain_s(&mut builder) - syncs_s - 0.04).abs() < 0.001);
    // A log that stays open costs its syncs.
    let mut log = recording(0.64);
    let file = log.file("/d/log", File);
    log.stream(1, 3, file, Out, 400, 110).syncs = 400;
    let syncs_s = gain_s(&mut log);
    log.root().system_s = 0.08;
    assert!((gain_s(&mut log) - syncs_s).abs() < 0.001);
}

#[test]
fn a_file_that_is_opened_anew_for_each_record_is_one_file() {
    let mut builder = recording(0.5);
    for _record in 0..400 {
        let log = builder.file("/d/log", File);
        builder.stream(1, 3, log, Out, 1, 80).syncs = 1;
    }
    assert_eq!(builder.finding("sync-every-write").evidence["syncs"], 400.0);
    // Under two names in turn.
    for link in (1..400).step_by(2) {
        let file = builder.open_file(link);
        (file.path, file.same_as) = ("/d/link".into(), Some(0));
    }
    assert_eq!(builder.finding("sync-every-write").evidence["syncs"], 400.0);
}

#[test]
fn a_sync_after_each_write_is_found_and_one_at_the_end_is_not() {
    let run = |syncs: u64, size: u64| {
        let mut builder = recording(0.4);
        let file = builder.file("/d/store.db", File);
        builder.stream(1, 3, file, Out, 400, size).syncs = syncs;
        builder
    };
    let finding = run(400, 110).finding("sync-every-write");
    assert_eq!((finding.severity, finding.gain.unwrap().calls), (High, 399));
    assert!((finding.gain.unwrap().elapsed_s - 0.2394).abs() < 1e-3);
    assert!(finding.why.contains(" called fsync 400 times"), "{}", finding.why);
    let mut data = run(400, 110);
    data.call(0.1, 1, Op::Fdatasync, 3, 0, b"");
    let why = data.finding("sync-every-write").why;
    assert!(why.contains(" called fdatasync 400 times"), "{why}");
    assert_eq!(run(200, 110).severity("sync-every-write"), Warn);
    run(199, 110).no_finding("sync-every-write");
    run(1, 110).no_finding("sync-every-write");
    // Blocks may be transactions of a database.
    assert_eq!(run(400, 8192).severity("sync-every-write"), Warn);
}

#[test]
fn measured_syncs_count_with_their_own_time() {
    let mut builder = recording(2.0);
    let file = builder.file("/d/store.db", File);
    builder.stream(1, 3, file, Out, 400, 110).syncs = 400;
    assert_eq!(builder.severity("sync-every-write"), Warn);
    // The first syncs took 1 ms, the later ones 3.5 ms: all count.
    (builder.0.counts[0].timed_syncs, builder.0.counts[0].sync_s) = (200, 0.1 + 0.5);
    let finding = builder.finding("sync-every-write");
    assert!(finding.severity == High && (finding.evidence["cost_s"] - 1.2).abs() < 0.001, "{finding:#?}");
    // Two measured syncs are too few for a mean.
    (builder.0.counts[0].timed_syncs, builder.0.counts[0].sync_s) = (2, 0.1);
    assert!((builder.finding("sync-every-write").evidence["cost_s"] - 0.24).abs() < 0.001);
}
