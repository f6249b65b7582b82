//! The input of tr2u and tr2b.

use std::path::PathBuf;

use crate::BoxError;
use crate::bench_dir::BenchDir;

impl BenchDir {
    /// Returns a file of `bytes` bytes in lines of letters, which the first call writes.
    pub fn input(&self, bytes: usize) -> Result<PathBuf, BoxError> {
        let path = self.path(&format!("in-{bytes}"));
        if !path.exists() {
            let line = b"abcdefghijklmnopqrstuvwxyz a banana and an aardvark\n";
            std::fs::write(&path, line.iter().copied().cycle().take(bytes).collect::<Vec<u8>>())?;
        }
        Ok(path)
    }
}
