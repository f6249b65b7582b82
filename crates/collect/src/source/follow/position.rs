//! Positions in followed files. A file is known by device, inode and the hash of its first bytes: an inode can be reused, and
//! two files can begin alike.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_model::number::counted;

use crate::error::Error;

/// The bytes that tell files apart.
const HEAD: usize = 1024;

/// A file and the position in it.
#[derive(Debug)]
pub(super) struct FollowedFile {
    file: File,
    path: PathBuf,
    device: u64,
    inode: u64,
    offset: u64,
    head: Head,
}

/// The first bytes of a file when it was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    bytes: usize,
    hash: u64,
}

impl Head {
    /// Returns the head of at most `most` bytes.
    fn read(file: &File, most: usize) -> io::Result<(Self, Vec<u8>)> {
        let mut bytes = vec![0; most.min(HEAD)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok((Self { bytes: filled, hash: hash(&bytes) }, bytes))
    }
}

/// Returns a hash that is the same in each version of weir: FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl FollowedFile {
    /// Opens a file that has, or had, the name `path`.
    ///
    /// # Errors
    /// As open(2); InvalidInput if it is no regular file.
    pub(super) fn open(at: &Path, path: &Path) -> io::Result<Self> {
        let file = weir_sys::file_system::open_regular(at)?;
        let metadata = file.metadata()?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        Ok(Self {
            file,
            path: path.into(),
            device,
            inode,
            offset: 0,
            head: Head { bytes: 0, hash: hash(&[]) },
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the file name, as the name of the source.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns whether its own path leads to this file.
    pub(super) fn is_at_path(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == self.identity())
    }

    /// Reads the next bytes. Remembers the first bytes of the file.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        let count = rustix::io::pread(&self.file, &mut *buffer, self.offset)?;
        if self.head.bytes < HEAD && count > 0 {
            let known = usize::try_from(self.offset).unwrap_or(HEAD);
            if let Ok((head, _)) = Head::read(&self.file, (known + count).min(HEAD)) {
                self.head = head;
            }
        }
        self.offset += count as u64;
        Ok(count)
    }

    /// Returns whether the file is shorter than the position in it, or begins differently.
    pub(super) fn was_truncated(&self) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        if metadata.len() < self.offset {
            return true;
        }
        metadata.len() > self.offset
            && Head::read(&self.file, self.head.bytes).is_ok_and(|(head, _)| head != self.head)
    }

    /// Reads from the start again.
    pub(super) fn restart(&mut self) {
        self.offset = 0;
        self.head = Head { bytes: 0, hash: hash(&[]) };
    }
}

/// One file in the state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Position {
    #[serde(with = "path_text")]
    path: PathBuf,
    device: u64,
    inode: u64,
    offset: u64,
    head: Head,
}

impl Position {
    fn is_of(&self, followed: &FollowedFile) -> bool {
        (self.device, self.inode) == followed.identity()
            && Head::read(&followed.file, self.head.bytes).is_ok_and(|(head, _)| head == self.head)
            && followed.file.metadata().is_ok_and(|metadata| metadata.len() >= self.offset)
    }

    /// Returns how the file at the path differs from the one of which this position is, as a sentence without subject.
    fn change_to(&self, followed: &FollowedFile) -> String {
        let read = counted(self.offset, "byte");
        if (self.device, self.inode) != followed.identity() {
            return format!(
                "is another file than the one of which {read} were read, and that one is not in the directory"
            );
        }
        match followed.file.metadata().map(|metadata| metadata.len()) {
            Ok(length) if length < self.offset => format!(
                "was truncated while weir did not run: it has {}, and {read} of it had been read",
                counted(length, "byte")
            ),
            _ => format!(
                "was overwritten while weir did not run: its first bytes differ, and {read} of it had been read"
            ),
        }
    }
}

/// A path as JSON: a string, or an array of its bytes if they are no UTF-8.
mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Utf8(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match Text::deserialize(deserializer)? {
            Text::Utf8(text) => text.into(),
            Text::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

/// The content of the state file.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    schema: String,
    files: Vec<Position>,
    /// The hash of `files` as JSON.
    checksum: u64,
}

const SCHEMA: &str = "weir-log-state/1";

/// The state file, and the positions that were loaded from it.
#[derive(Debug)]
pub(super) struct Positions {
    path: PathBuf,
    loaded: Vec<Position>,
}

impl Positions {
    /// Reads the state file; it may not exist yet.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: nothing is guessed.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let name = crate::error::shown(path);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.into(), loaded: Vec::new() });
            }
            Err(error) => {
                return Err(Error::call(
                    "read",
                    &name,
                    &error,
                    "make it readable, or choose another --state",
                ));
            }
        };
        let loaded = parse(&text).ok_or_else(|| {
            Error::text(format!(
                "{name} is damaged or no state file of weir log: remove it to read the files from their start"
            ))
        })?;
        Ok(Self { path: path.into(), loaded })
    }

    /// Continues in a file that is known. A file that is not, but has the path of one that is, is read from its start: returns
    /// what happened to the known one while no collector ran, and forgets its position.
    pub(super) fn resume(&mut self, followed: &mut FollowedFile) -> Option<String> {
        if let Some(index) = self.loaded.iter().position(|position| position.is_of(followed)) {
            let position = self.loaded.remove(index);
            followed.offset = position.offset;
            followed.head = position.head;
            return None;
        }
        let index = self.loaded.iter().position(|position| position.path == followed.path)?;
        let position = self.loaded.remove(index);
        // Nothing was read of a file at position 0, so nothing of it can be missing between two reads.
        (position.offset > 0).then(|| position.change_to(followed))
    }

    /// Returns the known files of `pattern` that have another name now, in the same directory. They are read to their end.
    pub(super) fn find_renamed(&mut self, pattern: &Path) -> Vec<(String, FollowedFile)> {
        let directory = pattern.parent().unwrap_or(Path::new("/"));
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        let mut renamed = Vec::new();
        self.loaded.retain(|position| {
            let still_there = std::fs::metadata(&position.path)
                .is_ok_and(|now| (now.dev(), now.ino()) == (position.device, position.inode));
            if still_there {
                return true;
            }
            let opened = paths.iter().filter_map(|path| FollowedFile::open(path, &position.path).ok());
            let Some(mut followed) = opened.into_iter().find(|followed| position.is_of(followed)) else {
                return true;
            };
            followed.offset = position.offset;
            followed.head = position.head;
            renamed.push((followed.name(), followed));
            false
        });
        renamed
    }

    /// Returns the positions of files, each with the number of bytes before it that are no record yet.
    pub(super) fn snapshot<'a>(&self, files: impl Iterator<Item = (&'a FollowedFile, u64)>) -> Vec<Position> {
        let position = |(followed, held): (&FollowedFile, u64)| Position {
            path: followed.path.clone(),
            device: followed.device,
            inode: followed.inode,
            offset: followed.offset - held,
            head: followed.head,
        };
        // Positions of files that are away for the moment stay.
        self.loaded.iter().cloned().chain(files.map(position)).collect()
    }

    /// Writes the positions. The file is replaced as a whole.
    pub(super) fn save(&mut self, files: Vec<Position>) -> Result<(), Error> {
        let checksum = checksum(&files);
        let state = State { schema: SCHEMA.into(), files, checksum };
        let text = serde_json::to_string(&state).expect("a struct of strings and numbers");
        replace(&self.path, &text)
    }
}

fn checksum(files: &[Position]) -> u64 {
    hash(&serde_json::to_vec(files).unwrap_or_default()) >> 11 // exact in JSON readers that use doubles
}

/// Parses a state file. Returns nothing if it is damaged.
pub(crate) fn parse(text: &str) -> Option<Vec<Position>> {
    let state: State = serde_json::from_str(text).ok()?;
    (state.schema == SCHEMA && state.checksum == checksum(&state.files)).then_some(state.files)
}

fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let name = crate::error::shown(path);
    let failed = |error: &io::Error| {
        Error::call(
            "replace",
            &name,
            error,
            "positions are not saved; records may be repeated after a restart",
        )
    };
    let mut out = libweir::Options::new().open_replace(path).map_err(|error| failed(&error))?;
    io::Write::write_all(&mut out, text.as_bytes()).map_err(|error| failed(&error))?;
    out.replace().map_err(|error| failed(&error))
}

#[cfg(test)]
#[path = "position_test.rs"]
mod tests;
