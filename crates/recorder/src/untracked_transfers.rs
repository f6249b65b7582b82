//! What moves bytes beside the calls of streams: operations that are handed to the kernel by io_uring(7) and aio, and shared
//! mappings of files. Nobody counts those bytes by stream; that they were moved is said.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Size;
use weir_model::trace::{Op, OpenFile, OtherCalls};
use weir_trace_api::RawCall;

use crate::open_files::OpenFileTable;

/// IORING_SETUP_SQPOLL: a thread of the kernel takes the operations, and no call is needed.
const POLLED: u64 = 1 << 1;
/// How memory's own files (memfd_create(2)) are named.
const MEMORY: [&str; 2] = ["memfd", "/memfd:"];

/// What was seen of it.
#[derive(Debug, Default)]
pub(super) struct UntrackedTransfers {
    submits: bool,
    /// Rings without calls, by process.
    polled: BTreeMap<u32, u64>,
    /// Files that were mapped to be written: how much, and by whom.
    mapped: BTreeMap<u32, u64>,
    mappers: BTreeSet<u32>,
}

impl UntrackedTransfers {
    /// A call that makes a ring or fills one.
    pub fn note_ring(&mut self, pid: u32, call: &RawCall) {
        let polled = call.op == Op::IoUringSetup && call.args[2] & POLLED != 0 && call.result >= 0;
        if polled {
            *self.polled.entry(pid).or_default() += 1;
        }
        self.submits |= polled || (call.op.submits() && call.result > 0);
    }

    /// A mapping that makes writes to a file of writes to memory.
    pub fn note_mapping(&mut self, files: &OpenFileTable, pid: u32, file: u32, call: &RawCall) {
        let [_, bytes, protection, flags, ..] = call.args;
        let shared = flags as i32 & libc::MAP_TYPE != libc::MAP_PRIVATE;
        let writable = protection as i32 & libc::PROT_WRITE != 0;
        let memory = || MEMORY.iter().any(|name| files.all[file as usize].path.starts_with(name));
        if call.op == Op::Mmap && shared && writable && files.is_regular(file) && !memory() {
            *self.mapped.entry(file).or_default() += bytes;
            self.mappers.insert(pid);
        }
    }

    /// Operations were handed over.
    pub fn submits(&self) -> bool {
        self.submits
    }

    /// What there is to say of it.
    pub fn sentences(&self, others: &[OtherCalls], files: &[OpenFile]) -> Vec<String> {
        let submitted = [(Op::IoUringEnter, "io_uring"), (Op::IoSubmit, "aio")];
        let mut said: Vec<String> =
            submitted.into_iter().filter_map(|(op, how)| submissions(others, op, how)).collect();
        let rings: u64 = self.polled.values().sum();
        if rings > 0 {
            said.push(format!(
                "what went through {} whose submissions the kernel fetches by itself (IORING_SETUP_SQPOLL), of {}: it \
                 takes no call, is not counted, and its bytes are in no row",
                plural(rings, "ring of io_uring", "rings of io_uring"),
                plural(self.polled.len() as u64, "process", "processes"),
            ));
        }
        said.extend(self.mappings(files));
        said
    }

    fn mappings(&self, files: &[OpenFile]) -> Option<String> {
        let (&largest, _) = self.mapped.iter().max_by_key(|&(_, bytes)| *bytes)?;
        let path = files.get(largest as usize).map_or("", |file| file.path.as_str());
        let which = match self.mapped.len() {
            1 => path.to_string(),
            several => format!("{several} files, the largest of them {path}"),
        };
        let bytes = self.mapped.values().sum();
        Some(format!(
            "what {} read and wrote through shared mappings (mmap, MAP_SHARED, writable, {} in all) of {which}: it takes \
             no call, and is in no row",
            plural(self.mappers.len() as u64, "process", "processes"),
            Size(bytes),
        ))
    }
}

fn submissions(others: &[OtherCalls], op: Op, how: &str) -> Option<String> {
    let own = || others.iter().filter(|one| one.op == op && one.submitted > 0);
    let submitted: u64 = own().map(|one| one.submitted).sum();
    let processes = own().map(|one| one.pid).collect::<BTreeSet<_>>().len() as u64;
    let least = if own().all(|one| one.exact) { "" } else { "at least " };
    let (calls, process) = (own().map(|one| one.calls).sum(), plural(processes, "process", "processes"));
    (submitted > 0).then(|| {
        format!(
            "what went through {how}: {process} handed {least}{} to the kernel, in {} of {}; the bytes that they moved are \
             in no row",
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
    fn a_ring_alone_is_no_submission_unless_the_kernel_polls_it() {
        let mut beside = UntrackedTransfers::default();
        beside.note_ring(7, &setup(0, 4));
        beside.note_ring(7, &setup(POLLED, -i64::from(libc::EPERM)));
        beside.note_ring(7, &RawCall::new(Op::IoUringEnter, [4, 0, 1, 1, 0, 0], 0));
        assert!(!beside.submits() && beside.sentences(&[], &[]).is_empty(), "{beside:?}");
        beside.note_ring(7, &setup(POLLED, 5));
        assert!(beside.submits());
        let [said] = &beside.sentences(&[], &[])[..] else { panic!() };
        assert!(said.contains("1 ring of io_uring") && said.contains("1 process"), "{said}");
    }

    #[test]
    fn submissions_are_said_with_their_number_and_whether_there_were_more() {
        let mut beside = UntrackedTransfers::default();
        beside.note_ring(7, &RawCall::new(Op::IoSubmit, [0; 6], 32));
        let one = |pid, exact| OtherCalls {
            pid,
            image: 0,
            op: Op::IoSubmit,
            calls: 2,
            errors: BTreeMap::new(),
            submitted: 32,
            exact,
        };
        let said = |others: &[OtherCalls]| beside.sentences(others, &[]).join("\n");
        let all = said(&[one(7, true)]);
        assert!(
            all.contains("1 process handed 32 operations") && all.contains("2 calls of io_submit"),
            "{all}"
        );
        let part = said(&[one(7, true), one(8, false)]);
        assert!(part.contains("2 processes handed at least 64 operations"), "{part}");
        assert!(beside.submits());
    }
}
