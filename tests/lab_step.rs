//! `weir lab NAME --step` with and without a terminal of 80 columns and 24 rows, and `--predict` with a pipe as input.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{disk_dir, has, run, skip, text, weir};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// weir on a pseudo-terminal.
struct Terminal {
    master: File,
    slave: OwnedFd,
    child: Child,
    /// All bytes that weir wrote since the last key.
    output: Vec<u8>,
    _dir: tempfile::TempDir,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("the slave");
        let size = Winsize { ws_row: ROWS as u16, ws_col: COLUMNS as u16, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("a size");
        let dir = disk_dir();
        let end = || Stdio::from(slave.try_clone().expect("dup"));
        let mut command = weir(dir.path(), arguments);
        command.env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("weir starts");
        Terminal { master: master.into(), slave, child, output: Vec::new(), _dir: dir }
    }

    /// Presses keys, waits until the screen contains `words`, and returns the screen.
    fn press(&mut self, keys: &str, words: &str) -> String {
        self.output.clear();
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
        let start = Instant::now();
        loop {
            let screen = self.screen();
            // weir draws the last line last.
            if screen.contains(words) && screen.contains("q quit") {
                return screen;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{words} is not on the screen:\n{screen}");
            self.read();
        }
    }

    fn read(&mut self) {
        let mut files = [PollFd::new(&self.master, PollFlags::IN)];
        let time = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut files, Some(&time)).expect("poll") > 0 {
            let mut bytes = [0; 65_536];
            let count = self.master.read(&mut bytes).expect("the terminal");
            self.output.extend(&bytes[..count]);
        }
    }

    /// Returns the last frame that weir drew: every frame begins with the cursor at the upper left.
    fn screen(&self) -> String {
        let output = text(&self.output);
        let last = output.rsplit("\x1b[H").next().unwrap_or("");
        last.replace("\x1b[K", "").replace("\x1b[J", "").replace('\r', "")
    }

    /// Waits until weir ends and returns its status, and true if weir restored the terminal.
    fn end(mut self) -> (Option<i32>, bool) {
        let start = Instant::now();
        while self.child.try_wait().expect("wait").is_none() {
            assert!(start.elapsed() < Duration::from_secs(20), "weir does not end");
            self.read();
        }
        self.read();
        let modes = tcgetattr(&self.slave).expect("the terminal").local_modes;
        let left = text(&self.output).contains("\x1b[?1049l") && text(&self.output).contains("\x1b[?25h");
        let status = self.child.wait().expect("wait").code();
        (status, left && modes.contains(LocalModes::ICANON | LocalModes::ECHO))
    }
}

fn assert_fits(screen: &str) {
    let lines: Vec<&str> = screen.split('\n').collect();
    assert_eq!(lines.len(), ROWS, "{screen}");
    assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{screen}");
}

#[test]
fn the_steps_of_a_fork_fit_a_small_terminal() {
    if !has("cc") {
        return skip("the_steps_of_a_fork_fit_a_small_terminal", "no C compiler");
    }
    let mut terminal = Terminal::start(&["lab", "doubled-at-fork", "--step"]);
    assert_fits(&terminal.press("", "step 1 of "));
    let put = terminal.press("n", "step 2 of ");
    assert!(put.contains("into the buffer of stdout") && put.contains("No system call"), "{put}");
    let fork = terminal.press("\x1b[C", "step 3 of ");
    assert_fits(&fork);
    assert!(
        fork.contains("calls fork") && fork.contains("pending bytes are in both processes now"),
        "{fork}"
    );
    let row = fork.lines().find(|line| line.contains("buffered in")).expect("the buffers");
    assert_eq!(row.matches("buffered in").count(), 2, "a buffer in each process: {fork}");
    assert!(fork.contains("file: 0 B, 0 lines"), "{fork}");
    assert!(terminal.press("p", "step 2 of ").contains("No system call"));
    let end = terminal.press("\x1b[F", "All processes have ended");
    assert_fits(&end);
    assert!(end.contains("file has 4 lines") && end.contains("is there more than once"), "{end}");
    assert_eq!(end.lines().filter(|line| line.starts_with("│ buffered in")).count(), 2, "{end}");
    assert_eq!(end.lines().filter(|line| line.starts_with("│ after in")).count(), 2, "{end}");
    assert!(terminal.press("\x1b[H", "step 1 of ").contains("broken begins"));
    assert!(terminal.press("?", "Fix: fflush(stdout) before fork").contains("step 1 of "));
    terminal.press(" ", "step 1 of ");
    terminal.master.write_all(b"q").expect("the terminal takes keys");
    assert_eq!(terminal.end(), (Some(0), true));
}

#[test]
fn a_signal_restores_the_terminal() {
    if !has("cc") {
        return skip("a_signal_restores_the_terminal", "no C compiler");
    }
    let mut terminal = Terminal::start(&["lab", "doubled-at-fork", "--step"]);
    terminal.press("", "step 1 of ");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("kill");
    assert_eq!(terminal.end(), (Some(130), true));
}

#[test]
fn without_a_terminal_all_steps_are_printed() {
    if !has("cc") {
        return skip("without_a_terminal_all_steps_are_printed", "no C compiler");
    }
    let dir = disk_dir();
    let broken = run(dir.path(), &["lab", "doubled-at-fork", "--step"]);
    let shown = text(&broken.stdout);
    assert!(broken.status.success(), "{}", text(&broken.stderr));
    assert!(!shown.contains('\u{1b}') && shown.contains("step 1 of "), "{shown}");
    assert_eq!(shown.matches("exit flushes its buffers").count(), 2, "{shown}");
    assert!(shown.contains("file has 4 lines"), "{shown}");
    let fixed = text(&run(dir.path(), &["lab", "doubled-at-fork", "--step", "--fixed"]).stdout);
    assert!(fixed.contains("file has 3 lines") && fixed.contains("No bytes were pending"), "{fixed}");
}

#[test]
fn a_prediction_is_compared_with_the_outcome() {
    if !has("cc") || !has("script") {
        return skip("a_prediction_is_compared_with_the_outcome", "no C compiler, or no script(1)");
    }
    let dir = disk_dir();
    let mut command = weir(dir.path(), &["lab", "doubled-at-fork", "--predict"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"3 lines\n5\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("on a terminal?") && shown.contains("in a file?"), "{shown}");
    assert!(
        shown.contains("you said")
            && shown.contains("expected")
            && shown.contains("3 lines ✓")
            && shown.contains("5 ✗"),
        "{shown}"
    );
    let wrong = run(dir.path(), &["lab", "all", "--predict"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("name it"), "{}", text(&wrong.stderr));
}
