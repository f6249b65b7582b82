//! Maps a file in /sys, because read(2) copies it page by page.

use std::ops::Deref;
use std::{fs, io, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The bytes of a file, mapped or read.
pub(super) enum KernelFile {
    /// Address and length of the mapping.
    Mapped(*mut libc::c_void, usize),
    Read(Vec<u8>),
}

impl KernelFile {
    /// Opens the whole file. No process may be able to change or truncate it, which holds for read-only files in /sys.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let length = file.metadata()?.len() as usize;
        // SAFETY: the kernel chooses the address, and the mapping is private and read-only.
        match unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) } {
            Ok(address) => Ok(Self::Mapped(address, length)),
            // Before Linux 6.16 files in /sys cannot be mapped.
            Err(_) => Ok(Self::Read(fs::read(path)?)),
        }
    }
}

impl Deref for KernelFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: the mapping has this length, lives as long as `self`, and does not change (see `open`).
            Self::Mapped(address, length) => unsafe { std::slice::from_raw_parts(address.cast(), *length) },
            Self::Read(bytes) => bytes,
        }
    }
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        if let Self::Mapped(address, length) = *self {
            // SAFETY: `self` owns the mapping, and all borrows of it have ended.
            let _ = unsafe { munmap(address, length) };
        }
    }
}
