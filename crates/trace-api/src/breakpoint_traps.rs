//! Hardware breakpoints that stop one thread at the entry of C library functions, where a tracer can read its buffers.
//!
//! The functions are execve(2), which discards the memory, and write(2), whose first calls may overtake pending bytes. A
//! new image has no C library yet: it is stopped at its entry point, to which the dynamic loader jumps.
//!
//! The breakpoints are perf_event_open(2) events of one thread that send it SIGURG. The tracer suppresses that signal.
//! Without a tracer the default action of SIGURG is to be ignored, so a killed weir does no harm. No other thread stops,
//! and the program's code is not modified. (Uprobes would need no address, but removing them takes a tenth of a second.)

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use aya_obj::generated;
use weir_sys::{breakpoint, proc};
use weir_walkers::functions;

/// Write stops of one image. Each costs a buffer snapshot, and a program that mixes several ways of writing does so within
/// its first few writes.
const MAX_WRITE_STOPS: u32 = 4;
/// The length that the kernel requires of an execution breakpoint (arch/*/kernel/hw_breakpoint.c).
const INSTRUCTION_BYTES: u64 = if cfg!(target_arch = "x86_64") { 8 } else { 4 };
/// The signal of a breakpoint: programs that do not ask for SIGURG ignore it.
pub const SIGNAL: i32 = libc::SIGURG;
/// F_SETOWN_EX of linux/fcntl.h.
const F_SETOWN_EX: i32 = 15;
/// F_SETSIG of linux/fcntl.h.
const F_SETSIG: i32 = 10;
/// F_OWNER_TID of linux/fcntl.h.
const F_OWNER_TID: i32 = 0;
/// struct f_owner_ex of linux/fcntl.h.
#[repr(C)]
struct SignalOwner {
    kind: i32,
    id: libc::pid_t,
}

/// Calls of execve(2) within this time belong to one execvp(3), which tries the directories of PATH within microseconds.
const PATH_SEARCH: Duration = Duration::from_millis(50);

/// The kind of location at which a breakpoint stopped a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TrapKind {
    /// The entry point of the image: its C library is loaded.
    Entry,
    Exec,
    Write,
}

/// The functions with a breakpoint.
const FUNCTIONS: [(TrapKind, &str); 2] = [(TrapKind::Exec, "execve"), (TrapKind::Write, "write")];

/// The breakpoints of one thread in its current image. Dropping them removes them.
#[derive(Debug)]
pub struct BreakpointTraps {
    breakpoints: Vec<(TrapKind, OwnedFd)>,
    /// The addresses of [`FUNCTIONS`], for the threads that this one creates.
    addresses: [Option<u64>; 2],
    write_stops: u32,
    last_exec: Option<Instant>,
}

impl BreakpointTraps {
    /// Sets breakpoints at the functions of process `pid`. Breakpoints that the kernel refuses are left out. Returns None
    /// if the process has no C library yet.
    pub fn set(pid: u32) -> Option<Self> {
        let addresses = functions(pid, FUNCTIONS.map(|(_, name)| name))?;
        if !ignores_signal(pid) {
            return Some(Self::none());
        }
        Some(Self { addresses, ..Self::none() }.for_thread(pid))
    }

    /// Sets the same breakpoints for a thread that this one has just created. The new thread has all signals blocked
    /// for a moment, so its signal mask is not checked.
    pub fn for_thread(&self, tid: u32) -> Self {
        let addresses = FUNCTIONS.iter().zip(self.addresses);
        let breakpoints =
            addresses.filter_map(|((trap, _), at)| Some((*trap, open(tid, at?).ok()?))).collect();
        Self { breakpoints, addresses: self.addresses, ..Self::none() }
    }

    /// Sets a breakpoint at the entry point of a process that has just called execve(2). Returns None if the kernel
    /// refuses it or the program uses the signal.
    pub fn at_entry(pid: u32) -> Option<Self> {
        let entry = proc::entry_point(pid).filter(|_| ignores_signal(pid))?;
        Some(Self { breakpoints: vec![(TrapKind::Entry, open(pid, entry).ok()?)], ..Self::none() })
    }

    /// Adds a breakpoint at the entry point, for a C library that is mapped but perhaps not initialized.
    pub fn with_entry(mut self, pid: u32) -> Self {
        self.breakpoints.extend(Self::at_entry(pid).into_iter().flat_map(|entry| entry.breakpoints));
        self
    }

    /// Returns an empty set.
    pub fn none() -> Self {
        Self { breakpoints: Vec::new(), addresses: [None; 2], write_stops: 0, last_exec: None }
    }

    /// Returns the kind of the breakpoint with the descriptor `fd`, which its signal carries (si_fd).
    pub fn kind_of(&self, fd: i32) -> Option<TrapKind> {
        self.breakpoints.iter().find(|(_, event)| event.as_raw_fd() == fd).map(|(trap, _)| *trap)
    }

    /// Counts a stop. Returns whether the process's streams must be searched again: true for the first execve(2) of an
    /// execvp(3) only. Removes the write breakpoint after [`MAX_WRITE_STOPS`] stops.
    pub fn count_stop(&mut self, trap: TrapKind) -> bool {
        match trap {
            TrapKind::Entry => false,
            TrapKind::Exec => {
                self.last_exec.replace(Instant::now()).is_none_or(|before| before.elapsed() > PATH_SEARCH)
            }
            TrapKind::Write => {
                self.write_stops += 1;
                if self.write_stops >= MAX_WRITE_STOPS {
                    self.breakpoints.retain(|(kind, _)| *kind != TrapKind::Write);
                }
                false
            }
        }
    }
}

/// Returns whether the process neither blocks nor catches [`SIGNAL`]. A blocked signal would arrive too late, and a caught
/// one belongs to the program.
fn ignores_signal(pid: u32) -> bool {
    let bit = 1 << (SIGNAL - 1);
    proc::status(pid).is_some_and(|status| (status.sigblk | status.sigcgt) & bit == 0)
}

/// Sets an enabled breakpoint for one thread.
fn open(tid: u32, address: u64) -> io::Result<OwnedFd> {
    let mut event = breakpoint::attributes(generated::HW_BREAKPOINT_X, address, INSTRUCTION_BYTES);
    event.__bindgen_anon_2.wakeup_events = 1;
    let event = breakpoint::open(&event, tid)?;
    enable_signal(tid, &event)?;
    Ok(event)
}

/// Makes the event send [`SIGNAL`] to the thread at each hit, and enables it.
fn enable_signal(tid: u32, event: &OwnedFd) -> io::Result<()> {
    const ENABLE: libc::c_ulong = 0x2400; // PERF_EVENT_IOC_ENABLE
    let fd = event.as_raw_fd();
    let owner = SignalOwner { kind: F_OWNER_TID, id: tid as libc::pid_t };
    // SAFETY: `owner` is struct f_owner_ex and outlives the call; the other arguments are numbers.
    let answers = unsafe {
        [
            libc::fcntl(fd, F_SETOWN_EX, &raw const owner),
            libc::fcntl(fd, F_SETSIG, SIGNAL),
            libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC),
            libc::ioctl(fd, ENABLE as _, 0),
        ]
    };
    if answers.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execve_calls_of_one_execvp_search_once() {
        let mut traps = BreakpointTraps::none();
        assert!(traps.count_stop(TrapKind::Exec) && !traps.count_stop(TrapKind::Exec));
    }

    #[test]
    fn entry_point_is_in_the_text_of_this_program() {
        let entry = proc::entry_point(std::process::id()).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        let bounds = |line: &str| {
            let (from, to) = line.split_once(' ')?.0.split_once('-')?;
            Some(u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?)
        };
        let mut own =
            maps.lines().filter(|line| line.ends_with(exe.to_str().unwrap()) && line.contains(" r-xp "));
        assert!(own.any(|line| bounds(line).unwrap().contains(&entry)), "{entry:x} in\n{maps}");
    }

    #[test]
    fn functions_of_this_process_have_their_addresses() {
        let found = functions(std::process::id(), FUNCTIONS.map(|(_, name)| name)).unwrap();
        assert_eq!(found, [libc::execve as *const () as u64, libc::write as *const () as u64].map(Some));
    }
}
