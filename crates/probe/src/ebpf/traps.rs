//! Stops of one process at the entry of functions of its C library, where a tracer can look into its memory:
//! execve(2), after which the memory is gone, and the first write(2)s, before which something else may wait.
//!
//! Breakpoints of the processor, for this process only, by perf_event_open(2), which send it SIGURG. Its tracer takes
//! that signal away; without a tracer it does nothing, so no harm comes of weir being killed. Nobody else is stopped,
//! nothing is written into the program. (Uprobes would need no address, but take a tenth of a second to remove.)

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use aya_obj::generated::{self, perf_event_attr, perf_type_id};

use crate::proc;
use crate::walk::functions;

/// So many writes of an image are looked at: each look takes time, and a program that mixes its ways of writing
/// does so soon.
const WRITES: u32 = 4;
/// The length that a breakpoint for execution has to have.
const INSTRUCTION_BYTES: u64 = if cfg!(target_arch = "x86_64") { 8 } else { 4 };
/// Who does not ask for it is not bothered by it.
pub(super) const SIGNAL: i32 = libc::SIGURG;
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
pub(super) enum Trap {
    Exec,
    Write,
}

impl Trap {
    const ALL: [Self; 2] = [Self::Exec, Self::Write];

    fn function(self) -> &'static str {
        match self {
            Self::Exec => "execve",
            Self::Write => "write",
        }
    }
}

/// Those of one image of a process. Dropped, they are gone.
pub(super) struct Traps {
    set: Vec<(Trap, OwnedFd)>,
    writes: u32,
    tried: Option<Instant>,
}

impl Traps {
    /// Sets them; where that is not possible less is seen, and nothing else is different. None: its C library is
    /// not there yet.
    pub fn set(pid: u32) -> Option<Self> {
        let places = functions(pid, Trap::ALL.map(Trap::function))?;
        let mut traps = Self::none();
        if takes_the_signal(pid) {
            let set = Trap::ALL.into_iter().zip(places);
            traps.set.extend(set.filter_map(|(trap, at)| Some((trap, open(pid, at?).ok()?))));
        }
        Some(traps)
    }

    /// None yet, or none any more.
    pub fn none() -> Self {
        Self { set: Vec::new(), writes: 0, tried: None }
    }

    /// Whose signal it is, by the descriptor that it names.
    pub fn of(&self, fd: i32) -> Option<Trap> {
        self.set.iter().find(|(_, event)| event.as_raw_fd() == fd).map(|(trap, _)| *trap)
    }

    /// The process stands at one of them. Whether its streams are to be searched anew: they are not for each of
    /// the directories in which execvp(3) tries a name.
    pub fn sprung(&mut self, trap: Trap) -> bool {
        match trap {
            Trap::Exec => {
                self.tried.replace(Instant::now()).is_none_or(|before| before.elapsed() > ONE_SEARCH)
            }
            Trap::Write => {
                self.writes += 1;
                if self.writes >= WRITES {
                    self.set.retain(|(of, _)| *of != Trap::Write);
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
    // SAFETY: a struct of integers and unions of them: all zeros are one.
    let mut event: perf_event_attr = unsafe { std::mem::zeroed() };
    event.type_ = perf_type_id::PERF_TYPE_BREAKPOINT as u32;
    event.size = size_of::<perf_event_attr>() as u32;
    event.bp_type = generated::HW_BREAKPOINT_X;
    event.__bindgen_anon_3.config1 = address;
    event.__bindgen_anon_4.config2 = INSTRUCTION_BYTES;
    event.__bindgen_anon_1.sample_period = 1;
    event.__bindgen_anon_2.wakeup_events = 1;
    event.set_disabled(1);
    event.set_remove_on_exec(1);
    event.set_exclude_kernel(1);
    let (cpu, group, flags) = (-1, -1, libc::c_ulong::from(generated::PERF_FLAG_FD_CLOEXEC));
    // SAFETY: the attribute lives as long as the call; the rest are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const event, pid, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is new, and nobody else knows it.
    let event = unsafe { OwnedFd::from_raw_fd(fd as i32) };
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
        let mut traps = Traps::none();
        assert!(traps.sprung(Trap::Exec) && !traps.sprung(Trap::Exec));
    }

    #[test]
    fn the_functions_of_this_very_process_are_found() {
        let found = functions(std::process::id(), Trap::ALL.map(Trap::function)).unwrap();
        assert_eq!(found, [libc::execve as *const () as u64, libc::write as *const () as u64].map(Some));
    }
}
