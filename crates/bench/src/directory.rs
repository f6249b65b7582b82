//! The private work directory of samples. It is created in a directory or on a loop image, and removed at the end.
//!
//! No file outside this directory is opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_model::Size;
use weir_sys::file_system::mount_of;

use crate::error::{Error, Result};
use crate::loop_image::LoopImage;

/// Free space required beside the files of a sample; an estimate for metadata and the journal.
const MARGIN_BYTES: u64 = 1 << 20;

/// A work directory as the user requested it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRequest {
    /// A directory that exists.
    Dir(PathBuf),
    /// A fresh file system of this type on a loop image (tmpfs: in memory), made in this directory.
    FileSystem(String, PathBuf),
}

/// An open work directory. Drop removes the private directory and unmounts the loop image.
#[derive(Debug)]
pub struct BenchDirectory {
    /// The directory as the user named it, or `loop image`.
    pub dir: String,
    /// File system type as in /proc/self/mountinfo, such as `ext4`.
    pub fs: String,
    /// Mount options, separated by commas.
    pub mount_options: String,
    /// The reason if the directory is unusable. Its cells repeat the reason in the result.
    pub cannot: Option<String>,
    work: Option<TempDir>,
    // Behind `work`, so that the directory goes before its file system.
    _image: Option<LoopImage>,
}

impl BenchDirectory {
    /// Creates the private directory. Fails if the file system has less than `need_bytes` plus a margin free. If a
    /// loop image cannot be created, the call succeeds and `cannot` has the reason.
    pub fn open(request: &DirectoryRequest, need_bytes: u64) -> Result<Self> {
        match request {
            DirectoryRequest::Dir(dir) => Self::in_dir(dir, need_bytes),
            DirectoryRequest::FileSystem(fs, dir) => {
                match LoopImage::make(fs, dir, need_bytes + MARGIN_BYTES) {
                    Ok(image) => {
                        let directory = Self::in_dir(image.path(), need_bytes)?;
                        Ok(Self { dir: image.label().into(), _image: Some(image), ..directory })
                    }
                    Err(why) => Ok(Self::unusable(fs, why.to_string())),
                }
            }
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

    /// Returns the path of the file `name` in the private directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.as_ref().map(|work| work.path().join(name)).unwrap_or_default()
    }

    /// Removes the private directory. Fails if a file in it cannot be removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_ours_alone_and_goes_away() {
        let outer = tempfile::tempdir().unwrap();
        let directory = BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1000).unwrap();
        let file = directory.file("in");
        fs::write(&file, "x").unwrap();
        assert!(file.starts_with(outer.path()) && directory.fs != "unknown");
        directory.close().unwrap();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    #[test]
    fn missing_and_too_small_say_so() {
        let absent = BenchDirectory::open(&DirectoryRequest::Dir("/nonexistent/weir".into()), 1)
            .unwrap_err()
            .to_string();
        assert!(absent.starts_with("/nonexistent/weir: stat: ENOENT"), "{absent}");
        let full =
            BenchDirectory::open(&DirectoryRequest::Dir("/tmp".into()), 1 << 60).unwrap_err().to_string();
        assert!(full.contains("not enough room"), "{full}");
    }
}
