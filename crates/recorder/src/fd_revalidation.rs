//! Looks up again what a descriptor refers to after a gap, in which opens and closes were not recorded. A gap
//! marks all entries of a descriptor table as stale; a stale entry is compared with /proc when the next event
//! uses it, so that no bytes go to the wrong file.

use weir_model::StreamKind;
use weir_model::trace::OpenFile;
use weir_sys::open_files::{fdinfo, open_file, unknown_file};
use weir_sys::proc;

use crate::fd_table::{FdEntry, FdTable, MAX_READ_AT_ONCE};
use crate::open_files::OpenFileTable;

/// Marks all entries as stale: changes to the table were not recorded.
pub(super) fn mark_stale(table: &mut FdTable) {
    table.values_mut().for_each(|descriptor| descriptor.stale = true);
}

/// Returns the file that a descriptor refers to. A stale entry is looked up in /proc, and removed if the
/// descriptor is closed or the process has exited.
pub(super) fn lookup(table: &mut FdTable, files: &mut OpenFileTable, pid: u32, fd: i32) -> Option<u32> {
    let known = table.get_mut(&fd)?;
    if !known.stale {
        return Some(known.file);
    }
    let file = &files.all[known.file as usize];
    if fdinfo(pid, fd)
        .is_some_and(|now| now.ino != 0 && now.ino == file.ino && same_access_mode(file, now.flags))
    {
        known.stale = false;
        return Some(known.file);
    }
    let Some(now) = open_file(pid, fd) else {
        table.remove(&fd);
        return None;
    };
    Some(enter(table, files, fd, now))
}

/// Enters the file that /proc shows for a descriptor. Keeps the known file's id if it is the same open file.
pub(super) fn enter(table: &mut FdTable, files: &mut OpenFileTable, fd: i32, now: OpenFile) -> u32 {
    let is_same = |file: &OpenFile| (file.dev, file.ino) == (now.dev, now.ino) && now.ino != 0;
    if let Some(known) = table.get_mut(&fd) {
        let file = &files.all[known.file as usize];
        if is_same(file) && same_access_mode(file, now.flags) {
            known.stale = false;
            return known.file;
        }
    }
    let close_on_exec = now.flags & libc::O_CLOEXEC != 0;
    // A pipe or a terminal has one entry, which its other users share.
    let shared = files
        .all
        .iter()
        .rposition(|file| is_same(file) && now.kind != StreamKind::File && same_access_mode(file, now.flags));
    let file = shared.map_or_else(|| files.add(now), |id| id as u32);
    table.insert(fd, FdEntry::new(file, close_on_exec));
    file
}

/// Returns whether the access mode of a regular file is unchanged. Other kinds always match.
pub(super) fn same_access_mode(file: &OpenFile, flags: i32) -> bool {
    file.kind != StreamKind::File || (file.flags ^ flags) & libc::O_ACCMODE == 0
}

/// Looks up the first descriptors of the process, and forgets those that are closed. Leaves the table as it is if the process has exited.
pub(super) fn refresh(table: &mut FdTable, files: &mut OpenFileTable, pid: u32) {
    let fds = proc::descriptors(pid);
    if fds.is_empty() {
        return; // the process has exited
    }
    table.retain(|fd, _| fds.contains(fd));
    for fd in fds.into_iter().take(MAX_READ_AT_ONCE) {
        match lookup(table, files, pid, fd) {
            Some(_) => {}
            None => drop(open_file(pid, fd).map(|now| enter(table, files, fd, now))),
        }
    }
}

impl OpenFileTable {
    /// Adds a file for a descriptor whose target is unknown.
    pub fn add_unnamed(&mut self, fd: i32) -> u32 {
        self.add(OpenFile { path: format!("descriptor {fd}").into(), ..unknown_file(StreamKind::Other) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Returns a table in which a descriptor refers to `first`, while in the process it refers to `second`.
    fn reused() -> (tempfile::TempDir, i32, FdTable, OpenFileTable) {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        let (one, other) = (File::create(first).unwrap(), File::create(second).unwrap());
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(false));
        enter(
            &mut table,
            &mut files,
            one.as_raw_fd(),
            open_file(std::process::id(), one.as_raw_fd()).unwrap(),
        );
        let fd = one.as_raw_fd();
        // SAFETY: both descriptors are open. `one` is leaked below, so nothing else closes its descriptor.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), fd) }, fd);
        std::mem::forget(one);
        (dir, fd, table, files)
    }

    #[test]
    fn a_stale_entry_of_a_reused_descriptor_is_looked_up() {
        let (_dir, fd, mut table, mut files) = reused();
        let name = |files: &OpenFileTable, id: u32| {
            files.all[id as usize].path.exact().rsplit('/').next().unwrap().to_string()
        };
        let id = lookup(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!(name(&files, id), "first", "a fresh entry needs no lookup");
        mark_stale(&mut table);
        let id = lookup(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!(name(&files, id), "second");
        mark_stale(&mut table);
        let same = lookup(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!((same, table[&fd].stale), (id, false));
        // SAFETY: the descriptor's owner was leaked, so nothing else closes or uses it.
        unsafe { libc::close(fd) };
        mark_stale(&mut table);
        assert_eq!(lookup(&mut table, &mut files, std::process::id(), fd), None);
        assert!(!table.contains_key(&fd));
    }
}
