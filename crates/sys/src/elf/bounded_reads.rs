//! Reads of a file whose tables tell their own sizes.

use std::fs::File;
use std::ops::Range;

use object::ReadRef;
use object::read::ReadCache;

/// The most bytes of one read: more than the largest symbol table of a web browser. A sparse file, which costs its owner
/// nothing, can claim any size.
const READ_MOST: u64 = 256 << 20;

/// The contents of a file. A read of more than [`READ_MOST`] bytes fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundedReads<'data>(pub &'data ReadCache<File>);

impl<'data> ReadRef<'data> for BoundedReads<'data> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        if size > READ_MOST { Err(()) } else { self.0.read_bytes_at(offset, size) }
    }

    /// Reads up to 4096 bytes, a limit of [`ReadCache`].
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}
