//! Everything together: order, merging, the verdict, pipelines, and ordinary programs that have nothing.

use weir_model::trace::{Exit, Histogram, Op, SnapshotMoment, StreamTable};
use weir_model::{Mode, Severity};

use crate::testing::*;

#[test]
fn the_worst_comes_first_and_the_verdict_says_it() {
    let mut tape = tape(7.0);
    let (input, output) = (tape.file("/d/a", File), tape.file("/d/w", File));
    tape.flow(1, 3, input, In, 5_000_000, 1);
    tape.flow(1, 4, output, Out, 5_000_000, 1);
    let found = diagnose(&tape.0);
    assert_eq!(
        found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(),
        ["tiny-writes", "tiny-reads"]
    );
    let said = verdict(&tape.0, &found);
    assert_eq!(
        said.text,
        "5,000,000 of 5,000,000 bytes were written one at a time: 6.50 s of 7.00 s. Gathering them would \
            take about 530 ms:"
    );
    assert_eq!(said.command.as_deref(), Some("weir run --coalesce -- ./prog 'a b'"));
}

#[test]
fn a_program_that_waited_is_not_promised_a_shorter_run() {
    let mut tape = tape(2.79);
    let output = tape.file("pipe:[3]", Pipe);
    tape.flow(1, 1, output, Out, 800_000, 1);
    (tape.root().user_s, tape.root().system_s) = (0.2, 0.4);
    let said = verdict(&tape.0, &diagnose(&tape.0));
    assert_eq!(
        said.text,
        "800,000 of 800,000 bytes were written one at a time: 520 ms of the 600 ms that it had a processor, in \
            a run of 2.79 s. Gathering them saves about 517 ms:"
    );
}

#[test]
fn a_clean_run_is_one_line() {
    let mut tape = tape(1.0);
    let file = tape.file("/d/out", File);
    tape.flow(1, 1, file, Out, 100, 65_536);
    let found = diagnose(&tape.0);
    assert!(found.is_empty());
    let said = verdict(&tape.0, &found);
    assert_eq!((said.to_string().lines().count(), said.command), (1, None));
    assert!(said.text.starts_with("Nothing is wrong"));
}

#[test]
fn the_verdict_counts_streams_and_not_their_openings() {
    let mut tape = tape(1.0);
    for _ in 0..18 {
        let file = tape.file("/d/out", File);
        tape.flow(1, 3, file, Out, 2, 65_536);
    }
    let said = |tape: &Tape| verdict(&tape.0, &[]).text;
    assert_eq!(said(&tape), "Nothing is wrong with the one stream of this run.");
    let link = tape.file("/d/link", File);
    tape.open_file(link).same_as = Some(0);
    tape.flow(1, 3, link, Out, 2, 65_536);
    assert_eq!(said(&tape), "Nothing is wrong with the one stream of this run.", "by another name");
    let other = tape.file("/d/in", File);
    tape.flow(1, 3, other, In, 2, 65_536);
    // Opened, and never used.
    tape.flow(1, 9, other, Out, 0, 0);
    assert_eq!(said(&tape), "Nothing is wrong with the 2 streams of this run.");
    tape.flow(1, 9, other, Out, 0, 0).syncs = 1;
    assert_eq!(said(&tape), "Nothing is wrong with the 3 streams of this run.", "waiting takes time as well");
}

#[test]
fn what_was_not_counted_is_about_so_much() {
    let mut tape = tape(7.0);
    let output = tape.file("/d/w", File);
    tape.flow(1, 4, output, Out, 4_123_456, 1).exact = false;
    let counted = diagnose(&tape.0);
    let said = |tape: &Tape, found: &[weir_model::Finding]| verdict(&tape.0, found).text;
    assert!(
        said(&tape, &counted).starts_with("4,123,456 of 4,123,456 bytes were"),
        "the kernel counted them"
    );
    assert!(counted[0].why.contains("wrote 4,123,456 bytes with 4,123,456 calls"), "{}", counted[0].why);
    tape.0.counts[0].estimated = true;
    assert_eq!(said(&tape, &diagnose(&tape.0)), said(&tape, &counted), "nobody else can have made them");
    let other = tape.file("/d/v", File);
    tape.flow(1, 5, other, Out, 10, 4096).estimated = true;
    let shared = diagnose(&tape.0);
    assert!(said(&tape, &shared).starts_with("about 4,120,000 of about 4,120,000 bytes were"));
    assert!(shared[0].why.contains("wrote about 4,120,000 bytes"), "{}", shared[0].why);
}

#[test]
fn a_finding_has_the_figures_of_its_row() {
    let mut tape = tape(7.0);
    for number in 0..3 {
        let file = tape.file("/d/w", File);
        tape.flow(1, 4, file, Out, 1_000_000 + number, 1).first_s = number as f64;
    }
    let found = diagnose(&tape.0);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].evidence["calls"], found[0].evidence.get("more")), (3_000_003.0, None));
    assert!(found[0].why.contains("3,000,003 bytes with 3,000,003 calls"), "{}", found[0].why);
    assert!(verdict(&tape.0, &found).text.starts_with("3,000,003 of 3,000,003 bytes"));
}

#[test]
fn two_names_of_a_file_are_one_for_what_explains_what() {
    let mut tape = tape(1.0);
    let (real, link) = (tape.file("/d/out", File), tape.file("/d/link", File));
    tape.open_file(link).same_as = Some(real);
    let streams = StreamTable::of(&tape.0);
    let context = crate::context::Context::new(&streams);
    let finding = |id, file| {
        let rule = crate::rules().iter().find(|rule| rule.id == id).unwrap();
        let draft = context.draft(rule, Severity::High, 1, 1, Some(file));
        draft.count("bytes", 1).say("Why.", "Fix.")
    };
    let left = |file| {
        let found = vec![finding("doubled-at-fork", real), finding("torn-records", file)];
        crate::merge::merge(&context, found).len()
    };
    assert_eq!((left(real), left(link)), (1, 1));
}

#[test]
fn one_cause_is_one_finding() {
    let mut tape = tape(0.5);
    let file = tape.file("/d/log", File);
    tape.open_file(file).flags = 0o10001;
    let flow = tape.flow(1, 3, file, Out, 700, 600);
    (flow.syncs, flow.unaligned, flow.newline_ends) = (700, 700, 700);
    assert!(!tape.found("sync-every-write").is_empty() && !tape.found("unaligned-writes").is_empty());
    let found = diagnose(&tape.0);
    assert_eq!(found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["sync-tiny-writes"]);
}

#[test]
fn bytes_that_waited_and_were_lost_are_one_loss() {
    let mut tape = tape(3.0);
    let file = tape.file("/d/log", File);
    tape.call(0.0, 1, Op::Openat, -1, file, b"").result = 3;
    for at_s in [0.5, 1.0, 1.5, 2.0, 2.5] {
        tape.look_in(at_s, 1, SnapshotMoment::Sample, "poll", &[pending(3, b"listening\n")]);
    }
    tape.root().exit = Some(Exit::Signal(9));
    assert_eq!(tape.found("stuck-output").len(), 1);
    let found = diagnose(&tape.0);
    assert_eq!(found.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["lost-at-kill"]);
    let said = verdict(&tape.0, &found);
    assert!(said.command.unwrap().starts_with("weir run --rescue"));
}

#[test]
fn the_same_fault_of_many_processes_is_one_finding() {
    let mut tape = tape(1.0);
    for pid in 2..12 {
        tape.process(pid, None, "worker");
        let file = tape.file(&format!("/d/out{pid}"), File);
        tape.flow(pid, 1, file, Out, 30_000, 1);
    }
    let found = diagnose(&tape.0);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].evidence["more"], 9.0);
    assert!((found[0].gain.unwrap().elapsed_s - 0.269).abs() < 0.005);
}

#[test]
fn a_pipeline_shows_each_hop_and_where_a_line_waits() {
    let mut tape = tape(10.0);
    for (pid, comm) in [(2, "tail"), (3, "grep"), (4, "cat")] {
        tape.process(pid, Some(1), comm);
    }
    let (first, second) = (tape.file("pipe:[1]", Pipe), tape.file("pipe:[2]", Pipe));
    tape.flow(2, 1, first, Out, 50, 40).newline_ends = 50;
    tape.flow(3, 0, first, In, 50, 40);
    tape.flow(3, 1, second, Out, 1, 4096);
    tape.flow(4, 0, second, In, 1, 4096);
    tape.look(5.0, 3, SnapshotMoment::Sample, &[pending(1, b"error: hot\n"), unread(0, b"")]);
    let found = crate::judge(&tape.0).pipelines;
    assert_eq!(found.len(), 1);
    let hops = &found[0].hops;
    assert_eq!(hops.iter().map(|hop| hop.writer.comm.as_str()).collect::<Vec<_>>(), ["tail", "grep"]);
    assert_eq!((hops[0].writer.mode, hops[0].holds_lines), (Some(Mode::Line), false));
    assert_eq!((hops[1].writer.mode, hops[1].writer.buffer_bytes), (Some(Mode::Full), Some(4096)));
    assert_eq!((hops[1].writer.waiting_bytes, found[0].waits_at), (11, Some(1)));
}

#[test]
fn ordinary_programs_have_nothing() {
    let mut tape = tape(2.0);
    let script = tape.file("/d/configure", File);
    let (log, archive) = (tape.file("/d/log", File), tape.file("/d/a.tar", File));
    // A shell that reads a script from a pipe a byte at a time, as it must.
    let pipe = tape.file("pipe:[1]", Pipe);
    tape.flow(1, 0, pipe, In, 4000, 1);
    tape.flow(1, 10, script, In, 12, 8192);
    // Its commands write short lines to the log that they share, one after the other.
    for pid in 2..200 {
        tape.process(pid, Some(1), "expr");
        let flow = tape.flow(pid, 1, log, Out, 2, 11);
        (flow.first_s, flow.last_s, flow.newline_ends) =
            (0.01 * f64::from(pid), 0.01 * f64::from(pid) + 0.002, 2);
    }
    tape.flow(1, 1, log, Out, 400, 20).newline_ends = 150;
    tape.flow(1, 3, archive, Out, 500, 10_240);
    // make's tokens: one byte there, one byte back.
    let tokens = tape.file("pipe:[2]", Pipe);
    tape.flow(1, 4, tokens, In, 300, 1);
    tape.flow(1, 5, tokens, Out, 300, 1);
    let found = diagnose(&tape.0);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_reader_that_asks_for_much_is_not_blamed_for_its_writer() {
    let mut tape = tape(1.0);
    let pipe = tape.file("pipe:[1]", Pipe);
    let flow = tape.flow(1, 0, pipe, In, 1_000_000, 1);
    let mut asked = Histogram::default();
    asked.add(65_536, 1_000_000);
    flow.asked = asked;
    assert!(diagnose(&tape.0).iter().all(|finding| finding.severity < Severity::Warn));
}
