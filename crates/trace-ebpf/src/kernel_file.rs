//! A file of the kernel's own that is mapped, or read where it cannot be: reading takes a call for every page.

use std::ops::Deref;
use std::{fs, io, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The bytes of the file.
pub(super) enum Contents {
    /// Address and length of the mapping.
    Mapped(*mut libc::c_void, usize),
    Read(Vec<u8>),
}

/// The whole file. It must be one that nobody can shorten or change, as those in /sys.
pub(super) fn file(path: &str) -> io::Result<Contents> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len() as usize;
    // SAFETY: the address is left to the kernel, and nothing is done with it but to read.
    match unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) } {
        Ok(address) => Ok(Contents::Mapped(address, length)),
        // Before Linux 6.16 it cannot be mapped.
        Err(_) => Ok(Contents::Read(fs::read(path)?)),
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: the mapping has this length, lives as long as `self`, and does not change (see `file`).
            Self::Mapped(address, length) => unsafe { std::slice::from_raw_parts(address.cast(), *length) },
            Self::Read(bytes) => bytes,
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        if let Self::Mapped(address, length) = *self {
            // SAFETY: it is this mapping, and nothing refers to it any more. That it stays would harm nobody.
            let _ = unsafe { munmap(address, length) };
        }
    }
}
