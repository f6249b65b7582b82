//! Finds bytes that CPython's text layer has handed to its buffered writer, which has not stored them yet.
//!
//! The text layer joins its pending strings into one bytes object and forgets them. The buffered writer first writes
//! its own buffer, and then stores the object. Meanwhile only a pointer on the thread's stack or in its registers
//! leads to the object. An object counts as handed over if
//! - the stack has its address right after the writer's address, as the arguments of the call, or
//! - the list that it was joined from is being freed, or
//! - the function that hands it over keeps it near the text layer's address.

use weir_sys::memory::{Memory, ProcessMemory};

use super::UnwrittenStream;
use super::last_write::LastWrite;
use crate::supervise::{PythonText, Tracees};

/// The part of a stack that is searched: print() is a few calls above write(2).
const STACK_BYTES: usize = 16 << 10;
/// The largest object that is examined. Only a print() of more bytes hands over more at once.
const MAX_OBJECT_BYTES: u64 = 1 << 24;
/// The distance, in words, between two registers that a callee saves for one function.
const FRAME_WORDS: usize = 8;

/// Offset of `pending_bytes` in `textio` (textio.c), after [`PythonText::before_counts`].
const TEXTIO_PENDING: u64 = 136;
/// Offset of the bytes in `PyBytesObject`, after references, type, size and hash.
const BYTES_OBJECT_DATA: u64 = 32;

/// The objects of a dead process.
struct Objects {
    memory: ProcessMemory,
    /// As [`PythonText::before_counts`].
    before_counts: u64,
}

/// Returns the handed-over bytes of a process whose last thread is in its exit stop.
pub(super) fn unwritten_objects(tracees: &Tracees, pid: u32, tid: u32) -> Vec<UnwrittenStream> {
    let memory = ProcessMemory { pid: tid };
    let texts = tracees.python_text_streams(pid, tid);
    let process = tracees.processes.get(&pid).filter(|_| !texts.is_empty());
    let Some(process) = process else { return Vec::new() };
    let stacks: Vec<Vec<u64>> =
        process.final_stacks.iter().map(|stack| stack_words(&memory, stack)).collect();
    let unwritten = |one: &PythonText| {
        let objects = Objects { memory: ProcessMemory { pid: tid }, before_counts: one.before_counts };
        let handed_over = stacks.iter().flat_map(|stack| objects.handed_over(stack, one));
        let bytes = handed_over
            .filter_map(|(address, bytes)| objects.unwritten_part(one, address, bytes, &process.last_writes))
            .max_by_key(Vec::len)?;
        let (stream, fd) = (one.writer.address, one.writer.fd);
        Some(UnwrittenStream { stream, ..UnwrittenStream::unknown(fd, bytes) })
    };
    texts.iter().filter_map(unwritten).collect()
}

/// Returns the words in a thread's callee-saved registers and on its stack.
fn stack_words(memory: &ProcessMemory, (stack_pointer, registers): &(u64, [u64; 6])) -> Vec<u64> {
    let stack = memory.bytes(*stack_pointer, STACK_BYTES);
    registers.iter().copied().chain(stack.chunks_exact(8).map(word)).collect()
}

impl Objects {
    /// Returns the contents of the bytes objects that are handed to a writer, with the address of each content.
    fn handed_over(&self, words: &[u64], one: &PythonText) -> Vec<(u64, Vec<u8>)> {
        let PythonText { writer, text, .. } = one;
        let is_argument = |two: &&[u64]| two[0] == writer.address && two[1].is_multiple_of(16);
        let mut objects: Vec<u64> = words.windows(2).filter(is_argument).map(|two| two[1]).collect();
        let text_is_empty = self.field(*text, TEXTIO_PENDING) == Some(0);
        let text_positions: Vec<usize> =
            (0..words.len()).filter(|position| text_is_empty && words[*position] == *text).collect();
        if objects.is_empty() && !text_positions.is_empty() {
            objects = self.joined_from_freed_list(words);
            if objects.is_empty() {
                objects.extend(self.kept_near_text(words, &text_positions));
            }
        }
        objects.sort_unstable();
        objects.dedup();
        let content = |object| Some((self.content_address(object)?, self.bytes_object(object)?));
        objects.into_iter().filter_map(content).collect()
    }

    /// Returns the bytes object that the handing function keeps near the text layer, in registers or where its callee
    /// saves them. The next line's object can be there too; it is shorter.
    fn kept_near_text(&self, words: &[u64], text_positions: &[usize]) -> Option<u64> {
        let near = |position: &usize| {
            position.saturating_sub(FRAME_WORDS)..(position + FRAME_WORDS + 1).min(words.len())
        };
        let candidates = text_positions.iter().flat_map(near).map(|position| words[position]);
        let unshared = |at: u64| self.header(at, b"bytes\0").filter(|(references, _)| *references == 1);
        let objects = candidates.filter(is_object_address).filter_map(|at| Some((unshared(at)?.1, at)));
        objects.max().map(|(_, at)| at)
    }

    /// Returns bytes objects that begin with the first item of a list without references, which CPython frees from its
    /// end on.
    fn joined_from_freed_list(&self, words: &[u64]) -> Vec<u64> {
        let first_item = |at: &u64| {
            let (_, length) = self.header(*at, b"list\0").filter(|list| list.0 == 0)?;
            self.bytes_object(self.memory.u64(self.field(*at, 24).filter(|_| length > 1)?)?)
        };
        let candidates: Vec<u64> = words.iter().copied().filter(is_object_address).collect();
        let first_items: Vec<Vec<u8>> = candidates.iter().filter_map(first_item).collect();
        let begins_with_item = |at: &&u64| {
            let object = self.bytes_object(**at).unwrap_or_default();
            first_items.iter().any(|item| object.len() > item.len() && object.starts_with(item))
        };
        if first_items.is_empty() {
            Vec::new()
        } else {
            candidates.iter().filter(begins_with_item).copied().collect()
        }
    }

    /// Returns a word of an object.
    fn field(&self, object: u64, offset: u64) -> Option<u64> {
        self.memory.u64(object.checked_add(self.before_counts + offset)?)
    }

    /// Returns the reference count and size of an object whose type has this name.
    fn header(&self, at: u64, type_name: &[u8]) -> Option<(u64, u64)> {
        let header = self.memory.bytes(at, self.before_counts as usize + 24);
        let counts = header.get(self.before_counts as usize..)?;
        let (kind, length) = (word(counts.get(8..)?), word(counts.get(16..)?));
        let references = match self.before_counts {
            0 => word(counts),
            // The owner's count, and that of the others, whose last two bits are flags.
            _ => (word(&header[8..]) >> 32).wrapping_add_signed(word(counts).cast_signed() >> 2),
        };
        let plausible = references < 1 << 30 && (1..MAX_OBJECT_BYTES).contains(&length);
        let name = self.field(kind, 24).filter(|_| plausible)?;
        (self.memory.bytes(name, type_name.len()) == type_name).then_some((references, length))
    }

    fn content_address(&self, object: u64) -> Option<u64> {
        object.checked_add(self.before_counts + BYTES_OBJECT_DATA)
    }

    /// Returns the content of a live bytes object.
    fn bytes_object(&self, at: u64) -> Option<Vec<u8>> {
        let (references, length) = self.header(at, b"bytes\0")?;
        let bytes = self.memory.bytes(self.content_address(at)?, length as usize);
        (references > 0 && bytes.len() as u64 == length).then_some(bytes)
    }

    /// Returns the part of an object that the writer has neither stored nor written. `address` is that of the bytes.
    fn unwritten_part(
        &self,
        one: &PythonText,
        address: u64,
        object: Vec<u8>,
        last_writes: &[LastWrite],
    ) -> Option<Vec<u8>> {
        // Offsets of `buffer`, `pos` and `write_end` in `buffered` (bufferedio.c).
        let field = |offset| self.field(one.writer.address, offset);
        let (buffer, position, end) = (field(56)?, field(88)?, field(96)?);
        let length = end.saturating_sub(position).min(one.writer.buffer_bytes) as usize;
        let stored = self.memory.bytes(buffer.wrapping_add(position), length);
        let has_pending = end != u64::MAX && !stored.is_empty();
        if has_pending && (stored.ends_with(&object) || object.ends_with(&stored)) {
            return None;
        }
        // An object larger than the buffer is written from its own memory.
        let length = object.len() as u64;
        let written =
            last_writes.iter().filter_map(|last| last.written_at(address, length)).max().unwrap_or(0);
        Some(object[written as usize..].to_vec()).filter(|rest| !rest.is_empty())
    }
}

/// Returns whether a word can be an object's address: CPython aligns objects to 16 bytes.
fn is_object_address(word: &u64) -> bool {
    *word > 0x1000 && word.is_multiple_of(16)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
