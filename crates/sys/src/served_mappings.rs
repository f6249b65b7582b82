//! Finds memory of processes of weir's own user that maps files of a server (FUSE, NFS …), so that weir lets a child read it.
//!
//! This is for accidents, such as a network that is down: the mappings are up to 20 ms old. A process of another user could map
//! a file meanwhile on purpose, so weir reads none of its memory itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::time::ClockId;

use crate::clock::clock_ns;
use crate::maps;
use crate::served_mounts::ServedMounts;

/// The interval between two reads of the mappings of a process: a program needs longer to map a file and to use it for a
/// stream. A read takes 2 µs, and 50 µs if there are served mounts.
const LOOK_AGAIN_NS: u64 = 20_000_000;
/// The most threads whose served mappings are kept.
const MAX_THREADS: usize = 4096;

/// The served mappings of a process at one time.
#[derive(Debug, Clone, Default)]
struct Look {
    /// CLOCK_MONOTONIC_COARSE.
    at_ns: u64,
    served: Rc<[Range<u64>]>,
}

/// A thread's user at one time.
struct KnownUser {
    /// CLOCK_MONOTONIC_COARSE. Later another process can have the number.
    at_ns: u64,
    /// /proc/TID of a thread of weir's own user; None for a thread of another user.
    directory: Option<OwnedFd>,
}

/// The most threads whose user is known: each can need a descriptor.
const MAX_USERS: usize = 32;

thread_local! {
    static LOOKS: RefCell<HashMap<u32, Look>> = RefCell::default();
    static USERS: RefCell<HashMap<u32, KnownUser>> = RefCell::default();
}

/// Returns whether a process or thread has weir's effective user. The owner of the directory /proc/TID is that user, even for a
/// process that is not dumpable. It is checked before each read: a process can change its user at any time.
pub(crate) fn is_of_own_user(tid: u32) -> bool {
    let now = clock_ns(ClockId::MonotonicCoarse);
    // weir never changes its identity.
    static OWN: OnceLock<u32> = OnceLock::new();
    let own = *OWN.get_or_init(|| rustix::process::geteuid().as_raw());
    USERS.with_borrow_mut(|users| {
        let is_recent = |user: &&KnownUser| now.saturating_sub(user.at_ns) < LOOK_AGAIN_NS;
        match users.get(&tid).filter(is_recent).map(|user| &user.directory) {
            Some(Some(directory)) => return fstat(directory).is_ok_and(|about| about.st_uid == own),
            Some(None) => return false,
            None => {}
        }
        let (is_own, directory) = open_if_own(tid, own);
        if users.len() >= MAX_USERS {
            users.clear();
        }
        if is_own == directory.is_some() {
            users.insert(tid, KnownUser { at_ns: now, directory });
        }
        is_own
    })
}

/// Returns whether a process has this user; and /proc/TID, opened, if it has and a descriptor is free. fstat(2) costs a fifth of
/// stat(2), and a snapshot makes thousands of reads.
fn open_if_own(tid: u32, own: u32) -> (bool, Option<OwnedFd>) {
    let path = format!("/proc/{tid}");
    match open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(directory) => {
            let is_own = fstat(&directory).is_ok_and(|about| about.st_uid == own);
            (is_own, is_own.then_some(directory))
        }
        Err(_) => (std::fs::metadata(path).is_ok_and(|about| about.uid() == own), None),
    }
}

/// Returns whether a part of these segments of memory is known to be served.
pub(crate) fn touch(tid: u32, segments: &[libc::iovec]) -> bool {
    let now = clock_ns(ClockId::MonotonicCoarse);
    LOOKS.with_borrow_mut(|looks| {
        if looks.len() >= MAX_THREADS {
            looks.clear();
        }
        let look = looks.entry(tid).or_default();
        if look.at_ns == 0 || now.saturating_sub(look.at_ns) >= LOOK_AGAIN_NS {
            *look = Look { at_ns: now, served: served(tid) };
        }
        let touches = |served: &Range<u64>| {
            segments.iter().any(|segment| {
                let start = segment.iov_base as u64;
                served.start < start.saturating_add(segment.iov_len as u64) && start < served.end
            })
        };
        look.served.iter().any(touches)
    })
}

/// Returns the mappings of served files.
fn served(tid: u32) -> Rc<[Range<u64>]> {
    let mounts = ServedMounts::of(tid);
    match mounts.devices().is_empty() {
        true => Rc::default(),
        false => parse(&maps::text(tid), mounts.devices()).into(),
    }
}

/// Returns the ranges in a text of /proc/PID/maps that map files of these devices.
fn parse(maps: &[u8], devices: &[String]) -> Vec<Range<u64>> {
    let range = |line: &str| {
        let mut fields = line.split(' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let device = fields.nth(2)?;
        devices.iter().any(|served| served == device).then_some(())?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    String::from_utf8_lossy(maps).lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_served_devices_are_found() {
        let text = b"1000-2000 r--s 00000000 00:27 7    /mnt/a b\n2000-3000 rw-p 00000000 00:00 0 [heap]\n";
        let [range] = &parse(text, &["00:27".into()])[..] else { panic!("one range") };
        assert_eq!(*range, 0x1000..0x2000);
        assert_eq!(parse(text, &["00:28".into()]), []);
    }

    #[test]
    fn a_process_has_an_owner() {
        assert!(is_of_own_user(std::process::id()));
        assert!(!is_of_own_user(u32::MAX));
    }
}
