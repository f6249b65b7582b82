//! Tests of `survey`: small calls, pending bytes, and the calls of ended children.

#[path = "../../walkers/tests/support/mod.rs"]
mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use weir_inspect::survey::{SurveyScope, Surveyor};
use weir_model::top::{ProcessActivity, Survey};
use weir_sys::proc;
use weir_sys::process_identity::ProcessIdentity;

use support::{Waiting, compile};

fn of(pids: &[u32]) -> Surveyor {
    let processes = pids.iter().map(|pid| ProcessIdentity::of(*pid)).collect();
    Surveyor::new(SurveyScope { processes: Some(processes), thorough: true })
}

fn find(survey: &Survey, pid: u32) -> &ProcessActivity {
    survey.processes.iter().find(|one| one.pid == pid).unwrap_or_else(|| panic!("{pid}: {survey:?}"))
}

/// Starts a shell script, which writes a byte to its stderr when it is ready.
fn script(text: &str) -> Waiting {
    Waiting::start(Command::new("sh").args(["-c", text]))
}

#[test]
fn calls_and_bytes_of_a_small_writer() {
    let waiting = script("printf . >&2; exec dd if=/dev/zero of=/dev/null bs=1 status=none");
    let mut surveyor = of(&[waiting.pid()]);
    let first = surveyor.sample();
    let process = find(&first, waiting.pid());
    assert_eq!(
        (first.elapsed_s, process.reads, process.system_share),
        (0.0, None, None),
        "there is no interval yet"
    );
    // After the start all calls move one byte. Some ticks of CPU time need many of them.
    until("it is dd", || find(&surveyor.sample(), waiting.pid()).comm == "dd");
    // The shell's own write belongs to the same process, so dd has started when there are more.
    let written = || proc::io(waiting.pid()).map_or(0, |io| io.write_calls);
    until("it has begun", || written() > 1000);
    surveyor.sample();
    let before = written();
    until("many calls", || written() > before + 300_000);
    let second = surveyor.sample();
    let process = find(&second, waiting.pid());
    assert!(second.elapsed_s > 0.0 && second.cost_s > 0.0, "{second:?}");
    let (reads, writes) = (process.reads.unwrap(), process.writes.unwrap());
    let mean = (reads.mean_bytes().unwrap(), writes.mean_bytes().unwrap());
    assert!((0.99..1.01).contains(&mean.0) && (0.99..1.01).contains(&mean.1), "{process:?}");
    assert!(writes.calls_s * second.elapsed_s > 290_000.0, "{process:?}");
    assert!(
        process.tiny_calls_s() > 1.9 * writes.calls_s && process.system_share.unwrap() > 0.0,
        "{process:?}"
    );
    assert_eq!((process.comm.exact(), process.foreign), ("dd", false));
    assert_eq!(process.command, "dd if=/dev/zero of=/dev/null bs=1 status=none");
}

#[test]
fn bytes_that_wait_and_for_how_long() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("streams");
    let Some(program) = compile("bytes_that_wait", "gcc", &[], "streams.c", &program) else { return };
    let waiting = Waiting::start(Command::new(program).arg(dir.path()));
    let mut surveyor = of(&[waiting.pid()]);
    until("it sleeps", || find(&surveyor.sample(), waiting.pid()).waiting.is_some());
    std::thread::sleep(Duration::from_millis(200));
    let survey = surveyor.sample();
    let found = find(&survey, waiting.pid()).waiting.as_ref().expect("a snapshot was taken");
    let stdout = found.iter().find(|one| one.fd == 1).expect("its standard output");
    assert_eq!((stdout.pending_bytes, stdout.preview.exact(), stdout.from_before), (9, "in stdout", true));
    assert!(stdout.waits_s >= 0.2 && stdout.path.exact().starts_with("pipe:["), "{stdout:?}");
}

/// Returns the write calls of a process in the last interval.
fn writes(survey: &Survey, pid: u32) -> f64 {
    let one = survey.processes.iter().find(|one| one.pid == pid);
    one.and_then(|one| one.writes).map_or(0.0, |rate| rate.calls_s * survey.elapsed_s)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// wait(2) adds the calls of a child to its parent, which are not shown twice.
#[test]
fn an_ended_child_is_not_counted_twice() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let text = "(dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none; read line < $0; exit 1) & \
                printf . >&2; wait $!; read line < $0; exit";
    let waiting = Waiting::start(Command::new("bash").args(["-c", text]).arg(&fifo));
    let (shell, mut surveyor) = (waiting.pid(), Surveyor::new(SurveyScope::default()));
    surveyor.sample();
    let subshell = proc::children(shell)[0];
    let written = |pid| proc::io(pid).map_or(0, |io| io.write_calls);
    until("dd ends, and its calls are the subshell's", || written(subshell) >= 20_000);
    surveyor.sample();
    drop(std::fs::File::create(&fifo).unwrap());
    until("the subshell ends, and its calls are the shell's", || written(shell) > 20_000);
    let of_shell = writes(&surveyor.sample(), shell);
    assert!(of_shell < 1000.0, "{of_shell} once more");
}

#[test]
fn a_process_that_ends_is_no_longer_there() {
    let mut waiting = script("printf . >&2; exec sleep 1000");
    let mut surveyor = of(&[waiting.pid(), u32::MAX]);
    assert_eq!(surveyor.sample().processes.len(), 1);
    waiting.child.kill().unwrap();
    waiting.child.wait().unwrap();
    assert_eq!(surveyor.sample().processes, []);
}

#[test]
fn another_program_in_the_same_process() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let text = "printf . >&2; read line < $0; exec sleep 1000";
    let waiting = Waiting::start(Command::new("sh").args(["-c", text]).arg(&fifo));
    let mut surveyor = of(&[waiting.pid()]);
    assert_eq!(find(&surveyor.sample(), waiting.pid()).comm, "sh");
    drop(std::fs::File::create(&fifo).unwrap());
    until("it is another program", || find(&surveyor.sample(), waiting.pid()).comm == "sleep");
    assert_eq!(find(&surveyor.sample(), waiting.pid()).command, "sleep 1000");
}
