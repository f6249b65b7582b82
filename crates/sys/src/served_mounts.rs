//! Mounts whose files a program or another machine serves. If the server does not answer, a read of such a file, or of
//! memory that maps it, never returns, and with FUSE not even SIGKILL ends it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::mount_table::{self, Mount};

/// The time for which a table of mounts is used again: reading it takes 50 µs, and each opened image needs it.
const KEPT: Duration = Duration::from_millis(20);
/// The most tables that are kept: one for each mount namespace.
const MAX_TABLES: usize = 64;

/// Tables by mount namespace, each with the time at which it was read.
type Tables = HashMap<PathBuf, (Instant, Arc<ServedMounts>)>;

#[derive(Debug)]
struct MountPoint {
    number: u64,
    /// None for a root: no mount of the table is below it.
    parent: Option<u64>,
    path: PathBuf,
    is_served: bool,
}

/// The mounts of one mount namespace.
#[derive(Debug, Default)]
pub(crate) struct ServedMounts {
    points: Vec<MountPoint>,
    /// The devices of served file systems as /proc/PID/maps has them: `00:27`.
    devices: Vec<String>,
    /// The numbers of the mounts whose server the kernel asks when a link of /proc leads to a file.
    asked_at_links: HashSet<u64>,
}

impl ServedMounts {
    /// Returns the mounts that process `pid` sees; none if they cannot be read.
    pub fn of(pid: u32) -> Arc<ServedMounts> {
        static TABLES: Mutex<Option<Tables>> = Mutex::new(None);
        let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/mnt")) else { return Arc::default() };
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = tables.get_or_insert_default();
        if let Some((_, table)) = tables.get(&namespace).filter(|(read, _)| read.elapsed() < KEPT) {
            return Arc::clone(table);
        }
        let mounts = mount_table::of_process(&pid.to_string()).unwrap_or_default();
        let table = Arc::new(ServedMounts::among(mounts));
        if tables.len() >= MAX_TABLES {
            tables.clear();
        }
        tables.insert(namespace, (Instant::now(), Arc::clone(&table)));
        table
    }

    fn among(mounts: Vec<Mount>) -> ServedMounts {
        let mut served = ServedMounts::default();
        let numbers: HashSet<u64> = mounts.iter().map(|mount| mount.number).collect();
        for mount in mounts {
            let is_served = is_served(&mount.kind);
            if is_served {
                served.devices.push(format!("{:02x}:{:02x}", mount.device.0, mount.device.1));
            }
            if is_asked_at_links(&mount.kind) {
                served.asked_at_links.insert(mount.number);
            }
            let Mount { number, parent, point: path, .. } = mount;
            let parent = Some(parent).filter(|parent| *parent != number && numbers.contains(parent));
            served.points.push(MountPoint { number, parent, path, is_served });
        }
        served
    }

    /// Returns the mount point if the file of an absolute path without links is served.
    pub fn point_of(&self, path: &Path) -> Option<&Path> {
        if self.devices.is_empty() {
            return None;
        }
        self.mount_of(path).filter(|mount| mount.is_served).map(|mount| mount.path.as_path())
    }

    /// Returns the mount that the kernel reaches by an absolute path without links. A mount at a longer path is not reached if a
    /// later one hides its directory.
    fn mount_of(&self, path: &Path) -> Option<&MountPoint> {
        let mut reached: Option<&MountPoint> = None;
        // A table that changes while it is read may have a cycle.
        for _ in 0..self.points.len() {
            let parent = reached.map(|mount| mount.number);
            let next = self.points.iter().filter(|mount| mount.parent == parent);
            let containing = next.filter(|mount| path.starts_with(&mount.path));
            // Of equals the last.
            let Some(next) = containing.max_by_key(|mount| Reverse(mount.path.as_os_str().len())) else {
                break;
            };
            reached = Some(next);
        }
        reached
    }

    /// Returns whether the kernel asks a server when the link /proc/PID/fd/FD is followed.
    pub fn asks_at_descriptor(pid: u32, fd: i32) -> bool {
        if !has_types_asked_at_links() {
            return false;
        }
        let mounts = &Self::of(pid).asked_at_links;
        !mounts.is_empty()
            && mount_table::number_of_descriptor(&pid.to_string(), fd)
                .is_some_and(|number| mounts.contains(&number))
    }

    /// Returns the devices of served file systems, as /proc/PID/maps has them.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }
}

/// Returns whether a server answers the calls to a file system of this type.
fn is_served(kind: &str) -> bool {
    kind.starts_with("fuse") && kind != "fusectl"
        || kind.starts_with("nfs") && kind != "nfsd"
        || ["9p", "afs", "ceph", "cifs", "smb3", "virtiofs"].contains(&kind)
}

/// Returns whether the kernel asks the server of a file system of this type when a link of /proc leads to a file
/// (d_weak_revalidate in the kernel's Documentation/filesystems/vfs.rst).
fn is_asked_at_links(kind: &str) -> bool {
    ["nfs", "nfs4", "9p"].contains(&kind)
}

/// Returns whether the kernel has a file system of such a type at all, which most machines have not.
fn has_types_asked_at_links() -> bool {
    /// To load a file system's module and to mount it takes longer.
    const KEPT: Duration = Duration::from_millis(200);
    static KNOWN: Mutex<Option<(Instant, bool)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match *known {
        Some((read, has)) if read.elapsed() < KEPT => has,
        _ => {
            let types = fs::read_to_string("/proc/filesystems").unwrap_or_default();
            let has = types.lines().filter_map(|line| line.split_whitespace().last()).any(is_asked_at_links);
            known.insert((Instant::now(), has)).1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(mountinfo: &str) -> ServedMounts {
        ServedMounts::among(mount_table::parse(mountinfo.as_bytes()))
    }

    #[test]
    fn a_served_file_is_known_by_its_path_and_its_device() {
        let mounts = served(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             40 22 0:39 / /home/far rw,nosuid - fuse.sshfs far: rw,user_id=0\n\
             41 40 8:2 / /home/far/disk rw - ext4 /dev/sdb rw\n\
             42 22 0:40 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n",
        );
        let point = |path: &str| mounts.point_of(Path::new(path)).map(|point| point.to_str().unwrap());
        assert_eq!((point("/home/far/lib.so"), point("/home/farther")), (Some("/home/far"), None));
        assert_eq!((point("/home/far/disk/a"), point("/sys/fs/fuse/connections/1")), (None, None));
        assert_eq!(mounts.devices(), ["00:27"]);
        assert!(mounts.asked_at_links.is_empty(), "the kernel has the status of a FUSE file");
        let table = "50 22 0:41 / /home/nfs rw - nfs4 far:/home rw\n";
        assert_eq!(served(table).asked_at_links, HashSet::from([50]));
    }

    #[test]
    fn a_served_mount_on_a_directory_hides_the_mounts_below_it() {
        let mounts = served(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             41 22 8:2 / /home/far/disk rw - ext4 /dev/sdb rw\n\
             42 22 0:39 / /home/far rw - fuse.sshfs far: rw,user_id=1000\n\
             43 22 0:40 / /data rw - fuse.sshfs data: rw,user_id=1000\n\
             44 43 8:3 / /data rw - ext4 /dev/sdc rw\n\
             45 44 0:41 / /data/far rw - fuse.sshfs more: rw,user_id=1000\n",
        );
        let point = |path: &str| mounts.point_of(Path::new(path)).map(|point| point.to_str().unwrap());
        assert_eq!(point("/home/far/disk/a"), Some("/home/far"));
        assert_eq!((point("/data/a"), point("/data/far/a")), (None, Some("/data/far")));
        // A root file system that another mount has become the root of, such as NFS of an initramfs.
        let moved = served(
            "30 1 0:50 / / rw - nfs4 far:/ rw\n\
             21 30 0:5 / /proc rw - proc proc rw\n",
        );
        assert_eq!(moved.point_of(Path::new("/proc/1/maps")), None);
        assert_eq!(moved.point_of(Path::new("/usr/a")), Some(Path::new("/")));
        let chroot = served("50 9 0:41 / /home rw - nfs4 far:/home rw\n");
        assert_eq!(
            (chroot.point_of(Path::new("/usr")), chroot.point_of(Path::new("/home/a"))),
            (None, Some(Path::new("/home")))
        );
    }

    #[test]
    fn this_process_sees_mounts() {
        assert!(!ServedMounts::of(std::process::id()).points.is_empty());
    }
}
