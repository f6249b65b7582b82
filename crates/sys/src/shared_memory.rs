//! A value in memory that a process shares with the children that it forks.

use std::io;
use std::ops::Deref;
use std::ptr::null_mut;

/// A mapped value of atomics. Dropping it unmaps the memory in this process.
#[derive(Debug)]
pub(crate) struct Shared<T>(*mut T);

// SAFETY: the mapping belongs to the process, and `T` is shared between processes already.
unsafe impl<T: Sync> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Maps a value of zero bytes.
    ///
    /// # Safety
    ///
    /// Zero bytes must be a valid `T`, which consists of atomics only.
    pub unsafe fn zeroed() -> io::Result<Shared<T>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let sharing = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        match unsafe { libc::mmap(null_mut(), size_of::<T>(), protection, sharing, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            mapping => Ok(Shared(mapping.cast())),
        }
    }

    /// Returns the address of the value, which is valid until the drop.
    pub fn address(&self) -> *mut T {
        self.0
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping exists until `self` is dropped, and its creator has promised that it is a valid `T`.
        unsafe { &*self.0 }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and no reference outlives it.
        unsafe { libc::munmap(self.0.cast(), size_of::<T>()) };
    }
}
