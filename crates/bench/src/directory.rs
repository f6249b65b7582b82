//! Where samples work: a private directory, made in a directory or on a loop image, removed in the end.
//!
//! Nothing outside the directory that was made here is ever opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_model::Size;
use weir_sys::file_system::mount_of;

use crate::error::{Error, Result};
use crate::loop_image::LoopImage;

/// Room left on the file system beside the files of a sample: metadata and the journal.
const MARGIN_BYTES: u64 = 1 << 20;

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRequest {
    /// A directory that exists.
    Dir(PathBuf),
    /// A fresh file system of this type on a loop image (tmpfs: in memory), made in this directory.
    FileSystem(String, PathBuf),
}

/// A place to work in. Dropping it removes everything that was made.
#[derive(Debug)]
pub struct BenchDirectory {
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
    _image: Option<LoopImage>,
}

impl BenchDirectory {
    /// Makes the private directory, with room for files of `need_bytes` in all.
    pub fn open(request: &DirectoryRequest, need_bytes: u64) -> Result<Self> {
        match request {
            DirectoryRequest::Dir(dir) => Self::in_dir(dir, need_bytes),
            DirectoryRequest::FileSystem(fs, dir) => {
                match LoopImage::make(fs, dir, need_bytes + MARGIN_BYTES) {
                    Ok(image) => {
                        let place = Self::in_dir(image.path(), need_bytes)?;
                        Ok(Self { dir: image.label().into(), _image: Some(image), ..place })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_ours_alone_and_goes_away() {
        let outer = tempfile::tempdir().unwrap();
        let place = BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1000).unwrap();
        let file = place.file("in");
        fs::write(&file, "x").unwrap();
        assert!(file.starts_with(outer.path()) && place.fs != "unknown");
        place.close().unwrap();
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
