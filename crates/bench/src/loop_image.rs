//! A fresh file system on a loop image, or a tmpfs, in a private mount namespace.
//!
//! The kernel removes the mount and its loop device when this process ends, also after SIGKILL. The image file is
//! unlinked right after the mount, so it cannot be left behind either.

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
            Err(Error::Usage(format!("--fs {name}: unsupported file system; {}", suggestion(name, names()))))
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
                "--fs {kind} needs root to mount it; or mount a file system yourself and use --dir"
            )));
        }
        private_mounts()?;
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(dir)
            .map_err(|error| Error::system("mkdir", dir, &error, ""))?;
        // A quarter and 48 MiB more than the files: metadata, journal and the blocks reserved for root.
        let bytes = bytes.saturating_add(bytes / 4).saturating_add(48 << 20).max(*least);
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
        // MNT_DETACH, because a killed child may still have a file open; the namespace ends with this process.
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
        // Fails if the root is not a mount point, as in many chroots. A mount would then propagate to other
        // processes and outlive this one, so nothing is mounted.
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
    });
    done.map_err(|error| {
        Error::system(
            "mount",
            Path::new("/"),
            &error.into(),
            "private mounts are not possible here: mount a file system yourself and use --dir",
        )
    })
}

fn mount_image(make: &[&str], fs: &str, file: &PathBuf, bytes: u64, point: &Path) -> Result<()> {
    let image = File::create_new(file).map_err(|error| Error::system("open", file, &error, ""))?;
    image.set_len(bytes).map_err(|error| Error::system("ftruncate", file, &error, ""))?;
    command(make[0], &make[1..], file)?;
    // With direct I/O the loop device bypasses the host's page cache, so that syncs reach the disk and cold files are
    // read from it. Not every host file system supports direct I/O.
    let device = losetup(file, true).or_else(|_| losetup(file, false))?;
    let mounted = command("mount", &["-t", fs, device.as_str()], point);
    // Detaching a mounted device only marks it; the kernel frees it at the unmount, also after a kill.
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.trim().lines().last().unwrap_or("").to_string();
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
