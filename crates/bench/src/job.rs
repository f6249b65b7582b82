//! A sample's job, and its outcome: what weir and the process of the sample send each other as JSON.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::axes::{SyncKind, Workload};

/// The parameters of one sample; see `struct wb_job`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Name of the method.
    pub method: String,
    /// Input file, for workloads with an input.
    pub in_path: Option<OsString>,
    /// Output file, for workloads with an output; must not exist.
    pub out_path: Option<OsString>,
    /// Bytes that the whole sample moves.
    pub bytes: u64,
    /// Bytes that one request of the program moves.
    pub record_bytes: u64,
    /// Size of the user-space buffer in bytes; 0 is the method's default.
    pub buffer_bytes: u64,
    /// Bytes between two syncs, for policies that repeat.
    pub sync_every_bytes: u64,
    /// `enum wb_workload`.
    pub workload: u32,
    /// `enum wb_sync`.
    pub sync: u32,
    /// `enum wb_mode`.
    pub mode: u32,
    /// Records per readv(2) or writev(2).
    pub vector_records: u32,
    /// io_uring requests in flight.
    pub queue_depth: u32,
    /// Whether io_uring buffers are registered.
    pub registered: bool,
    /// POSIX_FADV_*, -1 for none.
    pub advice: i32,
}

impl Job {
    /// Returns a job that moves `bytes` in records of `record_bytes` by `method`. Every other axis has its default.
    pub fn plain(method: &str, workload: Workload, bytes: u64, record_bytes: u64) -> Self {
        Self {
            method: method.into(),
            in_path: None,
            out_path: None,
            bytes,
            record_bytes,
            buffer_bytes: 0,
            sync_every_bytes: record_bytes,
            workload: workload.number() as u32,
            sync: SyncKind::None.number() as u32,
            mode: 0,
            vector_records: 1,
            queue_depth: 1,
            registered: false,
            advice: -1,
        }
    }
}

/// The result of a sample, as the child process reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SampleOutcome {
    /// The sample ran to its end.
    Ok(Box<Measured>),
    /// A system call failed.
    Failed {
        /// errno of the failed call.
        errno: i32,
        /// Name of the failed call.
        call: String,
        /// Path of the file; empty if the call has none.
        path: String,
    },
    /// The method does not work here, for this reason.
    Cannot(String),
}

/// Counters and clocks of one sample; see `struct wb_result`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are those of job.h, which explains them
pub struct Measured {
    pub remark: String,
    pub bytes_moved: u64,
    pub records: u64,
    pub open_ns: u64,
    pub transfer_ns: u64,
    pub sync_ns: u64,
    pub close_ns: u64,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    pub user_us: u64,
    pub system_us: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub page_faults: u64,
    pub calls: Vec<(String, u64)>,
    pub kernel_reads: Option<u64>,
    pub kernel_writes: Option<u64>,
    pub kernel_counted: bool,
    pub syncs: u64,
    pub clock_reads: u64,
    pub clock_read_ns: f64,
    pub empty_loop_ns: f64,
    pub dirty_bytes: Option<u64>,
}
