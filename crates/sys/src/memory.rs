//! Reads the memory of another process. Callers must check every value: it may be torn, stale or hostile.

use std::cell::Cell;

use crate::foreign_reads::{self, DATA_BYTES};
use crate::iovec::UIO_MAXIOV;
use crate::maps::{self, MappedRegion};

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

    /// Returns the little-endian word of 8 bytes at each address; None where it cannot be read whole. Memory of a process
    /// answers with one system call for many addresses.
    fn words(&self, addresses: &[u64]) -> Vec<Option<u64>> {
        addresses.iter().map(|address| self.u64(*address)).collect()
    }

    /// Returns `bytes` bytes at each address; None where they cannot be read whole. Memory of a process answers with one system
    /// call for many addresses.
    fn blocks(&self, addresses: &[u64], bytes: usize) -> Vec<Option<Vec<u8>>> {
        let block = |address: &u64| Some(self.bytes(*address, bytes)).filter(|block| block.len() == bytes);
        addresses.iter().map(block).collect()
    }

    /// Returns up to `bytes` bytes.
    fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        let end = address.wrapping_add(bytes as u64);
        // A claim of many bytes that are not there takes little of weir's memory.
        let is_there = bytes <= MANY_BYTES || self.read(end.wrapping_sub(1), &mut [0]) == 1;
        let mut data = Vec::new();
        while data.len() < bytes {
            let (done, left) = (data.len(), bytes - data.len());
            data.resize(done + if is_there { left } else { left.min(MANY_BYTES) }, 0);
            let got = self.read(address.wrapping_add(done as u64), &mut data[done..]);
            if done + got < data.len() {
                data.truncate(done + got);
                break;
            }
        }
        data
    }

    /// Returns the first `most` of the `bytes` bytes of a buffer's content; None if they cannot be read whole. Memory
    /// with a budget returns fewer: see [`LimitedMemory`].
    fn content(&self, address: u64, bytes: u64, most: u64) -> Option<Vec<u8>> {
        let wanted = bytes.min(most) as usize;
        let data = if wanted == 0 { Vec::new() } else { self.bytes(address, wanted) };
        (data.len() == wanted).then_some(data)
    }

    /// Returns the mappings of a process that has this memory, in order of address; none if they cannot be read.
    fn mappings(&self, pid: u32) -> Vec<MappedRegion> {
        maps::regions(pid)
    }
}

/// The bytes that are read at once if it is not sure that all are there.
const MANY_BYTES: usize = 1 << 20;

/// Memory of which only a limited number of bytes of content is read. A hostile process can claim any number of bytes.
pub struct LimitedMemory<'a> {
    memory: &'a dyn Memory,
    left: Cell<u64>,
    content: LimitedContent,
    is_partial: Cell<bool>,
}

/// The treatment of a content that exceeds the budget of [`LimitedMemory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedContent {
    /// Returns no bytes of it, so that the budget is left for others.
    WholeOrNothing,
    /// Returns as many of its first bytes as the budget still has.
    Prefix,
}

impl LimitedMemory<'_> {
    /// Makes memory with a budget of `most` bytes.
    pub fn new(memory: &dyn Memory, most: u64, content: LimitedContent) -> LimitedMemory<'_> {
        LimitedMemory { memory, left: Cell::new(most), content, is_partial: Cell::new(false) }
    }

    /// Returns whether a content exceeded the budget.
    pub fn is_partial(&self) -> bool {
        self.is_partial.get()
    }
}

impl Memory for LimitedMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read(address, buffer)
    }

    fn words(&self, addresses: &[u64]) -> Vec<Option<u64>> {
        self.memory.words(addresses)
    }

    fn blocks(&self, addresses: &[u64], bytes: usize) -> Vec<Option<Vec<u8>>> {
        self.memory.blocks(addresses, bytes)
    }

    fn content(&self, address: u64, bytes: u64, most: u64) -> Option<Vec<u8>> {
        let (wanted, left) = (bytes.min(most), self.left.get());
        self.is_partial.set(self.is_partial.get() || wanted > left);
        let allowed = match self.content {
            LimitedContent::WholeOrNothing if wanted > left => 0,
            _ => wanted.min(left),
        };
        self.left.set(left - allowed);
        self.memory.content(address, bytes, allowed)
    }

    fn mappings(&self, pid: u32) -> Vec<MappedRegion> {
        self.memory.mappings(pid)
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
        let mut done = 0;
        for part in buffer.chunks_mut(DATA_BYTES) {
            let got = foreign_reads::read_memory(
                self.pid,
                &[segment(address.wrapping_add(done as u64), part.len())],
                part,
            );
            done += got;
            if got < part.len() {
                break;
            }
        }
        done
    }

    fn words(&self, addresses: &[u64]) -> Vec<Option<u64>> {
        let mut words = Vec::with_capacity(addresses.len());
        let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
        self.each_block(addresses, size_of::<u64>(), |bytes| words.push(bytes.and_then(word)));
        words
    }

    fn blocks(&self, addresses: &[u64], bytes: usize) -> Vec<Option<Vec<u8>>> {
        let mut blocks = Vec::with_capacity(addresses.len());
        self.each_block(addresses, bytes, |bytes| blocks.push(bytes.map(<[u8]>::to_vec)));
        blocks
    }
}

impl ProcessMemory {
    /// Calls `put` with the `bytes` bytes at each address, in order; with None where they cannot be read whole.
    fn each_block(&self, addresses: &[u64], bytes: usize, mut put: impl FnMut(Option<&[u8]>)) {
        let most = (DATA_BYTES / bytes.max(1)).clamp(1, UIO_MAXIOV);
        let mut data = Vec::new();
        let mut rest = addresses;
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(most)];
            let segments: Vec<libc::iovec> = part.iter().map(|address| segment(*address, bytes)).collect();
            data.resize(part.len() * bytes, 0);
            let got = foreign_reads::read_memory(self.pid, &segments, &mut data) / bytes.max(1);
            data.chunks_exact(bytes.max(1)).take(got).for_each(|block| put(Some(block)));
            // A read ends at the first block that it cannot read.
            let is_cut = got < part.len();
            if is_cut {
                put(None);
            }
            rest = &rest[got + usize::from(is_cut)..];
        }
    }

    /// Reads the bytes at `address`, and then one byte at another address, into `buffer`, whose last byte is for that one.
    /// Returns the number of bytes.
    pub fn read_and_byte(&self, address: u64, byte_at: u64, buffer: &mut [u8]) -> usize {
        let segments =
            [segment(address, buffer.len().saturating_sub(1)), segment(byte_at, buffer.len().min(1))];
        foreign_reads::read_memory(self.pid, &segments, buffer)
    }
}

/// Returns a sentence about each process that has not answered a read with a limit of time. Its buffers are not known.
pub fn silent_processes() -> Vec<String> {
    foreign_reads::silent_processes()
}

/// Returns a sentence about each file system that has not answered a question about a path with a limit of time.
pub fn silent_files() -> Vec<String> {
    foreign_reads::silent_files()
}

/// Returns a segment of the memory of another process.
pub(crate) fn segment(address: u64, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes }
}

/// Reads segments of the memory of a process or thread, one after the other, until one cannot be read. Returns the number of
/// bytes, or a negative errno. May block for ever.
pub(crate) fn read_process(tid: u32, segments: &[libc::iovec], buffer: &mut [u8]) -> i64 {
    // SAFETY: the buffer is borrowed mutably.
    unsafe { read_into(tid, segments, buffer.as_mut_ptr().cast(), buffer.len()) }
}

/// As [`read_process`], to an address.
///
/// # Safety
///
/// `length` bytes at `into` must be writable memory to which no reference exists.
pub(crate) unsafe fn read_into(
    tid: u32,
    segments: &[libc::iovec],
    into: *mut libc::c_void,
    length: usize,
) -> i64 {
    let local = libc::iovec { iov_base: into, iov_len: length };
    let (remote, count) = (segments.as_ptr(), segments.len() as u64);
    // SAFETY: the kernel writes at most `length` bytes to `into`, as the caller permits; it checks the remote addresses
    // and only reads there.
    let got = unsafe { libc::process_vm_readv(tid as libc::pid_t, &local, 1, remote, count, 0) };
    result_of(got)
}

/// Writes to the memory of a process or thread. Returns the number of bytes, or a negative errno. May block for ever.
pub(crate) fn write_process(tid: u32, address: u64, bytes: &[u8]) -> i64 {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel only reads `local`, and checks the remote address.
    let put = unsafe {
        libc::process_vm_writev(tid as libc::pid_t, &local, 1, &segment(address, bytes.len()), 1, 0)
    };
    result_of(put)
}

/// Converts the result of a call to a number of bytes or a negative errno.
fn result_of(result: isize) -> i64 {
    match result {
        0.. => result as i64,
        _ => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory of zeros at every address.
    struct Zeros;

    impl Memory for Zeros {
        fn read(&self, _address: u64, buffer: &mut [u8]) -> usize {
            buffer.fill(0);
            buffer.len()
        }
    }

    fn lengths(content: LimitedContent) -> (Vec<usize>, bool) {
        let memory = LimitedMemory::new(&Zeros, 10, content);
        let read = |(bytes, most)| memory.content(0, bytes, most).map_or(0, |content| content.len());
        ([(4, 9), (9, 9), (3, 2), (5, 9)].into_iter().map(read).collect(), memory.is_partial())
    }

    #[test]
    fn a_budget_is_for_all_contents_together() {
        assert_eq!(lengths(LimitedContent::WholeOrNothing), (vec![4, 0, 2, 0], true));
        assert_eq!(lengths(LimitedContent::Prefix), (vec![4, 6, 0, 0], true));
        assert_eq!(Zeros.content(0, 1 << 40, 7).map(|content| content.len()), Some(7));
    }

    /// Memory of nothing, and the size of the largest read.
    struct Unmapped(Cell<usize>);

    impl Memory for Unmapped {
        fn read(&self, _address: u64, buffer: &mut [u8]) -> usize {
            self.0.set(self.0.get().max(buffer.len()));
            0
        }
    }

    #[test]
    fn a_claim_of_many_bytes_that_are_not_there_takes_little_memory() {
        let memory = Unmapped(Cell::new(0));
        assert_eq!((memory.content(4096, 1 << 40, 64 << 20), memory.0.get()), (None, MANY_BYTES));
        let all = Zeros.bytes(4096, 3 * MANY_BYTES + 5);
        assert_eq!((all.len(), all.capacity()), (3 * MANY_BYTES + 5, 3 * MANY_BYTES + 5));
        let values = vec![7; MANY_BYTES + 3];
        let own = ProcessMemory { pid: std::process::id() };
        assert_eq!(own.bytes(values.as_ptr() as u64, values.len()), values);
    }

    #[test]
    fn blocks_are_read_around_one_that_cannot_be_read() {
        let values: Vec<[u8; 24]> = (0..3000u32).map(|value| [value as u8; 24]).collect();
        let mut addresses: Vec<u64> = values.iter().map(|value| value.as_ptr() as u64).collect();
        for missing in [0, 1, 1023, 1024, 2999] {
            addresses[missing] = 8;
        }
        let blocks = ProcessMemory { pid: std::process::id() }.blocks(&addresses, 24);
        assert_eq!(blocks.len(), values.len());
        for (at, (block, value)) in blocks.iter().zip(&values).enumerate() {
            let expected = (addresses[at] != 8).then_some(value.as_slice());
            assert_eq!(block.as_deref(), expected, "{at}");
        }
    }

    #[test]
    fn words_are_read_around_one_that_cannot_be_read() {
        let values = [7u64, 9];
        let own = ProcessMemory { pid: std::process::id() };
        let [first, second] = [&raw const values[0] as u64, &raw const values[1] as u64];
        assert_eq!(own.words(&[first, 8, second, 16]), [Some(7), None, Some(9), None]);
        assert_eq!(own.words(&vec![second; UIO_MAXIOV + 1]), vec![Some(9); UIO_MAXIOV + 1]);
    }
}
