//! A process that is killed while weir has it stopped still reaches its exit stop.

use std::ffi::OsString;

use weir_sys::launch;
use weir_sys::ptrace::{self, PtraceStop};

use super::event_loop::Supervisor;
use super::tracee::TraceeState;

/// Starts a command and returns it at its exec stop.
fn stopped_command() -> (Supervisor, u32) {
    let words: Vec<OsString> = ["sleep", "100"].map(OsString::from).to_vec();
    let gated = launch::start(&words).expect("it starts");
    let pid = gated.pid;
    let mut supervisor = Supervisor::new(pid, Vec::new(), None).expect("a supervisor");
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

fn is_exit_stop(stop: PtraceStop) -> bool {
    libc::WIFSTOPPED(stop.status) && stop.status >> 16 == libc::PTRACE_EVENT_EXIT
}

#[test]
fn resume_after_a_kill_keeps_the_exit_stop() {
    let (mut supervisor, pid) = stopped_command();
    // SAFETY: a signal to a child that has not been reaped.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    while !ptrace::has_stop(pid) {
        std::thread::yield_now();
    }
    supervisor.tracees.resume(pid, 0);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_exit_stop(stop), "its pending bytes are lost: {stop:?}");
    ptrace::resume(pid, false, 0);
    while ptrace::wait_for(pid).expect("its end").is_none_or(|stop| libc::WIFSTOPPED(stop.status)) {}
}
