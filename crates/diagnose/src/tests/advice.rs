//! Tests of the advice of findings: when a `weir run` command is offered, and the code of a language and an object.

use weir_model::trace::Op;
use weir_model::{SourceLanguage, StreamKind};

use crate::testing::*;

#[test]
fn gathering_is_offered_only_where_it_helps() {
    let offered = |change: &dyn Fn(&mut RecordingBuilder)| {
        let mut builder = recording(5.0);
        let file = builder.file("/d/out", File);
        builder.stream(1, 1, file, Out, 5_000_000, 1);
        change(&mut builder);
        let fix = builder.finding("tiny-writes").fix;
        let verdict = verdict(&builder.0, &diagnose(&builder.0));
        assert_eq!(
            (fix.contains("weir run"), verdict.text.ends_with(':')),
            (verdict.command.is_some(), verdict.command.is_some())
        );
        assert!(fix.contains("in code: ") == verdict.command.is_some() && !fix.is_empty(), "{fix}");
        fix.contains("weir run")
    };
    let reads = |path: &'static str, calls: u64| {
        move |builder: &mut RecordingBuilder| {
            let device = builder.file(path, StreamKind::Device);
            builder.stream(1, 0, device, In, calls, 1);
        }
    };
    assert!(offered(&|_| {}));
    assert!(offered(&reads("/dev/zero", 5_000_000)), "the device does not react to output");
    assert!(!offered(&reads("/dev/ttyUSB0", 5_000_000)), "each answer may depend on what was written");
    assert!(offered(&reads("/dev/ttyUSB0", 5)));
    assert!(!offered(&|builder| builder.0.counts[0].seeks = 5_000_000), "each seek ends a session");
    assert!(offered(&|builder| builder.0.counts[0].seeks = 5_000));
    assert!(!offered(&|builder| builder.root().threads = 7), "another thread could let others see");
    let calls = |op| move |builder: &mut RecordingBuilder| builder.call(0.1, 1, op, 1, 0, b"x").result = 1;
    assert!(offered(&calls(Op::Write)) && offered(&calls(Op::Writev)));
    assert!(
        !offered(&calls(Op::Sendto)) && !offered(&calls(Op::Pwrite)),
        "the library gathers write(2) and writev(2)"
    );
    assert!(!offered(&|builder| builder.root().images[0].language = Some(SourceLanguage::Node)));
    assert!(!offered(&|builder| {
        let of_musl =
            weir_model::trace::Buffer { walker: weir_model::trace::RuntimeId::MUSL, ..pending(1, b"x") };
        builder.snapshot(0.1, 1, weir_model::trace::SnapshotMoment::Exit, &[of_musl]);
    }));
}

#[test]
fn input_that_cannot_be_given_back_is_not_coalesced() {
    let mut builder = recording(2.0);
    let pipe = builder.file("pipe:[1]", Pipe);
    builder.stream(1, 0, pipe, In, 1_000_000, 1);
    assert!(builder.finding("tiny-reads").fix.contains("setvbuf(stdin, "));
    let file = builder.file("/d/in", File);
    builder.0.counts[0].file = file;
    assert!(builder.finding("tiny-reads").fix.starts_with("weir run --coalesce -- "));
}

/// sed -u reads bytes and writes lines.
#[test]
fn reads_are_gathered_beside_the_writes_of_one_stream() {
    let offered = |outputs: i32| {
        let mut builder = recording(2.0);
        let file = builder.file("/d/in", File);
        builder.stream(1, 0, file, In, 1_000_000, 1);
        for fd in 1..=outputs {
            let file = builder.file("/d/out", File);
            builder.stream(1, fd, file, Out, 400_000, 7);
        }
        builder.finding("tiny-reads").fix.starts_with("weir run --coalesce -- ")
    };
    assert!(offered(1) && !offered(2), "each change of the output ends a session");
}

#[test]
fn luas_streams_have_luas_names() {
    let mut builder = recording(5.0);
    let file = builder.file("/d/out", File);
    builder.stream(1, 1, file, Out, 5_000_000, 2);
    builder.root().images[0].language = Some(SourceLanguage::Lua);
    let fix = builder.finding("tiny-writes").fix;
    assert!(fix.contains("io.stdout:setvbuf('full')") && !fix.contains("fwrite"), "{fix}");
}

#[test]
fn code_is_that_of_the_language_and_of_the_object() {
    let fix = |language, fd, kind, stdio: bool| {
        let mut builder = recording(5.0);
        let file = builder.file("/d/out", kind);
        builder.stream(1, fd, file, Out, 5_000_000, 2);
        builder.root().images[0].language = Some(language);
        if stdio {
            let mode = Some(weir_model::Mode::Line);
            let buffer = weir_model::trace::Buffer { mode, ..pending(fd, b"x") };
            builder.snapshot(0.1, 1, weir_model::trace::SnapshotMoment::Exit, &[buffer]);
        }
        builder.finding("tiny-writes").fix
    };
    for (language, fd, kind, stdio, code) in [
        (SourceLanguage::C, 1, File, false, "setvbuf(stdout"),
        (SourceLanguage::C, 3, File, false, "FILE *f = fopen("),
        (SourceLanguage::C, 3, Socket, false, "FILE *f = fdopen("),
        (SourceLanguage::Cpp, 1, File, true, "std::ios::sync_with_stdio(false)"),
        (SourceLanguage::Cpp, 3, File, false, "std::ofstream out(path)"),
        (SourceLanguage::Cpp, 3, File, true, "FILE *f = fopen("),
        (SourceLanguage::Python, 3, File, false, "open(path, 'wb', buffering=65536)"),
        (SourceLanguage::Python, 3, Socket, false, "sock.makefile("),
        (SourceLanguage::Go, 3, File, false, "bufio.NewWriterSize(f, 65536)"),
        (SourceLanguage::Go, 1, Pipe, false, "bufio.NewWriterSize(os.Stdout, 65536)"),
        (SourceLanguage::Other, 3, File, false, "write blocks of 64 KiB"),
    ] {
        let fix = fix(language, fd, kind, stdio);
        assert!(fix.contains(code), "{language:?} {fd} {kind:?}: {fix}");
    }
}

/// Returns the finding about a text that is pending in standard output while the program waits in a call.
fn stuck(
    (kind, path): (StreamKind, &str),
    call: &str,
    text: &[u8],
    language: SourceLanguage,
) -> weir_model::Finding {
    let mut builder = recording(3.0);
    let file = builder.file(path, kind);
    builder.root().images[0].language = Some(language);
    builder.call(0.0, 1, Op::Openat, -1, file, b"").result = 1;
    for quarter in 0..10 {
        let at_s = 0.1 + f64::from(quarter) * 0.25;
        builder.snapshot_in(at_s, 1, weir_model::trace::SnapshotMoment::Sample, call, &[pending(1, text)]);
    }
    builder.finding("stuck-output")
}

/// A prompt has no newline: a line buffer would keep it.
#[test]
fn a_text_without_its_newline_is_flushed_and_not_line_buffered() {
    let fix = |text: &[u8], language: SourceLanguage| stuck((File, "/d/out"), "read", text, language).fix;
    for (language, by_lines) in [
        (SourceLanguage::Python, "line_buffering=True"),
        (SourceLanguage::C, "_IOLBF"),
        (SourceLanguage::Tcl, "-buffering line"),
    ] {
        assert!(fix(b"Ready\n", language).contains(by_lines));
        for text in [&b"Name? "[..], b"Ready\nName? "] {
            let fix = fix(text, language);
            assert!(!fix.contains(by_lines) && fix.contains("flush"), "{fix}");
        }
    }
}

/// `weir run --max-delay` interrupts no epoll_pwait2(2) with a timeout, in which an event loop can always wait.
#[test]
fn an_event_loop_gets_lines_in_place_of_a_bounded_delay() {
    let command = |call: &str, text: &[u8], language: SourceLanguage| {
        stuck((StreamKind::Pipe, "pipe:[7]"), call, text, language).command.unwrap_or_default()
    };
    let python = SourceLanguage::Python;
    assert!(command("epoll_pwait2", b"line\n", python).starts_with("weir run --line -- "));
    assert!(command("epoll_pwait2", b"Name? ", python).starts_with("weir run --max-delay 100ms -- "));
    assert!(command("clock_nanosleep", b"line\n", python).starts_with("weir run --max-delay 100ms -- "));
}
