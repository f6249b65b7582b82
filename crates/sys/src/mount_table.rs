//! The table of mounts in /proc/PID/mountinfo (proc(5)).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::makedev;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `mnt_id` of /proc/PID/fdinfo/FD.
    pub number: u64,
    /// The mount on which this one is mounted. It is not in the table if the process does not see it.
    pub parent: u64,
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
    // Every user can mount FUSE file systems at names that are not UTF-8.
    fs::read(format!("/proc/{process}/mountinfo")).ok().map(|text| parse(&text))
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
pub(crate) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let text = String::from_utf8_lossy(line);
    let (mount, fs) = text.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let [number, parent] = [mount.next()?.parse().ok()?, mount.next()?.parse().ok()?];
    let (major, minor) = mount.next()?.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let point = unescaped(line.split(|byte| *byte == b' ').nth(4)?);
    let mut options: Vec<&str> = mount.nth(2)?.split(',').collect();
    let mut fs = fs.split(' ');
    let kind = fs.next()?.to_owned();
    for option in fs.nth(1).unwrap_or("").split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { number, parent, device, point, kind, options: options.join(",") })
}

/// Returns the path of a field of mountinfo: replaces the octal escapes, such as `\040` of a space.
pub fn unescaped(mut field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    while let Some((first, after)) = field.split_first() {
        let escaped = after.get(..3).filter(|_| *first == b'\\').and_then(octal);
        bytes.push(escaped.unwrap_or(*first));
        field = if escaped.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |number, digit| {
        let value = (b'0'..=b'7').contains(digit).then(|| digit - b'0')?;
        number.checked_mul(8)?.checked_add(value)
    })
}

/// Returns the number of the mount of a descriptor of a process, a PID or `self`.
pub(crate) fn number_of_descriptor(process: &str, fd: i32) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
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
            parent: 35,
            device: (98, 0),
            point: "/mnt/my disk".into(),
            kind: "ext3".into(),
            options: "rw,noatime,errors=continue".into(),
        };
        assert_eq!(parse(format!("nonsense\n{line}\n").as_bytes()), [mount]);
    }

    #[test]
    fn every_byte_may_be_in_a_mount_point() {
        let table = b"36 35 98:0 / /m/\xff\\012\\043\\134040\\9 rw - fuse.a /\xfe rw,user_id=1000\n\
                      37 35 98:1 / /n rw - ext4 /dev/a rw\n";
        let mounts = parse(table);
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.as_os_str().as_bytes()).collect();
        assert_eq!(points, [&b"/m/\xff\n#\\040\\9"[..], b"/n"]);
        assert_eq!((&*mounts[0].kind, &*mounts[0].options), ("fuse.a", "rw,user_id=1000"));
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
