//! `--method auto` for large files: two methods move the first megabytes in turns, and the cheaper one moves the rest.

use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::page_cache::cached_pages;

use super::ContentJob;
use crate::options::{CopyMethod, CopyOptions, HoleSearch, Tristate};

/// The bytes that one method moves at a time. Smaller parts are measured too coarsely.
pub(super) const PART_BYTES: u64 = 2 << 20;
/// Parts of a trial: each method moves two, and the cheaper one of them counts.
pub(super) const PARTS: usize = 4;
/// In a smaller range the trial would be most of the copy.
pub(super) const MIN_BYTES: u64 = 4 * PARTS as u64 * PART_BYTES;
/// Files from this size are moved by the kernel; for smaller ones one read and one write are as fast.
const IN_KERNEL_BYTES: u64 = 128 << 10;
/// The share that the second method must save to be chosen. Less is noise.
const MIN_GAIN: f64 = 0.05;

/// A comparison of two methods that has not ended.
#[derive(Debug)]
pub(super) struct MethodTrial {
    pub methods: [CopyMethod; 2],
    /// Nanoseconds of each part.
    costs: Vec<u64>,
    /// CPU time is compared, because the source is in the page cache; otherwise elapsed time, because the device decides.
    by_cpu: bool,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct TrialResult {
    pub methods: [CopyMethod; 2],
    /// Nanoseconds per MiB of each method.
    pub ns_per_mib: [u64; 2],
    /// CPU time was compared; otherwise elapsed time.
    pub by_cpu: bool,
}

impl MethodTrial {
    pub fn new(job: &ContentJob, first: CopyMethod) -> Self {
        let page = rustix::param::page_size() as u64;
        let bytes = PARTS as u64 * PART_BYTES;
        // Without cachestat(2) CPU time is compared, which no other process disturbs.
        let by_cpu = cached_pages(job.source, 0, bytes).is_ok_and(|pages| pages.cached * page < bytes / 2);
        Self { methods: [first, CopyMethod::ReadWrite], costs: Vec::new(), by_cpu: !by_cpu }
    }

    /// Returns the method of the next part; None if all parts are measured.
    pub fn next(&self) -> Option<CopyMethod> {
        (self.costs.len() < PARTS).then(|| self.methods[self.costs.len() % 2])
    }

    pub fn clock_ns(&self) -> u64 {
        if self.by_cpu { thread_cpu_ns() } else { now_ns() }
    }

    /// Notes the cost of a part that began at a time of [`Self::clock_ns`].
    pub fn note_part(&mut self, started_ns: u64) {
        self.costs.push(self.clock_ns().saturating_sub(started_ns));
    }

    /// Returns the cheaper method and what was measured.
    pub fn decide(&self) -> (CopyMethod, TrialResult) {
        let least = |first: usize| self.costs.iter().skip(first).step_by(2).copied().min().unwrap_or(0);
        let costs = [least(0), least(1)];
        let second_is_cheaper = (costs[1] as f64) < costs[0] as f64 * (1.0 - MIN_GAIN);
        let result = TrialResult {
            methods: self.methods,
            ns_per_mib: costs.map(|cost| cost / (PART_BYTES >> 20)),
            by_cpu: self.by_cpu,
        };
        (self.methods[usize::from(second_is_cheaper)], result)
    }
}

/// Returns the method with which `auto` begins a file whose blocks are not shared.
pub(super) fn first_method(job: &ContentJob, options: &CopyOptions) -> CopyMethod {
    let needs_buffer = options.sparse == Tristate::Always
        || options.holes == HoleSearch::Scan
        || options.drop_cache
        || options.buffer_bytes.is_some();
    if needs_buffer || job.stat.size < IN_KERNEL_BYTES {
        return CopyMethod::ReadWrite;
    }
    // copy_file_range(2) may share blocks, and works on one file system only.
    match options.reflink != Tristate::Never && job.same_device {
        true => CopyMethod::CopyFileRange,
        false => CopyMethod::Sendfile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_method_must_save_more_than_noise() {
        let decide = |costs: [u64; 4]| {
            let methods = [CopyMethod::Sendfile, CopyMethod::ReadWrite];
            MethodTrial { methods, costs: costs.to_vec(), by_cpu: true }.decide().0
        };
        assert_eq!(decide([100, 96, 100, 99]), CopyMethod::Sendfile);
        assert_eq!(decide([100, 300, 120, 80]), CopyMethod::ReadWrite);
        assert_eq!(decide([100, 80, 70, 80]), CopyMethod::Sendfile, "the cheaper part of each method counts");
    }
}
