//! A program that is killed while weir has it stopped: its last stop is not passed over.

use std::ffi::OsString;

use weir_sys::launch;
use weir_sys::ptrace::{self, PtraceStop};

use crate::supervise::event_loop::Supervisor;
use crate::supervise::tracees::ThreadState;

/// A command that waits, stopped by weir.
fn stopped() -> (Supervisor, u32) {
    let words: Vec<OsString> = ["sleep", "100"].map(OsString::from).to_vec();
    let gated = launch::start(&words).expect("it starts");
    let pid = gated.pid;
    let mut run = Supervisor::new(pid, Vec::new(), None).expect("a world");
    run.take(gated).expect("it is traced");
    loop {
        let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
        if stop.status >> 16 == libc::PTRACE_EVENT_EXEC {
            run.world.threads.get_mut(&pid).expect("its thread").state = ThreadState::Stopped;
            return (run, pid);
        }
        run.on_stop(stop);
    }
}

fn is_last(stop: PtraceStop) -> bool {
    libc::WIFSTOPPED(stop.status) && stop.status >> 16 == libc::PTRACE_EVENT_EXIT
}

#[test]
fn its_last_stop_is_seen() {
    let (mut run, pid) = stopped();
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    while !ptrace::has_stop(pid) {
        std::thread::yield_now();
    }
    // What weir does behind all that it did meanwhile.
    run.world.go_on(pid, 0);
    let stop = ptrace::wait_for(pid).expect("a stop").expect("no signal");
    assert!(is_last(stop), "what it held went with it: {stop:?}");
    ptrace::resume(pid, false, 0);
    while ptrace::wait_for(pid).expect("its end").is_none_or(|stop| libc::WIFSTOPPED(stop.status)) {}
}
