//! Bytes of a source that wait for the log with `--overflow spill`: first in memory, then in a file, in their order.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where sources keep what does not fit in memory, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// The directory of the files. It should not be on the file system of the log, which may be full.
    pub directory: PathBuf,
    /// The most bytes of one source in a file; a source with more waits.
    pub limit: u64,
}

/// A queue of bytes. Bytes leave it in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    memory: Vec<u8>,
    file: Option<SpillFile>,
    /// Behind those of the file: bytes that it did not take. The source is not read as long as there are some.
    rest: Vec<u8>,
}

/// A file with a name, so that a kill of weir does not remove its bytes.
#[derive(Debug)]
struct SpillFile {
    file: File,
    path: PathBuf,
    /// The bytes from `read` to `written` wait.
    read: u64,
    written: u64,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.file.is_none() && self.rest.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let in_file = self.file.as_ref().map_or(0, |file| file.written - file.read);
        (self.memory.len() + self.rest.len()) as u64 + in_file
    }

    /// Returns whether the queue takes no more, so that the source has to wait.
    pub(crate) fn is_full(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Appends bytes, in memory up to `memory` bytes. A file that cannot be written makes the queue full; no byte is lost.
    ///
    /// # Errors
    /// The file does not take the bytes.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        memory: usize,
        options: &SpillOptions,
        name: &str,
    ) -> io::Result<()> {
        if self.is_full() {
            self.rest.extend_from_slice(bytes);
            return Ok(());
        }
        if self.file.is_none() && self.memory.len() + bytes.len() <= memory {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let appended = self.spill(bytes, options, name);
        if appended.is_err() {
            self.rest.extend_from_slice(bytes);
        }
        appended
    }

    fn spill(&mut self, bytes: &[u8], options: &SpillOptions, name: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SpillFile::create(&options.directory, name)?),
        };
        if file.written - file.read + bytes.len() as u64 > options.limit {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        file.append(bytes)
    }

    /// Removes and returns the next bytes, at most about `most`.
    ///
    /// # Errors
    /// The file cannot be read; its bytes stay.
    pub(crate) fn take(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if !self.memory.is_empty() {
            return Ok(std::mem::take(&mut self.memory));
        }
        let Some(file) = &mut self.file else { return Ok(std::mem::take(&mut self.rest)) };
        let bytes = file.next(most)?;
        if file.read == file.written {
            self.file = None;
        }
        Ok(bytes)
    }

    /// Writes `held` and all bytes behind it to a file that stays, because the log did not take them. `convert` removes what it
    /// can from the bytes, and returns its form in the file. Returns the path.
    ///
    /// # Errors
    /// No file takes the bytes.
    pub(crate) fn save(
        mut self,
        mut held: Vec<u8>,
        options: &SpillOptions,
        name: &str,
        convert: impl Fn(&mut Vec<u8>) -> Vec<u8>,
    ) -> io::Result<PathBuf> {
        let mut saved = SpillFile::create(&options.directory, name)?;
        loop {
            saved.append(&convert(&mut held))?;
            if self.is_empty() {
                break;
            }
            held.extend(self.take(1 << 20)?);
        }
        saved.file.sync_all()?;
        let path = saved.path.clone();
        // Dropping the file would remove its name.
        saved.path = PathBuf::new();
        Ok(path)
    }
}

impl SpillFile {
    fn create(directory: &Path, name: &str) -> io::Result<Self> {
        let name: String = name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .take(40)
            .collect();
        for number in 0..10_000u32 {
            let path = directory.join(format!("weir-spill.{}.{name}.{number}", std::process::id()));
            let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
            match File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(flags)
                .open(&path)
            {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok(Self { file: opened?, path, read: 0, written: 0 }),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Appends all bytes or none: a part that was written is overwritten by the next attempt.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn next(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let length = (self.written - self.read).min(most as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(most)];
        self.file.read_exact_at(&mut bytes, self.read)?;
        self.read += length;
        Ok(bytes)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() && (self.read == self.written || self.written == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes numbered bytes, takes some now and then, and checks that they come out as they went in.
    #[test]
    fn bytes_keep_their_order_and_the_file_goes() {
        let dir = tempfile::tempdir().expect("a directory");
        for limit in [u64::MAX, 3000, 0] {
            let options = SpillOptions { directory: dir.path().into(), limit };
            let (mut backlog, mut pushed, mut taken) = (Backlog::default(), Vec::new(), Vec::new());
            for round in 0..200u32 {
                if !backlog.is_full() {
                    let bytes = round.to_be_bytes().repeat(20);
                    let _ = backlog.push(&bytes, 500, &options, "a/b");
                    pushed.extend(bytes);
                }
                if round % 7 == 0 {
                    taken.extend(backlog.take(300).expect("read"));
                }
                assert_eq!(backlog.bytes() as usize, pushed.len() - taken.len());
            }
            while !backlog.is_empty() {
                taken.extend(backlog.take(1000).expect("read"));
            }
            assert!(taken == pushed && pushed.len() > 2000, "limit {limit}");
            assert_eq!(dir.path().read_dir().expect("a directory").count(), 0, "removed");
        }
    }

    #[test]
    fn a_directory_that_is_missing_loses_nothing() {
        let options = SpillOptions { directory: "/nonexistent".into(), limit: u64::MAX };
        let mut backlog = Backlog::default();
        assert!(backlog.push(b"one", 3, &options, "s").is_ok());
        assert!(backlog.push(b"two", 3, &options, "s").is_err() && backlog.is_full());
        let taken = [backlog.take(9).expect("memory"), backlog.take(9).expect("the rest")].concat();
        assert!(taken == b"onetwo" && backlog.is_empty());
    }

    #[test]
    fn what_the_log_did_not_take_is_saved() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = SpillOptions { directory: dir.path().into(), limit: u64::MAX };
        let mut backlog = Backlog::default();
        for part in ["b", "c", "d"] {
            backlog.push(part.as_bytes(), 1, &options, "s").expect("kept");
        }
        let path = backlog.save(b"a".to_vec(), &options, "s", std::mem::take).expect("saved");
        assert_eq!(std::fs::read(path).expect("a file"), b"abcd");
        assert_eq!(
            dir.path().read_dir().expect("a directory").count(),
            1,
            "the spill file itself is removed"
        );
    }
}
