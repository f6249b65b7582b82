//! Where samples work: a private directory, made in a directory or on a loop image, removed in the end.
//!
//! Nothing outside the directory that was made here is ever opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_model::Size;

use crate::error::{Error, Result};
use crate::image::Image;

/// Room left on the file system beside the files of a sample: metadata and the journal.
const MARGIN_BYTES: u64 = 1 << 20;

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceRequest {
    /// A directory that exists.
    Dir(PathBuf),
    /// A fresh file system of this type on a loop image (tmpfs: in memory), made in this directory.
    FileSystem(String, PathBuf),
}

/// A place to work in. Dropping it removes everything that was made.
#[derive(Debug)]
pub struct Place {
    /// The directory as the user named it, or `loop image`.
    pub dir: String,
    /// File system type.
    pub fs: String,
    /// Mount options.
    pub mount_options: String,
    /// Why it cannot be used; its cells then say so.
    pub cannot: Option<String>,
    work: Option<TempDir>,
    // Behind `work`, so that the directory goes before its file system.
    _image: Option<Image>,
}

impl Place {
    /// Makes the private directory, with room for files of `need_bytes` in all.
    pub fn open(request: &PlaceRequest, need_bytes: u64) -> Result<Self> {
        match request {
            PlaceRequest::Dir(dir) => Self::in_dir(dir, need_bytes),
            PlaceRequest::FileSystem(fs, dir) => match Image::make(fs, dir, need_bytes + MARGIN_BYTES) {
                Ok(image) => {
                    let place = Self::in_dir(image.path(), need_bytes)?;
                    Ok(Self { dir: image.label().into(), _image: Some(image), ..place })
                }
                Err(why) => Ok(Self::unusable(fs, why.to_string())),
            },
        }
    }

    fn unusable(fs: &str, why: String) -> Self {
        Self {
            dir: "loop image".into(),
            fs: fs.into(),
            mount_options: String::new(),
            cannot: Some(why),
            work: None,
            _image: None,
        }
    }

    fn in_dir(dir: &Path, need_bytes: u64) -> Result<Self> {
        let meta = fs::metadata(dir).map_err(|error| Error::system("stat", dir, &error, ""))?;
        if !meta.is_dir() {
            return Err(Error::errno("open", dir, rustix::io::Errno::NOTDIR.raw_os_error()));
        }
        check_space(dir, need_bytes)?;
        let work = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(dir)
            .map_err(|error| Error::system("mkdir", dir, &error, ""))?;
        let (fs, mount_options) = mount_of(dir);
        Ok(Self {
            dir: dir.display().to_string(),
            fs,
            mount_options,
            cannot: None,
            work: Some(work),
            _image: None,
        })
    }

    /// The path of a file of ours.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.as_ref().map(|work| work.path().join(name)).unwrap_or_default()
    }

    /// Removes everything and says what could not be.
    pub fn close(mut self) -> Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let path = work.path().to_path_buf();
        work.close().map_err(|error| Error::system("rmdir", &path, &error, "remove it by hand"))
    }
}

fn check_space(dir: &Path, need_bytes: u64) -> Result<()> {
    let room = rustix::fs::statvfs(dir).map_err(|error| Error::system("statvfs", dir, &error.into(), ""))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if free < need_bytes.saturating_add(MARGIN_BYTES) {
        return Err(Error::Failed(format!(
            "{}: not enough room: {} are needed, {} are free (statvfs); use a smaller --size or another --dir",
            dir.display(),
            Size(need_bytes.saturating_add(MARGIN_BYTES)),
            Size(free)
        )));
    }
    Ok(())
}

/// Type and options of the file system that holds `dir`, from /proc/self/mountinfo (proc(5)).
fn mount_of(dir: &Path) -> (String, String) {
    let real = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = table.lines().filter_map(parse_mount).filter(|mount| real.starts_with(&mount.0)).fold(
        None,
        // The longest mount point wins, and of equals the last: it was mounted over the others.
        |best: Option<(PathBuf, String, String)>, mount| match best {
            Some(best) if best.0.as_os_str().len() > mount.0.as_os_str().len() => Some(best),
            _ => Some(mount),
        },
    );
    found.map(|(_, fs, options)| (fs, options)).unwrap_or_else(|| (fs_by_magic(&real), String::new()))
}

/// In a chroot whose root is no mount point, mountinfo has no line for it: statfs(2) still knows the type.
fn fs_by_magic(dir: &Path) -> String {
    const KNOWN: [(u32, &str); 11] = [
        (0xef53, "ext2/3/4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlay"),
        (0xf2f5_2010, "f2fs"),
        (0x4d44, "vfat"),
        (0x6969, "nfs"),
        (0x2fc1_2fc1, "zfs"),
        (0x6573_5546, "fuse"),
    ];
    let Ok(magic) = rustix::fs::statfs(dir).map(|fs| fs.f_type as u32) else { return "unknown".into() };
    let known = KNOWN.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).into())
}

/// Mount point, type and options (of the mount and of the file system) in one line of mountinfo.
fn parse_mount(line: &str) -> Option<(PathBuf, String, String)> {
    let (mount, fs) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let point = mount.next()?.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    let mut options: Vec<&str> = mount.next()?.split(',').collect();
    let mut fs = fs.split(' ');
    let kind = fs.next()?;
    for option in fs.nth(1).unwrap_or("").split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some((point.into(), kind.into(), options.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo() {
        let line =
            "36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(
            parse_mount(line),
            Some(("/mnt/my disk".into(), "ext3".into(), "rw,noatime,errors=continue".into()))
        );
        assert_eq!(parse_mount("nonsense"), None);
    }

    #[test]
    fn the_directory_is_ours_alone_and_goes_away() {
        let outer = tempfile::tempdir().unwrap();
        let place = Place::open(&PlaceRequest::Dir(outer.path().into()), 1000).unwrap();
        let file = place.file("in");
        fs::write(&file, "x").unwrap();
        assert!(file.starts_with(outer.path()) && place.fs != "unknown");
        place.close().unwrap();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_type_is_known_also_without_mountinfo() {
        assert_eq!(fs_by_magic(Path::new("/dev/shm")), mount_of(Path::new("/dev/shm")).0);
        assert_eq!(fs_by_magic(Path::new("/proc")), "type 0x9fa0");
        assert_eq!(fs_by_magic(Path::new("/nonexistent")), "unknown");
    }

    #[test]
    fn missing_and_too_small_say_so() {
        let absent = Place::open(&PlaceRequest::Dir("/nonexistent/weir".into()), 1).unwrap_err().to_string();
        assert!(absent.starts_with("/nonexistent/weir: stat: ENOENT"), "{absent}");
        let full = Place::open(&PlaceRequest::Dir("/tmp".into()), 1 << 60).unwrap_err().to_string();
        assert!(full.contains("not enough room"), "{full}");
    }
}
