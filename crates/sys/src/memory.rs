//! Reads the memory of another process. Callers must check every value: it may be torn, stale or hostile.

/// Memory that can be read by address. Short reads are normal: a page may be unmapped.
pub trait Memory {
    /// Reads the bytes at `address` into the start of `buffer`. Returns their number; 0 if none can be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;

    /// Returns a little-endian word of 8 bytes; None if it cannot be read whole.
    fn u64(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }

    /// Returns a signed little-endian word of 4 bytes; None if it cannot be read whole.
    fn i32(&self, address: u64) -> Option<i32> {
        let mut word = [0; 4];
        (self.read(address, &mut word) == 4).then(|| i32::from_le_bytes(word))
    }

    /// Returns up to `bytes` bytes.
    fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        let got = self.read(address, &mut data);
        data.truncate(got);
        data
    }
}

/// The memory of a process, read by process_vm_readv(2). A thread ID works as well.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct ProcessMemory {
    pub pid: u32,
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
        // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which is borrowed mutably; it checks the
        // remote address and only reads there.
        let got = unsafe { libc::process_vm_readv(self.pid as libc::pid_t, &local, 1, &remote, 1, 0) };
        usize::try_from(got).unwrap_or(0)
    }
}
