//! A program under weir, weir's death, and how the program then ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::{text, weir};

/// The exit status of the program.
const STATUS: i32 = 7;
/// Far more than the program needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Marks the environment of weir and of all that it starts.
const MARK: &str = "WEIR_KILLED_RUN";

/// How the program has ended.
#[derive(Debug)]
pub enum Outcome {
    /// With its own output and status, or it had not begun.
    AsAlone { begun: bool, weir_had_ended: bool },
    /// Some of its bytes came twice, none is missing.
    Doubled,
    /// Its output or its status is another one.
    Lost(String),
    /// A process or a file stays.
    LeftBehind(String),
}

/// weir, and the program that it starts or attaches to.
pub struct Victim {
    dir: PathBuf,
    mark: String,
    weir: Child,
    /// The program, if weir did not start it.
    own: Option<Child>,
}

/// Lets the orphans of killed parents become children of this process, which can then wait for them.
pub fn adopt_orphans() {
    // SAFETY: the call has no pointers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }, 0);
}

fn expected() -> String {
    (0..60).map(|line| format!("line {line} of steady\n")).collect()
}

impl Victim {
    /// Compiles steady.c, which all verbs get.
    pub fn build(dir: &Path) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kills/steady.c");
        let mut compiler = Command::new("gcc");
        compiler
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .arg(dir.join("steady"))
            .arg(source);
        assert!(compiler.status().is_ok_and(|status| status.success()), "gcc builds steady.c");
    }

    /// Starts weir with the program, or with the PID of a program that waits.
    pub fn start(dir: &Path, words: &[&str], attaches: bool) -> Victim {
        for name in ["pid", "ready", "out", "thread.out", "weir.out"] {
            let _absent = fs::remove_file(dir.join(name));
        }
        fs::create_dir_all(dir.join("tmp")).expect("a directory");
        let own = attaches.then(|| start_waiting(dir));
        let program = dir.join("steady").display().to_string();
        let last = own.as_ref().map_or(program, |own| own.id().to_string());
        let mut command = weir(dir, words);
        let mark = format!("{}-{:?}", std::process::id(), Instant::now());
        command.arg(last).env(MARK, &mark).env("TMPDIR", dir.join("tmp"));
        command.stdin(Stdio::null()).stderr(fs::File::create(dir.join("weir.out")).expect("a file"));
        let out = if attaches { "/dev/null".into() } else { dir.join("out") };
        command.stdout(fs::File::create(out).expect("a file"));
        let weir = crate::common::with_signals(&mut command).spawn().expect("weir starts");
        Victim { dir: dir.into(), mark, weir, own }
    }

    /// Kills weir, and lets the program end.
    pub fn kill_weir_and_end(mut self) -> Outcome {
        self.weir.kill().expect("a signal");
        self.end()
    }

    /// Waits for the end of weir and of the program.
    pub fn end(mut self) -> Outcome {
        let own = self.own.take();
        if let Some(mut own) = own {
            let killed = self.wait_for_weir(own.stdin.is_some());
            drop(own.stdin.take());
            return self.judge(killed, wait(&mut own, LIMIT));
        }
        let by_weir = self.wait_for_weir(false);
        let status = match by_weir.signal() {
            Some(libc::SIGKILL) => None,
            _ => Some(by_weir),
        };
        let began = Instant::now();
        while let Some(left) = marked(&self.mark).first() {
            if began.elapsed() > LIMIT {
                let what = describe(*left);
                marked(&self.mark).into_iter().for_each(kill);
                return Outcome::LeftBehind(what);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = status.or_else(|| self.reap_program());
        self.judge(by_weir, status)
    }

    /// An attached weir that observes until the program ends must not be waited for.
    fn wait_for_weir(&mut self, program_waits: bool) -> ExitStatus {
        if !program_waits {
            return self.weir.wait().expect("its status");
        }
        let words = fs::read_to_string(format!("/proc/{}/cmdline", self.weir.id())).unwrap_or_default();
        if words.contains("\0trace\0") {
            // Not killed: ends as after Ctrl-C.
            std::thread::sleep(Duration::from_millis(300));
            // SAFETY: a signal to a child that has not been reaped.
            unsafe { libc::kill(self.weir.id() as i32, libc::SIGINT) };
        }
        self.weir.wait().expect("its status")
    }

    /// Returns the status of the program that weir had started; None if it never began, or weir has reaped it.
    fn reap_program(&self) -> Option<ExitStatus> {
        let pid: i32 = fs::read_to_string(self.dir.join("pid")).ok()?.trim().parse().ok()?;
        let mut status = 0;
        let began = Instant::now();
        loop {
            // SAFETY: the call fills `status`.
            match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
                0 if began.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(1)),
                found if found == pid => return Some(ExitStatus::from_raw(status)),
                _ => return None,
            }
        }
    }

    fn judge(&self, weir: ExitStatus, status: Option<ExitStatus>) -> Outcome {
        reap_others();
        let read = |name: &str| fs::read(self.dir.join(name)).map(|bytes| text(&bytes)).unwrap_or_default();
        let begun = !read("pid").is_empty();
        let weir_had_ended = weir.signal() != Some(libc::SIGKILL);
        let (out, temporary) = (read("out"), crate::common::names(&self.dir.join("tmp")));
        if !temporary.is_empty() {
            return Outcome::LeftBehind(format!("temporary files {temporary:?}"));
        }
        if !begun {
            return match out.is_empty() && !weir_had_ended {
                true => Outcome::AsAlone { begun, weir_had_ended },
                false => Outcome::Lost(format!("it never began; weir: {weir}: {}", read("weir.out"))),
            };
        }
        let code = status.map(|status| (status.code(), status.signal()));
        if code.is_some_and(|code| code != (Some(STATUS), None)) {
            return Outcome::Lost(format!("status {code:?} after {weir}: {}", read("weir.out")));
        }
        if self.own.is_none()
            && self.dir.join("thread.out").exists()
            && read("thread.out") != "t\n".repeat(20)
        {
            return Outcome::Lost(format!("its thread wrote {:?}", read("thread.out")));
        }
        match out == expected() {
            true => Outcome::AsAlone { begun, weir_had_ended },
            false if has_all(&out) => Outcome::Doubled,
            false => Outcome::Lost(format!("status {code:?}, output {out:?}")),
        }
    }
}

/// Returns whether the output is the expected one with parts of it repeated: each piece continues the text, or goes back.
fn has_all(out: &str) -> bool {
    let (text, out) = (expected().into_bytes(), out.as_bytes());
    // The positions in the text at which the output can stand now.
    let mut positions: std::collections::BTreeSet<usize> = [0].into();
    let mut reached = 0;
    for byte in out {
        let fits = |at: &usize| text.get(*at) == Some(byte);
        let going_on: std::collections::BTreeSet<usize> =
            positions.iter().copied().filter(fits).map(|at| at + 1).collect();
        positions = match going_on.is_empty() {
            // It goes back, anywhere before what it has reached.
            true => (0..reached).filter(fits).map(|at| at + 1).collect(),
            false => going_on,
        };
        let Some(&furthest) = positions.last() else { return false };
        reached = reached.max(furthest.min(reached + 1));
    }
    reached == text.len()
}

fn start_waiting(dir: &Path) -> Child {
    let mut command = Command::new(dir.join("steady"));
    let out = fs::File::create(dir.join("out")).expect("a file");
    let child =
        command.arg("wait").current_dir(dir).stdin(Stdio::piped()).stdout(out).spawn().expect("it starts");
    crate::common::wait_for("the program", || dir.join("ready").exists());
    child
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        match child.try_wait().expect("its status") {
            Some(status) => return Some(status),
            None if began.elapsed() > limit => {
                let _gone = child.kill();
                return child.wait().ok();
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Returns the processes whose environment has the mark.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let numbers = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == wanted)
    };
    numbers.filter(has).collect()
}

fn describe(pid: u32) -> String {
    let read =
        |name: &str| fs::read(format!("/proc/{pid}/{name}")).map(|bytes| text(&bytes)).unwrap_or_default();
    let status: Vec<String> = read("status").lines().take(12).map(String::from).collect();
    format!("process {pid}: {:?} {} {status:?}", read("cmdline"), read("wchan"))
}

fn kill(pid: u32) {
    // SAFETY: a signal to a process that this test has started.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

/// Reaps orphans that have ended: helpers of weir.
fn reap_others() {
    // SAFETY: the status is not wanted.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}
