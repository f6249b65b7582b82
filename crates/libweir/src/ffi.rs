//! Declarations of the functions and structures of `weir.h` that the wrapper uses. A test below compares the
//! layout of all structures with the C compiler's.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct weir_stream`, used by address only.
#[repr(C)]
pub struct RawStream {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct RawOptions {
    pub mode: c_uint,
    pub durability: c_uint,
    pub on_fork: c_uint,
    pub access: c_uint,
    pub flags: c_uint,
    pub separator: c_int,
    pub stale_ms: c_uint,
    pub reserved_0: c_uint,
    pub buffer_bytes: usize,
    pub buffer: *mut c_void,
    pub max_record_bytes: usize,
    pub spill: *const c_char,
    pub reserved: [u64; 8],
}

#[repr(C)]
#[derive(Default)]
pub struct RawStats {
    pub pending_bytes: u64,
    pub unread_bytes: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub reads: u64,
    pub seeks: u64,
    pub syncs: u64,
    pub short_writes: u64,
    pub interrupted: u64,
    pub again: u64,
    pub stale_drains: u64,
    pub shared_syncs: u64,
    pub buffer_bytes: u64,
    pub read_buffer_bytes: u64,
    pub error: c_int,
    pub sync_error: c_int,
    pub mode: c_uint,
    pub durability: c_uint,
}

#[repr(C)]
pub struct RawRecovered {
    pub bytes: u64,
    pub repeated: u64,
    pub pid: i32,
    pub exact: i32,
    pub path: [c_char; 4096],
}

unsafe extern "C" {
    pub fn weir_open(
        s: *mut *mut RawStream,
        path: *const c_char,
        oflags: c_int,
        options: *const RawOptions,
    ) -> c_int;
    pub fn weir_fdopen(s: *mut *mut RawStream, fd: c_int, options: *const RawOptions) -> c_int;
    pub fn weir_open_replace(
        s: *mut *mut RawStream,
        path: *const c_char,
        options: *const RawOptions,
    ) -> c_int;
    pub fn weir_replace(s: *mut RawStream) -> c_int;
    pub fn weir_close_lost(s: *mut RawStream, lost_bytes: *mut u64) -> c_int;
    pub fn weir_write_slow(s: *mut RawStream, from: *const c_void, bytes: usize) -> isize;
    pub fn weir_putrec(s: *mut RawStream, from: *const c_void, bytes: usize) -> isize;
    pub fn weir_reserve(s: *mut RawStream, to: *mut *mut c_char, bytes: usize) -> isize;
    pub fn weir_commit(s: *mut RawStream, bytes: usize) -> c_int;
    pub fn weir_flush(s: *mut RawStream) -> c_int;
    pub fn weir_sync(s: *mut RawStream, level: c_uint) -> c_int;
    pub fn weir_read_some(s: *mut RawStream, to: *mut c_void, bytes: usize) -> isize;
    pub fn weir_peek(s: *mut RawStream, from: *mut *mut c_char, bytes: usize) -> isize;
    pub fn weir_skip(s: *mut RawStream, bytes: usize) -> isize;
    pub fn weir_getrec_slow(s: *mut RawStream, record: *mut *mut c_char) -> isize;
    pub fn weir_seek(s: *mut RawStream, offset: i64, whence: c_int) -> i64;
    pub fn weir_clear(s: *mut RawStream);
    pub fn weir_eof(s: *mut RawStream) -> c_int;
    pub fn weir_fd(s: *const RawStream) -> c_int;
    pub fn weir_get_stats(s: *mut RawStream, stats: *mut RawStats) -> c_int;
    pub fn weir_recover(spill: *const c_char, fd: c_int, found: *mut RawRecovered) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    unsafe extern "C" {
        static weir_rs_layout: [usize; 25];
        static weir_rs_layout_count: usize;
        static weir_rs_eof: c_int;
    }

    #[test]
    fn structures_are_laid_out_as_the_c_compiler_does() {
        let layout = [
            size_of::<RawOptions>(),
            offset_of!(RawOptions, flags),
            offset_of!(RawOptions, separator),
            offset_of!(RawOptions, stale_ms),
            offset_of!(RawOptions, buffer_bytes),
            offset_of!(RawOptions, buffer),
            offset_of!(RawOptions, max_record_bytes),
            offset_of!(RawOptions, spill),
            offset_of!(RawOptions, reserved),
            size_of::<RawStats>(),
            offset_of!(RawStats, pending_bytes),
            offset_of!(RawStats, written_bytes),
            offset_of!(RawStats, writes),
            offset_of!(RawStats, short_writes),
            offset_of!(RawStats, stale_drains),
            offset_of!(RawStats, shared_syncs),
            offset_of!(RawStats, buffer_bytes),
            offset_of!(RawStats, error),
            offset_of!(RawStats, mode),
            offset_of!(RawStats, durability),
            size_of::<RawRecovered>(),
            offset_of!(RawRecovered, repeated),
            offset_of!(RawRecovered, pid),
            offset_of!(RawRecovered, exact),
            offset_of!(RawRecovered, path),
        ];
        // SAFETY: constants of layout.c, which is linked into this crate; the count is checked first.
        unsafe {
            assert_eq!(weir_rs_layout_count, layout.len());
            assert_eq!(weir_rs_layout, layout);
            assert_eq!(weir_rs_eof, -4096);
        }
    }
}
