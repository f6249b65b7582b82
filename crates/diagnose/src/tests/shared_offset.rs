//! Tests of the rule shared-offset.

use weir_model::Severity::*;
use weir_model::trace::Op;

use crate::testing::*;

fn seek(builder: &mut RecordingBuilder, at_s: f64, pid: u32, file: u32, whence: u64) {
    let call = builder.call(at_s, pid, Op::Lseek, 3, file, b"");
    (call.args[1], call.args[2]) = (16, whence);
}

#[test]
fn two_processes_that_seek_and_read_by_turns_share_an_offset() {
    let run = |own: bool, whence: u64| {
        let mut builder = recording(1.0);
        let files = [builder.file("/d/table", File), builder.file("/d/table", File)];
        builder.fork(0.05, 2);
        for turn in 0..3 {
            for pid in [1u32, 2] {
                let file = files[if own { pid as usize - 1 } else { 0 }];
                let at_s = 0.1 + f64::from(turn) * 0.1 + f64::from(pid) * 0.01;
                seek(&mut builder, at_s, pid, file, whence);
                builder.read(at_s + 0.005, pid, 3, file, b"record");
            }
        }
        builder.stream(1, 3, files[0], In, 3, 6).seeks = 3;
        builder
    };
    assert_eq!(run(false, 0).severity("shared-offset"), High);
    run(true, 0).no_finding("shared-offset");
    // A seek that gives unused bytes back, as shells do before each command.
    run(false, 1).no_finding("shared-offset");
}

#[test]
fn a_rewind_under_a_writer_makes_it_overwrite() {
    let run = |flags: i32, whence: u64| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/service.log", File);
        builder.open_file(file).flags = flags;
        builder.write(0.1, 1, 3, file, b"event 1\n");
        builder.fork(0.2, 2);
        seek(&mut builder, 0.3, 2, file, whence);
        builder.read(0.31, 2, 3, file, b"event 1\n");
        // dprintf(3) asks for the offset before it writes.
        let query = builder.call(0.39, 1, Op::Lseek, 3, file, b"");
        (query.args[1], query.args[2]) = (0, 1);
        builder.write(0.4, 1, 3, file, b"event 2\n");
        builder
    };
    assert_eq!(run(0o102, 0).severity("shared-offset"), High);
    run(0o2102, 0).no_finding("shared-offset");
    run(0o102, 1).no_finding("shared-offset");
}

#[test]
fn a_childs_seek_moves_its_parents_reads() {
    let run = |becomes_another: bool, own: bool| {
        let mut builder = recording(1.0);
        let files = [builder.file("/d/text", File), builder.file("/d/text", File)];
        builder.fork(0.1, 2);
        if becomes_another {
            builder.exec(0.15, 2, "skip");
        }
        let call = builder.call(0.2, 2, Op::Lseek, 3, files[usize::from(own)], b"");
        (call.args[1], call.args[2], call.result) = ((-7i64) as u64, 2, 19);
        builder.read(0.3, 1, 3, files[0], b"racters");
        builder
    };
    assert_eq!(run(false, false).severity("shared-offset"), High);
    // A program that moves the offset for the next program; an open file of its own.
    run(true, false).no_finding("shared-offset");
    run(false, true).no_finding("shared-offset");
}

#[test]
fn the_programs_that_moved_the_offset_are_named() {
    let mut builder = recording(1.0);
    let file = builder.file("/d/table", File);
    builder.fork(0.05, 2);
    for turn in 0..3 {
        for pid in [1u32, 2] {
            let at_s = 0.1 + f64::from(turn) * 0.1 + f64::from(pid) * 0.01;
            seek(&mut builder, at_s, pid, file, 0);
            builder.read(at_s + 0.005, pid, 3, file, b"record");
        }
    }
    builder.exec(0.9, 1, "later");
    builder.exec(0.9, 2, "later");
    let finding = builder.finding("shared-offset");
    assert!(finding.why.starts_with("prog (1) and prog (2) share"), "{}", finding.why);
    assert_eq!((finding.pid, finding.fd, finding.evidence["other"]), (1, 3, 2.0));
}

#[test]
fn a_read_at_offset_minus_one_uses_the_shared_offset() {
    let run = |offset: u64| {
        let mut builder = recording(1.0);
        let file = builder.file("/d/text", File);
        builder.fork(0.1, 2);
        seek(&mut builder, 0.2, 2, file, 0);
        builder.last_call().result = 16;
        builder.call(0.3, 1, Op::Preadv2, 3, file, b"record").args[3] = offset;
        builder
    };
    assert_eq!(run(u64::MAX).severity("shared-offset"), High);
    run(16).no_finding("shared-offset");
}
