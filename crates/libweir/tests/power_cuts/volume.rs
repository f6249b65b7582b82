//! A file system in an image file, whose power can be cut.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// FS_IOC_SHUTDOWN, and its flag for no flush of the log.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
const NO_LOG_FLUSH: u32 = 2;
/// FICLONE of linux/fs.h.
const CLONE: libc::c_ulong = 0x4004_9409;

/// A file system and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeKind {
    Ext4,
    Ext4NoAutoAlloc,
    Xfs,
    Btrfs,
}

impl VolumeKind {
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Ext4NoAutoAlloc, Self::Xfs, Self::Btrfs];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4NoAutoAlloc => "ext4-noauto_da_alloc",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    fn make_command(self) -> (&'static str, &'static [&'static str], u64) {
        match self {
            Self::Ext4 | Self::Ext4NoAutoAlloc => ("mkfs.ext4", &["-q", "-F"], 64 << 20),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"], 320 << 20),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"], 128 << 20),
        }
    }

    fn options(self) -> &'static str {
        match self {
            Self::Ext4 => "loop,data=ordered",
            Self::Ext4NoAutoAlloc => "loop,data=ordered,noauto_da_alloc",
            Self::Xfs | Self::Btrfs => "loop",
        }
    }
}

/// A file system that a test can cut off and mount again. The image is a file in a directory of its own.
pub struct Volume {
    kind: VolumeKind,
    dir: PathBuf,
    /// The directory is removed last, after the mounts.
    _root: tempfile::TempDir,
    /// The volume that contains the image, if the image is cloned.
    outer: Option<Box<Volume>>,
    image: PathBuf,
    mounted: bool,
}

fn call(program: &str, arguments: &[&str]) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of the tests")
}

impl Volume {
    /// Makes and mounts a file system. Fails if this machine cannot.
    pub fn make(kind: VolumeKind) -> Result<Self, String> {
        let root = tempfile::Builder::new().prefix("weir-cut-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let root = root.map_err(|error| error.to_string())?;
        let outer = match kind {
            VolumeKind::Btrfs => Some(Box::new(Volume::outer()?)),
            _ => None,
        };
        let place = outer.as_ref().map_or(root.path(), |outer| outer.directory());
        let image = place.join("image");
        let dir = root.path().join("mounted");
        let (program, arguments, bytes) = kind.make_command();
        let made = File::create(&image).and_then(|file| file.set_len(bytes));
        made.and_then(|()| fs::create_dir(&dir)).map_err(|error| error.to_string())?;
        call(program, &[arguments, &[text(&image)]].concat())?;
        let mut volume = Self { kind, dir, _root: root, outer, image, mounted: false };
        volume.mount()?;
        Ok(volume)
    }

    /// Makes the volume for an image that is cloned.
    fn outer() -> Result<Self, String> {
        Volume::make(VolumeKind::Xfs)
    }

    pub fn directory(&self) -> &Path {
        &self.dir
    }

    fn mount(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while let Err(why) = call("mount", &["-o", self.kind.options(), text(&self.image), text(&self.dir)]) {
            // Two that mount at a time can want the same loop device.
            if began.elapsed() > Duration::from_secs(2) {
                return Err(why);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.mounted = true;
        Ok(())
    }

    /// Unmounts. A scanner of other processes may hold the mount for a moment.
    fn unmount(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while self.mounted {
            match call("umount", &[text(&self.dir)]) {
                Ok(()) => self.mounted = false,
                Err(why) if began.elapsed() > Duration::from_secs(30) => return Err(why),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    }

    /// Cuts the power. Returns what `before` returns just before the cut.
    pub fn cut(&self, before: impl FnOnce() -> u64) -> u64 {
        if let Some(outer) = &self.outer {
            let (from, to) = (File::open(&self.image), File::create(outer.directory().join("cut")));
            let (from, to) = (from.expect("the image"), to.expect("its clone"));
            let promised = before();
            // SAFETY: the call takes a descriptor.
            let result = unsafe { libc::ioctl(to.as_raw_fd(), CLONE, from.as_raw_fd()) };
            assert_eq!(result, 0, "FICLONE: {}", std::io::Error::last_os_error());
            return promised;
        }
        let dir = File::open(&self.dir).expect("the mount point");
        let promised = before();
        // SAFETY: the call reads the flags.
        let result = unsafe { libc::ioctl(dir.as_raw_fd(), SHUTDOWN, &NO_LOG_FLUSH) };
        assert_eq!(result, 0, "FS_IOC_SHUTDOWN: {}", std::io::Error::last_os_error());
        promised
    }

    /// Makes the file system anew, after one that cannot be mounted any more.
    pub fn renew(&mut self) -> Result<(), String> {
        let (program, arguments, _) = self.kind.make_command();
        call(program, &[arguments, &[text(&self.image)]].concat())?;
        self.mount()
    }

    /// Returns the file that names the image of the volume's loop device.
    fn backing_file(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let own = mounts.lines().find(|line| line.split(' ').nth(1) == Some(text(&self.dir)))?;
        let device = own.split(' ').next()?.strip_prefix("/dev/")?;
        Some(Path::new("/sys/block").join(device).join("loop/backing_file"))
    }

    /// Mounts what the cut has left. A process with mounts of its own may have a copy of the mount for a moment: as long as it
    /// has, the file system that was shut down would be mounted again.
    pub fn restart(&mut self) -> Result<(), String> {
        let backing = self.backing_file();
        self.unmount()?;
        let began = Instant::now();
        let in_use = |file: &PathBuf| {
            fs::read_to_string(file).is_ok_and(|image| Path::new(image.trim_end()) == self.image)
        };
        while backing.as_ref().is_some_and(in_use) {
            if began.elapsed() > Duration::from_secs(60) {
                return Err("the loop device stays in use".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(outer) = &self.outer {
            fs::rename(outer.directory().join("cut"), &self.image).map_err(|error| error.to_string())?;
        }
        self.mount()
    }

    /// Unmounts everything. Returns the mounts that stay.
    pub fn remove(mut self) -> Vec<String> {
        let unmounted = self.unmount();
        let mut left: Vec<String> = unmounted.err().into_iter().collect();
        left.extend(self.outer.take().into_iter().flat_map(|outer| outer.remove()));
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        left.extend(mounts.lines().filter(|line| line.contains(text(&self.dir))).map(String::from));
        left
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _mounted = self.unmount();
    }
}
