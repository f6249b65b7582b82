//! Hardware breakpoints and watchpoints of one thread, by perf_event_open(2). They do not modify the program's code and
//! need no ptrace(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread::{self, JoinHandle};

use aya_obj::generated::{self, perf_event_attr, perf_type_id};

/// Keeps breakpoints cheap to set for as long as it lives.
///
/// The first per-thread perf event in the system makes the kernel wait for an RCU grace period (6 to 24 ms), and so does
/// the first one a second after the last was closed (account_event in kernel/events/core.c). A stopped program would wait
/// for that, so this event is opened early, on a thread of its own.
#[derive(Debug)]
pub struct BreakpointWarmup {
    _event: Option<JoinHandle<Option<OwnedFd>>>,
}

impl BreakpointWarmup {
    /// Starts a thread that opens a dummy event, and returns at once. Errors are ignored: where perf events are not
    /// allowed, setting a breakpoint reports that.
    pub fn start() -> Self {
        Self { _event: thread::Builder::new().spawn(|| open(&dummy(), 0).ok()).ok() }
    }
}

/// Returns an event that never fires (PERF_COUNT_SW_DUMMY).
fn dummy() -> perf_event_attr {
    event(perf_type_id::PERF_TYPE_SOFTWARE, u64::from(generated::perf_sw_ids::PERF_COUNT_SW_DUMMY as u32))
}

/// Returns a disabled event of user space; each one is a sample.
fn event(kind: perf_type_id, config: u64) -> perf_event_attr {
    // SAFETY: a struct of integers and unions of integers, for which all zeros is valid.
    let mut event: perf_event_attr = unsafe { std::mem::zeroed() };
    event.type_ = kind as u32;
    event.size = size_of::<perf_event_attr>() as u32;
    event.config = config;
    event.__bindgen_anon_1.sample_period = 1;
    event.set_disabled(1);
    event.set_exclude_kernel(1);
    event
}

/// Returns a disabled event of a tracepoint of the kernel, by its number ([`crate::tracefs`]). One of `period` is a sample.
pub fn tracepoint(number: u64, period: u64) -> perf_event_attr {
    let mut event = event(perf_type_id::PERF_TYPE_TRACEPOINT, number);
    event.__bindgen_anon_1.sample_period = period;
    // The tracepoint is in the kernel; registers and stack of a sample are those of the program.
    event.set_exclude_kernel(0);
    event
}

/// Returns a disabled breakpoint event that fires at each access from user space. `access` is HW_BREAKPOINT_X or
/// HW_BREAKPOINT_W (linux/hw_breakpoint.h); `bytes` is a length that the processor supports for it.
///
/// The event outlives execve(2); its owner closes it then. The attribute remove_on_exec would do so in the kernel, but an
/// execve(2) between the installation of the event and the end of perf_event_open(2) then removes a list entry that is not
/// linked yet (perf_remove_from_owner; seen as `list_del corruption` in Linux 6.12), and Linux 5.10 does not know it.
pub fn attributes(access: u32, address: u64, bytes: u64) -> perf_event_attr {
    let mut event = event(perf_type_id::PERF_TYPE_BREAKPOINT, 0);
    event.bp_type = access;
    event.__bindgen_anon_3.config1 = address;
    event.__bindgen_anon_4.config2 = bytes;
    event
}

/// Opens a perf event for a thread; 0 is the calling thread. Closing the descriptor removes the event.
///
/// Fails with ENOSPC if no debug register is free, with EACCES or EPERM if kernel.perf_event_paranoid or ptrace access
/// forbids it, and with ESRCH if the thread has ended.
pub fn open(event: &perf_event_attr, tid: u32) -> io::Result<OwnedFd> {
    let (cpu, group, flags) = (-1, -1, libc::c_ulong::from(generated::PERF_FLAG_FD_CLOEXEC));
    // SAFETY: `event` outlives the call; the other arguments are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, event, tid, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// Records in the file WEIR_SKIPS why a test was skipped.
    pub(crate) fn skip(name: &str, why: &str) {
        let Some(list) = std::env::var_os("WEIR_SKIPS") else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
        file.and_then(|mut file| writeln!(file, "{name}: {why}"))
            .expect("the list of skipped tests can be written");
    }

    #[test]
    fn the_dummy_event_can_be_opened() {
        match open(&dummy(), 0) {
            Ok(_event) => {
                let ready = BreakpointWarmup::start();
                let event = ready._event.expect("a thread").join().expect("no panic");
                assert!(event.is_some());
            }
            Err(error) => skip("the_dummy_event_can_be_opened", &error.to_string()),
        }
    }
}
