//! Tests of samples.

use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use weir_model::RuntimeId;
use weir_model::trace::Buffer;

use super::*;

/// Snapshots of a child that ends, and loses its number, in each.
struct LastSnapshot(Child);

impl BufferSnapshots for LastSnapshot {
    fn snapshot(&mut self, pid: u32, _moment: SnapshotMoment) -> Vec<Buffer> {
        assert_eq!(pid, self.0.id());
        self.0.kill().expect("a child");
        self.0.wait().expect("its end");
        vec![Buffer {
            buffer_bytes: 4096,
            pending_bytes: 5,
            pending: b"lost\n".to_vec(),
            ..Buffer::empty(RuntimeId::GLIBC, 0x1000, 1)
        }]
    }
}

/// Snapshots of processes without buffers.
struct NoBuffers;

impl BufferSnapshots for NoBuffers {
    fn snapshot(&mut self, _pid: u32, _moment: SnapshotMoment) -> Vec<Buffer> {
        Vec::new()
    }
}

#[test]
fn the_last_totals_are_not_those_of_the_next_process_with_the_number() {
    let mut child = Command::new("true").spawn().expect("true");
    let ended = ProcessIdentity::of(child.id());
    child.wait().expect("its end");
    let own = std::process::id();
    for (identity, has_totals) in [(ProcessIdentity::of(own), true), (ended, false)] {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink_events = Arc::clone(&events);
        let mut sink = move |event: RawEvent| sink_events.lock().expect("one thread").push(event.kind);
        let (mut snapshots, now) = (NoBuffers, now_ns());
        let mut sampler = Sampler::new(&mut sink, &mut snapshots);
        // Of a new process all totals count.
        sampler.add_process(own, None, now, true);
        sampler.processes.get_mut(&own).expect("it was added").identity = identity;
        sampler.remove_process(own, None, now);
        let last = events.lock().expect("one thread").pop();
        let Some(RawEventKind::Totals(totals)) = last else { panic!("{last:?}") };
        assert_eq!(totals != IoTotals::default(), has_totals, "{totals:?}");
    }
}

#[test]
fn a_number_that_changes_during_a_sample_gives_no_buffers() {
    let child = Command::new("sleep").arg("100").spawn().expect("sleep");
    let pid = child.id();
    while proc::names(pid).1.exact() != "sleep" {
        std::thread::sleep(Duration::from_millis(1)); // it executes the program
    }
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink_events = Arc::clone(&events);
    let mut sink = move |event: RawEvent| sink_events.lock().expect("one thread").push(event.kind);
    let mut snapshots = LastSnapshot(child);
    let mut sampler = Sampler::new(&mut sink, &mut snapshots);
    sampler.add_process(pid, None, now_ns(), false);
    let begun = events.lock().expect("one thread").len();
    sampler.sample_process(pid, now_ns());
    let first = events.lock().expect("one thread").split_off(begun);
    assert!(matches!(first[..], [RawEventKind::Totals(_)]), "{first:?}");
    // The child has ended: a process that has its number now is another one.
    sampler.sample_process(pid, now_ns());
    assert_eq!(events.lock().expect("one thread").len(), begun);
}

#[test]
fn a_process_that_executes_a_program_can_be_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = dir.path().join("again");
    std::fs::write(&script, "exec sh \"$0\"\n").expect("the script");
    let mut child = Command::new("sh").arg(script).spawn().expect("sh");
    let failed = (0..500).filter_map(|_| check_access(child.id()).err()).next();
    child.kill().expect("a child");
    child.wait().expect("its end");
    assert!(failed.is_none(), "{failed:?}");
}
