//! Files of an input, which exist in memory only.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::FromRawFd;

/// Returns a file with these bytes.
pub fn file(bytes: &[u8]) -> File {
    // SAFETY: the name ends with NUL.
    let number = unsafe { libc::memfd_create(c"input".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(number >= 0, "memfd_create: {}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(bytes).and_then(|()| file.rewind()).expect("a file in memory");
    file
}

/// As [`file`], but the file is as large as the first byte of the input says, up to 512 TiB. A hostile user can make such a
/// file, which needs no storage.
pub fn sparse_file(input: &[u8]) -> File {
    let Some((size, bytes)) = input.split_first() else { return file(&[]) };
    let file = file(bytes);
    if *size >= 128 {
        let _too_large = file.set_len(1 << (size % 50));
    }
    file
}
