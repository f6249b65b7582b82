//! Notes transfers that are in no stream: operations submitted by io_uring(7) and aio, and shared writable
//! mappings of files. Their bytes cannot be counted by stream, so the recording's `blind` sentences name them.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashSet;
use weir_model::Size;
use weir_model::trace::{Op, OpenFile, OtherCalls};
use weir_trace_api::RawCall;

use crate::open_files::OpenFileTable;

/// IORING_SETUP_SQPOLL: a kernel thread fetches the operations, without a call.
const SETUP_SQPOLL: u64 = 1 << 1;
/// Paths of memfd_create(2) files begin with these words.
const MEMFD_PATHS: [&str; 2] = ["memfd", "/memfd:"];

/// The untracked transfers of all processes.
#[derive(Debug, Default)]
pub(super) struct UntrackedTransfers {
    submits: bool,
    /// Number of polled rings, by PID.
    polled: BTreeMap<u32, u64>,
    /// Mapped bytes, by file id.
    mapped: BTreeMap<u32, u64>,
    mappers: BTreeSet<u32>,
    /// Processes that have copied by calls which the kernel's totals do not contain.
    splicers: BTreeSet<u32>,
}

impl UntrackedTransfers {
    /// Notes a call that sets up a ring, submits operations, or copies without being counted.
    pub fn note_call(&mut self, pid: u32, call: &RawCall) {
        let polled = call.op == Op::IoUringSetup && call.args[2] & SETUP_SQPOLL != 0 && call.result >= 0;
        if polled {
            *self.polled.entry(pid).or_default() += 1;
        }
        if matches!(call.op, Op::Splice | Op::Tee | Op::Vmsplice) {
            self.splicers.insert(pid);
        }
        self.submits |= polled || (call.op.submits() && call.result > 0);
    }

    /// Notes a shared writable mapping of a regular file.
    pub fn note_mapping(&mut self, files: &OpenFileTable, pid: u32, file: u32, call: &RawCall) {
        let [_, bytes, protection, flags, ..] = call.args;
        let shared = flags as i32 & libc::MAP_TYPE != libc::MAP_PRIVATE;
        let writable = protection as i32 & libc::PROT_WRITE != 0;
        let memory =
            || MEMFD_PATHS.iter().any(|name| files.all[file as usize].path.exact().starts_with(name));
        if call.op == Op::Mmap && shared && writable && files.is_regular(file) && !memory() {
            *self.mapped.entry(file).or_default() += bytes;
            self.mappers.insert(pid);
        }
    }

    /// Returns whether operations were submitted.
    pub fn submits(&self) -> bool {
        self.submits
    }

    /// Returns one sentence for each kind of untracked transfer. `sampled`: the processes that were not observed all the time.
    pub fn sentences(
        &self,
        counts: &[OtherCalls],
        files: &[OpenFile],
        sampled: &HashSet<u32>,
    ) -> Vec<String> {
        let submitted = [(Op::IoUringEnter, "io_uring"), (Op::IoSubmit, "aio")];
        let mut sentences: Vec<String> =
            submitted.into_iter().filter_map(|(op, interface)| submissions(counts, op, interface)).collect();
        let rings: u64 = self.polled.values().sum();
        if rings > 0 {
            sentences.push(format!(
                "the transfers of {} with IORING_SETUP_SQPOLL, in {}: the kernel fetches the operations without a call, so \
                 they are not counted and their bytes are in no row",
                plural(rings, "ring of io_uring", "rings of io_uring"),
                plural(self.polled.len() as u64, "process", "processes"),
            ));
        }
        sentences.extend(self.mappings(files));
        let splicers = self.splicers.iter().filter(|pid| sampled.contains(pid)).count() as u64;
        if splicers > 0 {
            sentences.push(format!(
                "how often {} called splice, tee or vmsplice between samples: the kernel's totals do not contain these calls, \
                 so their number follows from the samples, in which a program makes fewer of them; --exact counts them",
                plural(splicers, "process", "processes")
            ));
        }
        sentences
    }

    fn mappings(&self, files: &[OpenFile]) -> Option<String> {
        let (&largest, _) = self.mapped.iter().max_by_key(|&(_, bytes)| *bytes)?;
        let path = files.get(largest as usize).map(|file| file.path.to_string()).unwrap_or_default();
        let files_text = match self.mapped.len() {
            1 => path,
            several => format!("{several} files, the largest of them {path}"),
        };
        let bytes = self.mapped.values().sum();
        Some(format!(
            "the reads and writes of {} through shared mappings (mmap, MAP_SHARED, writable, {} in all) of {files_text}: they \
             take no call, so their bytes are in no row",
            plural(self.mappers.len() as u64, "process", "processes"),
            Size(bytes),
        ))
    }
}

fn submissions(counts: &[OtherCalls], op: Op, interface: &str) -> Option<String> {
    let of_op = || counts.iter().filter(|one| one.op == op && one.submitted > 0);
    let submitted: u64 = of_op().map(|one| one.submitted).sum();
    let processes = of_op().map(|one| one.pid).collect::<BTreeSet<_>>().len() as u64;
    let least = if of_op().all(|one| one.exact) { "" } else { "at least " };
    let (calls, process) = (of_op().map(|one| one.calls).sum(), plural(processes, "process", "processes"));
    (submitted > 0).then(|| {
        format!(
            "the transfers by {interface}: {process} submitted {least}{} to the kernel, in {} of {}; their bytes are in \
             no row",
            plural(submitted, "operation", "operations"),
            plural(calls, "call", "calls"),
            op.name(),
        )
    })
}

fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(flags: u64, result: i64) -> RawCall {
        RawCall::new(Op::IoUringSetup, [8, 0x1000, flags, 0, 0, 0], result)
    }

    #[test]
    fn only_a_polled_ring_is_a_submission_without_calls() {
        let mut transfers = UntrackedTransfers::default();
        transfers.note_call(7, &setup(0, 4));
        transfers.note_call(7, &setup(SETUP_SQPOLL, -i64::from(libc::EPERM)));
        transfers.note_call(7, &RawCall::new(Op::IoUringEnter, [4, 0, 1, 1, 0, 0], 0));
        assert!(
            !transfers.submits() && transfers.sentences(&[], &[], &HashSet::default()).is_empty(),
            "{transfers:?}"
        );
        transfers.note_call(7, &setup(SETUP_SQPOLL, 5));
        assert!(transfers.submits());
        let [sentences] = &transfers.sentences(&[], &[], &HashSet::default())[..] else { panic!() };
        assert!(sentences.contains("1 ring of io_uring") && sentences.contains("1 process"), "{sentences}");
    }

    #[test]
    fn sentences_have_the_number_of_submissions_or_a_lower_limit() {
        let mut transfers = UntrackedTransfers::default();
        transfers.note_call(7, &RawCall::new(Op::IoSubmit, [0; 6], 32));
        let one = |pid, exact| OtherCalls {
            pid,
            image: 0,
            op: Op::IoSubmit,
            calls: 2,
            errors: BTreeMap::new(),
            submitted: 32,
            exact,
        };
        let sentences =
            |counts: &[OtherCalls]| transfers.sentences(counts, &[], &HashSet::default()).join("\n");
        let all = sentences(&[one(7, true)]);
        assert!(
            all.contains("1 process submitted 32 operations") && all.contains("2 calls of io_submit"),
            "{all}"
        );
        let part = sentences(&[one(7, true), one(8, false)]);
        assert!(part.contains("2 processes submitted at least 64 operations"), "{part}");
        assert!(transfers.submits());
    }

    #[test]
    fn copies_between_samples_are_not_counted() {
        let mut transfers = UntrackedTransfers::default();
        transfers.note_call(7, &RawCall::new(Op::Splice, [3, 0, 4, 0, 4096, 0], 4096));
        transfers.note_call(8, &RawCall::new(Op::Sendfile, [4, 3, 0, 4096, 0, 0], 4096));
        let sentences = |sampled: &[u32]| transfers.sentences(&[], &[], &sampled.iter().copied().collect());
        assert!(sentences(&[8]).is_empty(), "the totals contain sendfile(2)");
        let all = sentences(&[7, 8]);
        assert!(all.len() == 1 && all[0].starts_with("how often 1 process called splice"), "{all:?}");
    }
}
