//! `weir flush` says soon, and with the reason, that a process cannot run: it does not retry for all of `--wait`.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, WEIR, disk_dir, has, is_root, run, skip, text, wait_for};

/// Starts the program. The tests' process has to kill it: some kinds end by no other signal.
fn start(dir: &Path, kind: &str) -> KillOnDrop {
    assert!(compile_c("hostile/stuck", &[], dir), "gcc builds its program");
    let mut command = Command::new("./stuck");
    command.arg(kind).current_dir(dir).stdout(Stdio::piped());
    let mut process = KillOnDrop(command.spawn().expect("it starts"));
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    process
}

/// Runs weir flush, which would retry for longer than the test takes.
fn flush(dir: &Path, process: &KillOnDrop) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", WEIR, "flush", "--wait", "10m", &process.0.id().to_string()]);
    command.current_dir(dir).output().expect("timeout(1)")
}

fn assert_refused(dir: &Path, output: &Output, reason: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("7 B") && said.contains(reason), "{said}");
    assert_eq!(fs::read_to_string(dir.join("out")).expect("its file"), "");
}

fn wait_for_state(process: &KillOnDrop, state: &str) {
    wait_for("its state", || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).expect("its status");
        status.contains(&format!("State:\t{state}"))
    });
}

#[test]
fn a_program_under_weir_run_is_left_to_it() {
    let dir = disk_dir();
    let mut command = Command::new(WEIR);
    command.args(["run", "--rescue", "--", "python3", "-uc"]).current_dir(dir.path()).stdout(Stdio::piped());
    command.arg("import os, time; print(os.getpid()); f = open('out', 'w'); f.write('x'); time.sleep(60)");
    let mut weir = KillOnDrop(command.spawn().expect("weir starts"));
    let mut pid = String::new();
    BufReader::new(weir.0.stdout.take().expect("a pipe")).read_line(&mut pid).expect("a line");
    let flush = run(dir.path(), &["flush", pid.trim()]);
    let said = text(&flush.stderr);
    assert!(flush.status.code() == Some(1) && said.contains("runs under weir run (process "), "{said}");
    assert!(said.contains("weir run --max-delay") && !said.contains("end that one"), "{said}");
    assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().expect("kill").success());
    weir.0.wait().expect("its end");
    assert_eq!(fs::read_to_string(dir.path().join("out")).expect("its file"), "x");
}

/// Stops the program as Ctrl-Z does.
fn stop(process: &KillOnDrop) {
    let pid = process.0.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().expect("kill").success());
    wait_for_state(process, "T");
}

/// Waits until the program blocks in write(2), other than that of "ready" to descriptor 1.
fn wait_for_write(process: &KillOnDrop) {
    let call = format!("/proc/{}/syscall", process.0.id());
    let of_ready = format!("{} 0x1 ", libc::SYS_write);
    let write = format!("{} ", libc::SYS_write);
    let is_blocked = |text: String| text.starts_with(&write) && !text.starts_with(&of_ready);
    wait_for("its write", || fs::read_to_string(&call).is_ok_and(is_blocked));
}

#[test]
fn a_program_that_was_stopped_in_a_write_is_named_soon() {
    let dir = disk_dir();
    let process = start(dir.path(), "full");
    wait_for_write(&process);
    stop(&process);
    let output = flush(dir.path(), &process);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it was stopped (SIGSTOP, Ctrl-Z)"), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("out")).expect("its file"), "");
}

#[test]
fn a_program_that_was_stopped_in_its_work_is_named_soon() {
    let dir = disk_dir();
    let process = start(dir.path(), "spin");
    stop(&process);
    assert_refused(dir.path(), &flush(dir.path(), &process), "it was stopped (SIGSTOP, Ctrl-Z)");
    wait_for_state(&process, "T");
}

#[test]
fn a_program_that_no_tracer_can_stop_is_named_soon() {
    let dir = disk_dir();
    let process = start(dir.path(), "vfork");
    wait_for_state(&process, "D");
    assert_refused(dir.path(), &flush(dir.path(), &process), "cannot be stopped (state D)");
}

#[test]
fn a_program_under_a_debugger_is_left_to_it() {
    if !has("gdb") {
        return skip("a_program_under_a_debugger_is_left_to_it", "gdb is missing");
    }
    let dir = disk_dir();
    let process = start(dir.path(), "sleep");
    let pid = process.0.id().to_string();
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-p", &pid]).current_dir(dir.path()).stdin(Stdio::piped());
    let gdb = KillOnDrop(gdb.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("gdb starts"));
    wait_for_state(&process, "t");
    let peek = run(dir.path(), &["peek", &pid]);
    let expected = format!("by its tracer, gdb {}", gdb.0.id());
    assert!(text(&peek.stdout).contains(&expected), "{}", text(&peek.stdout));
    let document = run(dir.path(), &["peek", "--quiet", "--json", "-", &pid]).stdout;
    let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
    assert_eq!(document["processes"][0]["state"]["tracer"], gdb.0.id());
    let flush = flush(dir.path(), &process);
    let said = text(&flush.stderr);
    assert!(flush.status.code() == Some(1) && said.contains("is traced by process"), "{said}");
    let trace = run(dir.path(), &["trace", "--engine", "ptrace", "--time", "100ms", "--pid", &pid]);
    assert!(text(&trace.stderr).contains("(gdb) already traces"), "{}", text(&trace.stderr));
    wait_for_state(&process, "t");
    drop(gdb);
    common::wait_until_let_go(process.0.id());
}

/// A cgroup, removed on drop, with the file that freezes it, the texts for that, and where it says that it is frozen.
struct Cgroup {
    folder: PathBuf,
    freeze: (&'static str, &'static str, &'static str),
    frozen: (&'static str, &'static str),
}

impl Cgroup {
    /// Makes a cgroup of the unified hierarchy, and one of the older freezer, where the system has them.
    fn make_all() -> Vec<Cgroup> {
        let name = format!("weir-test-{}", std::process::id());
        let make = |mount: &str, is_unified: bool| {
            let folder = Path::new(mount).join(&name);
            let (freeze, frozen) = match is_unified {
                true => (("cgroup.freeze", "1", "0"), ("cgroup.events", "frozen 1")),
                false => (("freezer.state", "FROZEN", "THAWED"), ("freezer.state", "FROZEN")),
            };
            fs::create_dir(&folder).ok()?;
            let cgroup = Cgroup { folder, freeze, frozen };
            if !cgroup.folder.join(freeze.0).exists() {
                // A folder of another file system, in which only the kinds of cgroups are mounted.
                fs::remove_dir(&cgroup.folder).expect("the empty folder");
                return None;
            }
            Some(cgroup)
        };
        let places =
            [("/sys/fs/cgroup", true), ("/sys/fs/cgroup/unified", true), ("/sys/fs/cgroup/freezer", false)];
        places.into_iter().filter_map(|(mount, is_unified)| make(mount, is_unified)).collect()
    }

    fn write(&self, file: &str, text: &str) -> std::io::Result<()> {
        fs::write(self.folder.join(file), text)
    }
}

/// Moves the program to the cgroup and freezes it.
fn freeze(cgroup: &Cgroup, process: &KillOnDrop) {
    cgroup.write("cgroup.procs", &process.0.id().to_string()).expect("it is moved");
    cgroup.write(cgroup.freeze.0, cgroup.freeze.1).expect("it freezes");
    wait_for("the freezer", || {
        let text = fs::read_to_string(cgroup.folder.join(cgroup.frozen.0)).expect("its state");
        text.contains(cgroup.frozen.1)
    });
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = self.write(self.freeze.0, self.freeze.2);
        // A process that was killed leaves it a moment later.
        for _ in 0..500 {
            if fs::remove_dir(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn a_frozen_program_is_named_soon() {
    const TEST: &str = "a_frozen_program_is_named_soon";
    if !is_root() {
        return skip(TEST, "it needs root");
    }
    let cgroups = Cgroup::make_all();
    if cgroups.is_empty() {
        return skip(TEST, "no cgroup can be made");
    }
    let dir = disk_dir();
    for cgroup in &cgroups {
        let reason = format!("its cgroup is frozen ({})", cgroup.folder.display());
        for kind in ["spin", "full"] {
            let process = start(dir.path(), kind);
            if kind == "full" {
                wait_for_write(&process); // such a call does not end while the program is frozen
            }
            freeze(cgroup, &process);
            assert_refused(dir.path(), &flush(dir.path(), &process), &reason);
            cgroup.write(cgroup.freeze.0, cgroup.freeze.2).expect("it thaws");
        }
    }
}
