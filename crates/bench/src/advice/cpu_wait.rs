//! The share of its time that the measuring process waits for a processor: other processes make prices too high.

use weir_sys::proc::{ResourceUsage, resource_usage};

/// The resources at the start of a measurement.
pub(super) struct CpuWait(ResourceUsage);

impl CpuWait {
    pub fn start() -> Self {
        Self(resource_usage(std::process::id()))
    }

    /// Returns the time in the run queue since the start, divided by that time and the CPU time, 0 to 1. None if the kernel
    /// does not count it (CONFIG_SCHED_INFO).
    pub fn share(&self) -> Option<f64> {
        share(&self.0, &resource_usage(std::process::id()))
    }
}

fn share(start: &ResourceUsage, end: &ResourceUsage) -> Option<f64> {
    // The sum can become smaller: it no longer has the queue time of a thread that has ended.
    let queued = end.queued_ns?.saturating_sub(start.queued_ns?) as f64;
    let cpu = |usage: &ResourceUsage| usage.user_ns + usage.system_ns;
    let ran = cpu(end).saturating_sub(cpu(start)) as f64;
    Some(if queued + ran > 0.0 { queued / (queued + ran) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_queued_part_of_the_time() {
        let usage = |user_ns, queued_ns| ResourceUsage { user_ns, queued_ns, ..ResourceUsage::default() };
        assert_eq!(share(&usage(10, Some(5)), &usage(40, Some(15))), Some(0.25));
        assert_eq!(share(&usage(10, Some(5)), &usage(10, Some(5))), Some(0.0));
        assert_eq!(share(&usage(10, Some(5)), &usage(20, Some(0))), Some(0.0));
        assert_eq!(share(&usage(10, None), &usage(20, Some(5))), None);
    }

    #[test]
    fn the_share_of_this_process_is_known() {
        let wait = CpuWait::start();
        assert!(wait.share().is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}
