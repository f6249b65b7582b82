//! Counts of calls that move no bytes. They may be most of a program's calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Op;

/// Calls of one kind by one image of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct OtherCalls {
    pub pid: u32,
    /// Index in [`super::Process::images`].
    pub image: u32,
    pub op: Op,
    pub calls: u64,
    /// Failed calls by error number.
    pub errors: BTreeMap<i32, u64>,
    /// Operations submitted by io_uring_enter(2) and io_submit(2); no stream has their bytes.
    #[serde(default)]
    pub submitted: u64,
    /// Every call was counted. Otherwise the calls in gaps are missing, because the kernel has no totals of them.
    pub exact: bool,
}

impl OtherCalls {
    /// Returns the number of failed calls.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}
