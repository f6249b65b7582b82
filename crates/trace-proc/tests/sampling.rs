//! The /proc backend: totals, children, and the progress of file offsets.

use std::ffi::OsString;
use std::time::Duration;

use weir_model::Direction;
use weir_model::trace::Exit;
use weir_sys::{Error, launch};
use weir_trace_api::{
    BackendReport, RawEvent, RawEventKind, TraceBackend, TraceHooks, TraceOptions, TraceRoot,
};
use weir_trace_proc::ProcBackend;

fn run(root: TraceRoot, options: &TraceOptions) -> Result<(Vec<RawEvent>, BackendReport), Error> {
    let mut events = Vec::new();
    let mut backend = ProcBackend::probe(options)?;
    backend.attach(root)?;
    let hooks = TraceHooks {
        sink: &mut |event| events.push(event),
        snapshots: &mut |_, _| Vec::new(),
        tick: &mut |_, _| {},
    };
    let report = backend.run(options, hooks)?;
    Ok((events, report))
}

fn command(words: &[&str]) -> TraceRoot {
    TraceRoot::Command(launch::start(&words.iter().map(OsString::from).collect::<Vec<_>>()).expect("a child"))
}

#[test]
fn totals_and_the_exit_of_a_command_are_recorded() {
    let words = ["sh", "-c", "while [ $((n += 1)) -le 300 ]; do echo x; done >/dev/null; exit 6"];
    let (events, report) = run(command(&words), &TraceOptions::default()).expect("a report");
    assert_eq!(report.exit, Some(Exit::Code(6)));
    let io = events.iter().find_map(|event| match event.kind {
        RawEventKind::Exit { io, .. } => io,
        _ => None,
    });
    assert_eq!(io.map(|io| (io.write_calls, io.written_bytes)), Some((300, 600)));
    assert!(events.iter().any(|event| matches!(event.kind, RawEventKind::Gap { .. })));
    assert!(!report.blind_spots.is_empty());
}

#[test]
fn file_progress_and_children_are_recorded() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    let script = r#"exec 3>"$0"; for n in 1 2 3 4; do echo 123456789 >&3; sleep 0.2; done"#;
    let (events, report) =
        run(command(&["sh", "-c", script, file.to_str().expect("a plain name")]), &TraceOptions::default())
            .expect("a report");
    assert_eq!(report.exit, Some(Exit::Code(0)));
    let bytes: u64 = events
        .iter()
        .filter_map(|event| match &event.kind {
            RawEventKind::Counts(counts)
                if counts.counts.fd == 3 && counts.counts.direction == Direction::Out =>
            {
                Some(counts.counts.bytes)
            }
            _ => None,
        })
        .sum();
    // The first sample may already include the first line.
    assert!(bytes == 40 || bytes == 30, "{bytes}");
    let sleeps = events
        .iter()
        .filter(|event| matches!(&event.kind, RawEventKind::Exec { comm, .. } if comm == "sleep"));
    assert_eq!(sleeps.count(), 4);
}

/// Each sample reads two files of /proc for each descriptor: with half a million of them it would take minutes.
#[test]
fn a_sample_reads_a_bounded_number_of_descriptors() {
    // It sleeps for so long that a sample of it is taken on a busy machine too.
    let script = "ulimit -n 8192 || exit 9; for n in {1..5000}; do exec {fd}</dev/null; done; sleep 2";
    let (_, report) = run(command(&["bash", "-c", script]), &TraceOptions::default()).expect("a report");
    assert_eq!(report.exit, Some(Exit::Code(0)));
    let is_named = |spot: &String| spot.contains("the first 4096 descriptors");
    assert!(report.blind_spots.iter().any(is_named), "{:?}", report.blind_spots);
}

#[test]
fn a_process_keeps_running_at_the_limit() {
    let mut child = std::process::Command::new("sleep").arg("50").spawn().expect("sleep");
    let options = TraceOptions { limit: Some(Duration::from_millis(120)), ..TraceOptions::default() };
    let (events, report) =
        run(TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(child.id())), &options)
            .expect("a report");
    assert_eq!(report.exit, None);
    assert!(matches!(events[0].kind, RawEventKind::Begin));
    assert_eq!(child.try_wait().expect("a status"), None);
    child.kill().expect("killed");
    child.wait().expect("gone");
}

#[test]
fn a_missing_process_is_an_error() {
    match run(
        TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(4_000_000)),
        &TraceOptions::default(),
    ) {
        Err(Error::Process { source, .. }) => assert_eq!(source.raw_os_error(), Some(libc::ESRCH)),
        other => panic!("{other:?}"),
    }
}
