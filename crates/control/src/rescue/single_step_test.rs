//! A program is stopped before every instruction around its flushes, and at each of them what it has written and what
//! a rescue would write are all that it had printed, once and in order.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_sys::launch;
use weir_sys::ptrace::{self, registers};

use super::{last_write, replay};
use crate::supervise::event_loop::Supervisor;
use crate::supervise::tracees::ThreadState;

/// What the program's output goes through, and how it is told how far it came.
struct Subject {
    run: Supervisor,
    pid: u32,
    output: File,
    counter: File,
    /// All that came through the pipe.
    written: Vec<u8>,
    /// All that it prints, and where its lines end.
    expected: Vec<u8>,
    ends: Vec<usize>,
    bad: BTreeMap<String, u64>,
    first_bad: Vec<String>,
    steps: u64,
    /// Of the instructions, so many are passed over for one at which it is checked.
    every: u64,
}

/// Of so many lines that are `longer` by so much.
fn text(same: bool, lines: &[(usize, usize)]) -> (Vec<u8>, Vec<usize>) {
    let (mut text, mut ends) = (Vec::new(), vec![0]);
    for longer in lines.iter().flat_map(|(count, longer)| std::iter::repeat_n(longer, *count)) {
        let line = if same {
            "a line\n".to_string()
        } else {
            format!("{} {}\n", ends.len() - 1, "x".repeat(*longer))
        };
        text.extend(line.into_bytes());
        ends.push(text.len());
    }
    (text, ends)
}

impl Subject {
    /// `command` has its output in `output`, a file or a pipe with a name.
    fn start(
        command: Vec<OsString>,
        folder: &Path,
        to_pipe: bool,
        (expected, ends): (Vec<u8>, Vec<usize>),
    ) -> Subject {
        let (counter, path) = (folder.join("counter"), folder.join("output"));
        std::fs::write(&counter, [0; 8]).expect("the counter");
        match to_pipe {
            true => assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success()),
            false => std::fs::write(&path, []).expect("the output"),
        }
        let mut options = File::options();
        let output = options.read(true).custom_flags(libc::O_NONBLOCK).open(&path).expect("the output");
        let mut words: Vec<OsString> = ["sh", "-c", "exec \"$@\" > \"$0\""].map(OsString::from).to_vec();
        words.push(path.into());
        words.extend(command);
        let gated = launch::start(&words).expect("it starts");
        let pid = gated.pid;
        let mut run = Supervisor::new(gated.pid, Vec::new(), None).expect("a world");
        run.take(gated).expect("it is traced");
        let counter = File::open(counter).expect("the counter");
        Subject {
            run,
            pid,
            output,
            counter,
            written: Vec::new(),
            expected,
            ends,
            bad: BTreeMap::new(),
            first_bad: Vec::new(),
            steps: 0,

            every: 1,
        }
    }

    /// Runs to the next mark, at which it stands.
    fn run_to_mark(&mut self) {
        loop {
            let stop = ptrace::wait().expect("a stop").expect("no signal");
            assert!(libc::WIFSTOPPED(stop.status), "it ended: {:?}", stop);
            if is_mark(stop.status) {
                if let Some(thread) = self.run.world.threads.get_mut(&stop.tid) {
                    thread.state = ThreadState::Stopped;
                }
                return;
            }
            self.run.on_stop(stop);
        }
    }

    /// To the next instruction, or behind a system call. False: there is a mark.
    fn step(&mut self) -> bool {
        // SAFETY: lets a tracee that stands go on.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid as libc::pid_t, 0, 0) };
        let stop = ptrace::wait_for(self.pid).expect("a stop").expect("no signal");
        assert!(libc::WIFSTOPPED(stop.status), "it ended: {:?}", stop);
        self.steps += 1;
        let _empty = self.output.read_to_end(&mut self.written);
        !is_mark(stop.status)
    }

    /// What is wrong if it is killed now, with `fewer` bytes of what came through the pipe not written.
    fn check(&mut self, what: &str, fewer: usize) {
        let (pid, world) = (self.pid, &mut self.run.world);
        let pending = world.pending(pid, pid);
        if let Some(process) = world.processes.get_mut(&pid) {
            process.lasts = last_write::last(pid, None).into_iter().collect();
            process.torn = replay::KilledThread::of(pid).into_iter().collect();
            process.stacks = registers::stack(pid).into_iter().collect();
        }
        let missing = super::missing(world, pid, pid, pending);
        let mut rescued = self.written[..self.written.len() - fewer].to_vec();
        rescued.extend(missing.into_iter().filter(|one| one.1 == 1).flat_map(|one| one.2));
        let mut complete = [0; 8];
        self.counter.read_exact_at(&mut complete, 0).expect("the counter");
        let complete = u64::from_le_bytes(complete) as usize;
        let begins = self.expected.starts_with(&rescued);
        let [least, most] = [complete, complete + 1].map(|line| self.ends[line.min(self.ends.len() - 1)]);
        if begins && (least..=most).contains(&rescued.len()) {
            return;
        }
        let wrong = match rescued.len() {
            _ if !begins => "mixed",
            length if length < least => "lost",
            _ => "doubled",
        };
        let place = place(pid);
        *self.bad.entry(format!("{what}: {wrong}, {place}")).or_default() += 1;
        if self.first_bad.len() < 40 {
            let (there, at) = (rescued.len(), self.steps);
            self.first_bad.push(format!("step {at}, {what}: {wrong}: {there} of {least} to {most}, {place}"));
        }
    }

    /// The same for a write(2) that has just come back, were it killed inside.
    fn check_partly(&mut self) {
        let Some(call) = registers::call(self.pid) else { return };
        if matches!(call.number, libc::SYS_write | libc::SYS_writev) && call.args[0] == 1 && call.result > 0 {
            let whole = call.result;
            for part in [-libc::ENOSYS as i64, -512, -libc::EINTR as i64, 1, whole / 2, whole - 1] {
                show(self.pid, part);
                self.check("part of a write", (whole - part.max(0)) as usize);
            }
            show(self.pid, whole);
        }
    }

    /// Steps to the next mark; what was wrong.
    fn through(mut self) {
        self.run_to_mark();
        let _empty = self.output.read_to_end(&mut self.written);
        self.check("at the mark", 0);
        // A look at the clock there is begun anew when the time has moved on meanwhile.
        let clock = mapping(self.pid, |line| line.ends_with("[vdso]")).unwrap_or(0..0);
        while self.step() {
            if clock.contains(&all_registers(self.pid).rip) {
                continue;
            }
            if self.steps.is_multiple_of(self.every) {
                self.check("a step", 0);
            }
            self.check_partly();
            if let Some(call) = registers::call(self.pid) {
                // As it is when the thread is in its program again, and nothing of that has run.
                registers::answer(self.pid, &call.args, call.result);
                self.check("behind a call", 0);
            }
        }
        // SAFETY: ends a child.
        unsafe { libc::kill(self.pid as libc::pid_t, libc::SIGKILL) };
        while let Ok(Some(stop)) = ptrace::wait_for(self.pid) {
            if !libc::WIFSTOPPED(stop.status) {
                break;
            }
            ptrace::resume(self.pid, false, 0);
        }
        assert!(self.steps > 1000);
        let lines: Vec<String> = self.bad.iter().map(|(what, times)| format!("{times:6} {what}")).collect();
        assert!(self.bad.is_empty(), "first:\n{}\nall:\n{}", self.first_bad.join("\n"), lines.join("\n"));
    }
}

fn is_mark(status: i32) -> bool {
    libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGWINCH && status >> 16 == 0
}

fn all_registers(pid: u32) -> libc::user_regs_struct {
    ptrace::registers(pid).expect("a tracee that stands")
}

/// As if the call had come back with this.
fn show(pid: u32, result: i64) {
    let mut all = all_registers(pid);
    all.rax = result as u64;
    assert!(ptrace::set_registers(pid, &all), "a tracee that stands");
}

/// Which instruction of which file.
fn place(pid: u32) -> String {
    let at = all_registers(pid).rip;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let of = maps.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words.first()?.split_once('-')?;
        let inside = (number(start)..number(end)).contains(&at);
        let name = words.last()?.rsplit('/').next()?;
        inside.then(|| format!("{name}+{:x}", at - number(start) + number(words[2])))
    });
    of.unwrap_or_default()
}

/// Where a line of its map says that something is.
fn mapping(pid: u32, is: impl Fn(&str) -> bool) -> Option<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (start, end) = maps.lines().find(|line| is(line))?.split_whitespace().next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

fn through(command: Vec<OsString>, folder: &Path, to_pipe: bool, every: u64, text: (Vec<u8>, Vec<usize>)) {
    let mut subject = Subject::start(command, folder, to_pipe, text);
    subject.every = every;
    subject.through();
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// At each check the thread may have to be let live on in a copy, which takes a moment.
const EVERY: u64 = 97;

fn cpython(same: bool, to_pipe: bool, [buffered, chunk, before, between]: [usize; 4]) {
    let folder = tempfile::tempdir().expect("a directory");
    let words = [
        python(),
        program("flushes.py").display().to_string(),
        folder.path().join("counter").display().to_string(),
        if same { "same" } else { "counted" }.to_string(),
        buffered.to_string(),
        chunk.to_string(),
        before.to_string(),
        between.to_string(),
    ];
    let text = text(same, &[(before + between + 1, 0), (1, 3 * buffered), (1, 0)]);
    through(words.map(OsString::from).to_vec(), folder.path(), to_pipe, EVERY, text);
}

/// The interpreter itself.
fn python() -> String {
    let asked = std::env::var("WEIR_PYTHON").unwrap_or("python3".to_string());
    let said =
        Command::new(asked).args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
    String::from_utf8(said.stdout).expect("a path").trim().to_string()
}

#[test]
fn cpython_counted() {
    cpython(false, true, [40, 16, 50, 14]);
}

/// The list of what is held grows.
#[test]
fn cpython_list() {
    cpython(false, true, [4096, 1000, 20, 60]);
}

#[test]
fn cpython_same() {
    cpython(true, true, [42, 42, 50, 14]);
}

/// Says that a test could not be made here.
fn skip(why: &str) {
    let Some(path) = std::env::var_os("WEIR_SKIPS") else { return };
    let mut file = File::options().create(true).append(true).open(path).expect("the list of skips");
    writeln!(file, "stepped: {why}").expect("a line");
}

fn c_program(compiler: &[&str], same: bool, to_pipe: bool, mode: &str) {
    const BUFFER: usize = 100;
    let folder = tempfile::tempdir().expect("a directory");
    let built = folder.path().join("flushes");
    let mut command = Command::new(compiler[0]);
    command.args(["-std=gnu11", "-O2", "-o"]).arg(&built).arg(program("flushes.c")).args(&compiler[1..]);
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?}"),
        Err(why) => return skip(&format!("{}: {why}", compiler[0])),
    }
    let words = [
        built.display().to_string(),
        folder.path().join("counter").display().to_string(),
        if same { "same" } else { "counted" }.to_string(),
        BUFFER.to_string(),
        mode.to_string(),
    ];
    let mut lines = vec![(114, 0)];
    lines.extend((0..8).map(|each| (1, 3 * BUFFER + each)));
    lines.push((2, 0));
    through(words.map(OsString::from).to_vec(), folder.path(), to_pipe, 1, text(same, &lines));
}

#[test]
fn glibc_counted() {
    c_program(&["gcc"], false, true, "full");
}

#[test]
fn glibc_same() {
    c_program(&["gcc"], true, false, "full");
}

#[test]
fn glibc_lines() {
    c_program(&["gcc", "-static"], false, true, "lines");
}

#[test]
fn musl() {
    c_program(&["musl-gcc"], false, true, "full");
}
