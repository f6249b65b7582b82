//! Single-steps a program through its flushes. At each instruction the bytes that it has written and those that a
//! rescue would write must together be its output, once and in order.

#[path = "../../../../tests/common/campaign.rs"]
#[allow(dead_code)] // no cases are chosen here
pub(crate) mod campaign;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_sys::launch;
use weir_sys::ptrace::{self, registers};

use super::killed_thread::KilledThread;
use super::last_write;
use super::replay::{REPLAYS, Replay, ReplayState, STEPS_BUDGET_NS};
use super::replay_process::ReplayedMemory;
use super::single_step_tracee::{all_registers, code_location, is_mark, mapping, set_result};
use super::stream_replay::StreamReplays;
use crate::supervise::event_loop::Supervisor;
use crate::supervise::tracee::TraceeState;

/// A program that prints numbered lines, under the supervisor.
pub(crate) struct SteppedProgram {
    pub supervisor: Supervisor,
    pub pid: u32,
    output: File,
    /// A file in which the program stores the number of its complete lines.
    counter: File,
    /// The bytes read from `output`.
    written: Vec<u8>,
    /// The program's complete output, and the ends of its lines.
    expected: Vec<u8>,
    line_ends: Vec<usize>,
    /// Failures, by kind and instruction.
    failures: BTreeMap<String, u64>,
    first_failures: Vec<String>,
    pub steps: u64,
    /// The number of steps from one check to the next.
    check_interval: u64,
    /// The CPU time of each replay; 0: no replay has a result.
    replay_budget_ns: u64,
    /// The checks in which a rescue would have saved bytes that the program may have written.
    unsure: u64,
}

/// Returns the output of a program and the ends of its lines. `lines` holds counts and additional lengths.
pub(super) fn expected_output(same: bool, lines: &[(usize, usize)]) -> (Vec<u8>, Vec<usize>) {
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

impl SteppedProgram {
    /// Starts `command` with its output in a file or named pipe.
    pub fn start(
        command: Vec<OsString>,
        folder: &Path,
        to_pipe: bool,
        (expected, line_ends): (Vec<u8>, Vec<usize>),
    ) -> SteppedProgram {
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
        let mut supervisor = Supervisor::new(gated.pid, Vec::new(), None).expect("a supervisor");
        supervisor.attach(gated).expect("it is traced");
        let counter = File::open(counter).expect("the counter");
        SteppedProgram {
            supervisor,
            pid,
            output,
            counter,
            written: Vec::new(),
            expected,
            line_ends,
            failures: BTreeMap::new(),
            first_failures: Vec::new(),
            steps: 0,
            check_interval: 1,
            replay_budget_ns: STEPS_BUDGET_NS,
            unsure: 0,
        }
    }

    /// Runs to the next mark (SIGWINCH), and leaves the program stopped there.
    pub fn run_to_mark(&mut self) {
        loop {
            let stop = ptrace::wait().expect("a stop").expect("no signal");
            assert!(libc::WIFSTOPPED(stop.status), "it ended: {:?}", stop);
            if is_mark(stop.status) {
                if let Some(thread) = self.supervisor.tracees.threads.get_mut(&stop.tid) {
                    thread.state = TraceeState::Stopped;
                }
                return;
            }
            self.supervisor.on_stop(stop);
        }
    }

    /// Executes one instruction or system call. Returns false at a mark.
    pub fn step(&mut self) -> bool {
        // SAFETY: PTRACE_SINGLESTEP resumes a stopped tracee and takes numbers.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid as libc::pid_t, 0, 0) };
        let stop = ptrace::wait_for(self.pid).expect("a stop").expect("no signal");
        assert!(libc::WIFSTOPPED(stop.status), "it ended: {:?}", stop);
        self.steps += 1;
        !is_mark(stop.status)
    }

    /// Reads what the program has written since the last call.
    fn read_output(&mut self) {
        let _empty = self.output.read_to_end(&mut self.written);
    }

    /// Checks what a rescue would write if the program were killed now. The last `unwritten` bytes of the output count
    /// as not written.
    pub fn check(&mut self, moment: &str, unwritten: usize) {
        self.read_output();
        let (pid, tracees) = (self.pid, &mut self.supervisor.tracees);
        if self.steps == 0 {
            // As a rescue: its search is not made beside.
            tracees.pending(pid, pid);
            tracees.search_again(pid);
        }
        let pending = tracees.pending(pid, pid);
        if let Some(process) = tracees.processes.get_mut(&pid) {
            process.last_writes = last_write::read(pid, None).into_iter().collect();
            process.killed_threads = KilledThread::read(pid).into_iter().collect();
            process.final_stacks = registers::stack(pid).into_iter().collect();
        }
        let streams = match super::start_replay(tracees, pid, pid).and_then(replay_end) {
            Some(replayed) => super::replayed_streams(tracees, pid, &pending, &replayed),
            None => match StreamReplays::start_within(self.replay_budget_ns, tracees, pid, pid, &pending) {
                Some(mut replays) => {
                    while !replays.poll(pid) {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    super::unwritten_after(tracees, pid, pid, pending, &replays)
                }
                None => super::unwritten_streams(tracees, pid, pid, pending),
            },
        };
        let mut rescued = self.written[..self.written.len() - unwritten].to_vec();
        let (unsure, sure): (Vec<_>, Vec<_>) =
            streams.into_iter().filter(|one| one.fd != 2).partition(|one| one.is_unsure);
        rescued.extend(sure.into_iter().flat_map(|one| one.bytes));
        let is_unsure = self.replay_budget_ns == 0 && !unsure.is_empty();
        self.unsure += u64::from(is_unsure);
        let mut complete = [0; 8];
        self.counter.read_exact_at(&mut complete, 0).expect("the counter");
        let complete = u64::from_le_bytes(complete) as usize;
        let in_order = self.expected.starts_with(&rescued);
        let [mut least, most] =
            [complete, complete + 1].map(|line| self.line_ends[line.min(self.line_ends.len() - 1)]);
        if is_unsure {
            least = 0;
        }
        if in_order && (least..=most).contains(&rescued.len()) {
            return;
        }
        let wrong = match rescued.len() {
            _ if !in_order => "mixed",
            length if length < least => "lost",
            _ => "doubled",
        };
        let location = code_location(pid);
        *self.failures.entry(format!("{moment}: {wrong}, {location}")).or_default() += 1;
        if self.first_failures.len() < 40 {
            let (length, step) = (rescued.len(), self.steps);
            let failure =
                format!("step {step}, {moment}: {wrong}: {length} of {least} to {most}, {location}");
            self.first_failures.push(failure);
        }
    }

    /// Checks after a write(2) the results that a kill inside of the call would have left.
    fn check_partial_writes(&mut self) {
        let Some(call) = registers::current_syscall(self.pid) else { return };
        if matches!(call.number, libc::SYS_write | libc::SYS_writev) && call.args[0] == 1 && call.result > 0 {
            let whole = call.result;
            for part in [-libc::ENOSYS as i64, -512, -libc::EINTR as i64, 1, whole / 2, whole - 1] {
                set_result(self.pid, part);
                self.check("part of a write", (whole - part.max(0)) as usize);
            }
            set_result(self.pid, whole);
        }
    }

    /// Fails if a check failed.
    pub fn assert_no_failure(&self) {
        let lines: Vec<String> =
            self.failures.iter().map(|(what, times)| format!("{times:6} {what}")).collect();
        assert!(
            self.failures.is_empty(),
            "first:\n{}\nall:\n{}",
            self.first_failures.join("\n"),
            lines.join("\n")
        );
    }

    /// Steps to the next mark, kills the program, and fails if a check failed.
    fn check_to_next_mark(mut self) {
        let has_no_time = self.replay_budget_ns == 0;
        self.run_to_mark();
        self.check("at the mark", 0);
        // The vDSO restarts a reading of the clock if the time has changed meanwhile.
        let vdso = mapping(self.pid, |line| line.ends_with("[vdso]")).unwrap_or(0..0);
        while self.step() {
            let registers = all_registers(self.pid);
            if vdso.contains(&registers.rip) {
                continue;
            }
            if self.steps.is_multiple_of(self.check_interval) {
                self.check("a step", 0);
            }
            // Most steps end in user mode. Another read of the registers would make them half as fast.
            if (registers.orig_rax as i64) < 0 {
                continue;
            }
            self.check_partial_writes();
            if let Some(call) = registers::current_syscall(self.pid) {
                // Sets the registers that the thread has after its return, before the next instruction.
                registers::set_result(self.pid, &call.args, call.result);
                self.check("after a call", 0);
            }
        }
        // SAFETY: a signal to a child that has not been reaped.
        unsafe { libc::kill(self.pid as libc::pid_t, libc::SIGKILL) };
        while let Ok(Some(stop)) = ptrace::wait_for(self.pid) {
            if !libc::WIFSTOPPED(stop.status) {
                break;
            }
            ptrace::resume(self.pid, false, 0);
        }
        self.assert_no_failure();
        assert!(self.steps > 1000 && (self.unsure > 0) == has_no_time, "{} unsure", self.unsure);
    }
}

/// Waits for a replay.
fn replay_end(mut replay: Replay) -> Option<ReplayedMemory> {
    loop {
        replay = match replay.poll() {
            ReplayState::Running(replay) => replay,
            ReplayState::Ended(replayed) => return replayed.ok(),
        };
        std::thread::sleep(Duration::from_micros(100));
    }
}

pub(super) fn check_flushes(
    command: Vec<OsString>,
    folder: &Path,
    to_pipe: bool,
    [check_interval, replay_budget_ns]: [u64; 2],
    expected: (Vec<u8>, Vec<usize>),
) {
    let mut program = SteppedProgram::start(command, folder, to_pipe, expected);
    program.check_interval = check_interval * interval_factor();
    program.replay_budget_ns = replay_budget_ns;
    program.check_to_next_mark();
}

/// Returns 60 in a quick campaign, see tests/common/campaign.rs: `make test` checks every 60th of the steps that
/// `make test-all` checks.
fn interval_factor() -> u64 {
    static REPORT: std::sync::Once = std::sync::Once::new();
    if campaign::is_quick() {
        // The test harness captures println!, not this.
        let line = b"campaign: single steps: every 60th is checked; make test-all checks all\n";
        REPORT.call_once(|| std::io::stdout().write_all(line).expect("standard output"));
        60
    } else {
        1
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The check interval for CPython, where a check can need a replay of several milliseconds.
const CPYTHON_CHECK_INTERVAL: u64 = 97;

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
    let expected = expected_output(same, &[(before + between + 1, 0), (1, 3 * buffered), (1, 0)]);
    check_flushes(
        words.map(OsString::from).to_vec(),
        folder.path(),
        to_pipe,
        [CPYTHON_CHECK_INTERVAL, STEPS_BUDGET_NS],
        expected,
    );
    // On a machine that is shared, CPU time can include that of others, so a few replays may seem long.
    let [all, long] = REPLAYS.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(all > 0 && long <= 1 + all / 100, "{long} of {all} replays took more than half of the budget");
}

/// Returns the path of the interpreter, which python3 may be a wrapper of.
fn python() -> String {
    let name = std::env::var("WEIR_PYTHON").unwrap_or("python3".to_string());
    let output =
        Command::new(name).args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
    String::from_utf8(output.stdout).expect("a path").trim().to_string()
}

#[test]
fn cpython_counted() {
    cpython(false, true, [40, 16, 50, 14]);
}

/// The text layer's list of pending strings grows.
#[test]
fn cpython_list() {
    cpython(false, true, [4096, 1000, 20, 60]);
}

#[test]
fn cpython_same() {
    cpython(true, true, [42, 42, 50, 14]);
}

/// Compiles a program by a compiler with its options, and with the flags after the source. Returns false, and notes a test that this
/// machine cannot run, without the compiler.
pub(crate) fn compile(compiler: &[&str], source: &str, flags: &[&str], built: &Path) -> bool {
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-o").arg(built).arg(program(source)).args(flags);
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?}"),
        Err(why) => {
            skip(&format!("{}: {why}", compiler[0]));
            return false;
        }
    }
    true
}

/// Notes a test that this machine cannot run.
fn skip(why: &str) {
    let Some(path) = std::env::var_os("WEIR_SKIPS") else { return };
    let mut file = File::options().create(true).append(true).open(path).expect("the list of skips");
    writeln!(file, "single_step: {why}").expect("a line");
}
