//! A process hangs in execve(2), which holds a lock while the kernel closes a file whose server never answers. Reads of most of its
//! files in /proc wait for that lock for ever. weir says so, ends, and shows other processes.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::limited::limited;
use common::silent_directory::{prepared, server};
use common::{is_root, skip, text, wait_for};

/// Opens a file of the mount with the close-on-exec flag, lets the server fall silent about closes, and executes sleep(1).
/// The other process writes to its standard input.
const STUCK: &str = "import os, signal, time\n\
    os.open('mount/file', os.O_RDWR | os.O_CREAT)\n\
    while not os.path.exists('go'): time.sleep(0.01)\n\
    os.kill(int(open('server').read()), signal.SIGUSR2)\n\
    time.sleep(0.3)\n\
    os.execvp('sleep', ['sleep', '1000'])\n";

/// Has pending bytes for the pipe that the stuck process reads.
const OTHER: &str = "import sys, time\n\
    sys.stdout.buffer.write(b'pending bytes')\n\
    print('ready', file=sys.stderr, flush=True)\n\
    time.sleep(1000)\n";

/// The stuck process and its server, and another process of the test.
struct Stuck {
    dir: tempfile::TempDir,
    process: Child,
    other: Child,
}

impl Stuck {
    /// Starts the processes; None if this machine does not permit it.
    fn start(test: &str) -> Option<Stuck> {
        let dir = prepared(test)?;
        let path = dir.path();
        let mut command = Command::new(path.join("silent_directory"));
        command.args(["mount", "backing", "python3", "-c", STUCK]).current_dir(path).process_group(0);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let pipe = process.stdin.take().expect("a pipe");
        let mut other = Command::new("python3");
        other
            .env_remove("PYTHONUNBUFFERED")
            .args(["-c", OTHER])
            .stdout(pipe)
            .stderr(Stdio::piped())
            .current_dir(path);
        let mut stuck = Stuck { process, other: other.spawn().expect("python3 starts"), dir };
        let mut ready = [0; 6];
        let errors = stuck.other.stderr.as_mut().expect("a pipe");
        errors.read_exact(&mut ready).expect("a line");
        let mut has_ended = false;
        wait_for("the file is open", || {
            has_ended = stuck.process.try_wait().expect("a child").is_some();
            has_ended || stuck.dir.path().join("backing/file").exists()
        });
        if has_ended {
            skip(test, "FUSE in a user namespace is not permitted");
            return None;
        }
        fs::write(stuck.dir.path().join("go"), "").expect("a file");
        // The exec has begun when the kernel has given up the old memory, with the arguments in it.
        let arguments = format!("/proc/{}/cmdline", stuck.process.id());
        wait_for("it executes", || !fs::read_to_string(&arguments).expect("a file").contains("python3"));
        if Stuck::answers(stuck.process.id()) {
            skip(test, "this kernel reads /proc/PID/stat without the lock of execve(2)");
            return None;
        }
        Some(stuck)
    }

    /// Returns whether cat(1) can read the file in 2 s.
    fn answers(pid: u32) -> bool {
        let stat = format!("/proc/{pid}/stat");
        let status =
            Command::new("timeout").args(["-s", "KILL", "2", "cat", &stat]).stdout(Stdio::null()).status();
        status.expect("timeout(1)").success()
    }

    /// Runs weir until it ends. Returns its exit status, and its output as one line.
    fn weir(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = limited(self.dir.path(), arguments).output().expect("timeout(1)");
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 126), "{arguments:?} hangs: {said}");
        (output.status.code(), said.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Drop for Stuck {
    /// The end of the server lets the process go on.
    fn drop(&mut self) {
        let server = server(self.dir.path()).unwrap_or_default();
        let _ended = Command::new("kill").args(["-s", "KILL", &server]).status();
        for process in [&mut self.process, &mut self.other] {
            let _killed = process.kill();
            let _reaped = process.wait();
        }
    }
}

/// Returns a lock: these tests must not see the unresponsive processes of each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_process_that_hangs_in_execve_is_reported() {
    let _alone = alone();
    let Some(stuck) = Stuck::start("a_process_that_hangs_in_execve_is_reported") else { return };
    let [pid, other] = [stuck.process.id(), stuck.other.id()].map(|pid| pid.to_string());
    let sentence = format!("process {pid} (python3) does not answer: a read of /proc/{pid}/stat blocks");
    for verb in ["peek", "flush"] {
        let (status, said) = stuck.weir(&[verb, &pid, &other]);
        assert_eq!(status, Some(1), "{verb}: {said}");
        assert!(said.contains(&sentence) && said.contains("13 B"), "{verb}: {said}");
        assert!(said.contains(&format!("({other})")), "{verb} shows the other process: {said}");
    }
    let engines: &[&str] = if is_root() { &["ptrace", "ebpf", "sample"] } else { &["ptrace", "sample"] };
    let trace =
        |engine: &str, pid: &str| stuck.weir(&["trace", "--engine", engine, "--time", "200ms", "--pid", pid]);
    let is_refused = &|engine: &str| {
        let (status, said) = trace(engine, &pid);
        assert!(status == Some(125) && said.contains(&sentence), "{engine}: {status:?} {said}");
    };
    std::thread::scope(|threads| {
        for engine in engines {
            threads.spawn(move || is_refused(engine));
        }
        threads.spawn(|| top_shows_both(&stuck, &pid, &other));
    });
    for engine in engines {
        let (status, said) = trace(engine, &other);
        assert_eq!(status, Some(0), "{engine}: {said}");
    }
    // The test itself is the parent of the process.
    let parent = std::process::id().to_string();
    let (status, said) = stuck.weir(&["trace", "--engine", "sample", "--time", "4s", "--pid", &parent]);
    assert!(status == Some(0) && said.contains(&sentence), "a child of the process: {status:?} {said}");
    let (status, said) = stuck.weir(&["run", "--", "true"]);
    assert_eq!(status, Some(0), "{said}");
}

fn top_shows_both(stuck: &Stuck, pid: &str, other: &str) {
    let (status, said) = stuck.weir(&["top", "--once", "-i", "200ms", "--filter", "python3"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(&format!("python3 {pid}")) && said.contains("did not answer"), "{said}");
    let processes = format!("{pid},{other}");
    let (status, said) =
        stuck.weir(&["top", "--once", "-i", "200ms", "-q", "--json", "-", "--pid", &processes]);
    assert_eq!(status, Some(0), "{said}");
    let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let unanswered = |id: &str| {
        let mut all = document["processes"].as_array().expect("a list").iter();
        all.find(|one| one["pid"].as_u64() == id.parse().ok()).expect("the process")["unanswered"].clone()
    };
    assert_eq!((unanswered(pid), unanswered(other)), (true.into(), false.into()), "{said}");
}

/// A weir whose command hangs in execve(2). Drop kills weir, the command and the server.
struct Supervised {
    dir: tempfile::TempDir,
    weir: Child,
    /// The process that hangs in execve(2).
    command: String,
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let server = server(self.dir.path()).unwrap_or_default();
        // The end of the server lets the command go on, to its end.
        for pid in [&self.command, &server].into_iter().filter(|pid| !pid.is_empty()) {
            let _ended = Command::new("kill").args(["-s", "KILL", pid]).status();
        }
        let _killed = self.weir.kill();
        let _reaped = self.weir.wait();
    }
}

impl Supervised {
    /// Starts weir with these words and a command that hangs in execve(2); None if this machine does not permit it.
    fn start(test: &str, words: &[&str]) -> Option<Supervised> {
        let dir = prepared(test)?;
        let path = dir.path().to_path_buf();
        let mut weir = common::weir(&path, words);
        weir.args(["--", "./silent_directory", "mount", "backing", "python3", "-c", STUCK]);
        common::with_signals(&mut weir).stdin(Stdio::null());
        // A pipe would have no end while the command hangs.
        weir.stderr(fs::File::create(path.join("errors")).expect("a file"));
        let weir = weir.spawn().expect("weir starts");
        let mut one = Supervised { dir, weir, command: String::new() };
        let mut has_ended = false;
        wait_for("the file is open", || {
            has_ended = one.weir.try_wait().expect("a child").is_some();
            has_ended || path.join("backing/file").exists()
        });
        if has_ended {
            skip(test, "FUSE in a user namespace is not permitted");
            return None;
        }
        one.command = number(&server(&path).expect("its server"), "PPid:").to_string();
        fs::write(path.join("go"), "").expect("a file");
        let arguments = format!("/proc/{}/cmdline", one.command);
        wait_for("it executes", || !fs::read_to_string(&arguments).expect("a file").contains("python3"));
        Some(one)
    }

    fn said(&self) -> String {
        fs::read_to_string(self.dir.path().join("errors")).expect("text")
    }

    fn signal(&self, name: &str) {
        let pid = self.weir.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().expect("kill").success());
    }

    /// Returns whether a signal is pending for the command.
    fn is_signalled(&self) -> bool {
        ["SigPnd:", "ShdPnd:"].map(|name| number(&self.command, name)) != [0, 0]
    }

    /// Asserts that weir passes on a signal, and ends at the second one in time and with its number.
    fn assert_second_signal_ends_weir(mut self, words: &[&str], name: &str, number: i32) {
        self.signal(name);
        let limit = Instant::now() + Duration::from_secs(10);
        while !self.is_signalled() {
            assert!(Instant::now() < limit, "{words:?}: {name} is not passed on: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(name);
        let began = Instant::now();
        let mut status = None;
        while status.is_none() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
            status = self.weir.try_wait().expect("a child");
        }
        let took = began.elapsed();
        let said = self.said();
        assert_eq!(status.and_then(|status| status.code()), Some(128 + number), "{words:?} {took:?}: {said}");
        // weir needs less than 2 s on a machine that does nothing else; without its limits it needs 18 s.
        assert!(took < Duration::from_secs(10), "{words:?} took {took:?}: {said}");
        let name = format!("process {} (python3)", self.command);
        // On a busy machine execve(2) can begin between weir's check of the process and its read of /proc, which then blocks.
        let blocks = said.contains(&format!("{name} does not answer"))
            || said.contains("does not return; weir detaches");
        assert!(said.contains(&format!("{name} sleeps in the kernel")) || blocks, "{words:?}: {said}");
    }
}

/// Returns the number in a line of /proc/PID/status: the masks of signals are hexadecimal.
fn number(pid: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let value = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim();
    u64::from_str_radix(value, if name == "PPid:" { 10 } else { 16 }).expect("a number")
}

/// The options of verbs that have a command.
fn verbs() -> Vec<Vec<&'static str>> {
    let engines: &[&str] = if is_root() { &["ptrace", "ebpf", "sample"] } else { &["ptrace", "sample"] };
    let traces = engines.iter().map(|engine| vec!["trace", "--engine", engine]);
    let runs = ["--max-delay=20ms", "--rescue", "--coalesce", "--fix-fork", "--pty"];
    let runs = runs.iter().map(|option| vec!["run", option]);
    traces.chain(runs).chain([vec!["run", "-oL", "--json", "run.json"]]).collect()
}

#[test]
fn a_command_that_hangs_in_execve_does_not_keep_weir() {
    let _alone = alone();
    let test = "a_command_that_hangs_in_execve_does_not_keep_weir";
    let signals = [("TERM", 15), ("INT", 2)];
    let cases: Vec<_> = verbs().into_iter().zip(signals.into_iter().cycle()).collect();
    let check = |(words, (name, number)): &(Vec<&str>, (&str, i32))| {
        if let Some(one) = Supervised::start(test, words) {
            one.assert_second_signal_ends_weir(words, name, *number);
        }
    };
    let check = &check;
    std::thread::scope(|threads| {
        for some in cases.chunks(3) {
            threads.spawn(move || some.iter().for_each(check));
        }
    });
}

#[test]
fn a_trace_of_a_command_that_hangs_in_execve_goes_on() {
    let _alone = alone();
    let test = "a_trace_of_a_command_that_hangs_in_execve_goes_on";
    let engines: &[&str] = if is_root() { &["ptrace", "ebpf"] } else { &["ptrace"] };
    let goes_on = |engine: &str| {
        // On a busy machine execve(2) can begin between weir's check of the process and its read of /proc, which then blocks.
        let mut said = String::new();
        let has_report = (0..4).any(|_| {
            let Some(mut one) = Supervised::start(test, &["trace", "--time", "10s", "--engine", engine])
            else {
                return true;
            };
            wait_for("a sentence", || {
                said = one.said().split_whitespace().collect::<Vec<_>>().join(" ");
                said.contains("weir detached.") || said.contains("no further result")
            });
            wait_for("the whole report", || {
                said.contains("no further result") || one.weir.try_wait().expect("a child").is_some()
            });
            said = one.said().split_whitespace().collect::<Vec<_>>().join(" ");
            said.contains(&format!("process {} (python3) does not answer", one.command))
                && said.contains("weir detached.")
        });
        assert!(has_report, "{engine}: {said}");
    };
    let goes_on = &goes_on;
    std::thread::scope(|threads| {
        for engine in engines {
            threads.spawn(move || goes_on(engine));
        }
    });
}
