//! The numbers of the kernel's tracepoints, which tracefs shows (Documentation/trace/events.rst).

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Returns the number of a tracepoint, such as `syscalls/sys_enter_write`, for PERF_TYPE_TRACEPOINT of perf_event_open(2). None
/// without such a tracepoint or without the rights.
pub fn tracepoint(name: &str) -> Option<u64> {
    let path = format!("events/{name}/id");
    let mounted = || fs::read_to_string(format!("/sys/kernel/tracing/{path}")).ok();
    let text = mounted().or_else(|| {
        let mut text = String::new();
        let file = openat(detached_mount()?, &*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        File::from(file).read_to_string(&mut text).ok().map(|_| text)
    });
    text?.trim().parse().ok()
}

/// Returns tracefs as a mount that is in no directory and ends with the descriptor (fsmount(2), Linux 5.2): minimal systems and
/// containers mount none.
fn detached_mount() -> Option<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_create(&context).ok()?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_has_a_number_and_others_have_none() {
        assert_eq!(tracepoint("syscalls/no_such_event"), None);
        if detached_mount().is_none() {
            return; // without the rights there is no number either
        }
        let [read, write] = ["read", "write"].map(|call| tracepoint(&format!("syscalls/sys_enter_{call}")));
        assert!(read.is_none() || read != write, "{read:?} {write:?}");
    }
}
