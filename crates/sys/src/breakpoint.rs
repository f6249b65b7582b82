//! Breakpoints and watchpoints of the processor for one thread, by perf_event_open(2). Nothing is written into the
//! program, and who is traced by nobody else needs no tracer for them.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use aya_obj::generated::{self, perf_event_attr, perf_type_id};

/// While it lives, breakpoints are set at once. The first event of perf_event_open(2) for a thread of all the system's makes
/// the kernel wait until every processor knows that there is one (an RCU grace period, 6 to 24 ms), and a second after the last
/// has gone they have forgotten it (account_event in kernel/events/core.c). A program would stand still for that.
#[derive(Debug)]
pub struct BreakpointWarmup {
    _event: Option<JoinHandle<Option<OwnedFd>>>,
}

impl BreakpointWarmup {
    /// Waits on a thread of its own. Where such events are not to be had, breakpoints are not either.
    pub fn start() -> Self {
        Self { _event: thread::Builder::new().spawn(|| open(&nothing(), 0).ok()).ok() }
    }
}

/// An event that never happens.
fn nothing() -> perf_event_attr {
    let mut event = attributes(0, 0, 0);
    event.type_ = perf_type_id::PERF_TYPE_SOFTWARE as u32;
    event.config = u64::from(generated::perf_sw_ids::PERF_COUNT_SW_DUMMY as u32);
    event
}

/// One that happens each time, in user space only, until the next execve(2); switched off. `access` is one of
/// HW_BREAKPOINT_X, HW_BREAKPOINT_W of linux/hw_breakpoint.h, and `bytes` what the processor allows for it.
pub fn attributes(access: u32, address: u64, bytes: u64) -> perf_event_attr {
    // SAFETY: a struct of integers and unions of them: all zeros are one.
    let mut event: perf_event_attr = unsafe { std::mem::zeroed() };
    event.type_ = perf_type_id::PERF_TYPE_BREAKPOINT as u32;
    event.size = size_of::<perf_event_attr>() as u32;
    event.bp_type = access;
    event.__bindgen_anon_3.config1 = address;
    event.__bindgen_anon_4.config2 = bytes;
    event.__bindgen_anon_1.sample_period = 1;
    event.set_disabled(1);
    event.set_remove_on_exec(1);
    event.set_exclude_kernel(1);
    event
}

/// Sets it for a thread; 0: this one. The error is the kernel's: there is no free register (ENOSPC), it is not allowed (EACCES,
/// EPERM), the thread has ended (ESRCH).
pub fn open(event: &perf_event_attr, tid: u32) -> io::Result<OwnedFd> {
    let (cpu, group, flags) = (-1, -1, libc::c_ulong::from(generated::PERF_FLAG_FD_CLOEXEC));
    // SAFETY: the attribute lives as long as the call; the rest are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, event, tid, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is new, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Records that a test cannot run here, and why.
    fn skip(name: &str, why: &str) {
        let Some(list) = std::env::var_os("WEIR_SKIPS") else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
        file.and_then(|mut file| writeln!(file, "{name}: {why}"))
            .expect("the list of skipped tests can be written");
    }

    #[test]
    fn the_event_that_never_happens_is_one() {
        match open(&nothing(), 0) {
            Ok(_event) => {
                let ready = BreakpointWarmup::start();
                let event = ready._event.expect("a thread").join().expect("no panic");
                assert!(event.is_some());
            }
            Err(error) => skip("the_event_that_never_happens_is_one", &error.to_string()),
        }
    }
}
