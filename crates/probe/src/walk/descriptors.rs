//! Which descriptors a process has, and what they are open for.

use std::cell::RefCell;
use std::collections::HashMap;

/// Asked once for each descriptor that a look comes upon.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    pid: u32,
    known: RefCell<HashMap<i32, Option<i32>>>,
}

impl Descriptors {
    pub fn of(pid: u32) -> Descriptors {
        Descriptors { pid, ..Descriptors::default() }
    }

    /// Is it open for writing, or else for reading?
    pub fn open_for(&self, fd: i32, writes: bool) -> bool {
        let mode = *self.known.borrow_mut().entry(fd).or_insert_with(|| mode(self.pid, fd));
        let other = if writes { libc::O_RDONLY } else { libc::O_WRONLY };
        mode.is_some_and(|mode| mode != other)
    }
}

fn mode(pid: u32, fd: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    Some(i32::from_str_radix(flags.trim(), 8).ok()? & libc::O_ACCMODE)
}
