//! Counts the calls that move no bytes, by process, program and kind.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::{Op, OtherCalls};
use weir_trace_api::{RawCall, RawCounts};

/// One program of one process: its process, and which of its images.
type Program = (u32, u32);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct OtherCallCounts {
    counts: BTreeMap<(Program, Op), OtherCalls>,
    /// Moves of an offset that were only counted, by open file, seen from its input and its output. They are the same ones.
    untold: HashMap<(Program, u32), [u64; 2]>,
}

/// Whether a call is counted here. What an engine sees of these must not depend on which it is.
fn is_counted(call: &RawCall) -> bool {
    use Op::*;
    match call.op {
        op if op.reads() || op.writes() || op.copies() => false,
        // These are in the list of programs, but for those that failed, which not every engine sees.
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
    /// A call that was told.
    pub fn note(&mut self, program: Program, call: &RawCall) {
        if !is_counted(call) {
            return;
        }
        let one = self.of(program, call.op);
        one.calls += 1;
        if call.result < 0 {
            // The kernel's own codes from 512 on: a signal came between.
            let number = if call.result <= -512 { libc::EINTR } else { -call.result as i32 };
            *one.errors.entry(number).or_default() += 1;
        } else if call.op.submits() {
            one.submitted += call.result as u64;
        }
    }

    /// Moves of an offset that the kernel only counted.
    pub fn note_counts(&mut self, program: Program, file: u32, counts: &RawCounts) {
        if counts.unreported_seeks > 0 {
            let side = usize::from(counts.counts.direction == Direction::Out);
            self.untold.entry((program, file)).or_default()[side] += counts.unreported_seeks;
        }
    }

    fn of(&mut self, program: Program, op: Op) -> &mut OtherCalls {
        self.counts.entry((program, op)).or_insert_with(|| OtherCalls {
            pid: program.0,
            image: program.1,
            op,
            calls: 0,
            errors: BTreeMap::new(),
            submitted: 0,
            exact: true,
        })
    }

    /// What was counted, in the order of processes; of those in `partly_seen` there was more.
    pub fn finish(mut self, partly_seen: &HashSet<u32>) -> Vec<OtherCalls> {
        for ((program, _), [input, output]) in std::mem::take(&mut self.untold) {
            self.of(program, Op::Lseek).calls += input.max(output);
        }
        let counts = self.counts.into_values();
        counts.map(|one| OtherCalls { exact: !partly_seen.contains(&one.pid), ..one }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_and_error() {
        let mut others = OtherCallCounts::default();
        for result in [3, -i64::from(libc::ENOENT), 4, -i64::from(libc::ENOENT), -i64::from(libc::EACCES)] {
            others.note((7, 0), &RawCall::new(Op::Openat, [0; 6], result));
        }
        others.note((7, 0), &RawCall::new(Op::Read, [0; 6], 10));
        others.note((8, 1), &RawCall::new(Op::Close, [3, 0, 0, 0, 0, 0], 0));
        for result in [3, -i64::from(libc::EINTR), 4] {
            others.note((9, 0), &RawCall::new(Op::IoUringEnter, [0; 6], result));
        }
        let counted = others.finish(&HashSet::from_iter([8]));
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
    fn what_only_some_engines_see_is_left_out() {
        let anonymous =
            RawCall::new(Op::Mmap, [0, 4096, 3, libc::MAP_ANONYMOUS as u64, u32::MAX.into(), 0], 4096);
        let mapped = RawCall::new(Op::Mmap, [0, 4096, 1, libc::MAP_PRIVATE as u64, 3, 0], 4096);
        let asks = RawCall::new(Op::Fcntl, [1, libc::F_GETFL as u64, 0, 0, 0, 0], 2);
        let sets = RawCall::new(Op::Fcntl, [1, libc::F_SETFL as u64, 0, 0, 0, 0], 0);
        let started = RawCall::new(Op::Execve, [0; 6], 0);
        assert!(!is_counted(&anonymous) && !is_counted(&asks) && !is_counted(&started));
        assert!(is_counted(&mapped) && is_counted(&sets));
    }
}
