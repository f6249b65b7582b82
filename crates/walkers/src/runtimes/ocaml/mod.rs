//! OCaml: its channels, in the list `caml_all_opened_channels` of OCaml 4 and 5, bytecode and native code.
//!
//! Why no byte is written twice, lost or reordered: an output channel holds `[buff, curr)`. A put stores its bytes and moves
//! `curr`; only the put of one byte moves `curr` one instruction before its store. Each write(2) begins at `buff`, and
//! after it the runtime moves the rest to `buff` and sets `curr`. A thread makes no other system call inside these
//! functions, but after the write it may wait for the master lock while it holds the channel's mutex. So a channel is consistent
//! while all threads block in calls other than writes and no thread holds its mutex. A drain then does what a flush does: it
//! adds the written bytes to the file's position in `offset`, and sets `curr`.
//!
//! `out_channel_length` moves the file's position to the end and back to `offset`, without a flush. So bytes are written ahead
//! only at the position `offset`, and lseek(2) to a position is then corrected by their number.
//!
//! One case cannot be detected from outside, as with stdio: OCaml 4 can execute a signal handler inside a write(2) that waits,
//! and the handler can block.

pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use weir_model::trace::{Buffer, RuntimeId};
use weir_model::{Mode, Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};
use weir_sys::elf::ElfSections;
use weir_sys::memory::Memory;

use crate::copied_memory::{
    MAX_BUFFER, MAX_STREAMS, UNREAD_KEPT, int, read_content, read_stable, structure, word,
};
use crate::pending_bytes::{CountWord, MemoryStore, PartialStore, StoredValue};
use crate::runtime_entry::{has_c_string, section_contains};
use crate::stream_buffer::{self, StreamBuffer};
use crate::{
    BufferAccess, Detected, IgnoresEnvironment, ProcessImages, ProgramDetection, RuntimeEntry,
    UnreadableEntry, Walker, WalkerEntry,
};

const ID: RuntimeId = RuntimeId::OCAML;
const IMPOSSIBLE: RuntimeFix = RuntimeFix::Impossible(
    "OCaml makes its calls itself: its channels cannot get another buffer from outside",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: ID,
        name: "OCaml",
        language: SourceLanguage::Other,
        fixes: RuntimeFixes {
            unbuffered: RuntimeFix::Outside,
            line_buffered: RuntimeFix::Outside,
            fully_buffered: RuntimeFix::NotNeeded("OCaml's channels have a full buffer of 64 KiB"),
            max_delay: RuntimeFix::Outside,
            rescue: RuntimeFix::Outside,
            fork: RuntimeFix::Outside,
            order: IMPOSSIBLE,
            other_streams: IMPOSSIBLE,
        },
        limits: RuntimeLimits { has_global_lock: true, ..RuntimeLimits::NONE },
    },
    order: 215,
    detection: ProgramDetection::Executable(is_ocaml),
    buffers: BufferAccess::PartlyReadable(
        WalkerEntry { symbols: &[CHANNELS], own_symbols: &[CHANNELS], libraries: LIBRARIES, detect },
        UnreadableEntry { buffers: UNREADABLE, files: &[], is_linked_into: is_without_list },
    ),
    unreached: &[],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};

const UNREADABLE: &str = "OCaml's own buffers";
const CHANNELS: &str = "caml_all_opened_channels";
const LIBRARIES: &[&str] = &["libcamlrun_shared.so", "libasmrun_shared.so"];

/// Returns whether an executable contains OCaml's runtime, by the name of the variable with the runtime's options.
fn is_ocaml(sections: &ElfSections) -> bool {
    has_c_string(sections, "OCAMLRUNPARAM")
}

/// Returns whether an executable contains the runtime without the symbol of the list: it is static and stripped.
fn is_without_list(sections: &ElfSections) -> bool {
    let has_list = |names| section_contains(sections, names, CHANNELS.as_bytes());
    is_ocaml(sections) && !has_list(".dynstr") && !has_list(".strtab")
}

fn detect(process: &ProcessImages, found: &mut Detected) {
    let images = LIBRARIES.iter().flat_map(|library| process.images_with(library, CHANNELS));
    for (region, image) in images {
        let Some(list) = image.and_then(|image| image.symbol_at(CHANNELS, region.start)) else { continue };
        let walker = OcamlChannels { list };
        return match walker.is_known(&process.memory) {
            true => found.add(region.start, Box::new(walker)),
            false => found.add_unreadable_buffers(region.start, UNREADABLE),
        };
    }
}

/// Offsets in `struct channel`.
const OFFSET: usize = 8;
const END: usize = 16;
const CURR: usize = 24;
const MAX: usize = 32;
const MUTEX: usize = 40;
/// `IO_BUFFER_SIZE`.
const BUFFER_BYTES: u64 = 65536;
/// The part of a channel that is read: up to the buffer, or to its address.
const HEAD_BYTES: usize = 120;
/// `CHANNEL_FLAG_UNBUFFERED`.
const UNBUFFERED: i32 = 16;

/// The offsets that differ between the versions.
#[derive(Debug, Clone, Copy)]
struct ChannelLayout {
    next: usize,
    flags: usize,
    buffer: BufferPlace,
    /// The mutex is in the channel; else `MUTEX` has its address, or 0.
    has_own_mutex: bool,
}

/// Where the offset of a channel's buffer leads.
#[derive(Debug, Clone, Copy)]
enum BufferPlace {
    /// At this offset in the channel.
    Inside(u64),
    /// Elsewhere: the channel has the address of the buffer at this offset.
    Pointer(usize),
}

/// OCaml 4.12 to 4.14; 5.0 to 5.2, whose mutex is a pthread_mutex_t; 5.3 and 5.4; 4.08 to 4.11, with two more fields before the flags.
const LAYOUTS: [ChannelLayout; 4] = [
    ChannelLayout { next: 48, flags: 68, buffer: BufferPlace::Inside(72), has_own_mutex: false },
    ChannelLayout { next: 80, flags: 104, buffer: BufferPlace::Inside(108), has_own_mutex: true },
    ChannelLayout { next: 80, flags: 104, buffer: BufferPlace::Pointer(112), has_own_mutex: true },
    ChannelLayout { next: 48, flags: 76, buffer: BufferPlace::Inside(80), has_own_mutex: false },
];

impl ChannelLayout {
    /// Returns the address of a channel's buffer; None if the address of the buffer's end does not fit.
    fn buffer(&self, at: u64, channel: &[u8; HEAD_BYTES]) -> Option<u64> {
        let data = match self.buffer {
            BufferPlace::Inside(offset) => at.checked_add(offset)?,
            BufferPlace::Pointer(offset) => word(channel, offset),
        };
        (data != 0 && data.checked_add(BUFFER_BYTES) == Some(word(channel, END))).then_some(data)
    }

    /// Returns the channels with a buffer in a list.
    fn channels(&self, memory: &dyn Memory, first: u64) -> Vec<ChannelCopy> {
        let (mut at, mut found, mut visited) = (first, Vec::new(), HashSet::new());
        while at != 0
            && visited.len() < MAX_STREAMS
            && visited.insert(at)
            && let Some(copy) = structure::<HEAD_BYTES>(memory, at)
        {
            if self.buffer(at, &copy).is_some() {
                found.push((at, copy));
            }
            at = word(&copy, self.next);
        }
        found
    }
}

/// The address of a channel and a copy of its fields.
type ChannelCopy = (u64, [u8; HEAD_BYTES]);

/// The walker of OCaml.
#[derive(Debug)]
pub(crate) struct OcamlChannels {
    /// Address of the head of the list.
    list: u64,
}

impl OcamlChannels {
    /// Returns the channels, with the layout that fits them.
    fn channels(&self, memory: &dyn Memory) -> Option<(&'static ChannelLayout, Vec<ChannelCopy>)> {
        let first = memory.u64(self.list).filter(|first| *first != 0)?;
        let mut all = LAYOUTS.iter().map(|layout| (layout, layout.channels(memory, first)));
        all.find(|(_, channels)| !channels.is_empty())
    }

    /// Returns whether the channels have a known layout. A program that has opened none yet is taken for known.
    fn is_known(&self, memory: &dyn Memory) -> bool {
        memory.u64(self.list).is_none_or(|first| first == 0) || self.channels(memory).is_some()
    }
}

impl Walker for OcamlChannels {
    fn runtime(&self) -> RuntimeId {
        ID
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let Some((layout, channels)) = self.channels(memory) else { return Vec::new() };
        let stream = |(at, copy): ChannelCopy| {
            read_stable(memory, at, copy, |channel| read(memory, at, channel, layout, kept))
        };
        channels.into_iter().filter_map(stream).collect()
    }

    fn streams_in_use(&self, memory: &dyn Memory) -> Vec<u64> {
        let Some((layout, channels)) = self.channels(memory) else { return Vec::new() };
        let is_used = |(_, copy): &&ChannelCopy| is_locked(memory, copy, layout) == Some(true);
        channels.iter().filter(is_used).map(|(at, _)| *at).collect()
    }

    /// The list begins with the channel that was opened last.
    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.read(memory, kept);
        found.reverse();
        found
    }

    fn watch_address(&self, memory: &dyn Memory, buffer: &Buffer) -> Option<u64> {
        stream_buffer::watch_address(self.read(memory, 0), buffer)
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(OcamlChannels { list: self.list }))
    }
}

/// Reads a channel; None if it is closed, or its fields contradict each other.
fn read(
    memory: &dyn Memory,
    at: u64,
    channel: &[u8; HEAD_BYTES],
    layout: &ChannelLayout,
    kept: u64,
) -> Option<StreamBuffer> {
    let data = layout.buffer(at, channel)?;
    let [curr, max] = [CURR, MAX].map(|field| word(channel, field));
    let end = data + BUFFER_BYTES;
    let fd = Some(int(channel, 0)).filter(|fd| *fd >= 0 && (data..=end).contains(&curr))?;
    let is_unbuffered = int(channel, layout.flags) & UNBUFFERED != 0;
    let mut found = Buffer {
        mode: Some(if is_unbuffered { Mode::None } else { Mode::Full }),
        buffer_bytes: BUFFER_BYTES,
        ..Buffer::empty(ID, at, fd)
    };
    if max != 0 {
        found.unread_bytes = max.checked_sub(curr).filter(|bytes| *bytes <= MAX_BUFFER && max <= end)?;
        found.unread = read_content(memory, curr, found.unread_bytes, UNREAD_KEPT)?;
        return Some(StreamBuffer::of(found));
    }
    found.pending_bytes = curr - data;
    found.pending = read_content(memory, data, found.pending_bytes, kept)?;
    let mut stream = StreamBuffer::of(found);
    let (curr_at, position_at) = (at + CURR as u64, at + OFFSET as u64);
    let position = word(channel, OFFSET);
    stream.locked = is_locked(memory, channel, layout);
    stream.watch_address = Some(curr_at);
    stream.data_address = Some(data);
    stream.note = Some(CountWord { address: curr_at, when_written: data });
    stream.position = Some(position);
    stream.drain_stores = vec![
        MemoryStore::u64(position_at, position.wrapping_add(stream.buffer.pending_bytes)),
        MemoryStore::u64(curr_at, data),
    ];
    stream.partial_stores = vec![
        PartialStore::new(data, StoredValue::RemainingBytes),
        PartialStore::new(position_at, StoredValue::WrittenPlus(position)),
        PartialStore::new(curr_at, StoredValue::RemainingPlus(data)),
    ];
    Some(stream)
}

/// Returns whether a thread holds the channel's mutex; None in a program without threads. A pthread_mutex_t begins with a word
/// that is 0 while no thread holds it.
fn is_locked(memory: &dyn Memory, channel: &[u8; HEAD_BYTES], layout: &ChannelLayout) -> Option<bool> {
    match layout.has_own_mutex {
        true => Some(int(channel, MUTEX) != 0),
        false => {
            Some(word(channel, MUTEX)).filter(|mutex| *mutex != 0).map(|mutex| memory.i32(mutex) != Some(0))
        }
    }
}
