//! A process that is killed while weir has it stopped still reaches its exit stop.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use weir_sys::launch;
use weir_sys::ptrace::held_exit::HeldExit;
use weir_sys::ptrace::{self, PtraceStop};

use super::event_loop::Supervisor;
#[cfg(target_arch = "x86_64")]
use super::final_state::ResumedThread;
use super::tracee::TraceeState;
use super::{LifecycleHandler, Tracees};

/// Starts a command and returns it at its exec stop.
fn stopped_command(handlers: Vec<Box<dyn LifecycleHandler + Send>>) -> (Supervisor, u32) {
    stopped(&["sleep", "100"], handlers)
}

fn stopped(words: &[&str], handlers: Vec<Box<dyn LifecycleHandler + Send>>) -> (Supervisor, u32) {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let gated = launch::start(&words).expect("it starts");
    let pid = gated.pid;
    let mut supervisor = Supervisor::new(pid, handlers, None).expect("a supervisor");
    supervisor.attach(gated).expect("it is traced");
    loop {
        let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
        if stop.status >> 16 == libc::PTRACE_EVENT_EXEC {
            let thread = supervisor.tracees.threads.get_mut(&pid).expect("its thread");
            thread.state = TraceeState::Stopped;
            return (supervisor, pid);
        }
        supervisor.on_stop(stop);
    }
}

/// Kills a stopped process and waits until its next stop is there.
fn kill(pid: u32) {
    // SAFETY: a signal to a child that has not been reaped.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    while !ptrace::has_stop(pid) {
        std::thread::yield_now();
    }
}

fn reap(pid: u32) {
    while ptrace::wait_for(pid).expect("its end").is_none_or(|stop| libc::WIFSTOPPED(stop.status)) {}
}

fn is_exit_stop(stop: PtraceStop) -> bool {
    libc::WIFSTOPPED(stop.status) && stop.status >> 16 == libc::PTRACE_EVENT_EXIT
}

#[test]
fn resume_after_a_kill_keeps_the_exit_stop() {
    let (mut supervisor, pid) = stopped_command(Vec::new());
    kill(pid);
    supervisor.tracees.resume(pid, 0);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "its pending bytes are lost: {stop:?}");
    ptrace::resume(pid, false, 0);
    reap(pid);
}

/// A killed thread may have written bytes that its stream has not noted. If weir wrote them early, they would be there twice.
#[test]
fn a_killed_process_is_not_held_for_an_early_write() {
    for known in [false, true] {
        let (mut supervisor, pid) = stopped_command(Vec::new());
        assert!(supervisor.tracees.hold(pid), "it is stopped");
        supervisor.tracees.release(pid);
        kill(pid);
        supervisor.tracees.threads.get_mut(&pid).expect("its thread").state = TraceeState::Running;
        if known {
            let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
            assert!(is_exit_stop(stop), "{stop:?}");
            let thread = supervisor.tracees.threads.get_mut(&pid).expect("its thread");
            (thread.exiting, thread.ended_with_process) = (true, true);
        }
        assert!(!supervisor.tracees.hold(pid), "{known}");
        assert!(!supervisor.tracees.hold(pid), "{known}: at once again");
        ptrace::resume(pid, false, 0);
        reap(pid);
    }
}

/// Counts the exits of processes.
struct ExitCounter(Arc<AtomicU32>);

impl LifecycleHandler for ExitCounter {
    fn service(&self) -> Option<&'static str> {
        Some("counted")
    }

    fn on_exit(&mut self, _tracees: &mut Tracees, _pid: u32, _tid: u32, _status: i32) -> bool {
        self.0.fetch_add(1, Relaxed);
        true
    }
}

/// The grace can end while weir handles the exit of another process.
#[test]
fn the_grace_lasts_until_a_killed_process_is_handled() {
    let exits = Arc::new(AtomicU32::new(0));
    let (mut supervisor, pid) = stopped_command(vec![Box::new(ExitCounter(Arc::clone(&exits)))]);
    supervisor.tracees.processes.get_mut(&pid).expect("its process").before_exec = false;
    assert!(supervisor.gives_grace(), "it may end in a moment");
    std::thread::sleep(Duration::from_millis(30));
    assert!(!supervisor.gives_grace(), "it runs on");
    kill(pid);
    assert!(supervisor.gives_grace(), "its exit stop is queued");
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    supervisor.tracees.deferred_stops.push_back(stop);
    assert!(supervisor.gives_grace(), "weir has queued it");
    supervisor.tracees.deferred_stops.clear();
    supervisor.on_stop(stop);
    assert_eq!(exits.load(Relaxed), 1);
    reap(pid);
    assert!(!supervisor.gives_grace(), "its exit is handled");
}

/// A thread that was just made when its process was killed can become known after all others have ended. A second rescue of
/// the process would write its bytes twice.
#[test]
fn a_thread_that_becomes_known_late_does_not_repeat_the_exit() {
    let exits = Arc::new(AtomicU32::new(0));
    let (mut supervisor, pid) = stopped_command(vec![Box::new(ExitCounter(Arc::clone(&exits)))]);
    supervisor.tracees.processes.get_mut(&pid).expect("its process").before_exec = false;
    kill(pid);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "{stop:?}");
    supervisor.on_stop(stop);
    assert_eq!(exits.load(Relaxed), 1);
    let late = u32::MAX >> 1;
    supervisor.add_thread(pid, late);
    supervisor.on_exit(late);
    assert_eq!(exits.load(Relaxed), 1, "its bytes are written twice");
    reap(pid);
}

/// A thread that was killed while it was resumed has no exit stop. The last one that has must not wait for it.
#[test]
fn a_thread_that_has_ended_without_an_exit_stop_is_not_waited_for() {
    let exits = Arc::new(AtomicU32::new(0));
    let (mut supervisor, pid) = stopped_command(vec![Box::new(ExitCounter(Arc::clone(&exits)))]);
    supervisor.tracees.processes.get_mut(&pid).expect("its process").before_exec = false;
    let mut ended = std::process::Command::new("true").spawn().expect("it starts");
    while !weir_sys::proc::is_dead(ended.id()) {
        std::thread::yield_now();
    }
    supervisor.add_thread(pid, ended.id());
    kill(pid);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "{stop:?}");
    supervisor.on_stop(stop);
    assert_eq!(exits.load(Relaxed), 1, "its bytes are lost");
    reap(pid);
    ended.wait().expect("its end");
}

/// A kill between the check for an exit stop and the resume ends the thread unseen. What it wrote last is in the registers that it
/// was resumed with; without them the bytes of its last write are written twice.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_thread_that_was_killed_at_its_resume_has_ended_with_its_registers() {
    for (age_ns, states) in [(0, 2), (1_000_000_000, 1)] {
        let (mut supervisor, pid) = stopped_command(Vec::new());
        supervisor.tracees.processes.get_mut(&pid).expect("its process").before_exec = false;
        let mut ended = std::process::Command::new("true").spawn().expect("it starts");
        while !weir_sys::proc::is_dead(ended.id()) {
            std::thread::yield_now();
        }
        supervisor.add_thread(pid, ended.id());
        let thread = supervisor.tracees.threads.get_mut(&ended.id()).expect("the thread");
        thread.resumed = ResumedThread::read(pid).map(|one| one.older_by(age_ns));
        kill(pid);
        let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
        supervisor.on_stop(stop);
        let process = &supervisor.tracees.processes[&pid];
        assert_eq!(process.final_stacks.len(), states, "{age_ns} ns after the resume");
        assert_eq!(process.final_stacks.first(), process.final_stacks.last());
        reap(pid);
        ended.wait().expect("its end");
    }
}

/// A killed thread that had begun to end by itself has no exit stop either, and is not dead yet. The last exit stop is held.
#[test]
fn an_exit_stop_is_held_until_the_other_threads_have_ended() {
    let exits = Arc::new(AtomicU32::new(0));
    let (mut supervisor, pid) = stopped_command(vec![Box::new(ExitCounter(Arc::clone(&exits)))]);
    supervisor.tracees.processes.get_mut(&pid).expect("its process").before_exec = false;
    let mut other = std::process::Command::new("sleep").arg("100").spawn().expect("it starts");
    supervisor.add_thread(pid, other.id());
    kill(pid);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "{stop:?}");
    supervisor.tracees.threads.entry(pid).and_modify(|thread| thread.exiting = true);
    supervisor.held_exits.push(HeldExit { pid, tid: pid, status: 9, until_ns: u64::MAX });
    supervisor.retry_held_exits();
    assert_eq!((exits.load(Relaxed), supervisor.held_exits.len()), (0, 1), "the other one may still write");
    other.kill().expect("a signal");
    other.wait().expect("its end");
    supervisor.retry_held_exits();
    assert_eq!((exits.load(Relaxed), supervisor.held_exits.len()), (1, 0), "its bytes are lost");
    reap(pid);
}

#[test]
fn an_exit_stop_is_not_held_for_ever() {
    let (mut supervisor, pid) = stopped_command(Vec::new());
    let mut other = std::process::Command::new("sleep").arg("100").spawn().expect("it starts");
    supervisor.add_thread(pid, other.id());
    assert!(!supervisor.all_others_are_killed(pid), "both live");
    kill(pid);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "{stop:?}");
    supervisor.tracees.threads.entry(pid).and_modify(|thread| thread.exiting = true);
    assert!(!supervisor.all_others_are_killed(pid), "the other one lives");
    supervisor.held_exits.push(HeldExit { pid, tid: pid, status: 9, until_ns: 0 });
    supervisor.retry_held_exits();
    assert!(supervisor.held_exits.is_empty());
    reap(pid);
    other.kill().expect("a signal");
    other.wait().expect("its end");
}

/// The data of a fork stop is the new process, but the exit status once the process was killed. A thread with that number would
/// count as alive for ever, and the bytes of the process would be lost.
#[test]
fn a_kill_in_a_fork_stop_makes_no_thread_of_the_exit_status() {
    let (mut supervisor, pid) = stopped(&["sh", "-c", "(sleep 100); exit"], Vec::new());
    supervisor.tracees.resume(pid, 0);
    let made = [libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK, libc::PTRACE_EVENT_CLONE];
    let stop = loop {
        let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
        if made.contains(&(stop.status >> 16)) {
            break stop;
        }
        supervisor.on_stop(stop);
    };
    let child = ptrace::event_message(pid).expect("the new process") as u32;
    kill(pid);
    supervisor.on_stop(stop);
    let known: Vec<u32> = supervisor.tracees.threads.keys().copied().collect();
    assert!(known == [pid] || known.contains(&child), "{known:?}, not {child}");
    // SAFETY: a signal to a tracee that has not been reaped.
    unsafe { libc::kill(child as libc::pid_t, libc::SIGKILL) };
    for one in [pid, child] {
        ptrace::resume(one, false, 0);
        reap_all(one);
    }
}

/// Resumes a killed process at each of its last stops until it is reaped.
fn reap_all(pid: u32) {
    while ptrace::wait_for(pid).is_ok_and(|stop| stop.is_none_or(|stop| libc::WIFSTOPPED(stop.status))) {
        ptrace::resume(pid, false, 0);
    }
}
