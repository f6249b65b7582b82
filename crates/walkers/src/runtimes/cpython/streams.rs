//! Reads the io objects: their layers and the bytes in each.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::derived_types::derived_types;
use super::drain::{add_drain, is_locked};
use super::layout::PythonLayout;
use super::objects::{TYPE, TextBudget, pending_bytes, text_from, type_name};
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::pending_bytes::FlushPosition;
use crate::stream_buffer::StreamBuffer;

/// Size of the used part of `buffered` in bufferedio.c and `textio` in textio.c.
const OBJECT_BYTES: usize = 152;
/// Size of `fileio` up to its descriptor, and the offset of the descriptor.
const FILE_BYTES: usize = 24;
const FILE_FD: usize = 16;
/// The descriptor of a stream whose bytes go to an object of the program, such as a socket's.
pub(super) const NO_DESCRIPTOR: i32 = -1;

/// Type of an io object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IoType {
    Text,
    Writer,
    Reader,
    Random,
    File,
}

impl IoType {
    pub const ALL: [IoType; 5] = [IoType::Text, IoType::Writer, IoType::Reader, IoType::Random, IoType::File];

    pub fn name(self) -> &'static str {
        match self {
            IoType::Text => "TextIOWrapper",
            IoType::Writer => "BufferedWriter",
            IoType::Reader => "BufferedReader",
            IoType::Random => "BufferedRandom",
            IoType::File => "FileIO",
        }
    }

    fn bytes(self, layout: &PythonLayout) -> u64 {
        match self {
            IoType::Text => layout.text_bytes,
            IoType::File => 48,
            _ => 152,
        }
    }
}

/// The addresses of the types, whose names and sizes were checked, and after them those of classes that are derived from them.
#[derive(Debug, Clone, Default)]
pub(super) struct IoTypes {
    known: Vec<(u64, IoType)>,
    /// Derived classes with functions of their own, to which the layer above gives its bytes.
    with_own_functions: Vec<u64>,
}

/// The object to which a buffer or a text layer gives its bytes.
struct RawObject {
    /// None for an object that is no FileIO.
    fd: Option<i32>,
    /// The bytes go through functions of the program.
    has_own_functions: bool,
}

impl IoTypes {
    pub fn of_known(known: Vec<(u64, IoType)>) -> IoTypes {
        IoTypes { known, with_own_functions: Vec::new() }
    }

    /// Checks the types that were found, in the order of [`IoType::ALL`].
    pub fn of(memory: &dyn Memory, layout: &PythonLayout, found: &[Option<u64>]) -> Option<IoTypes> {
        let mut types = Vec::new();
        for (kind, at) in IoType::ALL.into_iter().zip(found) {
            let at = (*at)?;
            let size = memory.u64(layout.counts_at(at)?.checked_add(32)?)?;
            if !is_named(memory, layout, at, kind) || size != kind.bytes(layout) + layout.before_counts {
                return None;
            }
            types.push((at, kind));
        }
        Some(IoTypes { known: types, with_own_functions: Vec::new() })
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Finds the classes that the program has derived from the types by now.
    pub fn find_derived(&mut self, memory: &dyn Memory, layout: &PythonLayout) {
        self.known.truncate(IoType::ALL.len());
        self.with_own_functions.clear();
        for (base, kind) in self.known.clone() {
            for class in derived_types(memory, layout, base) {
                self.known.push((class.address, kind));
                self.with_own_functions.extend(class.has_own_functions.then_some(class.address));
            }
        }
    }

    /// Returns whether the types still exist, that is, the interpreter is initialized.
    pub fn are_valid(&self, memory: &dyn Memory, layout: &PythonLayout) -> bool {
        self.known.first().is_some_and(|(at, kind)| is_named(memory, layout, *at, *kind))
    }

    /// Returns the addresses of all types and classes but those of FileIO, in their order.
    pub fn of_streams(&self) -> Vec<u64> {
        let streams = self.known.iter().filter(|one| one.1 != IoType::File);
        let mut all: Vec<u64> = streams.map(|one| one.0).collect();
        all.sort_unstable();
        all
    }

    /// Copies an object from its counts on. Returns None for an object of another type and for a freed one.
    fn object<const BYTES: usize>(
        &self,
        memory: &dyn Memory,
        layout: &PythonLayout,
        at: u64,
    ) -> Option<([u8; BYTES], IoType)> {
        let copy: [u8; BYTES] = structure(memory, layout.counts_at(at)?)?;
        self.kind(memory, layout, at, &copy).map(|kind| (copy, kind))
    }

    /// Returns the type of an object of which this is a copy; None for another type and for a freed object.
    fn kind(&self, memory: &dyn Memory, layout: &PythonLayout, at: u64, copy: &[u8]) -> Option<IoType> {
        let kind_at = word(copy, TYPE as usize);
        let kind = self.known.iter().find(|(known, _)| *known == kind_at)?.1;
        // A freed object begins with a pointer to the next free one, or its reference count is 0.
        layout.is_referenced(memory, at, copy).then_some(kind)
    }

    /// Reads the object below a buffer. Returns None for a closed FileIO, for a freed object, and for bytes that stay in memory.
    fn raw_object(&self, memory: &dyn Memory, layout: &PythonLayout, object: u64) -> Option<RawObject> {
        let copy: [u8; FILE_BYTES] = structure(memory, layout.counts_at(object)?)?;
        let kind_at = word(&copy, TYPE as usize);
        if self.kind(memory, layout, object, &copy) == Some(IoType::File) {
            let fd = int(&copy, FILE_FD);
            let has_own_functions = self.with_own_functions.contains(&kind_at);
            return (fd >= 0).then_some(RawObject { fd: Some(fd), has_own_functions });
        }
        let name = type_name(memory, layout, kind_at)?;
        let is_object = !name.is_empty() && name.is_ascii() && layout.is_referenced(memory, object, &copy);
        let is_other = is_object && name != b"_io.BytesIO" && name != b"_io.FileIO";
        is_other.then_some(RawObject { fd: None, has_own_functions: true })
    }

    /// Returns whether an object is of a derived class with functions of its own.
    fn has_own_functions(&self, memory: &dyn Memory, layout: &PythonLayout, object: u64) -> bool {
        let kind = || memory.u64(layout.counts_at(object)?.checked_add(TYPE)?);
        kind().is_none_or(|kind| self.with_own_functions.contains(&kind))
    }
}

fn is_named(memory: &dyn Memory, layout: &PythonLayout, at: u64, kind: IoType) -> bool {
    let name = type_name(memory, layout, at).unwrap_or_default();
    name.strip_prefix(b"_io.").is_some_and(|name| name == kind.name().as_bytes())
}

/// Returns a stream for each object that has a file below it, and with [`NO_DESCRIPTOR`] for each that has another object there.
/// Removes addresses that are no stream objects any more from `objects`.
pub(super) fn streams(
    memory: &dyn Memory,
    layout: &PythonLayout,
    types: &IoTypes,
    objects: &mut BTreeSet<u64>,
    kept: u64,
) -> Vec<StreamBuffer> {
    let (mut found, mut texts, budget) = (BTreeMap::new(), Vec::new(), &TextBudget::default());
    objects.retain(|at| layout.counts_at(*at).is_some());
    let addresses: Vec<u64> = objects.iter().map(|at| at + layout.before_counts).collect();
    let mut copies = memory.blocks(&addresses, OBJECT_BYTES).into_iter();
    objects.retain(|&at| {
        let copy = copies.next().flatten();
        let Some(copy) = copy.and_then(|copy| <[u8; OBJECT_BYTES]>::try_from(copy).ok()) else {
            return false;
        };
        let Some(kind) = types.kind(memory, layout, at, &copy) else { return false };
        let counts = at + layout.before_counts;
        match kind {
            IoType::File => return false,
            // It is being made, or is memory that only looks like an object.
            _ if !is_initialized(&copy, kind) => {}
            IoType::Text => texts.push((at, copy)),
            _ => {
                let reader = ObjectReader { memory, layout, types, kept, budget };
                let one = read_stable(memory, counts, copy, |copy| reader.buffered(at, copy));
                found.extend(one.map(|one| (at, one)));
            }
        }
        true
    });
    let reader = ObjectReader { memory, layout, types, kept, budget };
    for (at, copy) in texts {
        let with_text = read_stable(memory, at + layout.before_counts, copy, |object| {
            let below = word(object, 32);
            let one = found.get(&below).cloned().or_else(|| reader.unbuffered(at, below))?;
            reader.add_text(at, object, one)
        });
        found.extend(with_text.map(|one| (one.buffer.address, one)));
    }
    found.into_values().collect()
}

/// Returns whether an object has been initialized (`ok` of `buffered` and `textio`).
fn is_initialized(object: &[u8; OBJECT_BYTES], kind: IoType) -> bool {
    int(object, if kind == IoType::Text { 16 } else { 24 }) == 1
}

/// Returns the addresses of the text layers, each with the address of the object below it.
pub(super) fn text_layers<'a>(
    memory: &dyn Memory,
    layout: &PythonLayout,
    types: &IoTypes,
    objects: impl Iterator<Item = &'a u64>,
) -> Vec<(u64, u64)> {
    let of = |at: &u64| {
        let (copy, kind) = types.object::<OBJECT_BYTES>(memory, layout, *at)?;
        (kind == IoType::Text).then(|| (*at, word(&copy, 32)))
    };
    objects.filter_map(of).collect()
}

/// Returns the addresses of the writers inside of which a thread is, or inside of whose text layer.
pub(super) fn in_use<'a>(
    memory: &dyn Memory,
    layout: &PythonLayout,
    types: &IoTypes,
    objects: impl Iterator<Item = &'a u64>,
) -> Vec<u64> {
    let of = |at: &u64| {
        let (copy, kind) = types.object::<OBJECT_BYTES>(memory, layout, *at)?;
        let in_section = layout.in_critical_section(memory, *at);
        match kind {
            IoType::Text => in_section.then(|| word(&copy, 32)),
            _ => (in_section || is_locked(memory, layout, &copy)).then_some(*at),
        }
    };
    objects.filter_map(of).collect()
}

/// Reads objects from copies of them, which begin at their counts.
struct ObjectReader<'m> {
    memory: &'m dyn Memory,
    layout: &'m PythonLayout,
    types: &'m IoTypes,
    /// The number of pending bytes to read of a stream.
    kept: u64,
    budget: &'m TextBudget,
}

impl ObjectReader<'_> {
    fn buffered(&self, at: u64, object: &[u8; OBJECT_BYTES]) -> Option<StreamBuffer> {
        let [buffer, position, _, read_end, write_pos, write_end, ..] =
            std::array::from_fn::<u64, 6, _>(|field| word(object, 56 + 8 * field));
        let (raw, size) = (word(object, 16), word(object, 120));
        if !is_initialized(object, IoType::Writer) || buffer == 0 || size > MAX_BUFFER {
            return None;
        }
        let raw = self.types.raw_object(self.memory, self.layout, raw)?;
        let (readable, writable) = (int(object, 32) != 0, int(object, 36) != 0);
        let pending_range = if writable && write_end != u64::MAX { (write_pos, write_end) } else { (0, 0) };
        let ahead = if readable && read_end != u64::MAX { (position, read_end) } else { (0, 0) };
        // While bytes are pending, the buffer has no read-ahead bytes.
        let ahead = if pending_range.0 < pending_range.1 { (0, 0) } else { ahead };
        let (pending, unread) =
            (pending_range.1.checked_sub(pending_range.0)?, ahead.1.saturating_sub(ahead.0));
        if pending_range.1 > size || ahead.1 > size {
            return None;
        }
        let content =
            |from: u64, bytes, most| read_content(self.memory, buffer.checked_add(from)?, bytes, most);
        let mut stream = StreamBuffer::of(Buffer {
            mode: Some(Mode::Full),
            buffer_bytes: size,
            pending_bytes: pending,
            pending: content(pending_range.0, pending, self.kept)?,
            unread_bytes: unread,
            unread: content(ahead.0, unread, UNREAD_KEPT)?,
            ..Buffer::empty(RuntimeId::CPYTHON, at, raw.fd.unwrap_or(NO_DESCRIPTOR))
        });
        if raw.has_own_functions {
            return Some(stream.only_shown());
        }
        if pending > 0 {
            add_drain(self.memory, self.layout, Some(at), None, &mut stream);
        }
        let next = if pending > 0 { write_pos } else { position };
        if pending > 0 || readable && read_end != u64::MAX {
            stream.flush_position = flush_position(object, next);
        }
        Some(stream)
    }

    /// Returns the stream of a text layer that is directly above a file (`python -u`).
    fn unbuffered(&self, at: u64, raw: u64) -> Option<StreamBuffer> {
        let raw = self.types.raw_object(self.memory, self.layout, raw)?;
        let stream = StreamBuffer::unbuffered(RuntimeId::CPYTHON, at, raw.fd?);
        Some(if raw.has_own_functions { stream.only_shown() } else { stream })
    }

    /// Adds the text layer: its pending bytes come after those of the buffer, its read-ahead bytes before them.
    fn add_text(&self, at: u64, text: &[u8; OBJECT_BYTES], mut stream: StreamBuffer) -> Option<StreamBuffer> {
        let one = &mut stream.buffer;
        if !is_initialized(text, IoType::Text) || word(text, 24) == 0 {
            return None;
        }
        if text[88] != 0 {
            one.mode = Some(Mode::Line);
        }
        let mut has_pending = false;
        let (held, held_bytes) = (word(text, 136), word(text, 144));
        if held != 0 && held_bytes <= MAX_BUFFER {
            let room = (self.kept - one.pending.len() as u64).min(held_bytes);
            one.pending.extend(pending_bytes(self.memory, self.layout, held, room, self.budget)?);
            one.pending_bytes += held_bytes;
            has_pending = held_bytes > 0;
        }
        let (decoded, used) = (word(text, 120), word(text, 128));
        if decoded != 0 {
            let text = text_from(self.memory, self.layout, decoded, used, self.budget);
            let (bytes, mut unread) = text.unwrap_or_default();
            one.unread_bytes += bytes;
            unread.append(&mut one.unread);
            unread.truncate(UNREAD_KEPT as usize);
            one.unread = unread;
        }
        // The text layer would give its bytes to a function of the program.
        let below = one.address;
        if one.found_by_search || has_pending && self.types.has_own_functions(self.memory, self.layout, below)
        {
            return Some(stream.only_shown());
        }
        if has_pending {
            let below = Some(below).filter(|below| *below != at);
            add_drain(self.memory, self.layout, below, Some(at), &mut stream);
        }
        Some(stream)
    }
}

/// Returns where `_bufferedwriter_flush_unlocked` writes the byte at `next` in the buffer, if it moves the file's offset first.
fn flush_position(object: &[u8; OBJECT_BYTES], next: u64) -> Option<FlushPosition> {
    let [offset, position, raw_position] = [48, 64, 72].map(|field| word(object, field));
    // The position in the buffer that belongs to the file's offset; -1 if that is the present position.
    let of_offset = if raw_position.cast_signed() >= 0 { raw_position } else { position };
    let distance = next.wrapping_sub(of_offset).cast_signed();
    FlushPosition::moved((offset.cast_signed() >= 0).then_some(offset), distance)
}
