//! The engine that only looks at /proc: totals, children, and how far files have moved.

use std::ffi::OsString;
use std::time::Duration;

use weir_model::Direction;
use weir_model::trace::Exit;
use weir_sys::{Error, launch};
use weir_trace_api::{
    BackendReport, RawEvent, RawEventKind, TraceBackend, TraceHooks, TraceOptions, TraceRoot,
};
use weir_trace_proc::ProcBackend;

fn look(target: TraceRoot, options: &TraceOptions) -> Result<(Vec<RawEvent>, BackendReport), Error> {
    let mut raws = Vec::new();
    let mut backend = ProcBackend::probe(options)?;
    backend.attach(target)?;
    let hooks = TraceHooks {
        sink: &mut |raw| raws.push(raw),
        snapshots: &mut |_, _| Vec::new(),
        tick: &mut |_, _| {},
    };
    let ended = backend.run(options, hooks)?;
    Ok((raws, ended))
}

fn command(words: &[&str]) -> TraceRoot {
    TraceRoot::Command(launch::start(&words.iter().map(OsString::from).collect::<Vec<_>>()).expect("a child"))
}

#[test]
fn totals_and_the_end_of_a_command_are_known() {
    let words = ["sh", "-c", "while [ $((n += 1)) -le 300 ]; do echo x; done >/dev/null; exit 6"];
    let (raws, ended) = look(command(&words), &TraceOptions::default()).expect("looked at");
    assert_eq!(ended.exit, Some(Exit::Code(6)));
    let io = raws.iter().find_map(|raw| match raw.kind {
        RawEventKind::Exit { io, .. } => io,
        _ => None,
    });
    assert_eq!(io.map(|io| (io.write_calls, io.written_bytes)), Some((300, 600)));
    assert!(raws.iter().any(|raw| matches!(raw.kind, RawEventKind::Gap { .. })));
    assert!(!ended.blind_spots.is_empty());
}

#[test]
fn files_that_move_and_children_are_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    let script = r#"exec 3>"$0"; for n in 1 2 3 4; do echo 123456789 >&3; sleep 0.2; done"#;
    let (raws, ended) =
        look(command(&["sh", "-c", script, file.to_str().expect("a plain name")]), &TraceOptions::default())
            .expect("looked at");
    assert_eq!(ended.exit, Some(Exit::Code(0)));
    let moved: u64 = raws
        .iter()
        .filter_map(|raw| match &raw.kind {
            RawEventKind::Counts(counts)
                if counts.counts.fd == 3 && counts.counts.direction == Direction::Out =>
            {
                Some(counts.counts.bytes)
            }
            _ => None,
        })
        .sum();
    // The first line may have been there at the first look.
    assert!(moved == 40 || moved == 30, "{moved}");
    let sleeps =
        raws.iter().filter(|raw| matches!(&raw.kind, RawEventKind::Exec { comm, .. } if comm == "sleep"));
    assert_eq!(sleeps.count(), 4);
}

#[test]
fn a_process_is_left_running_at_the_limit() {
    let mut child = std::process::Command::new("sleep").arg("50").spawn().expect("sleep");
    let options = TraceOptions { limit: Some(Duration::from_millis(120)), ..TraceOptions::default() };
    let (raws, ended) = look(TraceRoot::Process(child.id()), &options).expect("looked at");
    assert_eq!(ended.exit, None);
    assert!(matches!(raws[0].kind, RawEventKind::Begin));
    assert_eq!(child.try_wait().expect("a status"), None);
    child.kill().expect("killed");
    child.wait().expect("gone");
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    match look(TraceRoot::Process(4_000_000), &TraceOptions::default()) {
        Err(Error::Process { source, .. }) => assert_eq!(source.raw_os_error(), Some(libc::ESRCH)),
        other => panic!("{other:?}"),
    }
}
