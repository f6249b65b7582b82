//! Tests of the steps of constructed recordings.

use weir_model::lab::step::LabStep;
use weir_model::trace::{
    BackendKind, Buffer, Call, Event, EventKind, Exit, HEAD_BYTES, Image, Op, OpenFile, Prices, Process,
    Recording, RuntimeId, SnapshotMoment, StreamCounts,
};
use weir_model::{Direction, Mode, StreamKind};

use super::steps;

const FILE: u32 = 0;

/// A run of /tmp/broken as process 812, whose standard output is a file; started by a shell, 811.
fn recording(events: Vec<(u32, EventKind)>) -> Recording {
    let image = |argv: &[&str]| Image {
        argv: argv.iter().map(|word| (*word).into()).collect(),
        comm: "broken".into(),
        ..Image::default()
    };
    let process = |pid: u32, images: Vec<Image>| Process { pid, images, ..Process::default() };
    let shell = || image(&["sh", "-c", "./broken >file"]);
    let event =
        |(at, (pid, what)): (usize, (u32, EventKind))| Event { at_s: at as f64, pid, tid: pid, kind: what };
    let begin = [(811, EventKind::Fork { child: 812 }), (812, EventKind::Exec { image: 1 })];
    let mut counts = StreamCounts::new(812, 1, 1, FILE, Direction::Out);
    counts.calls = 1;
    Recording {
        environment: Default::default(),
        memory_devices: Vec::new(),
        command: shell().argv.iter().map(|word| word.to_string()).collect(),
        root: 811,
        backend: BackendKind::Ptrace,
        backend_reason: String::new(),
        exact: true,
        elapsed_s: 1.0,
        exit: None,
        overhead: Default::default(),
        blind: Vec::new(),
        incomplete: false,
        unreadable: Vec::new(),
        prices: Prices::default(),
        processes: vec![
            process(811, vec![shell()]),
            process(812, vec![shell(), image(&["/tmp/broken"])]),
            process(813, vec![image(&["/tmp/broken"])]),
        ],
        files: vec![OpenFile {
            id: FILE,
            path: "/tmp/file".into(),
            kind: StreamKind::File,
            dev: 1,
            ino: 2,
            flags: 0,
            opened_by: None,
            block_bytes: 4096,
            size_bytes: None,
            pipe_bytes: None,
            direct_align: None,
            same_as: None,
        }],
        counts: vec![counts],
        events: begin.into_iter().chain(events).enumerate().map(event).collect(),
        write_sites: Vec::new(),
        sampled_calls: Vec::new(),
        other_calls: Vec::new(),
    }
}

fn snapshot(moment: SnapshotMoment, pending: &str) -> EventKind {
    let buffer = Buffer {
        mode: Some(Mode::Full),
        buffer_bytes: 4096,
        pending_bytes: pending.len() as u64,
        pending: pending.into(),
        ..Buffer::empty(RuntimeId::GLIBC, 1, 1)
    };
    let (waits_in_name, files) = (String::new(), vec![(1, FILE)]);
    EventKind::Buffers {
        moment,
        buffers: vec![buffer],
        waits_in: None,
        waits_in_name,
        files,
        read_until_s: None,
    }
}

fn write(text: &str) -> EventKind {
    let bytes = text.len() as u64;
    EventKind::Call(Call {
        requested_bytes: bytes,
        head: text.as_bytes()[..text.len().min(HEAD_BYTES)].into(),
        tail: text.bytes().last(),
        ..Call::new(Op::Write, 1, Some(FILE), [1, 0, bytes, 0, 0, 0], bytes as i64)
    })
}

fn file(step: &LabStep) -> String {
    let known: Option<Vec<u8>> = step.files[0].content.iter().copied().collect();
    String::from_utf8(known.expect("all bytes are known")).expect("text")
}

fn pending(step: &LabStep) -> Vec<(u32, &[u8])> {
    let streams =
        step.processes.iter().flat_map(|process| process.streams.iter().map(|one| (process.pid, one)));
    streams.map(|(pid, stream)| (pid, stream.pending.head.as_slice())).collect()
}

fn doubled() -> Vec<LabStep> {
    let (one, child, parent) = ("first\n", "first\nchild\n", "first\nparent\n");
    steps(&recording(vec![
        (812, snapshot(SnapshotMoment::Fork, one)),
        (812, EventKind::Fork { child: 813 }),
        (813, snapshot(SnapshotMoment::Call, child)),
        (813, write(child)),
        (813, snapshot(SnapshotMoment::Exit, "")),
        (813, EventKind::Exit(Exit::Code(0))),
        (812, snapshot(SnapshotMoment::Call, parent)),
        (812, write(parent)),
        (812, snapshot(SnapshotMoment::Exit, "")),
        (812, EventKind::Exit(Exit::Code(0))),
        (811, EventKind::Exit(Exit::Code(0))),
    ]))
}

#[test]
fn a_fork_copies_the_buffer_and_each_copy_is_written() {
    let steps = doubled();
    let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(texts.len(), 10, "{texts:#?}");
    assert!(texts[0].starts_with("broken begins") && texts[1].contains("prints 6 bytes"), "{texts:#?}");
    assert!(texts[2].contains("813 begins as a copy"), "{texts:#?}");
    assert_eq!(pending(&steps[2]), [(812, &b"first\n"[..]), (813, b"first\n")]);
    assert!(steps[2].processes[1].streams[0].copied && !steps[2].processes[0].streams[0].copied);
    assert!(steps[2].note.contains("6 pending bytes") && file(&steps[2]).is_empty());
    assert!(texts[4].contains("813 writes its buffer:") && steps[4].note.contains("exit flushes"));
    assert_eq!((file(&steps[4]).as_str(), steps[4].files[0].added.clone()), ("first\nchild\n", Some(0..12)));
    assert_eq!(pending(&steps[4]), [(812, &b"first\n"[..]), (813, b"")], "the other copy is still pending");
    assert_eq!(steps[4].moved.map(|moved| (moved.pid, moved.file, moved.bytes)), Some((813, 0, 12)));
    assert_eq!(file(&steps[9]), "first\nchild\nfirst\nparent\n");
    assert!(steps[9].note.contains("4 lines") && steps[9].note.contains("\"first\" is there more than once"));
}

#[test]
fn the_shell_that_starts_the_program_is_not_shown() {
    assert!(doubled().iter().all(|step| step.processes.iter().all(|process| process.pid != 811)));
}

#[test]
fn bytes_without_a_flush_are_lost_with_the_process() {
    let steps = steps(&recording(vec![
        (812, snapshot(SnapshotMoment::Call, "lost")),
        (812, snapshot(SnapshotMoment::Signal, "lost")),
        (812, EventKind::Exit(Exit::Signal(9))),
    ]));
    let death = &steps[2];
    assert!(death.text.contains("by signal 9") && death.note.contains("4 bytes"), "{death:?}");
    assert_eq!(pending(death), [(812, &b"lost"[..])], "shown once more");
    assert!(pending(&steps[3]).is_empty() && file(&steps[3]).is_empty());
}

#[test]
fn a_buffer_snapshot_shows_more_of_a_long_write() {
    let (long, more) = ("x".repeat(100), "direct");
    let steps = steps(&recording(vec![
        (812, snapshot(SnapshotMoment::Call, &long)),
        (812, write(&long)),
        (812, snapshot(SnapshotMoment::Call, "")),
        (812, write(more)),
    ]));
    assert_eq!(file(&steps[2]), long);
    assert!(steps[2].note.contains("fflush"), "{}", steps[2].note);
    assert!(
        steps[3].text.contains("calls write(1)") && steps[3].note.contains("Without a user-space buffer")
    );
    assert_eq!(file(&steps[3]), long + more);
}

#[test]
fn a_run_without_end_is_cut() {
    let writes = (0..3_000).map(|_| (812, write("x"))).collect();
    let steps = steps(&recording(writes));
    assert_eq!(steps.len(), super::MAX_STEPS + 1);
    assert!(steps.last().is_some_and(|last| last.text.contains("goes on")));
}

#[test]
fn a_program_without_buffers_has_none_in_its_box() {
    let note = |events| steps(&recording(events))[0].note.clone();
    assert!(note(vec![(812, snapshot(SnapshotMoment::Call, "first"))]).contains("The box is its buffer"));
    assert!(note(vec![(812, write("first"))]).contains("no buffer in use"));
    // The buffer of the program that it executes later is not its own.
    let later = vec![(812, EventKind::Exec { image: 1 }), (812, snapshot(SnapshotMoment::Call, "first"))];
    assert!(note(later).contains("no buffer in use"));
}

#[test]
fn a_process_has_the_name_of_the_program_that_it_executes() {
    let mut recording = recording(vec![(812, EventKind::Exec { image: 2 })]);
    let cat = Image { argv: vec!["cat".into()], comm: "cat".into(), ..Image::default() };
    recording.processes[1].images.push(cat);
    let names: Vec<String> = steps(&recording).iter().map(|step| step.processes[0].name.clone()).collect();
    assert_eq!(names[..2], ["broken", "cat"]);
}

#[test]
fn a_stream_that_is_read_and_a_file_that_is_not_written_are_marked() {
    let mut buffer = Buffer { buffer_bytes: 4096, ..Buffer::empty(RuntimeId::GLIBC, 1, 0) };
    buffer.mode = Some(Mode::Full);
    let (waits_in_name, files) = (String::new(), vec![(0, FILE)]);
    let of_stdin = EventKind::Buffers {
        moment: SnapshotMoment::Call,
        buffers: vec![buffer],
        waits_in: None,
        waits_in_name,
        files,
        read_until_s: None,
    };
    let steps = steps(&recording(vec![(812, of_stdin), (812, write("first"))]));
    assert!(!steps[0].files[0].written && steps[1].files[0].written);
    assert!(steps[1].processes[0].streams[0].reads, "{:?}", steps[1]);
}

#[test]
fn a_write_at_offset_minus_one_goes_to_the_offset_of_the_open_file() {
    let at_offset = |op: Op, text: &str, offset: u64| {
        let bytes = text.len() as u64;
        EventKind::Call(Call {
            requested_bytes: bytes,
            head: text.into(),
            ..Call::new(op, 1, Some(FILE), [1, 0, 1, offset, 0, 0], bytes as i64)
        })
    };
    let steps = steps(&recording(vec![
        (812, at_offset(Op::Pwritev2, "one", u64::MAX)),
        (812, at_offset(Op::Pwritev2, "two", u64::MAX)),
        (812, at_offset(Op::Pwritev2, "O", 0)),
        (812, at_offset(Op::Preadv2, "", u64::MAX)),
    ]));
    assert_eq!(file(&steps[2]), "onetwo");
    assert_eq!(file(&steps[3]), "Onetwo");
}

#[test]
fn the_flags_of_openat2_are_unknown() {
    // The third argument is a pointer, in which any bit can be set.
    let opened = Call {
        paths: vec!["/tmp/file".into()],
        ..Call::new(Op::Openat2, -1, Some(FILE), [0, 0, 0x7ffd_0000_0200, 24, 0, 0], 3)
    };
    let steps = steps(&recording(vec![(812, write("first")), (812, EventKind::Call(opened))]));
    assert!(steps[2].text.contains("opens file") && steps[2].note.is_empty(), "{:?}", steps[2]);
    assert_eq!(file(&steps[2]), "first");
}
