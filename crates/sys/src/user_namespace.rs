//! The user namespace of this process (user_namespaces(7)).

use std::fs;

/// The link of /proc/self/ns/user in the first user namespace (PROC_USER_INIT_INO of linux/nsfs.h).
const FIRST: &str = "user:[4026531837]";
/// The default of /proc/sys/kernel/overflowuid.
const OVERFLOW: u32 = 65534;

/// Returns whether this process is in the first user namespace. None if /proc does not show it.
pub fn is_first() -> Option<bool> {
    let link = fs::read_link("/proc/self/ns/user").ok()?;
    Some(link.to_str() == Some(FIRST))
}

/// Returns whether a user ID stands for all users that this user namespace has no numbers for. Without /proc, the kernel's default for
/// such an ID counts as one.
pub fn is_unmapped(user: u32) -> bool {
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let overflow = number.and_then(|number| number.trim().parse().ok()).unwrap_or(OVERFLOW);
    // A namespace with a number for each user shows no ID in place of another.
    let maps_all = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    user == overflow && !maps_all
}

/// Returns whether this user namespace has no number for the owner of /, so that no directory can be trusted with what weir loads into
/// programs.
pub fn lacks_owner_of_root() -> bool {
    rustix::fs::stat("/").is_ok_and(|root| is_unmapped(root.st_uid))
}
