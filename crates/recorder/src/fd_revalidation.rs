//! What numbers of descriptors stand for behind a pause, in which nobody saw what was opened and closed: looked up in
//! /proc when they are used, and only then. A name is not given to what may be another file by now.

use weir_model::StreamKind;
use weir_model::trace::OpenFile;
use weir_sys::open_files::{fdinfo, open_file, unknown_file};
use weir_sys::proc;

use crate::fd_table::{FdEntry, FdTable};
use crate::open_files::OpenFileTable;

/// Nobody saw what was done to the table.
pub(super) fn doubt(table: &mut FdTable) {
    table.values_mut().for_each(|descriptor| descriptor.stale = true);
}

/// What is behind a descriptor that a process has now; None: nothing is, or it cannot be told any more.
pub(super) fn current(table: &mut FdTable, files: &mut OpenFileTable, pid: u32, fd: i32) -> Option<u32> {
    let known = table.get_mut(&fd)?;
    if !known.stale {
        return Some(known.file);
    }
    let file = &files.all[known.file as usize];
    if fdinfo(pid, fd).is_some_and(|now| now.ino != 0 && now.ino == file.ino && goes_alike(file, now.flags)) {
        known.stale = false;
        return Some(known.file);
    }
    let Some(now) = open_file(pid, fd) else {
        table.remove(&fd);
        return None;
    };
    Some(put(table, files, fd, now))
}

/// This is behind a descriptor: the open file that was known to be there, if it is the same still.
pub(super) fn put(table: &mut FdTable, files: &mut OpenFileTable, fd: i32, now: OpenFile) -> u32 {
    let is = |file: &OpenFile| (file.dev, file.ino) == (now.dev, now.ino) && now.ino != 0;
    if let Some(known) = table.get_mut(&fd) {
        let file = &files.all[known.file as usize];
        if is(file) && goes_alike(file, now.flags) {
            known.stale = false;
            return known.file;
        }
    }
    let close_on_exec = now.flags & libc::O_CLOEXEC != 0;
    // There is one of a pipe's or a terminal's, and its other users know it too.
    let inherited = files
        .all
        .iter()
        .rposition(|file| is(file) && now.kind != StreamKind::File && goes_alike(file, now.flags));
    let file = inherited.map_or_else(|| files.add(now), |id| id as u32);
    table.insert(fd, FdEntry::new(file, close_on_exec));
    file
}

/// Whether it is open the same way, as far as that matters to the streams of a file.
pub(super) fn goes_alike(file: &OpenFile, flags: i32) -> bool {
    file.kind != StreamKind::File || (file.flags ^ flags) & libc::O_ACCMODE == 0
}

/// The whole table, as it is now.
pub(super) fn renew(table: &mut FdTable, files: &mut OpenFileTable, pid: u32) {
    let numbers = proc::descriptors(pid);
    if numbers.is_empty() {
        return; // it has just ended
    }
    table.retain(|fd, _| numbers.contains(fd));
    for fd in numbers {
        match current(table, files, pid, fd) {
            Some(_) => {}
            None => drop(open_file(pid, fd).map(|now| put(table, files, fd, now))),
        }
    }
}

impl OpenFileTable {
    /// A descriptor of which nobody can tell what it stood for.
    pub fn unnamed(&mut self, fd: i32) -> u32 {
        self.add(OpenFile { path: format!("descriptor {fd}"), ..unknown_file(StreamKind::Other) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Two files and a table of this process in which a number stands for the first of them.
    fn reused() -> (tempfile::TempDir, i32, FdTable, OpenFileTable) {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        let (one, other) = (File::create(first).unwrap(), File::create(second).unwrap());
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(false));
        put(&mut table, &mut files, one.as_raw_fd(), open_file(std::process::id(), one.as_raw_fd()).unwrap());
        let fd = one.as_raw_fd();
        // SAFETY: both are open, and `one` stays so, for the other file.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), fd) }, fd);
        std::mem::forget(one);
        (dir, fd, table, files)
    }

    #[test]
    fn a_number_that_was_given_again_is_looked_up_where_there_is_doubt() {
        let (_dir, fd, mut table, mut files) = reused();
        let name = |files: &OpenFileTable, id: u32| {
            files.all[id as usize].path.rsplit('/').next().unwrap().to_string()
        };
        let id = current(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!(name(&files, id), "first", "it was followed: nothing is asked");
        doubt(&mut table);
        let id = current(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!(name(&files, id), "second");
        doubt(&mut table);
        let same = current(&mut table, &mut files, std::process::id(), fd).unwrap();
        assert_eq!((same, table[&fd].stale), (id, false));
        // SAFETY: it was forgotten above, and nobody uses it any more.
        unsafe { libc::close(fd) };
        doubt(&mut table);
        assert_eq!(current(&mut table, &mut files, std::process::id(), fd), None);
        assert!(!table.contains_key(&fd));
    }
}
