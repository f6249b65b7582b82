//! Tests of the sampled writes of many processes, and helpers of the unit tests.

use std::io::Write;
use std::sync::Arc;

use weir_model::trace::{Buffer, RuntimeId, SnapshotMoment};

use super::stack_sample::{SampledRegisters, StackSample};
use super::watched_stream::WatchedStream;
use super::{CallSites, MAX_NAMED_WRITES, ObservedWrite, WatchedProcess};

/// Appends a skipped test and the reason to the file that $WEIR_SKIPS names.
pub(crate) fn skip(name: &str, why: &str) {
    let Some(list) = std::env::var_os("WEIR_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
    file.and_then(|mut file| writeln!(file, "{name}: {why}"))
        .expect("the list of skipped tests can be written");
}

/// Each child of a server ends with pending bytes.
#[test]
fn the_newest_writes_of_many_processes_are_kept() {
    const STREAM: u64 = 0x1000;
    let mut sites = CallSites::default();
    let pending = Buffer { pending_bytes: 1, ..Buffer::empty(RuntimeId::GLIBC, STREAM, 1) };
    let last = 10 * MAX_NAMED_WRITES as u32;
    // No process has such a number.
    for (index, pid) in (0..=last).map(|index| (index, u32::MAX - index)) {
        let sample =
            StackSample { ns: index.into(), registers: SampledRegisters::default(), stack: Vec::new() };
        let code = Arc::from([]);
        let mut stream = WatchedStream::new(STREAM, STREAM, 0);
        stream.add(ObservedWrite {
            pid,
            stream: STREAM,
            sample,
            code: Arc::clone(&code),
            last: true,
            until_ns: None,
        });
        let process = WatchedProcess { streams: vec![stream], code, code_ns: 0, maps: None };
        sites.processes.insert(pid, process);
        sites.note_snapshot(pid, SnapshotMoment::Exit, std::slice::from_ref(&pending), 1);
        sites.end(pid);
    }
    assert!(sites.writes.len() <= 2 * MAX_NAMED_WRITES && sites.reported.is_empty());
    let mut times: Vec<u64> = sites.writes.iter().map(|one| one.sample.ns).collect();
    times.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    let newest = (0..MAX_NAMED_WRITES as u64).map(|before| u64::from(last) - before);
    assert!(times.into_iter().take(MAX_NAMED_WRITES).eq(newest));
    assert_eq!(sites.finish(0).len(), MAX_NAMED_WRITES);
}
