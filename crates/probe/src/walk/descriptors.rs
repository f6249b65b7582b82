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

    /// Is it a file whose position is its beginning: nothing was written by it yet?
    pub fn is_unwritten(&self, fd: i32) -> bool {
        let path = format!("/proc/{}/fd/{fd}", self.pid);
        let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
        is_file && field(self.pid, fd, "pos:").is_some_and(|position| position.trim() == "0")
    }
}

fn mode(pid: u32, fd: i32) -> Option<i32> {
    Some(i32::from_str_radix(field(pid, fd, "flags:")?.trim(), 8).ok()? & libc::O_ACCMODE)
}

fn field(pid: u32, fd: i32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string)
}
