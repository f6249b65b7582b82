//! Tries which other processes weir can see and trace: /proc, Yama, capabilities, the user namespace.

use std::fs;

use rustix::thread::{CapabilitySet, capabilities};
use weir_model::doctor::HostAbility;
use weir_sys::{proc, user_namespace};

use super::ability;

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Tests whether weir may trace processes that it did not start: by CAP_SYS_PTRACE, or those of its own user.
pub(super) fn other_processes() -> HostAbility {
    if !proc::is_mounted() {
        return HostAbility {
            name: "other-processes",
            tried: false,
            works: false,
            detail: "not tried: weir finds other processes by /proc, which is not mounted".into(),
            advice: Some("for --pid, peek and flush: mount -t proc proc /proc".into()),
        };
    }
    let level = fs::read_to_string(YAMA).ok().map(|level| level.trim().to_owned());
    let scope = level
        .as_ref()
        .map_or_else(|| "no Yama".to_owned(), |level| format!("kernel.yama.ptrace_scope is {level}"));
    let is_capable = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE));
    let whom = traced(level.as_deref(), is_capable, user_namespace::is_first() == Some(false));
    let result =
        whom.map(drop).ok_or_else(|| format!("{scope}: not all processes of this user may be traced"));
    let advice = match level.as_deref() {
        Some("3") => "3 forbids ptrace(2) until the next boot: remove it from sysctl.conf and boot",
        _ => "for --pid, peek and flush: run weir as root, or sysctl kernel.yama.ptrace_scope=0",
    };
    ability("other-processes", &format!("{} ({scope})", whom.unwrap_or_default()), result, advice)
}

/// Returns the processes that may be traced; None if Yama excludes some of this user. A capability of a user namespace has no effect on
/// processes outside, and the kernel allows no other access to these (cap_ptrace_access_check).
fn traced(level: Option<&str>, is_capable: bool, is_in_namespace: bool) -> Option<&'static str> {
    match (level, is_capable) {
        (None | Some("0"), false) if is_in_namespace => {
            Some("those of this user in this user namespace only; of others outside of it")
        }
        (None | Some("0"), false) => Some("those of this user only; of others by root or CAP_SYS_PTRACE"),
        (None | Some("0" | "1" | "2"), true) if is_in_namespace => {
            Some("those of this user namespace only; others by weir outside of it")
        }
        (None | Some("0" | "1" | "2"), true) => Some("all"),
        _ => None,
    }
}

/// Tests whether /proc shows the processes of all users.
pub(super) fn proc_mount() -> HostAbility {
    let (result, advice) = match (proc::is_mounted(), proc::hides_others()) {
        (false, _) => (
            Err("/proc is not mounted".to_owned()),
            "mount it for weir top, --pid, peek and flush, and for what weir run writes early or rescues: mount -t proc proc /proc",
        ),
        (_, true) => (
            Err("/proc hides processes of other users (mount option hidepid)".to_owned()),
            "weir top, --pid, peek and flush know only processes of this user: run weir as root, or in the group of the mount \
             option gid",
        ),
        (_, false) => (Ok(()), ""),
    };
    ability("proc", "/proc shows the processes of all users", result, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_a_user_namespace_reach_only_its_own_processes() {
        assert_eq!(traced(None, true, false), Some("all"));
        assert!(traced(Some("1"), true, true).is_some_and(|whom| whom.contains("user namespace only")));
        assert!(traced(None, false, false).is_some_and(|whom| whom.starts_with("those of this user only")));
        assert_eq!(
            [traced(Some("1"), false, false), traced(Some("3"), true, false), traced(Some("3"), true, true)],
            [None; 3]
        );
    }
}
