//! The structs of bpf/events.h, byte for byte; the C side asserts the same sizes.

#![allow(missing_docs)]

pub const SLOTS: usize = 32;
pub const HEAD: usize = 64;
pub const PATH: usize = 248;
pub const NAME: usize = 64;
pub const PREVIEW: usize = 256;
pub const CLASSES: usize = 512;

/// So many lseek(2) of a stream are told one by one.
pub const TOLD_SEEKS: u64 = 64;

/// `enum class`: what a system call's number means in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    Read = 1,
    Write,
    Pread,
    Pwrite,
    Readv,
    Writev,
    Preadv,
    Pwritev,
    Recvmsg,
    Sendmsg,
    Copy01,
    Copy02,
    Tee,
    Lseek,
    Close,
    CloseRange,
    DupTo,
    NewFd,
    Openat,
    Open,
    Fcntl,
    Path0,
    Path1,
    Paths01,
    Paths13,
    Mmap,
    Pair0,
    Pair3,
    Plain,
    Sync,
    Protect,
    Ring,
}

pub const KIND_CALL: u32 = 1;
pub const KIND_COUNTS: u32 = 2;
pub const KIND_FORK: u32 = 3;
pub const KIND_EXEC: u32 = 4;
pub const KIND_EXIT: u32 = 5;
pub const KIND_BUFFER: u32 = 6;

/// A struct of events.h: any bytes are one.
///
/// # Safety
/// `repr(C)`, only integers and arrays of them, and no padding.
pub unsafe trait Wire: Copy {}

/// Reads a struct from the beginning of `bytes`; None when they are too few.
pub fn read<T: Wire>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are enough bytes, alignment is not asked for, and any bytes are a T (see Wire).
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

const fn zeroed<T: Wire>() -> T {
    // SAFETY: any bytes are a T (see Wire).
    unsafe { std::mem::zeroed() }
}

macro_rules! wire {
    ($($(#[$meta:meta])* struct $name:ident: $size:literal { $($field:ident: $type:ty,)* })*) => {
        $($(#[$meta])* #[derive(Debug, Clone, Copy)] #[repr(C)] pub struct $name { $(pub $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $size);
        // SAFETY: repr(C), integers and arrays only; the size above leaves no room for padding.
        unsafe impl Wire for $name {}
        )*
    };
}

wire! {
    struct Head: 24 { ns: u64, kind: u32, pid: u32, tid: u32, fd: i32, }
    struct Identity: 56 {
        key: u64, dev: u64, ino: u64, pos: u64, size: u64,
        mode: u32, flags: u32, pipe_pages: u32, block_bits: u32,
    }
    struct Call: 216 {
        head: Head, file: Identity, args: [u64; 6], result: i64,
        nr: u32, counted: u32, data_bytes: u32, tail: i32, data: [u8; HEAD],
    }
    struct PathCall: 720 { call: Call, moved: u64, path: [[u8; PATH]; 2], }
    struct Counts: 760 {
        head: Head, file: Identity, first_ns: u64, last_ns: u64,
        bytes: u64, errors: u64, again: u64, zeros: u64, shorts: u64, newline_ends: u64, jumps: u64,
        again_bytes: u64, unaligned: u64, in_kernel: u64, asked_max: u64, position: u64, high: u64,
        seeks: u64, seek_ns: u64,
        writes: u32, told: u32, failed: u32, regular: u32,
        tick: u32, in_tick: u32, doubted: u64,
        sizes: [u64; SLOTS], asked_other: [u64; SLOTS],
    }
    struct Life: 624 {
        head: Head, read_calls: u64, write_calls: u64, read_bytes: u64, written_bytes: u64,
        user_ns: u64, system_ns: u64, run_ns: u64, queued_ns: u64, fetched_bytes: u64, other: u32, flags: u32,
        comm: [u8; 16], path: [u8; PATH],
        argument_bytes: u64, arguments: [u8; PATH],
    }
    struct BufferSeen: 456 {
        head: Head, file: Identity, name: [u8; NAME], address: u64, base: u64, end: u64, pending: u64, unread: u64,
        moment: u32, flags: u32, walker: u32, call_fd: i32, data: [u8; PREVIEW],
    }
    struct ProcessState: 128 {
        list: u64, walker: u32, image: i32, read_calls: u64, write_calls: u64, read_bytes: u64,
        written_bytes: u64, user_ns: u64, system_ns: u64, run_ns: u64, queued_ns: u64, fetched_bytes: u64,
        high_fds: u32, command: u32, directory: u64, strangers: u32, unused: u32,
        streams: [u64; 2],
    }
    struct LibraryKey: 16 { ino: u64, size: u64, }
    struct Library: 16 { offset: u64, walker: u32, how: u32, }
    struct StreamKey: 8 { pid: u32, fd_out: u32, }
}

/// A command, and one that is to stop where its C library stands: enum command.
pub const COMMAND: u32 = 1;
pub const HELD: u32 = 2;

/// The image of a command that weir has not let go yet.
pub const GATED: i32 = -1;

impl ProcessState {
    /// Of a process of which nothing is known.
    pub const EMPTY: Self = zeroed();
}

impl Counts {
    /// The same stream, which has counted nothing; it is looked at again when it is used.
    pub fn emptied(self) -> Self {
        Self {
            bytes: 0,
            errors: 0,
            again: 0,
            zeros: 0,
            shorts: 0,
            newline_ends: 0,
            jumps: 0,
            again_bytes: 0,
            unaligned: 0,
            in_kernel: 0,
            seeks: 0,
            doubted: 1,
            sizes: [0; SLOTS],
            asked_other: [0; SLOTS],
            ..self
        }
    }
}

// SAFETY: as for Wire.
unsafe impl aya::Pod for ProcessState {}
// SAFETY: as for Wire.
unsafe impl aya::Pod for LibraryKey {}
// SAFETY: as for Wire.
unsafe impl aya::Pod for Library {}
// SAFETY: as for Wire.
unsafe impl aya::Pod for StreamKey {}
// SAFETY: as for Wire.
unsafe impl aya::Pod for Counts {}

/// The text before the first NUL.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_bytes_are_no_struct() {
        assert!(read::<Head>(&[0; 23]).is_none());
        assert_eq!(read::<Head>(&[1; 24]).unwrap().pid, 0x0101_0101);
    }

    #[test]
    fn text_ends_at_the_first_nul_or_with_the_bytes() {
        assert_eq!(text(b"cat\0rest"), "cat");
        assert_eq!(text(b"full"), "full");
    }
}
