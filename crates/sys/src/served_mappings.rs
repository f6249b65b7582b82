//! Memory of processes of weir's own user that maps files of a server (FUSE, NFS …), so that weir lets a child read it.
//!
//! This is for accidents, such as a network that is down: the look is up to 20 ms old. A process of another user could map
//! a file meanwhile, so weir reads none of its memory itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::OnceLock;

use rustix::time::ClockId;

use crate::clock::clock_ns;
use crate::maps;
use crate::served_mounts::ServedMounts;

/// The interval between two looks at the mappings of a process: a program needs longer to map a file and to use it for a
/// stream. A look takes 2 µs, and 50 µs if there are served mounts.
const LOOK_AGAIN_NS: u64 = 20_000_000;
/// The most threads whose last look is remembered.
const THREADS_MOST: usize = 4096;

/// A look at the mappings of a process.
#[derive(Debug, Clone, Default)]
struct Look {
    /// CLOCK_MONOTONIC_COARSE.
    at_ns: u64,
    served: Rc<[Range<u64>]>,
}

thread_local! {
    static LOOKS: RefCell<HashMap<u32, Look>> = RefCell::default();
    /// Threads of other users, and when they were seen by CLOCK_MONOTONIC_COARSE.
    static STRANGERS: RefCell<HashMap<u32, u64>> = RefCell::default();
}

/// Returns whether a process or thread has weir's effective user. /proc/TID shows it for every process, also for one that
/// cannot be dumped. A process of another user is examined again after a while: only to trust one for longer is a risk.
pub(crate) fn is_of_own_user(tid: u32) -> bool {
    let now = clock_ns(ClockId::MonotonicCoarse);
    STRANGERS.with_borrow_mut(|strangers| {
        if strangers.get(&tid).is_some_and(|seen| now.saturating_sub(*seen) < LOOK_AGAIN_NS) {
            return false;
        }
        let user = std::fs::metadata(format!("/proc/{tid}")).map(|about| about.uid());
        // weir never changes its identity.
        static OWN: OnceLock<u32> = OnceLock::new();
        let own = *OWN.get_or_init(|| rustix::process::geteuid().as_raw());
        let is_own = user.is_ok_and(|user| user == own);
        if is_own {
            strangers.remove(&tid);
        } else {
            if strangers.len() >= THREADS_MOST {
                strangers.clear();
            }
            strangers.insert(tid, now);
        }
        is_own
    })
}

/// Returns whether a part of these pieces of memory is known to be served.
pub(crate) fn touch(tid: u32, pieces: &[libc::iovec]) -> bool {
    let now = clock_ns(ClockId::MonotonicCoarse);
    LOOKS.with_borrow_mut(|looks| {
        if looks.len() >= THREADS_MOST {
            looks.clear();
        }
        let look = looks.entry(tid).or_default();
        if look.at_ns == 0 || now.saturating_sub(look.at_ns) >= LOOK_AGAIN_NS {
            *look = Look { at_ns: now, served: served(tid) };
        }
        let touches = |served: &Range<u64>| {
            pieces.iter().any(|piece| {
                let start = piece.iov_base as u64;
                served.start < start.saturating_add(piece.iov_len as u64) && start < served.end
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
