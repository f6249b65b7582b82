//! Files that the user asked results to be written to; `-` is standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use weir_bench::Error;

use crate::screen;

/// A result as JSON.
pub fn json<T: serde::Serialize>(value: &T) -> Result<String, String> {
    weir_report::json::pretty(value).map_err(|error| format!("JSON: {error}"))
}

/// A file that was opened before the work, so that a wrong name costs no measurement.
pub struct Export {
    path: PathBuf,
    file: Option<File>,
    made: bool,
}

impl Export {
    /// Opens `path`, without touching what is in it yet.
    pub fn open(path: &Path) -> Result<Self, String> {
        if path == Path::new("-") {
            return Ok(Self { path: path.into(), file: None, made: false });
        }
        let made = !path.exists();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| said(path, "open", &error))?;
        Ok(Self { path: path.into(), file: Some(file), made })
    }

    /// Is it standard output?
    pub fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Replaces what the file holds.
    pub fn write(self, text: &str) -> Result<(), String> {
        self.write_parts(&[text])
    }

    /// The same with a text that was made in several parts.
    pub fn write_parts(mut self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        self.made = false;
        let mut parts = parts.iter().map(AsRef::as_ref);
        let Some(file) = &mut self.file else {
            let printed = parts.try_for_each(screen::print);
            return printed.map_err(|error| said(Path::new("standard output"), "write", &error));
        };
        // Cut off behind the text and not before it: a file that was emptied first is brought to the disk when it is
        // closed (ext4's auto_da_alloc), and everybody waits.
        let written = parts.try_for_each(|part| file.write_all(part.as_bytes()));
        let written = written.map_err(|error| said(&self.path, "write", &error));
        let cut = cut_off(file).map_err(|error| said(&self.path, "ftruncate", &error));
        written.and(cut)
    }
}

/// What a file holds behind the place where it stands. Devices and pipes hold nothing.
fn cut_off(file: &mut File) -> io::Result<()> {
    let held = file.metadata()?;
    if !held.is_file() {
        return Ok(());
    }
    let end = file.stream_position()?;
    if end < held.len() { file.set_len(end) } else { Ok(()) }
}

/// A file that was made for a result that never came is removed again.
impl Drop for Export {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What makes the text of a file, when it is asked for.
pub type MakeText<'a> = &'a dyn Fn() -> Result<String, String>;

/// The files of --json, --csv and --markdown, in this order.
pub struct Exports([Option<Export>; 3]);

impl Exports {
    /// Opens those that were asked for.
    pub fn open(paths: [&Option<PathBuf>; 3]) -> Result<Self, Error> {
        let [json, csv, markdown] =
            paths.map(|path| path.as_deref().map(Export::open).transpose().map_err(Error::Failed));
        Ok(Self([json?, csv?, markdown?]))
    }

    /// Does one of them take standard output? The screen then stays empty.
    pub fn to_stdout(&self) -> bool {
        self.0.iter().flatten().any(Export::is_stdout)
    }

    /// Writes them.
    pub fn write(self, texts: [MakeText; 3]) -> Result<(), Error> {
        for (export, text) in self.0.into_iter().zip(texts) {
            if let Some(export) = export {
                text().and_then(|text| export.write(&text)).map_err(Error::Failed)?;
            }
        }
        Ok(())
    }
}

fn said(path: &Path, call: &str, error: &io::Error) -> String {
    Error::system(call, path, error, "choose another file").to_string()
}
