//! Stops of one process at the entry of functions of its C library, where a tracer can look into its memory:
//! execve(2), after which the memory is gone, and the first write(2)s, before which something else may wait.
//!
//! A uprobe of this process only, by perf_event_open(2), that sends it SIGTRAP (Linux 5.13). Its tracer takes that
//! signal away. Nobody else is stopped, nothing is changed in a file, and all is gone when weir is.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aya_obj::generated::perf_event_attr;

use super::libraries::system_libraries;
use crate::proc;
use crate::walk::function;

/// So many writes of an image are looked at: each look takes time, and a program that mixes its ways of writing
/// does so soon.
const WRITES: u32 = 4;
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

    /// By what the kernel hands over with the signal.
    pub fn of(data: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|&trap| trap as u64 + 1 == data)
    }
}

/// Those of one image of a process. Dropped, they are gone.
pub(super) struct Traps {
    set: Vec<(Trap, OwnedFd)>,
    writes: u32,
    tried: Option<Instant>,
}

impl Traps {
    /// Sets them; where that is not possible less is seen, and nothing else is different.
    pub fn set(pid: u32) -> Self {
        let mut set = Vec::new();
        if takes_the_signal(pid) {
            for trap in Trap::ALL {
                let made = places(pid, trap).into_iter().filter_map(|place| open(pid, &place, trap).ok());
                set.extend(made.map(|fd| (trap, fd)));
            }
        }
        Self { set, ..Self::none() }
    }

    /// None yet, or none any more.
    pub fn none() -> Self {
        Self { set: Vec::new(), writes: 0, tried: None }
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

/// The kernel would force the signal upon a process that blocks or ignores it.
fn takes_the_signal(pid: u32) -> bool {
    let bit = 1 << (libc::SIGTRAP - 1);
    proc::status(pid).is_some_and(|status| (status.sigblk | status.sigign | status.sigcgt) & bit == 0)
}

/// A function's place: the file and where in it.
type Place = (PathBuf, u64);

/// Where the function is: in the program itself, if that has its library in it, or in the libraries of the system.
fn places(pid: u32, trap: Trap) -> Vec<Place> {
    let at = |path: PathBuf| function(&path, trap.function()).map(|offset| (path, offset));
    match at(PathBuf::from(format!("/proc/{pid}/exe"))) {
        Some(own) => vec![own],
        None => system_libraries().filter_map(at).collect(),
    }
}

/// The kernel's number for uprobes.
static UPROBES: LazyLock<Option<u32>> = LazyLock::new(|| {
    fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok()?.trim().parse().ok()
});

fn open(pid: u32, (path, offset): &Place, trap: Trap) -> io::Result<OwnedFd> {
    let kind = UPROBES.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a struct of integers and unions of them: all zeros are one.
    let mut event: perf_event_attr = unsafe { std::mem::zeroed() };
    event.type_ = kind;
    event.size = size_of::<perf_event_attr>() as u32;
    event.__bindgen_anon_1.sample_period = 1;
    event.__bindgen_anon_3.config1 = path.as_ptr() as u64;
    event.__bindgen_anon_4.config2 = *offset;
    event.sig_data = trap as u64 + 1;
    event.set_sigtrap(1);
    event.set_remove_on_exec(1);
    let (cpu, group, flags) = (-1, -1, libc::c_ulong::from(aya_obj::generated::PERF_FLAG_FD_CLOEXEC));
    // SAFETY: the attribute and the path live as long as the call; the rest are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const event, pid, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is new, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_hands_over_names_the_function() {
        for trap in Trap::ALL {
            assert_eq!(Trap::of(trap as u64 + 1), Some(trap));
        }
        assert_eq!((Trap::of(0), Trap::of(3)), (None, None));
    }

    #[test]
    fn names_tried_one_after_the_other_are_one_search() {
        let mut traps = Traps::none();
        assert!(traps.sprung(Trap::Exec) && !traps.sprung(Trap::Exec));
    }

    #[test]
    fn the_system_has_a_library_with_both_functions() {
        for trap in Trap::ALL {
            assert!(system_libraries().any(|path| function(&path, trap.function()).is_some()));
        }
    }
}
