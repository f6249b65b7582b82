//! Tcl 8.6 and 9: the buffers of its channels. TCL_LIBRARY loads a hook.
//!
//! Every thread has a list of its channels, and no symbol leads to it. Next to the head of the list are the three
//! standard channels, each with a mark that it is initialized, so a search of the heap finds the heads. The search
//! accepts a head only if the list consists of channels that point back to their states.

mod channel;
pub(crate) mod fuzzing;
mod layout;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weir_model::trace::RuntimeId;
use weir_sys::memory::Memory;

use self::channel::MAX_BUFFERS;
use self::layout::{THREAD_BYTES, TclLayout};
use crate::Walker;
use crate::copied_memory::{MAX_BUFFER, MAX_STREAMS, int};
use crate::heap_search::blocks;
use crate::known_objects::KnownObjects;
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
    "TCL_LIBRARY leads to a file that sets -buffering none on stdout: no byte of stdout stays pending, and each puts is a \
     call; other channels keep their buffers",
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
        limits: RuntimeLimits::NONE,
    },
    order: 50,
    detection: ProgramDetection::ProgramNames {
        names: &["tclsh", "wish", "expect"],
        marks: &["Tcl_", "TCL_LIBRARY"],
    },
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &[],
        own_symbols: &[],
        libraries: &["libtcl8.", "libtcl9."],
        detect,
    }),
    unreached: &[],
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Never,
};

fn detect(process: &ProcessImages, found: &mut Detected) {
    for region in process.starts().filter(|region| region.name().starts_with("libtcl")) {
        let layouts = TclLayout::of_library(region.name());
        if !layouts.is_empty() {
            found.add(region.start, Box::new(TclChannels::new(process.pid, layouts)));
        } else if region.name().contains(".so") {
            found.add_unreadable(region.start, "tcl of an unknown version");
        }
    }
}

/// Offset of the list of channels in `ThreadSpecificData`, behind the handlers.
const LIST: usize = 8;

/// The walker of Tcl.
#[derive(Debug)]
pub struct TclChannels {
    pid: u32,
    /// The layouts that this library can have.
    layouts: &'static [TclLayout],
    /// Addresses of the threads' data that the last search found, with the index of the layout. New channels appear in
    /// the same lists.
    threads: RefCell<KnownObjects<(u64, usize)>>,
}

impl TclChannels {
    fn new(pid: u32, layouts: &'static [TclLayout]) -> TclChannels {
        TclChannels { pid, layouts, threads: RefCell::default() }
    }

    /// Reads the streams, each with the mark that another channel is stacked on it.
    fn read_channels(&self, memory: &dyn Memory, kept: u64) -> Vec<(StreamBuffer, bool)> {
        let mut threads = self.threads.borrow_mut();
        let is_thread =
            |&(thread, layout): &(u64, usize)| has_channels(memory, &self.layouts[layout], thread);
        if !threads.found().iter().any(is_thread) {
            threads.search_again();
        }
        let known = threads.get(|| search(self.pid, memory, self.layouts));
        known.retain(is_thread);
        let left = ReadLimits::new();
        let streams = known.iter().flat_map(|(thread, layout)| {
            let (layout, left) = (&self.layouts[*layout], &left);
            channels(memory, layout, *thread, left).into_iter().filter_map(move |state| {
                let is_stacked = channel::is_stacked(memory, layout, state);
                Some((channel::stream(memory, layout, state, (kept, left))?, is_stacked))
            })
        });
        streams.collect()
    }
}

impl Walker for TclChannels {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::TCL
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        self.read_channels(memory, kept).into_iter().map(|(stream, _)| stream).collect()
    }

    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.read_channels(memory, kept);
        // A stacked channel, such as a compressor, changes the bytes before they are written.
        for (one, _) in found.iter_mut().filter(|(_, is_stacked)| *is_stacked) {
            (one.drain_stores, one.partial_stores) = (Vec::new(), Vec::new());
        }
        found.into_iter().map(|(stream, _)| stream).collect()
    }

    fn pending(&self, memory: &dyn Memory) -> Vec<PendingBytes> {
        let found = self.read_channels(memory, MAX_BUFFER).into_iter();
        stream_buffer::pending(found.filter(|(_, is_stacked)| !is_stacked).map(|(one, _)| one).collect())
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(TclChannels { pid: child, layouts: self.layouts, threads: self.threads.clone() }))
    }

    fn search_again(&self) {
        self.threads.borrow_mut().search_again();
    }

    /// New channels are in the lists that are known.
    fn search_for_new(&self) {}
}

/// Returns the addresses of the data of all threads that have channels, each with the index of its layout.
fn search(pid: u32, memory: &dyn Memory, layouts: &[TclLayout]) -> BTreeSet<(u64, usize)> {
    let mut found = BTreeSet::new();
    blocks(pid, memory, |start, data| {
        for (index, layout) in layouts.iter().enumerate() {
            let likely = candidates(layout, start, data);
            let threads = likely.filter(|thread| has_channels(memory, layout, *thread));
            found.extend(threads.map(|thread| (thread, index)));
        }
        ControlFlow::Continue(())
    });
    found
}

/// Returns the addresses at which a list pointer and three marks can be a thread's data.
fn candidates(layout: &TclLayout, start: u64, data: &[u8]) -> impl Iterator<Item = u64> {
    let is_mark = |mark: i32| matches!(mark, 1 | -1);
    let words = data.as_chunks::<8>().0.windows(THREAD_BYTES / 8).enumerate();
    let fits = move |(_, words): &(usize, &[[u8; 8]])| {
        let list = u64::from_le_bytes(words[LIST / 8]);
        layout.marks.iter().all(|mark| is_mark(int(&words[mark / 8], mark % 8)))
            && list > u64::from(u16::MAX)
            && list.is_multiple_of(8)
    };
    words.filter(fits).map(move |(index, _)| start + 8 * index as u64)
}

/// The structures that one read of a process may still visit: in crafted memory, many lists can share their ends.
struct ReadLimits {
    channels: Cell<usize>,
    buffers: Cell<usize>,
}

impl ReadLimits {
    fn new() -> ReadLimits {
        ReadLimits { channels: Cell::new(MAX_STREAMS), buffers: Cell::new(MAX_BUFFERS) }
    }
}

/// Lowers a limit by one. Returns false if it is 0.
fn take_one(left: &Cell<usize>) -> bool {
    let before = left.get();
    left.set(before.saturating_sub(1));
    before > 0
}

fn first_channel(memory: &dyn Memory, thread: u64) -> u64 {
    thread.checked_add(LIST as u64).and_then(|at| memory.u64(at)).unwrap_or(0)
}

/// Returns whether a thread's list begins with the state of a channel.
fn has_channels(memory: &dyn Memory, layout: &TclLayout, thread: u64) -> bool {
    let first = first_channel(memory, thread);
    first != 0 && channel::next(memory, layout, first).is_some()
}

/// Returns the states of a thread's channels, newest first, the order in which Tcl closes them. Empty if this is no
/// list of channels.
fn channels(memory: &dyn Memory, layout: &TclLayout, thread: u64, left: &ReadLimits) -> Vec<u64> {
    let (mut found, mut visited) = (Vec::new(), BTreeSet::new());
    let mut at = first_channel(memory, thread);
    while at != 0 && visited.insert(at) && take_one(&left.channels) {
        let Some(next) = channel::next(memory, layout, at) else { break };
        found.push(at);
        at = next;
    }
    found
}
