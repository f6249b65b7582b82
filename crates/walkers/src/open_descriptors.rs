//! The access modes of a process's descriptors.

use std::cell::RefCell;
use std::collections::HashMap;

use weir_sys::file_system::status_of_descriptor;
use weir_sys::open_files::fdinfo;

/// Reads `/proc/PID/fdinfo` once for each descriptor.
#[derive(Debug, Default)]
pub(crate) struct OpenDescriptors {
    pid: u32,
    known: RefCell<HashMap<i32, Option<i32>>>,
}

impl OpenDescriptors {
    pub fn of(pid: u32) -> OpenDescriptors {
        OpenDescriptors { pid, ..OpenDescriptors::default() }
    }

    /// Returns whether a descriptor is open for writing; if not `writes`, whether it is open for reading.
    pub fn open_for(&self, fd: i32, writes: bool) -> bool {
        let mode = *self
            .known
            .borrow_mut()
            .entry(fd)
            .or_insert_with(|| Some(fdinfo(self.pid, fd)?.flags & libc::O_ACCMODE));
        let other = if writes { libc::O_RDONLY } else { libc::O_WRONLY };
        mode.is_some_and(|mode| mode != other)
    }

    /// Returns whether a descriptor is a file at position 0, so that the process has not written to it yet.
    pub fn is_unwritten(&self, fd: i32) -> bool {
        let is_file = status_of_descriptor(self.pid, fd).is_ok_and(|about| about.is_file());
        is_file && fdinfo(self.pid, fd).is_some_and(|info| info.position == 0)
    }
}
