//! Tcl 8.6: the buffers of its channels. TCL_LIBRARY loads a hook.
//!
//! Every thread has a list of its channels, and no symbol leads to it. Next to the head of the list are the three
//! standard channels, each with a mark that it is initialized, so a search of the heap finds the heads. The search
//! accepts a head only if the list consists of channels that point back to their states.

mod channel;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weir_model::trace::RuntimeId;
use weir_sys::memory::Memory;

use crate::Walker;
use crate::copied_memory::{BUFFER_MOST, STREAMS_MOST, int};
use crate::heap_search::blocks;
use crate::pending_bytes::PendingBytes;
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, Hook, HookVariable, IgnoresEnvironment, ProcessImages, ProgramDetection,
    RuntimeEntry, WalkerEntry,
};
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};

static HOOK: Hook = Hook {
    folder: "tcl",
    file: "init.tcl",
    bytes: include_bytes!("init.tcl"),
    variables: &[HookVariable::ReplacedFolder { variable: "TCL_LIBRARY", saved_as: "WEIR_TCL_LIBRARY" }],
    walker_bounds_delay: false,
};

const UNBUFFERED: RuntimeFix =
    RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering none on stdout");
const UNBUFFERED_SUBSTITUTE: RuntimeFix = RuntimeFix::HookSubstitute(
    "TCL_LIBRARY leads to a file that sets -buffering none: no byte stays pending, and each puts is a call",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::TCL,
        name: "Tcl",
        language: SourceLanguage::Tcl,
        fixes: RuntimeFixes {
            unbuffered: UNBUFFERED,
            line_buffered: RuntimeFix::Hook(
                "TCL_LIBRARY leads to a file that sets -buffering line on stdout",
            ),
            fully_buffered: RuntimeFix::Hook(
                "TCL_LIBRARY leads to a file that sets -buffering full on stdout",
            ),
            max_delay: UNBUFFERED_SUBSTITUTE,
            rescue: UNBUFFERED_SUBSTITUTE,
            fork: RuntimeFix::NotNeeded("Tcl has no fork"),
            order: UNBUFFERED,
            other_streams: RuntimeFix::Impossible("Tcl buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits { coalesce: None },
    },
    order: 50,
    detection: ProgramDetection::ProgramNames(&["tclsh", "wish", "expect"]),
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &[],
        own_symbols: &[],
        libraries: &["libtcl8."],
        detect,
    }),
    unreached: &[],
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Never,
};

fn detect(process: &ProcessImages, found: &mut Detected) {
    for region in process.starts().filter(|region| region.name().starts_with("libtcl")) {
        if region.name().starts_with("libtcl8.6") {
            found.add(region.start, Box::new(TclChannels::new(process.pid)));
        } else if region.name().contains(".so") {
            found.add_unreadable(region.start, "tcl of an unknown version");
        }
    }
}

/// Size of the beginning of `ThreadSpecificData` of tclIO.c: handlers, the list, each standard channel and its mark.
const THREAD_BYTES: usize = 64;
const LIST: usize = 8;
const MARKS: [usize; 3] = [24, 40, 56];

/// The walker of Tcl.
#[derive(Debug)]
pub struct TclChannels {
    pid: u32,
    /// Addresses of the threads' data that the last search found. New channels appear in the same lists.
    threads: RefCell<BTreeSet<u64>>,
}

impl TclChannels {
    pub(super) fn new(pid: u32) -> TclChannels {
        TclChannels { pid, threads: RefCell::default() }
    }
}

impl Walker for TclChannels {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::TCL
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut threads = self.threads.borrow_mut();
        threads.retain(|thread| !channels(memory, *thread).is_empty());
        if threads.is_empty() {
            *threads = search(self.pid, memory);
        }
        let states = threads.iter().flat_map(|thread| channels(memory, *thread));
        states.filter_map(|state| channel::stream(memory, state, kept)).collect()
    }

    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.read(memory, kept);
        // A stacked channel, such as a compressor, changes the bytes before they are written.
        for one in found.iter_mut().filter(|one| channel::is_stacked(memory, one.buffer.address)) {
            (one.drain_stores, one.partial_stores) = (Vec::new(), Vec::new());
        }
        found
    }

    fn pending(&self, memory: &dyn Memory) -> Vec<PendingBytes> {
        let found = self.read(memory, BUFFER_MOST);
        let plain = |one: &StreamBuffer| !channel::is_stacked(memory, one.buffer.address);
        stream_buffer::pending(found.into_iter().filter(plain).collect())
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(TclChannels { pid: child, threads: self.threads.clone() }))
    }

    fn search_again(&self) {
        self.threads.borrow_mut().clear();
    }
}

/// Returns the addresses of the data of all threads that have channels.
fn search(pid: u32, memory: &dyn Memory) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    blocks(pid, memory, |start, data| {
        found.extend(candidates(start, data).filter(|thread| !channels(memory, *thread).is_empty()));
        ControlFlow::Continue(())
    });
    found
}

/// Returns the addresses at which a list pointer and three marks can be a thread's data.
fn candidates(start: u64, data: &[u8]) -> impl Iterator<Item = u64> {
    let is_mark = |bytes: &[u8; 8]| matches!(int(bytes, 0), 1 | -1);
    let words = data.as_chunks::<8>().0.windows(THREAD_BYTES / 8).enumerate();
    let fits = move |(_, words): &(usize, &[[u8; 8]])| {
        let list = u64::from_le_bytes(words[LIST / 8]);
        MARKS.iter().all(|mark| is_mark(&words[mark / 8]))
            && list > u64::from(u16::MAX)
            && list.is_multiple_of(8)
    };
    words.filter(fits).map(move |(index, _)| start + 8 * index as u64)
}

/// Returns the states of a thread's channels, newest first, the order in which Tcl closes them. Empty if this is no
/// list of channels.
fn channels(memory: &dyn Memory, thread: u64) -> Vec<u64> {
    let (mut found, mut visited) = (Vec::new(), BTreeSet::new());
    let mut at = thread.checked_add(LIST as u64).and_then(|at| memory.u64(at)).unwrap_or(0);
    while at != 0 && found.len() < STREAMS_MOST && visited.insert(at) {
        let Some(next) = channel::next(memory, at) else { break };
        found.push(at);
        at = next;
    }
    found
}
