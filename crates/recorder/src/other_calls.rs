//! Counts the calls that move no bytes, by process, image and kind. They become the recording's `other_calls`.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::{Op, OtherCalls};
use weir_trace_api::{RawCall, RawCounts};

/// A PID and the index of one of its images.
type ProcessImage = (u32, u32);

/// The counts of all processes.
#[derive(Debug, Default)]
pub(super) struct OtherCallCounts {
    counts: BTreeMap<(ProcessImage, Op), OtherCalls>,
    /// Seeks that the kernel only counted, as (input, output) of one open file. Both count the same seeks.
    unreported_seeks: HashMap<(ProcessImage, u32), [u64; 2]>,
}

/// Returns whether a call is counted here. Calls that not every backend sees are left out, so that counts
/// agree.
fn is_counted(call: &RawCall) -> bool {
    use Op::*;
    match call.op {
        op if op.reads() || op.writes() || op.copies() => false,
        // Successful ones are the process's images; not every backend sees the failed ones.
        Execve | Execveat => false,
        Mmap => call.args[4] as i32 >= 0 && call.args[3] as i32 & libc::MAP_ANONYMOUS == 0,
        Fcntl => matches!(
            call.args[1] as i32,
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETFD | libc::F_SETFL | libc::F_SETPIPE_SZ
        ),
        _ => true,
    }
}

impl OtherCallCounts {
    /// Counts one call of an operation.
    pub fn add(&mut self, image: ProcessImage, call: &RawCall) {
        if !is_counted(call) {
            return;
        }
        let counts = self.entry(image, call.op);
        counts.calls += 1;
        if call.result < 0 {
            // Results from -512 on are the kernel's internal restart codes: a signal interrupted the call.
            let number = if call.result <= -512 { libc::EINTR } else { -call.result as i32 };
            *counts.errors.entry(number).or_default() += 1;
        } else if call.op.submits() {
            counts.submitted += call.result as u64;
        }
    }

    /// Counts seeks that the kernel did not report one by one.
    pub fn add_unreported_seeks(&mut self, image: ProcessImage, file: u32, counts: &RawCounts) {
        if counts.unreported_seeks > 0 {
            let side = usize::from(counts.counts.direction == Direction::Out);
            self.unreported_seeks.entry((image, file)).or_default()[side] += counts.unreported_seeks;
        }
    }

    fn entry(&mut self, image: ProcessImage, op: Op) -> &mut OtherCalls {
        self.counts.entry((image, op)).or_insert_with(|| OtherCalls {
            pid: image.0,
            image: image.1,
            op,
            calls: 0,
            errors: BTreeMap::new(),
            submitted: 0,
            exact: true,
        })
    }

    /// Returns the counts by PID. Those of processes in `partly_observed` are lower limits.
    pub fn finish(mut self, partly_observed: &HashSet<u32>) -> Vec<OtherCalls> {
        for ((image, _), [input, output]) in std::mem::take(&mut self.unreported_seeks) {
            self.entry(image, Op::Lseek).calls += input.max(output);
        }
        let counts = self.counts.into_values();
        counts.map(|counts| OtherCalls { exact: !partly_observed.contains(&counts.pid), ..counts }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_and_error() {
        let mut counters = OtherCallCounts::default();
        for result in [3, -i64::from(libc::ENOENT), 4, -i64::from(libc::ENOENT), -i64::from(libc::EACCES)] {
            counters.add((7, 0), &RawCall::new(Op::Openat, [0; 6], result));
        }
        counters.add((7, 0), &RawCall::new(Op::Read, [0; 6], 10));
        counters.add((8, 1), &RawCall::new(Op::Close, [3, 0, 0, 0, 0, 0], 0));
        for result in [3, -i64::from(libc::EINTR), 4] {
            counters.add((9, 0), &RawCall::new(Op::IoUringEnter, [0; 6], result));
        }
        let counted = counters.finish(&HashSet::from_iter([8]));
        let [.., ring] = &counted[..] else { panic!("{counted:?}") };
        assert_eq!((ring.op, ring.calls, ring.failed(), ring.submitted), (Op::IoUringEnter, 3, 1, 7));
        let counted = &counted[..counted.len() - 1];
        assert_eq!(counted.len(), 2, "{counted:?}");
        assert_eq!((counted[0].op, counted[0].calls, counted[0].failed()), (Op::Openat, 5, 3));
        assert_eq!(counted[0].errors, BTreeMap::from([(libc::ENOENT, 2), (libc::EACCES, 1)]));
        assert_eq!((counted[0].exact, counted[1].exact), (true, false));
        assert_eq!((counted[1].pid, counted[1].image, counted[1].calls), (8, 1, 1));
    }

    #[test]
    fn calls_that_only_some_backends_see_are_not_counted() {
        let anonymous =
            RawCall::new(Op::Mmap, [0, 4096, 3, libc::MAP_ANONYMOUS as u64, u32::MAX.into(), 0], 4096);
        let mapped = RawCall::new(Op::Mmap, [0, 4096, 1, libc::MAP_PRIVATE as u64, 3, 0], 4096);
        let getfl = RawCall::new(Op::Fcntl, [1, libc::F_GETFL as u64, 0, 0, 0, 0], 2);
        let setfl = RawCall::new(Op::Fcntl, [1, libc::F_SETFL as u64, 0, 0, 0, 0], 0);
        let started = RawCall::new(Op::Execve, [0; 6], 0);
        assert!(!is_counted(&anonymous) && !is_counted(&getfl) && !is_counted(&started));
        assert!(is_counted(&mapped) && is_counted(&setfl));
    }
}
