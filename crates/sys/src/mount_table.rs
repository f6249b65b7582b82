//! The table of mounts in /proc/PID/mountinfo (proc(5)).

use std::fs;
use std::path::PathBuf;

use rustix::fs::makedev;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `mnt_id` of /proc/PID/fdinfo/FD.
    pub number: u64,
    /// Major and minor number.
    pub device: (u32, u32),
    pub point: PathBuf,
    /// Type of the file system, such as `fuse.sshfs`.
    pub kind: String,
    /// The options of the mount, and then those of the file system, separated by commas.
    pub options: String,
}

/// Returns the mounts that a process sees, a PID or `self`, in the order of the table; None if they cannot be read.
pub(crate) fn of_process(process: &str) -> Option<Vec<Mount>> {
    fs::read_to_string(format!("/proc/{process}/mountinfo")).ok().map(|text| parse(&text))
}

/// Returns the device numbers of the file systems in memory that this process sees, as `st_dev` of stat(2).
pub fn memory_devices() -> Vec<u64> {
    let mounts = of_process("self").unwrap_or_default().into_iter();
    let in_memory = mounts.filter(|mount| ["tmpfs", "ramfs"].contains(&mount.kind.as_str()));
    let mut devices: Vec<u64> = in_memory.map(|mount| makedev(mount.device.0, mount.device.1)).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// Parses the table without the lines that are not as proc(5) says.
pub(crate) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (mount, fs) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let number = mount.next()?.parse().ok()?;
    let (major, minor) = mount.nth(1)?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let point = mount.nth(1)?.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    let mut options: Vec<&str> = mount.next()?.split(',').collect();
    let mut fs = fs.split(' ');
    let kind = fs.next()?.to_owned();
    for option in fs.nth(1).unwrap_or("").split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { number, device, point: point.into(), kind, options: options.join(",") })
}

/// Returns the number of the mount of a descriptor of a process, a PID or `self`.
pub(crate) fn number_of_descriptor(process: &str, fd: i32) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn shared_memory_is_in_memory_and_proc_is_not() {
        let device = |path: &str| fs::metadata(path).expect(path).dev();
        let found = memory_devices();
        assert!(found.contains(&device("/dev/shm")) && !found.contains(&device("/proc")), "{found:?}");
    }

    #[test]
    fn a_line_is_parsed() {
        let line =
            "36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount {
            number: 36,
            device: (98, 0),
            point: "/mnt/my disk".into(),
            kind: "ext3".into(),
            options: "rw,noatime,errors=continue".into(),
        };
        assert_eq!(parse(&format!("nonsense\n{line}\n")), [mount]);
    }

    #[test]
    fn the_mount_of_a_descriptor_is_in_the_table() {
        let file = fs::File::open("/proc/self/mountinfo").expect("the table");
        let number = number_of_descriptor("self", file.as_raw_fd()).expect("its mount");
        let mounts = of_process("self").expect("the mounts of this process");
        let kinds = mounts.iter().filter(|mount| mount.number == number).map(|mount| mount.kind.as_str());
        assert_eq!(kinds.collect::<Vec<_>>(), ["proc"]);
    }
}
