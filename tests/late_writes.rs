//! For a process of another user, a thread of that process makes weir's write. If its file does not answer, weir does
//! not wait for ever: other processes go on, the process gets its registers back when the write returns, and no byte is
//! written twice.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use common::programs::compile_c;
use common::{disk_dir, has, is_root, skip, text, wait_for, weir};

/// The time after which a test fails instead of waiting on, as in [`wait_for`].
const LIMIT: Duration = Duration::from_secs(90);

/// A file system on a loop device whose writes block until it is thawed.
struct FrozenFileSystem {
    dir: tempfile::TempDir,
    is_frozen: bool,
}

impl FrozenFileSystem {
    /// Mounts a file system, and builds the program. Returns None if this machine does not permit it.
    fn mount(test: &str) -> Option<FrozenFileSystem> {
        if !is_root() || !["mkfs.ext4", "fsfreeze", "mount", "gcc"].into_iter().all(has) {
            skip(test, "it needs root, mkfs.ext4, fsfreeze, mount and gcc");
            return None;
        }
        let system = FrozenFileSystem { dir: disk_dir(), is_frozen: false };
        assert!(compile_c("peek_flush/late", &[], system.dir.path()), "gcc builds its program");
        std::fs::create_dir(system.path("mount")).expect("a directory");
        let image = std::fs::File::create(system.path("image")).expect("a file");
        image.set_len(16 << 20).expect("its size");
        let make = Command::new("mkfs.ext4").arg("-q").arg(system.path("image")).status();
        let mount = || {
            Command::new("mount")
                .args(["-o", "loop"])
                .args([system.path("image"), system.path("mount")])
                .status()
        };
        if !make.is_ok_and(|status| status.success()) || !mount().is_ok_and(|status| status.success()) {
            skip(test, "no loop device can be mounted");
            return None;
        }
        Some(system)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn freeze(&mut self) {
        self.is_frozen = true;
        assert!(
            Command::new("fsfreeze").arg("-f").arg(self.path("mount")).status().expect("fsfreeze").success()
        );
    }

    fn thaw(&mut self) {
        self.is_frozen = false;
        let thaw = Command::new("fsfreeze").arg("-u").arg(self.path("mount")).status();
        thaw.expect("fsfreeze");
    }
}

impl Drop for FrozenFileSystem {
    fn drop(&mut self) {
        if self.is_frozen {
            self.thaw();
        }
        let _mounted =
            Command::new("umount").arg("-l").arg(self.path("mount")).stderr(Stdio::null()).status();
    }
}

/// A program that writes, or weir with it. A drop kills it, but does not wait: its write may block.
struct Program {
    child: Child,
    input: ChildStdin,
    /// The lines of its standard output, which a thread reads.
    lines: Receiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Program {
        let mut child: Child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let all = BufReader::new(output).lines().map_while(Result::ok);
            all.for_each(|line| drop(sender.send(line)));
        });
        let program = Program { child, input, lines };
        program.expect_line("ready");
        program
    }

    fn expect_line(&self, expected: &str) {
        assert_eq!(self.lines.recv_timeout(LIMIT).as_deref(), Ok(expected));
    }

    fn send_line(&mut self) {
        self.input.write_all(b"\n").expect("it reads");
    }

    /// Waits for the end. Returns the status and the errors.
    fn end(mut self) -> (Option<i32>, String) {
        let child = &mut self.child;
        wait_for("the end of the program", || child.try_wait().expect("its status").is_some());
        let status = child.wait().expect("its status").code();
        let (errors, (sender, received)) = (child.stderr.take().expect("a pipe"), mpsc::channel());
        // A process that has inherited the pipe keeps it open.
        thread::spawn(move || drop(sender.send(std::io::read_to_string(errors))));
        (status, received.recv_timeout(LIMIT).expect("the end of the errors").expect("text"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
    }
}

/// Returns the text of /proc/PID/status; empty if the process has ended.
fn proc_status(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// Returns the processes of this name among the descendants of a process.
fn descendants_named(pid: u32, name: &str) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let is_named = |child: &u32| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    children
        .flat_map(|child: u32| [vec![child], descendants_named(child, name)].concat())
        .filter(is_named)
        .collect()
}

#[test]
fn run_goes_on_with_the_others() {
    let Some(mut system) = FrozenFileSystem::mount("run_goes_on_with_the_others") else { return };
    let [late, other] = [system.path("mount/late"), system.path("other")];
    let (late_name, other_name) = (late.display().to_string(), other.display().to_string());
    // The first program reads weir's standard input, the second one the FIFO. The shell's status is that of the first.
    let script = "./late $0 65534 <&3 & late=$!; ./late $1 65534 >/dev/null <fifo & wait $late";
    let fifo = system.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let mut command = weir(
        system.dir.path(),
        &[
            "run",
            "--max-delay",
            "20ms",
            "--",
            "sh",
            "-c",
            &format!("exec 3<&0; {script}"),
            &late_name,
            &other_name,
        ],
    );
    let mut program = Program::start(command.current_dir(system.dir.path()));
    let mut other_input = std::fs::File::options().write(true).open(&fifo).expect("the other one reads");
    system.freeze();
    program.send_line();
    program.expect_line("pending");
    let weir_pid = program.child.id();
    let blocks = |pid: &u32| proc_status(*pid).contains("State:\tD");
    wait_for("the write blocks", || descendants_named(weir_pid, "late").iter().any(blocks));
    other_input.write_all(b"\n").expect("it reads");
    wait_for("the other bytes are written", || std::fs::read(&other).is_ok_and(|bytes| bytes == b"first "));
    assert!(descendants_named(weir_pid, "late").iter().any(blocks), "the first write blocks still");
    system.thaw();
    other_input.write_all(b"\n").expect("it reads");
    program.send_line();
    let (status, errors) = program.end();
    assert_eq!(status, Some(7), "{errors}");
    let flat = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("returned late from a write to descriptor"), "{errors}");
    assert!(flat.contains("that it made for weir: all 6 bytes are written"), "{errors}");
    for file in [&late, &other] {
        assert_eq!(text(&std::fs::read(file).expect("its file")), "first second");
    }
}

#[test]
fn flush_leaves_no_thread_stopped() {
    let Some(mut system) = FrozenFileSystem::mount("flush_leaves_no_thread_stopped") else { return };
    let file = system.path("mount/late");
    let mut program = Program::start(Command::new(system.path("late")).arg(&file).arg("65534"));
    system.freeze();
    program.send_line();
    program.expect_line("pending");
    let pid = program.child.id();
    let weir = weir(system.dir.path(), &["flush", &pid.to_string()]);
    let mut command = Command::new("timeout");
    let output = command
        .args(["-s", "KILL", "60"])
        .arg(weir.get_program())
        .args(weir.get_args())
        .output()
        .expect("weir");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let flat = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("does not return from a write of its pending bytes"), "{errors}");
    assert!(!proc_status(pid).contains("State:\tt"), "no thread is stopped: {}", proc_status(pid));
    system.thaw();
    wait_for("the process is free", || proc_status(pid).contains("TracerPid:\t0"));
    program.send_line();
    assert_eq!(program.end().0, Some(7));
    assert_eq!(text(&std::fs::read(&file).expect("its file")), "first second");
}
