//! Remembers the copies of files with several hard links, so that the copies are links too.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The first copy of a file with several links.
#[derive(Debug, Clone)]
pub(crate) struct FirstCopy {
    pub path: PathBuf,
    /// Device and inode number, by which a link to it is verified.
    pub id: (u64, u64),
}

/// The state of one source file with several links. Its lock is held while the first copy is made; other threads that find
/// another link wait for it.
pub(crate) type LinkSlot = Arc<Mutex<Option<FirstCopy>>>;

/// The source files with several links, by device and inode number.
#[derive(Debug, Default)]
pub(crate) struct LinkMap(Mutex<HashMap<(u64, u64), LinkSlot, foldhash::fast::RandomState>>);

impl LinkMap {
    /// Returns the slot of a source file.
    pub fn slot(&self, source_id: (u64, u64)) -> LinkSlot {
        let mut map = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(map.entry(source_id).or_default())
    }
}
