//! A file that the user named for a result; `-` is standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use weir_bench::Error;

use crate::console;

/// An open file, or standard output.
pub struct OutputFile {
    path: PathBuf,
    /// None for standard output.
    file: Option<File>,
    /// Whether [`OutputFile::open`] created the file and nothing has been written to it yet.
    created_empty: bool,
}

impl OutputFile {
    /// Opens or creates `path` and keeps its content. Verbs open their files before the work, so that a wrong name
    /// costs no work.
    pub fn open(path: &Path) -> Result<Self, String> {
        if is_stdout(path) {
            return Ok(Self { path: path.into(), file: None, created_empty: false });
        }
        let created_empty = !path.exists();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| error_text("open", path, &error))?;
        Ok(Self { path: path.into(), file: Some(file), created_empty })
    }

    /// Opens the file if there is one to open.
    pub fn open_optional(path: Option<&Path>) -> Result<Option<Self>, String> {
        path.map(Self::open).transpose()
    }

    /// Replaces the content of the file with `text`.
    pub fn write(self, text: &str) -> Result<(), String> {
        self.write_parts(&[text])
    }

    /// Replaces the content of the file with `parts`, one after the other.
    pub fn write_parts(mut self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        self.created_empty = false;
        let mut parts = parts.iter().map(AsRef::as_ref);
        let Some(file) = &mut self.file else {
            let printed = parts.try_for_each(console::print);
            return printed.map_err(|error| error_text("write", Path::new("standard output"), &error));
        };
        // The rest of the old content is cut off after the write. A file that is truncated to zero first is flushed to
        // the device by close(2) (ext4's auto_da_alloc), which takes milliseconds.
        let written = parts.try_for_each(|part| file.write_all(part.as_bytes()));
        let written = written.map_err(|error| error_text("write", &self.path, &error));
        let truncated = truncate_at_position(file);
        written.and(truncated.map_err(|error| error_text("ftruncate", &self.path, &error)))
    }
}

/// Returns whether `path` stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Cuts off a regular file at its file offset. Does nothing to devices and pipes.
fn truncate_at_position(file: &mut File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    let end = file.stream_position()?;
    if end < metadata.len() { file.set_len(end) } else { Ok(()) }
}

/// Removes a file that was created for a result that never came.
impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.created_empty {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn error_text(call: &str, path: &Path, error: &io::Error) -> String {
    Error::system(call, path, error, "choose another file").to_string()
}
