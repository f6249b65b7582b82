//! Stops of one thread at the entry of functions of its C library, where a tracer can look into its memory:
//! execve(2), after which the memory is gone, and the first write(2)s, before which something else may wait. A new
//! program has no C library yet: it is stopped where the dynamic loader hands over to it.
//!
//! Breakpoints of the processor, for this thread only, by perf_event_open(2), which send it SIGURG. Its tracer takes
//! that signal away; without a tracer it does nothing, so no harm comes of weir being killed. Nobody else is stopped,
//! nothing is written into the program. (Uprobes would need no address, but take a tenth of a second to remove.)

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use aya_obj::generated;
use weir_sys::{breakpoint, proc};
use weir_walkers::functions;

/// So many writes of an image are looked at: each look takes time, and a program that mixes its ways of writing
/// does so soon.
const WRITES: u32 = 4;
/// The length that a breakpoint for execution has to have.
const INSTRUCTION_BYTES: u64 = if cfg!(target_arch = "x86_64") { 8 } else { 4 };
/// Who does not ask for it is not bothered by it.
pub const SIGNAL: i32 = libc::SIGURG;
/// F_SETOWN_EX, F_SETSIG and F_OWNER_TID of linux/fcntl.h, and struct f_owner_ex.
const SET_OWNER: i32 = 15;
const SET_SIGNAL: i32 = 10;
const OWNER_TID: i32 = 0;
#[repr(C)]
struct Owner {
    kind: i32,
    id: libc::pid_t,
}

/// execve(2)s this close to each other are tries of one.
const ONE_SEARCH: Duration = Duration::from_millis(50);

/// At which function a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TrapKind {
    /// Its C library is there from here on.
    Entry,
    Exec,
    Write,
}

/// The functions that are trapped.
const FUNCTIONS: [(TrapKind, &str); 2] = [(TrapKind::Exec, "execve"), (TrapKind::Write, "write")];

/// Those of one image of a thread. Dropped, they are gone.
#[derive(Debug)]
pub struct BreakpointTraps {
    set: Vec<(TrapKind, OwnedFd)>,
    /// Where the functions are, for the threads that it starts.
    places: [Option<u64>; 2],
    writes: u32,
    tried: Option<Instant>,
}

impl BreakpointTraps {
    /// Sets them; where that is not possible less is seen, and nothing else is different. None: its C library is
    /// not there yet.
    pub fn set(pid: u32) -> Option<Self> {
        let places = functions(pid, FUNCTIONS.map(|(_, name)| name))?;
        if !takes_the_signal(pid) {
            return Some(Self::none());
        }
        Some(Self { places, ..Self::none() }.of_thread(pid))
    }

    /// The same for a thread that this one has just started. It has all signals blocked for a moment.
    pub fn of_thread(&self, tid: u32) -> Self {
        let places = FUNCTIONS.iter().zip(self.places);
        let set = places.filter_map(|((trap, _), at)| Some((*trap, open(tid, at?).ok()?))).collect();
        Self { set, places: self.places, ..Self::none() }
    }

    /// Of a process that has just executed a program. None: that cannot be done.
    pub fn at_entry(pid: u32) -> Option<Self> {
        let entry = proc::entry_point(pid).filter(|_| takes_the_signal(pid))?;
        Some(Self { set: vec![(TrapKind::Entry, open(pid, entry).ok()?)], ..Self::none() })
    }

    /// And where its own code begins: the C library that is there already may not be ready.
    pub fn and_at_entry(mut self, pid: u32) -> Self {
        self.set.extend(Self::at_entry(pid).into_iter().flat_map(|entry| entry.set));
        self
    }

    /// None yet, or none any more.
    pub fn none() -> Self {
        Self { set: Vec::new(), places: [None; 2], writes: 0, tried: None }
    }

    /// Whose signal it is, by the descriptor that it names.
    pub fn of(&self, fd: i32) -> Option<TrapKind> {
        self.set.iter().find(|(_, event)| event.as_raw_fd() == fd).map(|(trap, _)| *trap)
    }

    /// The process stands at one of them. Whether its streams are to be searched anew: they are not for each of
    /// the directories in which execvp(3) tries a name.
    pub fn sprung(&mut self, trap: TrapKind) -> bool {
        match trap {
            TrapKind::Entry => false,
            TrapKind::Exec => {
                self.tried.replace(Instant::now()).is_none_or(|before| before.elapsed() > ONE_SEARCH)
            }
            TrapKind::Write => {
                self.writes += 1;
                if self.writes >= WRITES {
                    self.set.retain(|(of, _)| *of != TrapKind::Write);
                }
                false
            }
        }
    }
}

/// A blocked signal would come too late, and one that is caught is the program's.
fn takes_the_signal(pid: u32) -> bool {
    let bit = 1 << (SIGNAL - 1);
    proc::status(pid).is_some_and(|status| (status.sigblk | status.sigcgt) & bit == 0)
}

fn open(pid: u32, address: u64) -> io::Result<OwnedFd> {
    let mut event = breakpoint::describe(generated::HW_BREAKPOINT_X, address, INSTRUCTION_BYTES);
    event.__bindgen_anon_2.wakeup_events = 1;
    let event = breakpoint::set(&event, pid)?;
    signal_to(pid, &event)?;
    Ok(event)
}

/// Each time that the event happens.
fn signal_to(pid: u32, event: &OwnedFd) -> io::Result<()> {
    const ENABLE: libc::c_ulong = 0x2400; // PERF_EVENT_IOC_ENABLE
    let fd = event.as_raw_fd();
    let owner = Owner { kind: OWNER_TID, id: pid as libc::pid_t };
    // SAFETY: `owner` is struct f_owner_ex and lives as long as the call; the rest are numbers.
    let answers = unsafe {
        [
            libc::fcntl(fd, SET_OWNER, &raw const owner),
            libc::fcntl(fd, SET_SIGNAL, SIGNAL),
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
    fn names_tried_one_after_the_other_are_one_search() {
        let mut traps = BreakpointTraps::none();
        assert!(traps.sprung(TrapKind::Exec) && !traps.sprung(TrapKind::Exec));
    }

    #[test]
    fn this_very_program_begins_in_its_own_code() {
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
    fn the_functions_of_this_very_process_are_found() {
        let found = functions(std::process::id(), FUNCTIONS.map(|(_, name)| name)).unwrap();
        assert_eq!(found, [libc::execve as *const () as u64, libc::write as *const () as u64].map(Some));
    }
}
