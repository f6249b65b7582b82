//! The layers of a handle, from the topmost down to its descriptor, and their buffers.

use weir_model::Mode;
use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::memory::Memory;

use super::encoding::Conversion;
use super::tables::{BASE_BYTES, HEAD, NEXT, TAB};
use crate::copied_memory::{MAX_BUFFER, UNREAD_KEPT, int, read_content, read_stable, structure, word};
use crate::elf_image::ElfImage;
use crate::pending_bytes::{MemoryStore, PartialStore, StoredValue};
use crate::stream_buffer::StreamBuffer;

/// Size of `PerlIOBuf` and offsets in it: the base, then buf, end, ptr, posn, bufsiz, oneword.
const BUF_BYTES: usize = 80;
const FLAGS: usize = 16;
const BUF: usize = 32;
const END: usize = 40;
const PTR: usize = 48;
const POSITION: usize = 56;
const SIZE: usize = 64;
/// Size of `PerlIOUnix` and the offset of its descriptor, which follows the base.
const UNIX_BYTES: u64 = 40;
const FD: u64 = 32;

/// Bits of `flags`.
const CAN_WRITE: u32 = 0x200;
const UNBUFFERED: u32 = 0x1_0000;
const WRITTEN: u32 = 0x2_0000;
const READ: u32 = 0x4_0000;
const BY_LINE: u32 = 0x8_0000;

/// Offsets in `PerlIO_funcs`: its own size, the name, the size of a layer.
const TAB_BYTES: u64 = 0;
const TAB_NAME: u64 = 8;
const TAB_LAYER: u64 = 16;
/// `sizeof(PerlIO_funcs)`: four words and 24 functions.
const TAB_OWN: u64 = 224;

/// A bound for damaged handles.
const MAX_LAYERS: usize = 16;

/// Addresses of the function tables of `:perlio` and `:unix`, the default layers of a handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerlLayers {
    pub perlio: u64,
    pub unix: u64,
}

/// Kind of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerKind {
    /// The lowest layer, which has the descriptor.
    Unix,
    /// A layer with a buffer of the stated size.
    Perlio,
    /// The layer `:encoding`, a PerlIOBuf whose buffer is a Perl string and grows.
    Encoding,
    /// A layer without a known buffer. It can convert the bytes of the layers above it.
    Other,
}

impl PerlLayers {
    /// Returns the tables in the image of perl or libperl; None if it has no symbols for them.
    pub fn of(image: &ElfImage, start: u64) -> Option<PerlLayers> {
        let [perlio, unix] = ["PerlIO_perlio", "PerlIO_unix"].map(|name| image.symbol_at(name, start));
        Some(PerlLayers { perlio: perlio?, unix: unix? })
    }

    /// Returns whether the sizes of the layers' structures are the known ones.
    pub fn are_known(&self, memory: &dyn Memory) -> bool {
        let has = |tab: u64, layer: u64| {
            let size = |at| memory.u64(tab.wrapping_add(at));
            size(TAB_BYTES) == Some(TAB_OWN) && size(TAB_LAYER) == Some(layer)
        };
        has(self.perlio, BUF_BYTES as u64) && has(self.unix, UNIX_BYTES)
    }

    /// Returns the descriptor of the handle in a slot; None if it has none.
    pub fn descriptor(&self, memory: &dyn Memory, slot: u64, top: u64) -> Option<i32> {
        self.chain(memory, slot, top).map(|(fd, _)| fd)
    }

    /// Reads the stream of the handle in a slot, from all its layers.
    pub fn stream(&self, memory: &dyn Memory, slot: u64, top: u64, kept: u64) -> Option<StreamBuffer> {
        let (fd, chain) = self.chain(memory, slot, top)?;
        let mut stream = StreamBuffer::unbuffered(RuntimeId::PERL, slot, fd);
        let mut conversion = Conversion::None;
        for (at, kind) in chain.into_iter().rev() {
            conversion = match kind {
                LayerKind::Encoding => Conversion::of_layer(memory, at, conversion),
                LayerKind::Other => Conversion::Unknown,
                _ => conversion,
            };
            if kind == LayerKind::Other {
                continue;
            }
            let copy = structure::<BUF_BYTES>(memory, at)?;
            let mut one =
                read_stable(memory, at, copy, |layer| part(memory, (at, kind), layer, &stream.buffer, kept))?;
            // All bytes after one that is converted are converted later.
            if stream.buffer.unconverted_bytes > 0 || !conversion.keeps(&one.buffer.pending) {
                one.buffer.unconverted_bytes = one.buffer.pending_bytes;
            }
            stream = joined(stream, one, int(&copy, FLAGS) as u32 & CAN_WRITE != 0, kept);
        }
        Some(stream)
    }

    /// Returns the descriptor, and the layers above that with the descriptor from the topmost on.
    fn chain(&self, memory: &dyn Memory, slot: u64, top: u64) -> Option<(i32, Vec<(u64, LayerKind)>)> {
        let (mut at, mut found) = (top, Vec::new());
        for _ in 0..MAX_LAYERS {
            let base = structure::<BASE_BYTES>(memory, at).filter(|base| word(base, HEAD) == slot)?;
            match self.kind(memory, word(&base, TAB)) {
                LayerKind::Unix => {
                    let fd = memory.i32(at.checked_add(FD)?)?;
                    return (fd >= 0 && word(&base, NEXT) == 0).then_some((fd, found));
                }
                kind => found.push((at, kind)),
            }
            at = word(&base, NEXT);
        }
        None
    }

    /// Returns the kind of a layer by its function table, or by its name for a layer that is loaded on demand.
    fn kind(&self, memory: &dyn Memory, tab: u64) -> LayerKind {
        if tab == self.perlio {
            return LayerKind::Perlio;
        } else if tab == self.unix {
            return LayerKind::Unix;
        }
        let field = |at| memory.u64(tab.wrapping_add(at));
        let known = field(TAB_BYTES) == Some(TAB_OWN) && field(TAB_LAYER) >= Some(BUF_BYTES as u64);
        let name = field(TAB_NAME).filter(|_| known).map(|name| memory.bytes(name, 9)).unwrap_or_default();
        match name.split(|byte| *byte == 0).next() {
            Some(b"crlf") => LayerKind::Perlio,
            Some(b"encoding") => LayerKind::Encoding,
            _ => LayerKind::Other,
        }
    }
}

/// Reads the buffer of one layer. The other fields come from `name`.
fn part(
    memory: &dyn Memory,
    (address, kind): (u64, LayerKind),
    layer: &[u8; BUF_BYTES],
    name: &Buffer,
    kept: u64,
) -> Option<StreamBuffer> {
    let flags = int(layer, FLAGS) as u32;
    let [buf, end, at, size] = [BUF, END, PTR, SIZE].map(|field| word(layer, field));
    let most = if kind == LayerKind::Encoding { MAX_BUFFER } else { size };
    let limit = buf.checked_add(most).filter(|_| size <= MAX_BUFFER)?;
    let (pending, unread) = match (flags & WRITTEN != 0, flags & READ != 0) {
        (true, true) => return None,
        (true, false) => (at.checked_sub(buf).filter(|_| at <= limit)?, 0),
        (false, true) => (0, end.checked_sub(at).filter(|_| buf <= at && end <= limit)?),
        (false, false) => (0, 0),
    };
    let mut stream = StreamBuffer::of(Buffer {
        mode: Some(mode(flags)),
        buffer_bytes: size,
        pending_bytes: pending,
        pending: read_content(memory, buf, pending, kept)?,
        unconverted_bytes: 0,
        unread_bytes: unread,
        unread: read_content(memory, at, unread, UNREAD_KEPT)?,
        ..*name
    });
    if pending > 0 && kind == LayerKind::Perlio {
        add_drain(address, layer, &mut stream);
    }
    Some(stream)
}

/// Adds the stores that leave the layer as PerlIOBuf_flush does.
fn add_drain(address: u64, layer: &[u8; BUF_BYTES], stream: &mut StreamBuffer) {
    let at = |field: usize| address + field as u64;
    let (buf, position) = (word(layer, BUF), word(layer, POSITION));
    let flags = int(layer, FLAGS) as u32 & !(READ | WRITTEN);
    stream.drain_stores = [END, PTR].map(|field| MemoryStore::u64(at(field), buf)).to_vec();
    stream
        .drain_stores
        .push(MemoryStore::u64(at(POSITION), position.wrapping_add(stream.buffer.pending_bytes)));
    stream.drain_stores.push(MemoryStore { address: at(FLAGS), bytes: flags.to_le_bytes().to_vec() });
    stream.partial_stores = vec![
        PartialStore::new(buf, StoredValue::RemainingBytes),
        PartialStore::new(at(PTR), StoredValue::RemainingPlus(buf)),
        PartialStore::new(at(POSITION), StoredValue::WrittenPlus(position)),
    ];
}

/// Returns the buffering mode. `$|` is not in the flags: it belongs to the handle and makes each print flush this
/// buffer. Line buffering means nothing for input.
fn mode(flags: u32) -> Mode {
    match () {
        () if flags & UNBUFFERED != 0 => Mode::None,
        () if flags & BY_LINE != 0 && flags & CAN_WRITE != 0 => Mode::Line,
        () => Mode::Full,
    }
}

/// Joins two layers: the pending bytes of the lower one come first, and its read-ahead bytes last. The upper layer
/// has the buffer that fills up in writing, the lower one that in reading.
fn joined(lower: StreamBuffer, upper: StreamBuffer, writes: bool, kept: u64) -> StreamBuffer {
    let (drain_stores, partial_stores) =
        match (lower.buffer.pending_bytes > 0, upper.buffer.converted_bytes() > 0) {
            (true, true) if lower.drain_stores.is_empty() || upper.drain_stores.is_empty() => {
                Default::default()
            }
            (true, true) => ([lower.drain_stores, upper.drain_stores].concat(), Vec::new()),
            (true, false) => (lower.drain_stores, lower.partial_stores),
            (false, _) => (upper.drain_stores, upper.partial_stores),
        };
    let (lower, upper) = (lower.buffer, upper.buffer);
    let first = |mut these: Vec<u8>, those: Vec<u8>, most: u64| {
        these.extend(those);
        these.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        these
    };
    let buffer = Buffer {
        mode: upper.mode,
        buffer_bytes: if writes || lower.buffer_bytes == 0 { upper.buffer_bytes } else { lower.buffer_bytes },
        pending_bytes: lower.pending_bytes + upper.pending_bytes,
        pending: first(lower.pending, upper.pending, kept),
        unconverted_bytes: lower.unconverted_bytes + upper.unconverted_bytes,
        unread_bytes: lower.unread_bytes + upper.unread_bytes,
        unread: first(upper.unread, lower.unread, UNREAD_KEPT),
        ..lower
    };
    StreamBuffer { drain_stores, partial_stores, ..StreamBuffer::of(buffer) }
}
