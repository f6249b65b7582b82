//! Ways to the open file behind another process's descriptor. pidfd_getfd(2) duplicates the descriptor. Where that is forbidden, as in
//! Docker's containers, weir duplicates a descriptor that it has inherited too, or opens the file anew.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use weir_model::StreamKind;
use weir_sys::file_system::{FileStatus, status_of, status_of_descriptor};
use weir_sys::foreign_descriptors::{duplicate, forbidden};
use weir_sys::inherited::kept_stdout;
use weir_sys::open_files::{fdinfo, kind_at};
use weir_sys::proc;
use weir_sys::ptrace::compare_files;

/// Returns a descriptor whose writes reach the same file and position as a write(2) of the thread to `fd`. `has_own_identity` returns
/// whether the thread has the rights of weir. Only then is a file opened anew, because another thread with the same descriptors could
/// replace `fd` by a file that it may only read.
pub(super) fn open(tid: u32, fd: i32, has_own_identity: impl FnOnce() -> bool) -> io::Result<OwnedFd> {
    duplicate(tid, fd).or_else(|error| {
        let reopened = || forbidden().filter(|_| has_own_identity()).and_then(|_| reopen(tid, fd));
        own_duplicate(tid, fd).or_else(reopened).ok_or(error)
    })
}

/// Duplicates the one of weir's standard descriptors that has the same open file, or the one that it had before the command's start.
fn own_duplicate(tid: u32, fd: i32) -> Option<OwnedFd> {
    kept_stdout().map(|kept| kept.as_raw_fd()).into_iter().chain(0..3).find_map(|own| {
        // SAFETY: F_DUPFD_CLOEXEC creates a descriptor and changes no other.
        let copy = unsafe { libc::fcntl(own, libc::F_DUPFD_CLOEXEC, 3) };
        // SAFETY: the kernel has just created this descriptor for the caller.
        let copy = (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })?;
        let is_same = compare_files((tid, fd), (std::process::id(), own));
        is_same.unwrap_or_else(|_| shares_status_flags(tid, fd, copy.as_fd())).then_some(copy)
    })
}

/// Recognizes a common open file by a status flag, where kcmp(2) is forbidden: a change through one descriptor shows at the other. The
/// flag has no effect on writes to this kind of file, and is changed for some microseconds.
fn shares_status_flags(tid: u32, fd: i32, own: BorrowedFd) -> bool {
    let (Ok(its), Ok(status)) = (status_of_descriptor(tid, fd), status_of(own)) else { return false };
    if (its.dev, its.ino) != (status.dev, status.ino) {
        return false;
    }
    let flag = match kind(&status) {
        FileType::RegularFile | FileType::BlockDevice => OFlags::NOATIME,
        _ => OFlags::APPEND,
    };
    let shown = || Some(fdinfo(tid, fd)?.flags as u32 & flag.bits());
    let toggle = || fcntl_getfl(own).and_then(|flags| fcntl_setfl(own, flags ^ flag));
    let before = shown();
    if before.is_none() || toggle().is_err() {
        return false;
    }
    let changed = shown();
    toggle().is_ok() && changed.is_some() && changed != before && shown() == before
}

/// Opens the file of a descriptor anew, if that needs no common offset: a pipe, a terminal, or a file with O_APPEND.
fn reopen(tid: u32, fd: i32) -> Option<OwnedFd> {
    let (status, info) = (status_of_descriptor(tid, fd).ok()?, fdinfo(tid, fd)?);
    let flags = OFlags::from_bits_retain(info.flags as u32);
    let has_no_offset = match kind(&status) {
        FileType::Fifo => true,
        FileType::CharacterDevice => {
            kind_at(proc::descriptor(tid, fd)?.exact(), status.mode) == StreamKind::Terminal
        }
        FileType::RegularFile => flags.contains(OFlags::APPEND) && !flags.contains(OFlags::RDWR),
        _ => false,
    };
    let is_readable_only = info.flags & libc::O_ACCMODE == libc::O_RDONLY;
    if !has_no_offset || is_readable_only || flags.contains(OFlags::DIRECT) {
        return None;
    }
    // O_NONBLOCK: without a reader, the open of a pipe would wait.
    let new = OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        File::options().write(true).custom_flags(new.bits() as i32).open(format!("/proc/{tid}/fd/{fd}"));
    let file = file.ok()?;
    let opened = status_of(&file).ok()?;
    ((opened.dev, opened.ino) == (status.dev, status.ino)).then(|| file.into())
}

fn kind(status: &FileStatus) -> FileType {
    FileType::from_raw_mode(status.mode)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn is_shared(one: &impl AsRawFd, other: &impl AsFd) -> bool {
        shares_status_flags(std::process::id(), one.as_raw_fd(), other.as_fd())
    }

    #[test]
    fn a_common_open_file_is_recognized_by_its_flags() {
        let (reader, writer) = io::pipe().unwrap();
        let copy = writer.try_clone().unwrap();
        let flags = fcntl_getfl(&writer).unwrap();
        assert!(is_shared(&writer, &copy));
        assert_eq!(fcntl_getfl(&writer).unwrap(), flags);
        assert!(!is_shared(&writer, &reader), "another open file of the same pipe");
        let file = tempfile::NamedTempFile::new().unwrap();
        let (copy, other) = (file.as_file().try_clone().unwrap(), file.reopen().unwrap());
        assert!(is_shared(file.as_file(), &copy) && !is_shared(file.as_file(), &other));
    }

    #[test]
    fn only_files_without_an_offset_are_opened_anew() {
        let own = std::process::id();
        let (mut reader, writer) = io::pipe().unwrap();
        let again = reopen(own, writer.as_raw_fd()).expect("a pipe");
        drop(writer);
        File::from(again).write_all(b"text").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), reopen(own, reader.as_raw_fd()).is_none()), ("text", true));

        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(reopen(own, file.as_file().as_raw_fd()).is_none(), "a file with an offset");
        let appending = File::options().append(true).open(file.path()).unwrap();
        assert!(reopen(own, appending.as_raw_fd()).is_some());
        let null = File::options().append(true).open("/dev/null").unwrap();
        assert!(reopen(own, null.as_raw_fd()).is_none(), "a device that is no terminal");
    }
}
