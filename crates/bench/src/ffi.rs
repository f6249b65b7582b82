//! Bindings to the C loops. The structs mirror frame/job.h field by field.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use libweir as _; // linked for methods/libweir.c, which calls its C

use crate::job::{Job, Measured, SampleOutcome};

const CALL_KINDS: usize = 10;
const TEXT: usize = 200;
/// Line length of the text that `write` writes and `copy`, `read` and `translate` read.
pub const TEXT_LINE: u64 = 64;

#[repr(C)]
struct RawJob {
    method: *const c_char,
    in_path: *const c_char,
    out_path: *const c_char,
    bytes: u64,
    record_bytes: u64,
    buffer_bytes: u64,
    sync_every_bytes: u64,
    workload: u32,
    sync: u32,
    mode: u32,
    vector_records: u32,
    queue_depth: u32,
    registered: u32,
    advice: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCount {
    name: [c_char; 24],
    count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawResult {
    status: u32,
    error_number: i32,
    error_call: [c_char; 24],
    error_path: [c_char; TEXT],
    text: [c_char; TEXT],
    bytes_moved: u64,
    records: u64,
    open_ns: u64,
    transfer_ns: u64,
    sync_ns: u64,
    close_ns: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
    user_us: u64,
    system_us: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    minor_faults: u64,
    major_faults: u64,
    calls: [RawCount; CALL_KINDS],
    kernel_counted: u32,
    kernel_counts_known: u32,
    kernel_reads: u64,
    kernel_writes: u64,
    syncs: u64,
    clock_reads: u64,
    clock_read_ns: f64,
    empty_loop_ns: f64,
    dirty_bytes: u64,
    writeback_bytes: u64,
    dirty_known: u32,
}

#[repr(C)]
struct RawMethodInfo {
    name: *const c_char,
    title: *const c_char,
    workload_reason: *const c_char,
    sync_reason: *const c_char,
    workloads: c_uint,
    syncs: c_uint,
    options: c_uint,
}

#[repr(C)]
#[derive(Default)]
struct RawCache {
    pages: u64,
    cached: u64,
    dirty: u64,
    writeback: u64,
    exact: u32,
}

unsafe extern "C" {
    fn wb_method_at(index: usize, info: *mut RawMethodInfo) -> bool;
    fn wb_measure(job: *const RawJob, result: *mut RawResult) -> c_int;
    fn wb_read_cache_state(fd: c_int, bytes: u64, state: *mut RawCache) -> c_int;
    fn wb_direct_alignment(fd: c_int, memory: *mut u32, offset: *mut u32) -> c_int;
    fn wb_text_at(offset: u64, record_bytes: u64) -> u8;
    fn wb_translated(byte: u8) -> u8;
}

/// Name and capabilities of a method; see `struct wb_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodInfo {
    /// The word on the command line.
    pub name: &'static str,
    /// One line of explanation.
    pub title: &'static str,
    /// Why the method does not support every workload.
    pub workload_reason: Option<&'static str>,
    /// Why the method does not support every sync policy.
    pub sync_reason: Option<&'static str>,
    workloads: u32,
    syncs: u32,
    options: u32,
}

/// An axis that only some methods have; a bit of `options`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MethodAxis {
    /// The record size is free.
    Record = 1,
    /// The size of the user-space buffer is free.
    Buffer = 2,
    /// setvbuf(3) mode.
    Mode = 4,
    /// Number of records per readv(2) or writev(2).
    Vector = 8,
    /// Number of requests in flight, and registered buffers.
    Queue = 16,
}

impl MethodInfo {
    /// Returns whether the method supports the workload with this number in `enum wb_workload`.
    pub fn has_workload(&self, number: u32) -> bool {
        self.workloads & (1 << number) != 0
    }

    /// Returns whether the method supports the policy with this number in `enum wb_sync`.
    pub fn has_sync(&self, number: u32) -> bool {
        self.syncs & (1 << number) != 0
    }

    /// Returns whether the method has the axis.
    pub fn has(&self, axis: MethodAxis) -> bool {
        self.options & axis as u32 != 0
    }
}

/// Returns all methods, ordered by name.
pub fn methods() -> Vec<MethodInfo> {
    (0..).map_while(method_at).collect()
}

fn method_at(index: usize) -> Option<MethodInfo> {
    let mut raw = RawMethodInfo {
        name: ptr::null(),
        title: ptr::null(),
        workload_reason: ptr::null(),
        sync_reason: ptr::null(),
        workloads: 0,
        syncs: 0,
        options: 0,
    };
    // SAFETY: `raw` is a valid struct to write to; its pointers then refer to constants in C.
    let found = unsafe { wb_method_at(index, &mut raw) };
    let text = |text: *const c_char| -> Option<&'static str> {
        // SAFETY: NULL, or a constant string of the C code, which lives as long as the program.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?"))
    };
    found.then(|| MethodInfo {
        name: text(raw.name).unwrap_or("?"),
        title: text(raw.title).unwrap_or(""),
        workload_reason: text(raw.workload_reason),
        sync_reason: text(raw.sync_reason),
        workloads: raw.workloads,
        syncs: raw.syncs,
        options: raw.options,
    })
}

fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs one sample in this process; see `wb_measure`. The caller is a process that does nothing else.
pub fn measure(job: &Job) -> SampleOutcome {
    let c_text = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
    let method = c_text(job.method.as_ref());
    let in_path = job.in_path.as_deref().map(c_text);
    let out_path = job.out_path.as_deref().map(c_text);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |t| t.as_ptr());
    let raw_job = RawJob {
        method: method.as_ptr(),
        in_path: pointer(&in_path),
        out_path: pointer(&out_path),
        bytes: job.bytes,
        record_bytes: job.record_bytes,
        buffer_bytes: job.buffer_bytes,
        sync_every_bytes: job.sync_every_bytes,
        workload: job.workload,
        sync: job.sync,
        mode: job.mode,
        vector_records: job.vector_records,
        queue_depth: job.queue_depth,
        registered: u32::from(job.registered),
        advice: job.advice,
    };
    // SAFETY: every field of the struct is an integer, a float or an array of them: all zero is valid.
    let mut raw: RawResult = unsafe { std::mem::zeroed() };
    // SAFETY: both point to structs of job.h's layout; the strings outlive the call.
    match unsafe { wb_measure(&raw_job, &mut raw) } {
        0 => SampleOutcome::Ok(Box::new(measured(&raw))),
        1 => SampleOutcome::Failed {
            errno: raw.error_number,
            call: text_of(&raw.error_call),
            path: text_of(&raw.error_path),
        },
        _ => SampleOutcome::Cannot(text_of(&raw.text)),
    }
}

fn measured(raw: &RawResult) -> Measured {
    let known = raw.kernel_counts_known != 0;
    Measured {
        remark: text_of(&raw.text),
        bytes_moved: raw.bytes_moved,
        records: raw.records,
        open_ns: raw.open_ns,
        transfer_ns: raw.transfer_ns,
        sync_ns: raw.sync_ns,
        close_ns: raw.close_ns,
        elapsed_ns: raw.elapsed_ns,
        cpu_ns: raw.cpu_ns,
        user_us: raw.user_us,
        system_us: raw.system_us,
        voluntary_switches: raw.voluntary_switches,
        involuntary_switches: raw.involuntary_switches,
        page_faults: raw.minor_faults + raw.major_faults,
        calls: raw
            .calls
            .iter()
            .map(|c| (text_of(&c.name), c.count))
            .filter(|(name, _)| !name.is_empty())
            .collect(),
        kernel_reads: known.then_some(raw.kernel_reads),
        kernel_writes: known.then_some(raw.kernel_writes),
        kernel_counted: raw.kernel_counted != 0,
        syncs: raw.syncs,
        clock_reads: raw.clock_reads,
        clock_read_ns: raw.clock_read_ns,
        empty_loop_ns: raw.empty_loop_ns,
        dirty_bytes: (raw.dirty_known != 0).then_some(raw.dirty_bytes + raw.writeback_bytes),
    }
}

/// Returns the share of the first `bytes` of an open file that is in the page cache, 0 to 1.
pub fn cached_share(file: impl AsFd, bytes: u64) -> std::io::Result<f64> {
    let mut raw = RawCache::default();
    // SAFETY: the descriptor is open for the call; `raw` is a valid struct to write to.
    let status = unsafe { wb_read_cache_state(file.as_fd().as_raw_fd(), bytes, &mut raw) };
    match status {
        0 => Ok(if raw.pages == 0 { 0.0 } else { raw.cached as f64 / raw.pages as f64 }),
        error => Err(std::io::Error::from_raw_os_error(-error)),
    }
}

/// Returns the alignment that O_DIRECT requires: of the address, and of offset and length, in bytes. See
/// `wb_direct_alignment`.
pub fn direct_alignment(file: impl AsFd) -> std::io::Result<(u32, u32)> {
    let (mut memory, mut offset) = (0, 0);
    // SAFETY: the descriptor is open for the call; both pointers are to valid integers.
    match unsafe { wb_direct_alignment(file.as_fd().as_raw_fd(), &mut memory, &mut offset) } {
        0 => Ok((memory, offset)),
        error => Err(std::io::Error::from_raw_os_error(-error)),
    }
}

/// Returns the byte at `offset` of the text with lines of `record_bytes`.
pub fn text_at(offset: u64, record_bytes: u64) -> u8 {
    // SAFETY: a pure function of two integers.
    unsafe { wb_text_at(offset, record_bytes) }
}

/// Returns the byte that `translate` writes for `byte`.
pub fn translated(byte: u8) -> u8 {
    // SAFETY: a pure function of an integer.
    unsafe { wb_translated(byte) }
}

/// Returns the version of the running glibc; `None` with another C library.
#[cfg(target_env = "gnu")]
pub fn glibc_version() -> Option<String> {
    unsafe extern "C" {
        fn gnu_get_libc_version() -> *const c_char;
    }
    // SAFETY: returns a constant string of the C library, gnu_get_libc_version(3).
    unsafe { CStr::from_ptr(gnu_get_libc_version()) }.to_str().ok().map(String::from)
}

/// Returns the version of the running glibc; `None` with another C library.
#[cfg(not(target_env = "gnu"))]
pub fn glibc_version() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::axes::Workload;

    unsafe extern "C" {
        fn wb_sizes(sizes: *mut usize);
    }

    #[test]
    fn the_mirrored_structs_have_the_sizes_of_the_c_ones() {
        let mut sizes = [0; 4];
        // SAFETY: wb_sizes writes WB_SIZES (4) numbers.
        unsafe { wb_sizes(sizes.as_mut_ptr()) };
        let ours =
            [size_of::<RawJob>(), size_of::<RawResult>(), size_of::<RawMethodInfo>(), size_of::<RawCache>()];
        assert_eq!(sizes, ours);
    }

    #[test]
    fn a_sample_runs_in_this_process_and_an_unknown_method_fails() {
        let dir = tempfile::tempdir().unwrap();
        let out_path = dir.path().join("out");
        let plain = Job::plain("syscall", Workload::Write, 1000, 64);
        let job = Job { out_path: Some(out_path.clone().into()), ..plain };
        let SampleOutcome::Ok(measured) = measure(&job) else { panic!("the sample failed") };
        assert_eq!((measured.bytes_moved, measured.records), (1000, 16));
        assert!(measured.calls.contains(&("write".into(), 16)), "{measured:?}");
        let text = std::fs::read(&out_path).unwrap();
        assert!(text.iter().enumerate().all(|(i, &byte)| byte == text_at(i as u64, TEXT_LINE)));
        let again = measure(&job);
        assert!(
            matches!(&again, SampleOutcome::Failed { path, .. } if Path::new(path) == out_path),
            "it exists: {again:?}"
        );
        assert!(matches!(measure(&Job { method: "none".into(), ..job }), SampleOutcome::Failed { .. }));
    }
}
