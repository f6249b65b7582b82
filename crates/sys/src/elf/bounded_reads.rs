//! Reads of a file whose tables tell their own sizes.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use object::ReadRef;
use object::read::ReadCache;

/// The most bytes of one read: more than the largest symbol table of a web browser.
const MAX_READ: u64 = 256 << 20;
/// The most bytes of one read of a file that has few blocks. A sparse file, which costs its owner nothing, can claim any size.
const MAX_SPARSE: u64 = 16 << 20;
/// A file system compresses a file to this part at best.
const COMPRESSION: u64 = 16;

/// Returns the most bytes of one read of a file, by the blocks that it has.
pub(super) fn read_most(file: &File) -> u64 {
    let blocks = file.metadata().map_or(0, |status| status.blocks());
    blocks.saturating_mul(512 * COMPRESSION).clamp(MAX_SPARSE, MAX_READ)
}

/// The contents of a file. A read of more bytes than a limit fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundedReads<'data> {
    pub data: &'data ReadCache<File>,
    /// See [`read_most`].
    pub most: u64,
}

impl<'data> ReadRef<'data> for BoundedReads<'data> {
    fn len(self) -> Result<u64, ()> {
        self.data.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        if size > self.most { Err(()) } else { self.data.read_bytes_at(offset, size) }
    }

    /// Reads up to 4096 bytes, a limit of [`ReadCache`].
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        self.data.read_bytes_at_until(range, delimiter)
    }
}
