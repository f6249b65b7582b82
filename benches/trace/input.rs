//! The input of tr2u and its kin.

use std::path::PathBuf;

use crate::Failed;
use crate::bed::Bed;

impl Bed {
    /// A file of this many bytes in lines of letters, made when it is first asked for.
    pub fn input(&self, bytes: usize) -> Result<PathBuf, Failed> {
        let path = self.path(&format!("in-{bytes}"));
        if !path.exists() {
            let line = b"abcdefghijklmnopqrstuvwxyz a banana and an aardvark\n";
            std::fs::write(&path, line.iter().copied().cycle().take(bytes).collect::<Vec<u8>>())?;
        }
        Ok(path)
    }
}
