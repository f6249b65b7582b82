//! `weir run`, `--rescue` and `weir flush` on streams of libweir: the bytes that only the program can write are left to it, and the
//! stream's own counts stay right.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{disk_dir, names, run, text, weir};

/// Longer than the delay of [`OPTIONS`] by enough for a busy machine.
const LONG: Duration = Duration::from_millis(1200);
const OPTIONS: [&str; 3] = ["run", "--max-delay", "100ms"];
const RESCUE: [&str; 2] = ["run", "--rescue"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
}

/// Returns the program, which all tests share.
fn program() -> &'static str {
    static PROGRAM: OnceLock<(tempfile::TempDir, String)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let (dir, root) = (disk_dir(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let mut files = vec![root.join("tests/run_libweir/streams.c")];
        sources(&root.join("libweir/src"), &mut files);
        let program = dir.path().join("streams");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c11", "-D_GNU_SOURCE", "-pthread", "-o"]).arg(&program);
        gcc.arg("-I").arg(root.join("libweir/include")).args(files);
        assert!(gcc.status().expect("gcc").success());
        (dir, program.to_str().expect("a path").to_string())
    });
    path
}

/// A run of the program under weir.
struct Started {
    child: Child,
    dir: tempfile::TempDir,
}

impl Started {
    fn new(options: &[&str], case: &str) -> Started {
        let dir = disk_dir();
        let mut command = match options {
            [] => Command::new(program()),
            _ => weir(dir.path(), &[options, &["--", program()]].concat()),
        };
        command.arg(case).current_dir(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started { child: command.spawn().expect("it starts"), dir }
    }

    fn next_step(&mut self) {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("a step");
    }

    fn out(&self) -> String {
        text(&fs::read(self.dir.path().join("out")).unwrap_or_default())
    }

    fn await_out(&self, expected: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.out() != expected {
            assert!(Instant::now() < end, "{:?} in place of {expected:?}", self.out());
            sleep(Duration::from_millis(10));
        }
    }

    /// Lets the program end; returns what it and weir have said, and the file.
    fn end(mut self) -> (String, String, tempfile::TempDir) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("an end");
        let file = text(&fs::read(self.dir.path().join("out")).unwrap_or_default());
        (text(&output.stderr), file, self.dir)
    }
}

/// Returns the bytes that weir has saved in a directory.
fn saved(dir: &Path) -> Vec<u8> {
    let is_saved = |name: &String| name.starts_with("weir-rescue-") && name.ends_with(".bin");
    let name = names(dir).into_iter().find(is_saved);
    name.map_or_else(Vec::new, |name| fs::read(dir.join(name)).expect("the saved bytes"))
}

/// Starts the program, appends as another writer does, and lets the program put its second line.
fn with_other_writer(options: &[&str], case: &str) -> Started {
    let mut started = Started::new(options, case);
    started.await_out("A1\n");
    let mut other = fs::File::options().append(true).open(started.dir.path().join("out")).expect("the file");
    other.write_all(b"BBBB\n").expect("a line");
    started.next_step();
    sleep(LONG);
    started
}

#[test]
fn a_file_that_is_written_under_a_lock_keeps_the_lines_of_others() {
    let started = with_other_writer(&OPTIONS, "lock");
    assert_eq!(started.out(), "A1\nBBBB\n");
    let (errors, file, _dir) = started.end();
    assert_eq!(file, "A1\nBBBB\na2\n", "{errors}");
    assert!(errors.contains("not written early") && errors.contains("WEIR_LOCK_FILE"), "{errors}");
}

#[test]
fn a_rescue_saves_the_lines_of_a_file_that_is_written_under_a_lock() {
    let (errors, file, dir) = with_other_writer(&RESCUE, "lock-die").end();
    assert_eq!(file, "A1\nBBBB\n", "{errors}");
    assert_eq!(text(&saved(dir.path())), "a2\n", "{errors}");
    assert!(errors.contains("weir-rescue-"), "{errors}");
}

/// The lines of the program with a ring.
fn lines() -> Vec<u8> {
    (0..16000).flat_map(|number| format!("{number:09}\n").into_bytes()).collect()
}

/// Reads to the end, slowly at first.
fn read_slowly(mut reader: impl Read) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match reader.read(&mut buffer).expect("a pipe") {
            0 => return all,
            got => all.extend_from_slice(&buffer[..got]),
        }
        if all.len() < 100_000 {
            sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_ring_writes_its_bytes_in_order() {
    let mut started = Started::new(&OPTIONS, "uring");
    let reader = started.child.stdout.take().expect("a pipe");
    let all = std::thread::spawn(move || {
        sleep(Duration::from_millis(500));
        read_slowly(reader)
    });
    sleep(2 * LONG);
    let (errors, _, _dir) = started.end();
    assert!(all.join().expect("a reader") == lines(), "{errors}");
}

/// Before, the bytes after those in flight were written, and the latter were missing between them.
#[test]
fn a_rescue_leaves_no_hole_for_the_bytes_that_a_ring_has_taken() {
    let mut started = Started::new(&RESCUE, "uring");
    let reader = started.child.stdout.take().expect("a pipe");
    sleep(LONG);
    let child =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", started.child.id())).expect("/proc");
    let pid = child.trim().parse().expect("one child");
    // SAFETY: the program, which has not been waited for, has this number.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    let all = std::thread::spawn(move || read_slowly(reader));
    let (errors, _, dir) = started.end();
    let (written, saved, expected) = (all.join().expect("a reader"), saved(dir.path()), lines());
    assert!(expected.starts_with(&written), "{} bytes with a hole: {errors}", written.len());
    assert!(expected.ends_with(&saved) && written.len() + saved.len() >= expected.len(), "{errors}");
    assert!(saved.is_empty() || errors.contains("weir-rescue-"), "{errors}");
}

#[test]
fn a_sync_after_weir_has_written_still_syncs() {
    for outside in ["run", "flush"] {
        let mut started = Started::new(if outside == "run" { &OPTIONS } else { &[] }, "sync");
        started.await_out("first\n");
        if outside == "flush" {
            sleep(Duration::from_millis(200));
            let output = run(started.dir.path(), &["flush", &started.child.id().to_string()]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        started.await_out("first\nsecond\n");
        // A written-ahead stream is emptied a moment later.
        sleep(LONG / 2);
        started.next_step();
        let (errors, file, _dir) = started.end();
        assert_eq!(file, "first\nsecond\n", "{errors}");
        assert!(errors.contains("result 0, syncs 2, written 13"), "{outside}: {errors}");
    }
}

#[test]
fn a_reservation_survives_a_write_by_weir() {
    let mut started = Started::new(&OPTIONS, "reserve");
    started.await_out("head ");
    sleep(LONG / 2);
    started.next_step();
    let (errors, file, _dir) = started.end();
    assert_eq!(file, "head tail\n", "{errors}");
    assert!(errors.contains("commit 0"), "{errors}");
}

#[test]
fn a_child_loses_no_bytes_at_exec() {
    let mut started = Started::new(&OPTIONS, "fork");
    started.await_out("parent\n");
    sleep(LONG / 2);
    started.next_step();
    let (errors, file, _dir) = started.end();
    assert_eq!(file, "parent\nchild1\n", "{errors}");
}

/// The pipe takes one write.
#[test]
fn a_pipe_gets_whole_records() {
    let mut command = weir(Path::new("/"), &[&OPTIONS[..], &["--", program(), "records"]].concat());
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(writer.as_fd(), 4096).expect("F_SETPIPE_SZ");
    let mut child = command.stdin(Stdio::piped()).stdout(writer).spawn().expect("it starts");
    drop(command);
    let waiting = || rustix::io::ioctl_fionread(reader.as_fd()).expect("FIONREAD");
    let end = Instant::now() + Duration::from_secs(30);
    while waiting() == 0 && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }
    sleep(LONG / 2);
    assert_eq!(waiting(), 4000);
    drop(child.stdin.take());
    let mut all = String::new();
    reader.read_to_string(&mut all).expect("a pipe");
    assert!(child.wait().expect("an end").success());
    assert_eq!(all, (0..60).map(|number| format!("{number:099}\n")).collect::<String>());
}

/// Without them the run says nothing: most streams have none of these flags.
#[test]
fn a_plan_names_the_streams_that_only_the_program_writes() {
    let dir = disk_dir();
    for options in [&["--max-delay", "50ms"][..], &["--rescue"]] {
        let output =
            |first: &[&str]| run(dir.path(), &[&["run"], first, options, &["--", program()]].concat());
        let why = output(&["--why"]);
        assert!(text(&[why.stdout, why.stderr].concat()).contains("WEIR_LOCK_FILE"), "{options:?}");
        let strict = output(&["--strict"]);
        let errors = text(&strict.stderr);
        assert!(
            strict.status.code() == Some(125) && errors.contains("WEIR_LOCK_FILE"),
            "{options:?}: {errors}"
        );
        let plain = output(&[]);
        assert_eq!((plain.status.code(), text(&plain.stderr)), (Some(0), String::new()), "{options:?}");
    }
}
