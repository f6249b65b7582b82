//! The private work directory of samples. It is created in a directory or on a loop image, and removed at the end.
//!
//! No file outside this directory is opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weir_model::Size;
use weir_model::bench::FROM_TO;
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
    /// Two directories that exist: samples read from the first and write to the second.
    FromTo(PathBuf, PathBuf),
    /// A fresh file system of this type on a loop image (tmpfs: in memory), made in this directory.
    FileSystem(String, PathBuf),
}

/// An open work directory. Drop removes the private directory and unmounts the loop image.
#[derive(Debug)]
pub struct BenchDirectory {
    /// The directory as the user named it, or `loop image`. `A → B` for samples that read from A and write to B.
    pub dir: String,
    /// File system type as in /proc/self/mountinfo, such as `ext4`; `ext4 → xfs` if samples write to another one.
    pub fs: String,
    /// Mount options, separated by commas.
    pub mount_options: String,
    /// The reason if the directory is unusable. Its cells repeat the reason in the result.
    pub cannot: Option<String>,
    /// The directory of the output, if it is not this one.
    output: Option<Box<BenchDirectory>>,
    work: Option<TempDir>,
    // Declared after `work`: fields drop in order, and the directory must be removed before its file system.
    _image: Option<LoopImage>,
}

impl BenchDirectory {
    /// Creates the private directory. Fails if the file system has less than `need_bytes` plus a margin free. If a
    /// loop image cannot be created, the call succeeds and `cannot` has the reason.
    pub fn open(request: &DirectoryRequest, need_bytes: u64) -> Result<Self> {
        match request {
            DirectoryRequest::Dir(dir) => Self::in_dir(dir, need_bytes),
            DirectoryRequest::FromTo(from, to) => Self::from_to(from, to, need_bytes),
            DirectoryRequest::FileSystem(fs, dir) => {
                match LoopImage::make(fs, dir, need_bytes.saturating_add(MARGIN_BYTES)) {
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
            output: None,
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
            .map_err(|error| Error::system("mkdir", dir, &error, mkdir_advice(&error)))?;
        let (fs, mount_options) = mount_of(dir);
        Ok(Self {
            dir: dir.display().to_string(),
            fs,
            mount_options,
            cannot: None,
            output: None,
            work: Some(work),
            _image: None,
        })
    }

    /// Opens two directories. `need_bytes` is for input and output together; each directory has half of it.
    fn from_to(from: &Path, to: &Path, need_bytes: u64) -> Result<Self> {
        let [input, output] =
            [Self::in_dir(from, need_bytes / 2)?, Self::in_dir(to, need_bytes.div_ceil(2))?];
        let both = |of: fn(&Self) -> &str| match (of(&input), of(&output)) {
            (same, other) if same == other => same.to_string(),
            (first, second) => format!("{first}{FROM_TO}{second}"),
        };
        Ok(Self {
            dir: format!("{}{FROM_TO}{}", input.dir, output.dir),
            fs: both(|directory| &directory.fs),
            mount_options: both(|directory| &directory.mount_options),
            output: Some(Box::new(output)),
            ..input
        })
    }

    /// Returns the private directories, whose devices do the work.
    pub fn device_paths(&self) -> impl Iterator<Item = &Path> {
        [Some(self), self.output.as_deref()]
            .into_iter()
            .flatten()
            .filter_map(|one| Some(one.work.as_ref()?.path()))
    }

    /// Returns the type of the file system with the input.
    pub fn input_fs(&self) -> &str {
        self.fs.split(FROM_TO).next().unwrap_or_default()
    }

    /// Returns the path of the input file.
    pub fn input_file(&self) -> PathBuf {
        self.file("in")
    }

    /// Returns the path of the output file.
    pub fn output_file(&self) -> PathBuf {
        self.output.as_deref().unwrap_or(self).file("out")
    }

    /// Returns the path of the file `name` in the private directory; for two directories, in that of the input.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.as_ref().map(|work| work.path().join(name)).unwrap_or_default()
    }

    /// Removes the private directories. Fails if a file in them cannot be removed.
    pub fn close(mut self) -> Result<()> {
        if let Some(output) = self.output.take() {
            output.close()?;
        }
        let Some(work) = self.work.take() else { return Ok(()) };
        let path = work.path().to_path_buf();
        work.close().map_err(|error| Error::system("rmdir", &path, &error, "remove it by hand"))
    }
}

/// Returns the advice for a directory that exists but in which mkdir(2) fails; empty for the default advice of the errno.
fn mkdir_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "its file system, such as that of /proc, takes no files: use another --dir"
        }
        _ => "",
    }
}

/// Fails if a file system has too little space. Does not check those that report no size, such as proc.
pub(crate) fn check_space(dir: &Path, need_bytes: u64) -> Result<()> {
    let room = rustix::fs::statvfs(dir).map_err(|error| Error::system("statvfs", dir, &error.into(), ""))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if room.f_blocks > 0 && free < need_bytes.saturating_add(MARGIN_BYTES) {
        let needed = Size(need_bytes.saturating_add(MARGIN_BYTES));
        return Err(Error::NoSpace { path: dir.into(), needed, free: Size(free) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_private_and_removed_on_close() {
        let outer = tempfile::tempdir().unwrap();
        let directory = BenchDirectory::open(&DirectoryRequest::Dir(outer.path().into()), 1000).unwrap();
        let file = directory.input_file();
        fs::write(&file, "x").unwrap();
        assert!(file.starts_with(outer.path()) && directory.fs != "unknown");
        directory.close().unwrap();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }

    #[test]
    fn input_and_output_can_be_in_two_directories() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let request = DirectoryRequest::FromTo(from.path().into(), to.path().into());
        let directory = BenchDirectory::open(&request, 1000).unwrap();
        assert!(
            directory.input_file().starts_with(from.path()) && directory.output_file().starts_with(to.path())
        );
        assert_eq!(directory.dir, format!("{} → {}", from.path().display(), to.path().display()));
        assert!(!directory.fs.contains('→'), "one file system: {}", directory.fs);
        directory.close().unwrap();
        assert!([from, to].iter().all(|dir| fs::read_dir(dir.path()).unwrap().count() == 0));
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        let request = DirectoryRequest::FileSystem("no-such-type".into(), "/tmp".into());
        let directory = BenchDirectory::open(&request, u64::MAX).unwrap();
        assert!(directory.cannot.is_some_and(|why| why.contains("no-such-type")));
    }

    #[test]
    fn a_missing_directory_and_too_little_space_are_errors() {
        let absent = BenchDirectory::open(&DirectoryRequest::Dir("/nonexistent/weir".into()), 1)
            .unwrap_err()
            .to_string();
        assert!(absent.starts_with("/nonexistent/weir: stat: ENOENT"), "{absent}");
        let proc = BenchDirectory::open(&DirectoryRequest::Dir("/proc".into()), 1).unwrap_err().to_string();
        assert!(proc.starts_with("/proc: mkdir: ") && proc.contains("takes no files"), "{proc}");
        let full =
            BenchDirectory::open(&DirectoryRequest::Dir("/tmp".into()), 1 << 60).unwrap_err().to_string();
        assert!(full.contains("not enough space"), "{full}");
    }
}
