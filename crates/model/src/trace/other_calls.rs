//! Calls that move no bytes, counted by what they were: they may be most of what a program does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Op;

/// How often one program made one kind of call, as far as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCalls {
    /// The process.
    pub pid: u32,
    /// Index in [`super::Process::images`].
    pub image: u32,
    /// Which call.
    pub op: Op,
    /// How often it was made.
    pub calls: u64,
    /// How often it failed, by the number of the error.
    pub errors: BTreeMap<i32, u64>,
    /// Operations that they handed to the kernel (io_uring_enter, io_submit), whose bytes nobody counts.
    #[serde(default)]
    pub submitted: u64,
    /// Every one was seen; false: there were times when only totals were kept, and the kernel has none of these.
    pub exact: bool,
}

impl OtherCalls {
    /// How often it failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}
