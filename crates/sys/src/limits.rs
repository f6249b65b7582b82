//! The limits of weir's own process (getrlimit(2)): which are too low for weir, and what to do about one that was reached.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::errno_text;

/// A limit of bytes.
struct BytesLimit {
    resource: Resource,
    name: &'static str,
    least_kib: u64,
    /// The command of a shell that raises it.
    command: &'static str,
}

/// The limits that suffice for each verb on a small program. With less, a thread gets no stack, or an allocation fails and ends weir
/// in the middle of its work.
const BYTES: [BytesLimit; 3] = [
    BytesLimit {
        resource: Resource::Stack,
        name: "the stack",
        least_kib: if cfg!(debug_assertions) { 768 } else { 256 },
        command: "ulimit -s 8192",
    },
    BytesLimit {
        resource: Resource::Data,
        name: "data",
        least_kib: 14 << 10,
        command: "ulimit -d unlimited",
    },
    BytesLimit {
        resource: Resource::As,
        name: "virtual memory",
        least_kib: 40 << 10,
        command: "ulimit -v unlimited",
    },
];
/// The least number of descriptors that can still be opened. `weir peek` and `weir run` use 5 at a time; with less, a failed open
/// looks like a process that has ended.
const MIN_DESCRIPTORS: usize = 8;

/// Returns a sentence if a limit is too low for each verb of weir. The caller must not have used much of its stack.
pub fn too_low() -> Option<String> {
    bytes_too_low().or_else(descriptors_too_low)
}

fn bytes_too_low() -> Option<String> {
    BYTES.iter().find_map(|BytesLimit { resource, name, least_kib, command }| {
        let kib = getrlimit(*resource).current? >> 10;
        (kib < *least_kib).then(|| {
            format!("the limit of {name} is {kib} KiB, and weir needs {least_kib}: raise it ({command})")
        })
    })
}

fn descriptors_too_low() -> Option<String> {
    let free = descriptors_left();
    (free < MIN_DESCRIPTORS).then(|| {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(0);
        format!(
            "the limit of open files is {limit}, of which {free} are free, and weir needs {MIN_DESCRIPTORS}: raise it \
             (ulimit -n 1024)"
        )
    })
}

/// Returns how many descriptors this process can still open, at most [`MIN_DESCRIPTORS`].
fn descriptors_left() -> usize {
    let Ok(first) = eventfd(0, EventfdFlags::CLOEXEC) else { return 0 };
    let copies: Vec<_> =
        (1..MIN_DESCRIPTORS).map_while(|_| rustix::io::fcntl_dupfd_cloexec(&first, 0).ok()).collect();
    1 + copies.len()
}

/// The soft limit of open files before [`raise_open_files`]; None is no limit.
static FORMER_OPEN_FILES: OnceLock<Option<u64>> = OnceLock::new();

/// Allows this process as many open files as the hard limit. Commands that it starts need [`restore_open_files`].
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    FORMER_OPEN_FILES.get_or_init(|| limit.current);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Lets a command begin with the limit of open files that this process had before [`raise_open_files`]: some programs close as
/// many descriptors as the limit allows, and select(2) works with the first 1024 only.
pub fn restore_open_files(command: &mut Command) {
    let Some(former) = FORMER_OPEN_FILES.get().copied() else { return };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if former == current {
        return;
    }
    let restore =
        move || setrlimit(Resource::Nofile, Rlimit { current: former, maximum }).map_err(io::Error::from);
    // SAFETY: the child makes one system call and allocates nothing.
    unsafe { command.pre_exec(restore) };
}

/// Returns the limit that an error of a system call or of a new thread comes from, and what to do, after a dash; empty for other
/// errors.
pub fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => " – raise the limit of open files (ulimit -n)",
        Some(libc::EAGAIN) => {
            " – raise the limits of processes (ulimit -u) and of memory (ulimit -d, -v), or pids.max of the cgroup"
        }
        Some(libc::ENOMEM) => {
            " – raise the limits of memory (ulimit -d, -v), or memory.max of the cgroup, or end other processes"
        }
        _ => "",
    }
}

/// As [`advice`], without the dash; None for other errors.
pub fn advice_alone(error: &io::Error) -> Option<&'static str> {
    advice(error).strip_prefix(" – ")
}

/// Returns a sentence about a thread that cannot be started.
pub fn no_thread(error: &io::Error) -> String {
    format!("a thread cannot be started: {}{}", errno_text(error), advice(error))
}

/// Returns a sentence about a timer that cannot be made. The kernel reserves a pending signal for each.
pub fn no_timer(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EAGAIN) => " – raise the limit of pending signals (ulimit -i)",
        _ => advice(error),
    };
    format!("timer_create: {}{advice}", errno_text(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_test_suffice() {
        assert_eq!(too_low(), None);
        assert_eq!(descriptors_left(), MIN_DESCRIPTORS);
    }

    #[test]
    fn an_error_of_a_limit_names_it() {
        for (errno, limit) in
            [(libc::EMFILE, "-n"), (libc::EAGAIN, "-u"), (libc::ENOMEM, "-v"), (libc::ENOENT, "")]
        {
            let text = advice(&io::Error::from_raw_os_error(errno));
            assert!(text.contains(limit) && text.is_empty() == limit.is_empty(), "{errno}: {text}");
        }
    }
}
