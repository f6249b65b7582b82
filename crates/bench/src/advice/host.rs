//! Facts of the machine that decide what a power cut costs.

use std::fs;
use std::path::Path;

use rustix::fs::{major, minor, stat};
use weir_model::advise::{AdviceHost, Medium};
use weir_sys::file_system::mount_of;

use crate::machine::meminfo_bytes;

/// The kernel's defaults of dirty_expire_centisecs and dirty_writeback_centisecs together, in seconds.
const DEFAULT_WRITEBACK_S: f64 = 35.0;

/// Returns the facts of the machine and of the file system of `directory`.
pub fn host(directory: &Path) -> AdviceHost {
    let (fs, _) = mount_of(directory);
    AdviceHost {
        medium: medium(directory, &fs),
        fs,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        writeback_s: writeback_s().unwrap_or(DEFAULT_WRITEBACK_S),
        dirty_limit_bytes: dirty_limit_bytes(),
    }
}

fn vm(name: &str) -> Option<f64> {
    fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?.trim().parse().ok()
}

/// Returns the longest time until written bytes are written back. A flusher that is switched off (0) wakes only when many
/// pages are dirty; then the time is unknown and counts as a day.
fn writeback_s() -> Option<f64> {
    let (expire, interval) = (vm("dirty_expire_centisecs")?, vm("dirty_writeback_centisecs")?);
    Some(if interval == 0.0 { 86_400.0 } else { (expire + interval) / 100.0 })
}

fn dirty_limit_bytes() -> Option<u64> {
    match vm("dirty_bytes")? as u64 {
        0 => Some((meminfo_bytes("MemAvailable")? as f64 * vm("dirty_ratio")? / 100.0) as u64),
        bytes => Some(bytes),
    }
}

/// Returns the medium of a directory, from the type of its file system and from sysfs(5).
fn medium(directory: &Path, fs: &str) -> Medium {
    const NETWORK: [&str; 6] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph"];
    match fs {
        "tmpfs" | "ramfs" => return Medium::Ram,
        network if NETWORK.contains(&network) => return Medium::Network,
        _ => {}
    }
    block_medium(directory).unwrap_or(Medium::Unknown)
}

fn block_medium(directory: &Path) -> Option<Medium> {
    let device = stat(directory).ok()?.st_dev;
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let found = fs::canonicalize(link).ok()?;
    // A partition is a folder of its disk.
    let disk = if found.join("partition").exists() { found.parent()?.to_path_buf() } else { found };
    let name = disk.file_name()?.to_str()?;
    if name.starts_with("mmcblk") {
        let kind = fs::read_to_string(disk.join("device/type")).unwrap_or_default();
        return Some(if kind.trim() == "MMC" { Medium::Emmc } else { Medium::Sd });
    }
    // A virtual disk, a loop device or a mapped device does not report the medium below it.
    if ["vd", "xvd", "loop", "dm-", "md", "nbd", "zram"].iter().any(|kind| name.starts_with(kind)) {
        return Some(Medium::Unknown);
    }
    match fs::read_to_string(disk.join("queue/rotational")).ok()?.trim() {
        "0" => Some(Medium::Ssd),
        _ => Some(Medium::Hdd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_described() {
        let host = host(Path::new("/"));
        assert!(!host.fs.is_empty() && !host.kernel.is_empty() && host.cpus > 0, "{host:?}");
        assert!(host.writeback_s > 0.0 && host.dirty_limit_bytes.is_none_or(|bytes| bytes > 0), "{host:?}");
    }

    #[test]
    fn memory_is_recognised() {
        assert_eq!(medium(Path::new("/"), "tmpfs"), Medium::Ram);
        assert_eq!(medium(Path::new("/"), "nfs4"), Medium::Network);
        assert_eq!(medium(Path::new("/no/such/directory"), "ext4"), Medium::Unknown);
    }
}
