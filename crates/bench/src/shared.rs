//! Samples of several threads that write one file; the loops are in frame/shared.c.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weir_model::advise::CallPrice;

#[repr(C)]
struct RawShared {
    path: *const c_char,
    records: u64,
    record_bytes: u64,
    buffer_bytes: u64,
    kind: u32,
    writers: u32,
}

#[repr(C)]
#[derive(Default)]
struct RawSharedResult {
    elapsed_ns: u64,
    cpu_ns: u64,
}

unsafe extern "C" {
    fn wb_measure_shared(job: *const RawShared, result: *mut RawSharedResult) -> c_int;
}

/// How the threads write; `enum wb_sharing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Sharing {
    /// fwrite(3) behind a mutex.
    Buffer,
    /// write(2) behind a mutex.
    Write,
    /// weir_putrec(3) into a buffer.
    Libweir,
    /// weir_putrec(3) that writes at once.
    LibweirWrite,
    /// write(2), then one fdatasync(2) for all threads that wait.
    Group,
    /// weir_putrec(3) and weir_sync(3).
    LibweirGroup,
    /// write(2) behind a mutex, then an fdatasync(2) of each thread's own.
    Each,
}

/// One sample; see `struct wb_shared_job`.
#[derive(Debug, Clone, Copy)]
pub struct SharedJob {
    pub sharing: Sharing,
    pub writers: u32,
    /// Records of each thread.
    pub records: u64,
    pub record_bytes: u64,
    pub buffer_bytes: u64,
}

/// Appends the records to the existing file at `path` with all threads, and returns the price of a record.
pub fn measure(job: &SharedJob, path: &Path) -> io::Result<CallPrice> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let raw = RawShared {
        path: path.as_ptr(),
        records: job.records,
        record_bytes: job.record_bytes,
        buffer_bytes: job.buffer_bytes,
        kind: job.sharing as u32,
        writers: job.writers,
    };
    let mut result = RawSharedResult::default();
    // SAFETY: both point to structs of shared.h's layout; the path outlives the call, and the threads end in it.
    match unsafe { wb_measure_shared(&raw, &mut result) } {
        0 => {
            let records = (u64::from(job.writers) * job.records).max(1) as f64;
            let price = |ns: u64| ns as f64 / records;
            Ok(CallPrice { elapsed_ns: price(result.elapsed_ns), cpu_ns: price(result.cpu_ns) })
        }
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Sharing; 7] = [
        Sharing::Buffer,
        Sharing::Write,
        Sharing::Libweir,
        Sharing::LibweirWrite,
        Sharing::Group,
        Sharing::LibweirGroup,
        Sharing::Each,
    ];

    #[test]
    fn every_kind_writes_all_records_whole() {
        for sharing in ALL {
            let file = tempfile::NamedTempFile::new().unwrap();
            let job = SharedJob { sharing, writers: 3, records: 50, record_bytes: 100, buffer_bytes: 4096 };
            let price = measure(&job, file.path()).unwrap();
            assert!(price.elapsed_ns > 0.0 && price.cpu_ns > 0.0, "{sharing:?}: {price:?}");
            let text = std::fs::read_to_string(file.path()).unwrap();
            assert_eq!(text.lines().filter(|line| line.len() == 99).count(), 150, "{sharing:?}");
            assert_eq!(text.len(), 150 * 100, "{sharing:?}");
        }
    }

    #[test]
    fn a_sample_that_cannot_run_is_an_error() {
        let job =
            SharedJob { sharing: Sharing::Write, writers: 2, records: 1, record_bytes: 10, buffer_bytes: 0 };
        assert_eq!(measure(&job, Path::new("/no/such/file")).unwrap_err().kind(), io::ErrorKind::NotFound,);
        let full = measure(&job, Path::new("/dev/full")).unwrap_err();
        assert_eq!(full.raw_os_error(), Some(28));
        let file = tempfile::NamedTempFile::new().unwrap();
        let invalid = SharedJob { writers: 65, ..job };
        assert_eq!(measure(&invalid, file.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
