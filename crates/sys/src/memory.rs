//! Reading another process's memory. Nothing read is trusted: it may be torn, stale or hostile.

/// Memory that can be read by address. Short results are normal: a page may be missing.
pub trait Memory {
    /// Fills the beginning of `into` with what is at `address`; returns how many bytes there were.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// A little-endian word of 8 bytes, if all of it is there.
    fn u64(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(address, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }

    /// The same of 4 bytes, with a sign.
    fn i32(&self, address: u64) -> Option<i32> {
        let mut word = [0; 4];
        (self.read(address, &mut word) == 4).then(|| i32::from_le_bytes(word))
    }

    /// `bytes` bytes, or as many as there are.
    fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        let got = self.read(address, &mut data);
        data.truncate(got);
        data
    }
}

/// The memory of a process, by process_vm_readv(2).
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory {
    /// The process.
    pub pid: u32,
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the kernel writes at most `into.len()` bytes to `into`, which is borrowed mutably; the
        // remote address is only read, in the other process, and checked by the kernel.
        let got = unsafe { libc::process_vm_readv(self.pid as libc::pid_t, &local, 1, &remote, 1, 0) };
        usize::try_from(got).unwrap_or(0)
    }
}
