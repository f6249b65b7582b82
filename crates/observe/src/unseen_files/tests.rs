//! Tests of the files for which an unknown program may keep bytes.

use weir_model::trace::{Event, Image};
use weir_sys::open_files::unknown_file;

use super::*;

/// Returns what is said of process 7, which this signal ended, and which opened /d/out as descriptor 5 before `calls`.
fn said(exit: Exit, language: SourceLanguage, flags: i32, calls: &[(Op, i32, [u64; 6], i64)]) -> Vec<String> {
    let event = |call| Event { at_s: 1.0, pid: 7, tid: 7, kind: EventKind::Call(call) };
    let opening = event(Call::new(Op::Openat, -1, Some(0), [0; 6], 5));
    let others =
        calls.iter().map(|(op, fd, args, result)| event(Call::new(*op, *fd, Some(0), *args, *result)));
    let image = Image { comm: "own".into(), language: Some(language), ..Image::default() };
    let output = RecorderOutput {
        processes: vec![Process {
            pid: 7,
            images: vec![image],
            ended_s: Some(2.0),
            exit: Some(exit),
            ..Process::default()
        }],
        files: vec![OpenFile { path: "/d/out".into(), flags, ..unknown_file(StreamKind::File) }],
        events: std::iter::once(opening).chain(others).collect(),
        ..RecorderOutput::default()
    };
    let told = [
        UnreadableBuffers { buffers: "others".into(), pids: vec![8] },
        UnreadableBuffers { buffers: "Fortran's own buffers".into(), pids: vec![7] },
    ];
    // Only a program of C or C++ has its own buffers beside those of such a library.
    let told = if language == SourceLanguage::Go { &told[..1] } else { &told };
    unseen_files(&output, told, &HashSet::new()).into_iter().map(|one| one.buffers).collect()
}

#[test]
fn a_file_that_a_killed_program_has_not_written() {
    let (killed, write) = (Exit::Signal(9), libc::O_WRONLY | libc::O_CREAT);
    let text = "bytes that own may keep for /d/out in memory of its own";
    assert_eq!(said(killed, SourceLanguage::C, write, &[]), [text]);
    let set_flags = (Op::Fcntl, 5, [5, libc::F_SETFD as u64, 0, 0, 0, 0], 0);
    assert_eq!(said(killed, SourceLanguage::Cpp, write, &[set_flags]), [text]);
    let close_range = |first: u64, flags: u32| {
        (Op::CloseRange, first as i32, [first, u64::MAX, u64::from(flags), 0, 0, 0], 0)
    };
    let same = (Op::Dup2, 5, [5, 5, 0, 0, 0, 0], 5);
    assert_eq!(said(killed, SourceLanguage::C, write, &[same]), [text], "dup2(5, 5) changes nothing");
    let others_closed = [close_range(6, 0), close_range(3, libc::CLOSE_RANGE_CLOEXEC)];
    assert_eq!(said(killed, SourceLanguage::C, write, &others_closed), [text]);
    assert_eq!(said(killed, SourceLanguage::Go, write, &[]), [text], "a queue that another goroutine writes");
    let created = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    assert_eq!(said(killed, SourceLanguage::Go, created, &[]), [text], "os.Create");
    assert_eq!(said(Exit::Code(3), SourceLanguage::Go, created, &[]), [text], "os.Exit writes no buffer");
    for (why, exit, language, flags, calls) in [
        ("it ended by itself", Exit::Code(1), SourceLanguage::C, write, &[][..]),
        ("a log may stay empty", Exit::Code(0), SourceLanguage::Go, write, &[]),
        ("a walker reads its buffers", killed, SourceLanguage::Python, write, &[]),
        ("it is read", killed, SourceLanguage::C, libc::O_RDONLY, &[]),
        ("it was written", killed, SourceLanguage::C, write, &[(Op::Write, 5, [5, 0, 9, 0, 0, 0], 9)]),
        ("it is closed", killed, SourceLanguage::C, write, &[(Op::Close, 5, [5, 0, 0, 0, 0, 0], 0)]),
        ("it is closed", killed, SourceLanguage::C, write, &[(Op::CloseRange, 3, [3, 9, 0, 0, 0, 0], 0)]),
        ("it is given away", killed, SourceLanguage::C, write, &[(Op::Dup2, 1, [5, 1, 0, 0, 0, 0], 1)]),
        ("it is replaced", killed, SourceLanguage::C, write, &[(Op::Dup3, 5, [6, 5, 0, 0, 0, 0], 5)]),
    ] {
        assert!(said(exit, language, flags, calls).is_empty(), "{why}");
    }
}

#[test]
fn a_closed_descriptor_has_no_stream() {
    // The recorder gives an event of dup2(2) the new descriptor.
    let closing_5 = |op, args, result| Call::new(op, 5, None, args, result);
    for closing in [closing_5(Op::Close, [5, 0, 0, 0, 0, 0], 0), closing_5(Op::Dup2, [7, 5, 0, 0, 0, 0], 5)] {
        let mut descriptors = Descriptors::default();
        for streams in [&mut descriptors.streams, &mut descriptors.used] {
            streams.insert(7, HashSet::from([4, 5]));
        }
        descriptors.note_call(7, &closing);
        for streams in [&descriptors.streams, &descriptors.used] {
            assert_eq!(streams[&7], HashSet::from([4]), "{closing:?}");
        }
    }
}
