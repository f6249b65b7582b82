//! The identity of a thread, by which the kernel judges its writes (credentials(7)).

use std::fs;
use std::os::unix::fs::MetadataExt;

/// All facts about a writer that change the effect of a write(2) to an open file: whether a set-user-ID bit stays, which
/// SCM_CREDENTIALS a socket delivers, whether a security module allows the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterIdentity {
    /// Real, effective, saved and file system user ID.
    pub user_ids: [u32; 4],
    /// Real, effective, saved and file system group ID.
    pub group_ids: [u32; 4],
    /// Supplementary groups in ascending order.
    pub groups: Vec<u32>,
    /// The effective capabilities, a bit each.
    pub capabilities: u64,
    /// Device and inode of the user namespace; None if it may not be read.
    pub user_namespace: Option<(u64, u64)>,
    /// The label of the Linux security module; empty without one.
    pub security_label: Vec<u8>,
}

/// A limit on a file's size (RLIMIT_FSIZE), soft and hard.
pub type FileSizeLimit = (u64, u64);

impl WriterIdentity {
    /// Reads the identity of a thread; None if it has ended.
    pub fn of(tid: u32) -> Option<WriterIdentity> {
        WriterIdentity::read(&format!("/proc/{tid}"))
    }

    /// Reads the identity of the calling thread.
    pub fn own() -> Option<WriterIdentity> {
        WriterIdentity::read("/proc/thread-self")
    }

    fn read(folder: &str) -> Option<WriterIdentity> {
        let status = fs::read(format!("{folder}/status")).ok()?;
        let (user_ids, group_ids, groups, capabilities) = parse(&status)?;
        let namespace = fs::metadata(format!("{folder}/ns/user")).ok();
        Some(WriterIdentity {
            user_ids,
            group_ids,
            groups,
            capabilities,
            user_namespace: namespace.map(|namespace| (namespace.dev(), namespace.ino())),
            security_label: fs::read(format!("{folder}/attr/current")).unwrap_or_default(),
        })
    }
}

type Parsed = ([u32; 4], [u32; 4], Vec<u32>, u64);

/// Parses /proc/PID/status. The name in its first line has its newlines escaped.
fn parse(status: &[u8]) -> Option<Parsed> {
    let field = |name: &[u8]| {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        std::str::from_utf8(line).ok()
    };
    let numbers = |text: &str| {
        text.split_ascii_whitespace().map(|id| id.parse::<u32>().ok()).collect::<Option<Vec<u32>>>()
    };
    let mut groups = numbers(field(b"Groups:")?)?;
    groups.sort_unstable();
    Some((
        numbers(field(b"Uid:")?)?.try_into().ok()?,
        numbers(field(b"Gid:")?)?.try_into().ok()?,
        groups,
        u64::from_str_radix(field(b"CapEff:")?.trim(), 16).ok()?,
    ))
}

/// Returns whether a seccomp filter judges the system calls of a thread. A thread that has ended counts as filtered.
pub fn has_seccomp_filter(tid: u32) -> bool {
    let status = fs::read(format!("/proc/{tid}/status")).unwrap_or_default();
    !status.split(|byte| *byte == b'\n').any(|line| line == b"Seccomp:\t0")
}

/// Returns RLIMIT_FSIZE of a process or thread, or of the caller for 0; None if it has ended.
pub fn file_size_limit(pid: u32) -> Option<FileSizeLimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a null pointer leaves the limit unchanged, and the present limit goes to this frame.
    let result = unsafe { libc::prlimit(pid as i32, libc::RLIMIT_FSIZE, std::ptr::null(), &mut limit) };
    match result {
        0 => Some((limit.rlim_cur, limit.rlim_max)),
        // prlimit(2) needs CAP_SYS_RESOURCE for another user's process.
        _ => parse_limits(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?),
    }
}

/// Returns the line "Max file size" of /proc/PID/limits.
fn parse_limits(text: &str) -> Option<FileSizeLimit> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max file size"))?;
    let number = |word: &str| if word == "unlimited" { Some(libc::RLIM_INFINITY) } else { word.parse().ok() };
    let mut words = line.split_ascii_whitespace();
    Some((number(words.next()?)?, number(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_identity_of_its_parent() {
        let own = WriterIdentity::own().expect("an identity");
        assert_eq!(WriterIdentity::of(std::process::id()).as_ref(), Some(&own));
        // SAFETY: getfsuid is setfsuid with an invalid ID, which changes nothing.
        assert_eq!(own.user_ids[3], unsafe { libc::setfsuid(u32::MAX) } as u32);
        assert!(WriterIdentity::of(u32::MAX / 2).is_none());
        assert!(own.user_namespace.is_some());
    }

    #[test]
    fn the_limit_of_the_file_size() {
        let text = fs::read_to_string("/proc/self/limits").expect("limits");
        assert_eq!(parse_limits(&text), file_size_limit(0));
        let line = "Max cpu time              unlimited            unlimited            seconds\n\
                    Max file size             4096                 unlimited            bytes\n";
        assert_eq!(parse_limits(line), Some((4096, libc::RLIM_INFINITY)));
    }

    #[test]
    fn fields_of_status() {
        let text = b"Name:\tUid: 1\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t30 10 20 \nCapEff:\t00000000000000ff\n";
        assert_eq!(parse(text), Some(([1, 2, 3, 4], [5, 6, 7, 8], vec![10, 20, 30], 255)));
        assert_eq!(parse(b"Uid:\t1\n"), None);
    }
}
