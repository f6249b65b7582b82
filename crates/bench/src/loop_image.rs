//! A fresh file system on a loop image, or a tmpfs, mounted in a mount namespace of our own: when this
//! process ends, however it ends, the mount and its loop device are gone. The image's name is removed
//! as soon as it is mounted, so nothing of it can be left behind.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

use crate::error::{Error, Result, suggestion};

/// Supported file systems: name, mkfs command, and the smallest size in bytes that the command accepts.
const KINDS: &[(&str, &[&str], u64)] = &[
    ("ext2", &["mkfs.ext2", "-q", "-F"], 16 << 20),
    ("ext3", &["mkfs.ext3", "-q", "-F"], 64 << 20),
    ("ext4", &["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], 64 << 20),
    ("xfs", &["mkfs.xfs", "-q", "-f"], 320 << 20),
    ("btrfs", &["mkfs.btrfs", "-q", "-f"], 320 << 20),
    ("tmpfs", &[], 0),
];

/// Returns the values of `--fs`.
pub fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.0).collect()
}

/// Fails with [`Error::Usage`] unless `name` is a value of `--fs`.
pub fn check_name(name: &str) -> Result<()> {
    match names().contains(&name) {
        true => Ok(()),
        false => {
            Err(Error::Usage(format!("--fs {name}: not one that can be made; {}", suggestion(name, names()))))
        }
    }
}

/// A mounted loop image or tmpfs. Drop unmounts it.
#[derive(Debug)]
pub struct LoopImage {
    folder: TempDir,
    label: &'static str,
}

impl LoopImage {
    /// Creates a file system of type `kind` with space for `bytes` and mounts it on a private directory in `dir`. Fails
    /// without root.
    pub fn make(kind: &str, dir: &Path, bytes: u64) -> Result<Self> {
        let (_, make, least) =
            KINDS.iter().find(|known| known.0 == kind).ok_or(Error::Failed(format!("{kind}?")))?;
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Failed(format!(
                "--fs {kind} needs root, to mount it; or mount one and use --dir"
            )));
        }
        private_mounts()?;
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(dir)
            .map_err(|error| Error::system("mkdir", dir, &error, ""))?;
        // Metadata, journal and the reserve for root take their share beside the files.
        let bytes = (bytes + bytes / 4 + (48 << 20)).max(*least);
        if make.is_empty() {
            let options = format!("size={bytes},mode=0700");
            command("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path())?;
            return Ok(Self { folder, label: "tmpfs of its own" });
        }
        let file = folder.path().with_extension("img");
        let mounted = mount_image(make, kind, &file, bytes, folder.path());
        let image = Self { folder, label: "loop image" };
        fs::remove_file(&file)
            .map_err(|error| Error::system("unlink", &file, &error, "remove it by hand"))?;
        mounted.map(|()| image)
    }

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the directory's name in tables.
    pub fn label(&self) -> &'static str {
        self.label
    }
}

impl Drop for LoopImage {
    fn drop(&mut self) {
        // MNT_DETACH: a killed child may hold a file for a moment longer; the namespace ends with us.
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
    }
}

/// Leaves the shared mount namespace, once per process. Every later call returns the first call's result.
fn private_mounts() -> Result<()> {
    static DONE: OnceLock<std::result::Result<(), rustix::io::Errno>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        // SAFETY: NEWNS (with FS, which it implies) changes the mounts and the working directory that this
        // thread sees; no memory or descriptor is unshared, so nothing that Rust relies on changes.
        #[allow(unsafe_code)]
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        // Where the root is no mount point, as in many a chroot, this fails: a mount could then be seen, and
        // stay, outside of this process, so none is made.
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
    });
    done.map_err(|error| {
        Error::system(
            "mount",
            Path::new("/"),
            &error.into(),
            "private mounts are not possible here: mount it yourself and use --dir",
        )
    })
}

fn mount_image(make: &[&str], fs: &str, file: &PathBuf, bytes: u64, point: &Path) -> Result<()> {
    let image = File::create_new(file).map_err(|error| Error::system("open", file, &error, ""))?;
    image.set_len(bytes).map_err(|error| Error::system("ftruncate", file, &error, ""))?;
    command(make[0], &make[1..], file)?;
    // Direct I/O of the loop device keeps the blocks out of the host's page cache, so that a sync is a
    // sync and cold is cold; not every host file system has it.
    let device = losetup(file, true).or_else(|_| losetup(file, false))?;
    let mounted = command("mount", &["-t", fs, device.as_str()], point);
    // Detaching a mounted device only marks it: the kernel frees it at the unmount, even after a kill.
    let detached = command("losetup", &["--detach"], Path::new(&device));
    mounted.and(detached).map(drop)
}

fn losetup(file: &Path, direct: bool) -> Result<String> {
    let direct = if direct { "--direct-io=on" } else { "--direct-io=off" };
    command("losetup", &["--find", "--show", direct], file)
}

/// Runs `name arguments… path` and returns its output. An error names the packages to install.
fn command(name: &str, arguments: &[&str], path: &Path) -> Result<String> {
    let output = Command::new(name).args(arguments).arg(path).output().map_err(|error| {
        Error::Failed(format!("{name}: {error}; install e2fsprogs, xfsprogs, btrfs-progs and mount for --fs"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or("").to_string();
    Err(Error::Failed(format!("{name} {}: {}: {last}", path.display(), output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_file_systems() {
        assert!(check_name("ext4").is_ok());
        let error = check_name("etx4").unwrap_err().to_string();
        assert!(error.contains("did you mean 'ext"), "{error}");
    }
}
