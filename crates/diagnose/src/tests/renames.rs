//! Tests of the rules missing-sync-before-rename and missing-dir-sync.

use weir_model::Severity::*;
use weir_model::trace::{EventKind, Op, Rename};
use weir_model::{SourceLanguage, StreamKind};

use crate::testing::*;

const O_DSYNC: i32 = 0o10000;

/// Returns the recording of a file that is written, perhaps synced, and renamed; then perhaps its directory is synced.
fn replaced(synced: bool, directory: Option<&str>) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let file = builder.file("/d/new/settings.tmp", File);
    let stream = builder.stream(1, 3, file, Out, 2, 600);
    stream.last_s = 0.2;
    if synced {
        builder.call(0.3, 1, Op::Fsync, 3, file, b"");
    }
    builder.rename(0.4, "new/settings.tmp", "old/settings");
    if let Some(path) = directory {
        let id = builder.file(path, StreamKind::Other);
        builder.call(0.5, 1, Op::Fsync, 4, id, b"");
    }
    builder
}

#[test]
fn a_rename_before_the_data_is_safe_is_a_warning() {
    let finding = replaced(false, None).finding("missing-sync-before-rename");
    assert_eq!((finding.severity, finding.path.exact(), finding.pid), (Warn, "/d/old/settings", 1));
    assert_eq!(finding.evidence["unsynced_bytes"], 1200.0);
    replaced(false, None).no_finding("missing-dir-sync");
}

/// Adds a file that is written and renamed to `to`.
fn saved(builder: &mut RecordingBuilder, at_s: f64, to: &str, replaced: Option<bool>) {
    let from = format!("{to}.tmp");
    let file = builder.file(&from, File);
    let stream = builder.stream(1, 3, file, Out, 2, 600);
    (stream.first_s, stream.last_s) = (at_s, at_s);
    builder.rename(at_s + 0.1, &from, to);
    let rename = Rename { from: from.into(), to: to.into(), replaced, directory: None };
    builder.last_call().rename = Some(Box::new(rename));
}

fn one_saved(replaced: Option<bool>) -> RecordingBuilder {
    let mut builder = recording(1.0);
    saved(&mut builder, 0.1, "/d/settings", replaced);
    builder
}

#[test]
fn the_severity_follows_from_the_lost_content() {
    assert_eq!(one_saved(Some(true)).severity("missing-sync-before-rename"), Warn);
    assert_eq!(one_saved(None).severity("missing-sync-before-rename"), Warn);
    let new = one_saved(Some(false)).finding("missing-sync-before-rename");
    assert_eq!(new.severity, Info);
    assert!(
        new.why.contains("no other file had that name") && new.fix.contains("sync -f /d once"),
        "{new:#?}"
    );
}

#[test]
fn a_file_in_memory_needs_no_sync() {
    let mut builder = one_saved(Some(true));
    builder.0.memory_devices = vec![77];
    assert_eq!(builder.severity("missing-sync-before-rename"), Warn, "it is on another file system");
    builder.0.files.iter_mut().for_each(|file| file.dev = 77);
    builder.no_finding("missing-sync-before-rename");
}

#[test]
fn many_new_names_are_one_hint() {
    let mut builder = recording(1.0);
    for number in 0..20 {
        saved(&mut builder, 0.01 * f64::from(number), &format!("/d/lib{number}.a"), Some(false));
    }
    let sum = builder.finding("missing-sync-before-rename");
    assert_eq!((sum.severity, sum.evidence["files"], sum.evidence["unsynced_bytes"]), (Info, 20.0, 24_000.0));
    saved(&mut builder, 0.9, "/d/settings", Some(true));
    let both = builder.findings("missing-sync-before-rename");
    assert_eq!(both.iter().map(|one| one.severity).collect::<Vec<_>>(), [Warn, Info]);
}

#[test]
fn derived_files_can_be_made_again() {
    let from = |path: &str, bytes: u64| {
        let mut builder = one_saved(Some(true));
        let input = builder.file(path, File);
        builder.stream(1, 4, input, In, 1, bytes);
        builder
    };
    // ar adds object files to an existing library.
    assert_eq!(from("/d/part.o", 1100).severity("missing-sync-before-rename"), Info);
    // sort and sed -i read the file that they replace.
    assert_eq!(from("/d/settings", 1100).severity("missing-sync-before-rename"), Warn);
    // sed -i f1 f2 …, and patch: all files that they read are replaced.
    let mut both = from("/d/settings", 1200);
    saved(&mut both, 0.4, "/d/more", Some(true));
    let more = both.file("/d/more", File);
    both.stream(1, 4, more, In, 1, 1200);
    assert!(both.findings("missing-sync-before-rename").iter().all(|one| one.severity == Warn));
    let mut patched = from("/d/change", 1200);
    let old = patched.file("/d/settings", File);
    patched.stream(1, 5, old, In, 1, 1100);
    assert_eq!(patched.severity("missing-sync-before-rename"), Warn);
    // A program's own code is no source, and a number found in a large file is no copy of it.
    assert_eq!(from("/usr/lib/python3/json.py", 1100).severity("missing-sync-before-rename"), Warn);
    assert_eq!(from("/d/libjson.so.1", 1100).severity("missing-sync-before-rename"), Warn);
    assert_eq!(from("/d/measurements", 1_000_000).severity("missing-sync-before-rename"), Warn);
    assert_eq!(from("/d/key", 20).severity("missing-sync-before-rename"), Warn);
}

#[test]
fn a_script_is_no_source_of_its_output() {
    let mut builder = one_saved(Some(true));
    builder.root().images[0].language = Some(SourceLanguage::Python);
    builder.root().images[0].argv = vec!["python3".into(), "-u".into(), "save.py".into()];
    let script = builder.file("/d/save.py", File);
    builder.stream(1, 4, script, In, 1, 1100);
    assert_eq!(builder.severity("missing-sync-before-rename"), Warn);
    builder.open_file(script).path = "/d/other.py".into();
    assert_eq!(builder.severity("missing-sync-before-rename"), Info, "compiled modules are written this way");
}

#[test]
fn a_copy_through_a_pipe_can_be_made_again() {
    // rsync: one process reads, another writes.
    let mut builder = one_saved(Some(true));
    let (socket, source) = (builder.file("socket:[7]", Socket), builder.file("/source/settings", File));
    builder.process(2, None, "sender");
    builder.stream(2, 3, source, In, 1, 1200);
    builder.stream(1, 0, socket, In, 1, 1300);
    assert_eq!(builder.severity("missing-sync-before-rename"), Warn, "the source of the bytes is unknown");
    builder.stream(2, 1, socket, Out, 1, 1300);
    assert_eq!(builder.severity("missing-sync-before-rename"), Info);
}

#[test]
fn files_made_in_this_run_can_be_made_again_unless_they_are_state() {
    let mut builder = one_saved(Some(false));
    saved(&mut builder, 0.3, "/d/settings", Some(true));
    assert_eq!(builder.finding("missing-sync-before-rename").evidence["files"], 2.0);
    saved(&mut builder, 0.5, "/d/settings", Some(true));
    assert_eq!(builder.severity("missing-sync-before-rename"), Info, "steps of one thing");
    saved(&mut builder, 5.5, "/d/settings", Some(true));
    assert_eq!(builder.findings("missing-sync-before-rename")[0].severity, Warn, "it saves again and again");
    // ld writes a program, strip replaces it.
    let mut linked = one_saved(Some(true));
    let program = linked.file("/d/settings", File);
    let stream = linked.stream(1, 5, program, Out, 1, 1200);
    (stream.first_s, stream.last_s) = (0.0, 0.01);
    assert_eq!(linked.severity("missing-sync-before-rename"), Info);
}

#[test]
fn installed_programs_get_a_fix_from_outside() {
    let mut builder = one_saved(Some(true));
    builder.root().images[0].exe = "/usr/bin/sed".into();
    let finding = builder.finding("missing-sync-before-rename");
    assert!(finding.fix.starts_with("sync /d/settings /d afterwards; in its code"), "{finding:#?}");
    assert_eq!(finding.severity, Info, "its makers decided");
    // sort writes and mv renames: their script can sync in between.
    builder.process(2, None, "sort").images[0].exe = "/usr/bin/sort".into();
    builder.0.counts[0].pid = 2;
    let between = builder.finding("missing-sync-before-rename");
    assert_eq!((between.severity, between.pid), (Warn, 2));
    builder.0.counts[0].pid = 1;
    // The same for the directory.
    builder.call(0.15, 1, Op::Fsync, 3, 0, b"");
    let directory = builder.finding("missing-dir-sync");
    assert!(
        directory.severity == Info && directory.fix.starts_with("sync /d/settings /d afterwards"),
        "{directory:#?}"
    );
}

#[test]
fn files_of_installed_programs_are_one_hint() {
    // git: a new config, and the old index.
    let mut builder = one_saved(Some(false));
    saved(&mut builder, 0.3, "/d/index", Some(true));
    builder.root().images[0].exe = "/usr/bin/git".into();
    let finding = builder.finding("missing-sync-before-rename");
    assert_eq!((finding.severity, finding.path.exact(), finding.evidence["files"]), (Info, "/d/index", 2.0));
    assert!(finding.why.contains("For 1 of them an older file is lost"), "{}", finding.why);
}

/// core.fsync makes git sync its objects, references and index only.
#[test]
fn gits_option_is_named_for_the_files_that_it_syncs() {
    let fix = |paths: &[&str]| {
        let mut builder = recording(1.0);
        (builder.root().images[0].exe, builder.root().images[0].comm) = ("/usr/bin/git".into(), "git".into());
        for (number, path) in paths.iter().enumerate() {
            saved(&mut builder, 0.3 + 0.1 * number as f64, path, Some(true));
        }
        builder.finding("missing-sync-before-rename").fix
    };
    let index = fix(&["/d/.git/index"]);
    assert_eq!(index, "git config core.fsync all; or afterwards sync /d/.git/index /d/.git.");
    let two = fix(&["/d/.git/packed-refs", "/d/.git/objects/info/commit-graph"]);
    assert_eq!(two, "git config core.fsync all; or afterwards sync -f /d/.git.");
    let config = fix(&["/d/.git/config"]);
    assert!(config.starts_with("sync /d/.git/config /d/.git afterwards; in its code:"), "{config}");
    let mixed = fix(&["/d/.git/index", "/d/.git/logs/refs/heads/main"]);
    assert!(mixed.starts_with("sync -f /d/.git afterwards; in its code:"), "{mixed}");
}

#[test]
fn a_removed_name_is_no_finding() {
    let mut builder = one_saved(Some(true));
    builder.call(0.4, 1, Op::Unlink, -1, 0, b"").paths = vec!["/d/settings".into()];
    builder.no_finding("missing-sync-before-rename");
    // git's packs are renamed twice.
    let mut twice = one_saved(Some(false));
    twice.call(0.15, 1, Op::Fsync, 3, 0, b"");
    twice.rename(0.5, "/d/settings", "/d/last");
    let rename =
        Rename { from: "/d/settings".into(), to: "/d/last".into(), replaced: Some(false), directory: None };
    twice.last_call().rename = Some(Box::new(rename));
    twice.no_finding("missing-dir-sync");
}

#[test]
fn a_sync_by_any_process_is_enough() {
    replaced(true, None).no_finding("missing-sync-before-rename");
    let mut counted = replaced(false, None);
    counted.0.counts[0].syncs = 1;
    counted.no_finding("missing-sync-before-rename");
    let mut flagged = replaced(false, None);
    flagged.open_file(0).flags |= O_DSYNC;
    flagged.no_finding("missing-sync-before-rename");
    // sync(1) opens the file again.
    let mut other = replaced(false, None);
    let again = other.file("/d/new/settings.tmp", File);
    other.call(0.35, 9, Op::Fsync, 3, again, b"");
    other.no_finding("missing-sync-before-rename");
    let mut late = replaced(false, None);
    late.call(0.45, 1, Op::Fsync, 3, 0, b"");
    assert_eq!(late.severity("missing-sync-before-rename"), Warn);
}

#[test]
fn unwritten_files_failed_renames_and_files_in_memory_are_no_finding() {
    let mut failed = replaced(false, None);
    if let weir_model::trace::EventKind::Call(call) = &mut failed.0.events[0].kind {
        call.result = -18;
    }
    failed.no_finding("missing-sync-before-rename");
    let mut unwritten = replaced(false, None);
    unwritten.0.counts[0].bytes = 0;
    unwritten.no_finding("missing-sync-before-rename");
    let mut volatile = recording(1.0);
    let file = volatile.file("/run/x.tmp", File);
    volatile.stream(1, 3, file, Out, 1, 5).last_s = 0.1;
    volatile.rename(0.4, "/run/x.tmp", "/run/x");
    volatile.no_finding("missing-sync-before-rename");
}

#[test]
fn a_rename_needs_its_directory_synced() {
    let finding = replaced(true, None).finding("missing-dir-sync");
    assert_eq!((finding.severity, finding.path.exact()), (Warn, "/d/old/settings"));
    assert_eq!(replaced(true, Some("/d/new")).severity("missing-dir-sync"), Warn);
    replaced(true, Some("/d/old")).no_finding("missing-dir-sync");
    let mut all = replaced(true, None);
    all.call(0.6, 1, Op::Sync, -1, 0, b"").file = None;
    all.no_finding("missing-dir-sync");
}

#[test]
fn sampling_gaps_may_hide_a_sync() {
    // Between the write and the rename: a sync of the file may be missing.
    let mut away = replaced(false, None);
    away.event(0.25, 1, EventKind::Gap { until_s: 0.35 });
    away.no_finding("missing-sync-before-rename");
    let mut other = replaced(false, None);
    other.event(0.25, 9, EventKind::Gap { until_s: 0.35 });
    assert_eq!(other.severity("missing-sync-before-rename"), Warn, "somebody else's calls");
    let mut later = replaced(false, None);
    later.event(0.5, 0, EventKind::Gap { until_s: 0.9 });
    assert_eq!(later.severity("missing-sync-before-rename"), Warn);
    // After the rename: a sync of the directory may be missing.
    let mut behind = replaced(true, None);
    behind.event(0.5, 0, EventKind::Gap { until_s: 0.9 });
    behind.no_finding("missing-dir-sync");
    // The next command of a script may sync the directory, after the renaming process has ended.
    let mut next = replaced(true, None);
    next.process(1, None, "mv").ended_s = Some(0.45);
    next.event(0.5, 9, EventKind::Gap { until_s: 0.9 });
    next.no_finding("missing-dir-sync");
}

#[test]
fn directories_are_compared_by_inode() {
    let by = |path: &str, ino: u64, dev: u64| {
        let mut builder = one_saved(Some(true));
        builder.call(0.15, 1, Op::Fsync, 3, 0, b"");
        builder.open_file(0).dev = 8;
        let directory = builder.file(path, StreamKind::Other);
        (builder.open_file(directory).ino, builder.open_file(directory).dev) = (ino, dev);
        builder.call(0.5, 1, Op::Fsync, 4, directory, b"");
        let rename = builder.0.events.iter_mut().find_map(|event| match &mut event.kind {
            EventKind::Call(call) => call.rename.as_mut(),
            _ => None,
        });
        rename.unwrap().directory = Some(77);
        builder
    };
    // Opened through a symbolic link or another mount.
    by("/link", 77, 8).no_finding("missing-dir-sync");
    by("/d", 0, 8).no_finding("missing-dir-sync");
    assert_eq!(by("/link", 78, 8).severity("missing-dir-sync"), Warn);
    assert_eq!(by("/link", 77, 9).severity("missing-dir-sync"), Warn, "a number of another file system");
}

#[test]
fn repeated_syncs_of_a_directory_are_known_from_its_counts() {
    let mut builder = replaced(true, None);
    let directory = builder.file("/d/old", StreamKind::Other);
    let stream = builder.stream(1, 4, directory, Out, 0, 0);
    (stream.syncs, stream.first_s, stream.last_s) = (100, 0.1, 0.3);
    assert_eq!(builder.severity("missing-dir-sync"), Warn, "the last one was before");
    builder.0.counts.last_mut().unwrap().last_s = 0.5;
    builder.no_finding("missing-dir-sync");
}

#[test]
fn the_program_that_renamed_is_named_not_one_that_was_executed_later() {
    for (synced, rule) in [(true, "missing-dir-sync"), (false, "missing-sync-before-rename")] {
        let mut builder = replaced(synced, None);
        let end_s = builder.0.elapsed_s;
        builder.exec(end_s, 1, "later");
        let why = builder.finding(rule).why;
        assert!(why.contains("prog (1) renamed"), "{why}");
    }
}
