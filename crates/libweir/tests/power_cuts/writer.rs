//! The writers whose power is cut, and the check of the files afterwards.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libweir::{Options, StreamDurability};

/// A way to write durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterKind {
    /// Each record is durable when the call returns (WEIR_DATA).
    Records,
    /// Records of a usual stream, and a sync (WEIR_WHOLE) after each few of them.
    Synced,
    /// One file is replaced again and again.
    Replaced,
    /// Records that count as promised, although nothing makes them durable.
    Unsynced,
}

impl WriterKind {
    /// The ways that libweir promises.
    pub const ALL: [Self; 3] = [Self::Records, Self::Synced, Self::Replaced];

    pub fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Synced => "synced",
            Self::Replaced => "replaced",
            Self::Unsynced => "unsynced",
        }
    }
}

/// A writer of one file.
pub struct Writer {
    kind: WriterKind,
    path: PathBuf,
    /// The number of records, or of the version, that libweir has promised.
    promised: AtomicU64,
    stopped: AtomicBool,
}

/// Returns a record: its number, and a text whose length differs.
fn record(number: u64) -> Vec<u8> {
    let letters = match number % 17 {
        0 => 5000,
        length => length * 37 % 400,
    };
    format!("{number} {}\n", "x".repeat(letters as usize)).into_bytes()
}

/// Returns a version of the replaced file.
fn version(number: u64) -> Vec<u8> {
    (0..1 + number % 40).flat_map(|part| record(number * 100 + part)).collect()
}

impl Writer {
    pub fn new(kind: WriterKind, directory: &Path, number: u64) -> Self {
        let path = directory.join(format!("{}-{number}", kind.name()));
        Self { kind, path, promised: AtomicU64::new(0), stopped: AtomicBool::new(false) }
    }

    pub fn promised(&self) -> u64 {
        self.promised.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Writes until a call fails or the writer is stopped.
    pub fn write_until_cut(&self) {
        let result = match self.kind {
            WriterKind::Replaced => self.replace(),
            kind => self.append(kind),
        };
        // After the cut each call fails.
        let _cut = result;
    }

    fn append(&self, kind: WriterKind) -> io::Result<()> {
        let durability = match kind {
            WriterKind::Records => StreamDurability::Data,
            _ => StreamDurability::Process,
        };
        let stream = Options::new().durability(durability).create(&self.path)?;
        // From here on the file itself is durable.
        stream.sync(StreamDurability::Whole)?;
        for number in 1.. {
            if self.stopped.load(Ordering::Acquire) {
                break;
            }
            // The call adds the separator.
            stream.put_record(record(number).trim_ascii_end())?;
            if kind != WriterKind::Synced {
                self.promised.store(number, Ordering::Release);
            } else if number % 5 == 0 {
                stream.sync(StreamDurability::Whole)?;
                self.promised.store(number, Ordering::Release);
            }
        }
        Ok(())
    }

    fn replace(&self) -> io::Result<()> {
        for number in 1.. {
            if self.stopped.load(Ordering::Acquire) {
                break;
            }
            let mut stream = Options::new().open_replace(&self.path)?;
            stream.write_all(&version(number))?;
            stream.replace()?;
            self.promised.store(number, Ordering::Release);
        }
        Ok(())
    }

    /// Checks the file after the cut, and removes it.
    pub fn check(&self, promised: u64) -> Result<(), String> {
        let found = match std::fs::read(&self.path) {
            Err(error) if promised == 0 && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|error| format!("read {}: {error}", self.path.display()))?,
        };
        let whole = match self.kind {
            // Version 0 is no file. The writer can have replaced several more since `promised` was read.
            WriterKind::Replaced => {
                (promised.max(1)..promised + 10_000).any(|number| found == version(number))
            }
            _ => {
                let expected: Vec<u8> = (1..=promised).flat_map(record).collect();
                found.starts_with(&expected)
            }
        };
        std::fs::remove_file(&self.path).map_err(|error| format!("remove: {error}"))?;
        match whole {
            true => Ok(()),
            false => Err(format!("{} has {} bytes of something else", self.path.display(), found.len())),
        }
    }
}
