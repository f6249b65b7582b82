//! What CPython was just handing from its text layer to its buffer: neither of them has it, and a kill would lose it.
//!
//! A text stream joins what it holds in one bytes object and forgets it; the buffered writer writes its buffer out
//! first, and takes the object then. Until then nothing but a pointer on the thread's stack leads to it. An object is
//! believed to be this one if the stack has it right behind the writer, as the arguments of the call; or, before that
//! call, if the list is just being freed that it was made of, or if the function that hands it over has it beside the
//! text stream.

use weir_model::trace::Buffer;
use weir_sys::memory::{Memory, ProcessMemory};

use crate::rescue::last_write::LastWrite;
use crate::supervise::tracees::Tracees;

/// How much of a stack is searched: print() is a few calls above write(2).
const STACK_BYTES: usize = 16 << 10;
/// A stream does not hand over more at once unless one print() was as large.
const LENGTH_MOST: u64 = 1 << 24;

/// What is left of a bytes object that a buffered writer has not taken.
#[derive(Debug)]
pub(crate) struct HandedOffBytes {
    /// The buffered writer.
    pub stream: u64,
    pub fd: i32,
    pub bytes: Vec<u8>,
}

/// Of a process whose last thread is in its exit stop.
pub(crate) fn in_flight(world: &Tracees, pid: u32, tid: u32) -> Vec<HandedOffBytes> {
    let memory = ProcessMemory { pid: tid };
    let texts = world.python_texts(pid, tid);
    let Some(process) = world.processes.get(&pid).filter(|_| !texts.is_empty()) else { return Vec::new() };
    let lasts = &process.lasts;
    let stacks: Vec<Vec<u64>> = process.stacks.iter().map(|stack| words(&memory, stack)).collect();
    let rest = |(writer, text): &(Buffer, u64)| {
        let objects = stacks.iter().flat_map(|stack| handed(&memory, stack, writer.address, *text));
        let bytes = objects
            .filter_map(|(at, object)| rest(&memory, writer, at, object, lasts))
            .max_by_key(Vec::len)?;
        Some(HandedOffBytes { stream: writer.address, fd: writer.fd, bytes })
    };
    texts.iter().filter_map(rest).collect()
}

/// What the registers and the stack of a thread hold.
fn words(memory: &ProcessMemory, (stack, registers): &(u64, [u64; 6])) -> Vec<u64> {
    let stack = memory.bytes(*stack, STACK_BYTES);
    registers.iter().copied().chain(stack.chunks_exact(8).map(word)).collect()
}

/// Where the bytes objects have their bytes that are on their way to this writer, and these.
fn handed(memory: &ProcessMemory, words: &[u64], writer: u64, text: u64) -> Vec<(u64, Vec<u8>)> {
    let mut objects: Vec<u64> =
        words.windows(2).filter(|two| two[0] == writer && two[1] % 16 == 0).map(|two| two[1]).collect();
    // Of `textio` in textio.c: what it holds.
    let hands = memory.u64(text.wrapping_add(136)) == Some(0);
    let of_text: Vec<usize> = (0..words.len()).filter(|at| hands && words[*at] == text).collect();
    if objects.is_empty() && !of_text.is_empty() {
        objects = joined(memory, words);
        if objects.is_empty() {
            objects.extend(beside(memory, words, &of_text));
        }
    }
    objects.sort_unstable();
    objects.dedup();
    objects.into_iter().filter_map(|at| Some((at + 32, bytes_object(memory, at)?))).collect()
}

/// How far apart two registers are kept that one function saves for another.
const FRAME_WORDS: usize = 8;

/// The bytes object that the function has which hands it over: it keeps it beside the text stream, in registers or
/// where the function that it calls saves these. A line that is to be held next may stand there too; it is shorter.
fn beside(memory: &ProcessMemory, words: &[u64], of_text: &[usize]) -> Option<u64> {
    let near = |text: &usize| text.saturating_sub(FRAME_WORDS)..(text + FRAME_WORDS + 1).min(words.len());
    let likely = of_text.iter().flat_map(near).map(|at| words[at]).filter(|at| *at > 0x1000 && at % 16 == 0);
    let alone = |at: u64| object(memory, at, b"bytes\0").filter(|(references, _)| *references == 1);
    likely.filter_map(|at| Some((alone(at)?.1, at))).max().map(|(_, at)| at)
}

/// Bytes objects that begin with the first item of a list without references: it is freed from its end on.
fn joined(memory: &ProcessMemory, words: &[u64]) -> Vec<u64> {
    let first = |at: &u64| {
        let list = object(memory, *at, b"list\0").filter(|list| list.0 == 0)?;
        bytes_object(memory, memory.u64(memory.u64(at + 24).filter(|_| list.1 > 1)?)?)
    };
    let likely: Vec<u64> = words.iter().copied().filter(|at| *at > 0x1000 && at % 16 == 0).collect();
    let firsts: Vec<Vec<u8>> = likely.iter().filter_map(first).collect();
    let begins = |at: &&u64| {
        let object = bytes_object(memory, **at).unwrap_or_default();
        firsts.iter().any(|first| object.len() > first.len() && object.starts_with(first))
    };
    if firsts.is_empty() { Vec::new() } else { likely.iter().filter(begins).copied().collect() }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// References and size of an object of this type.
fn object(memory: &ProcessMemory, at: u64, name: &[u8]) -> Option<(u64, u64)> {
    let head = memory.bytes(at, 24);
    let (references, kind, length) = (word(&head), word(head.get(8..)?), word(head.get(16..)?));
    let likely = references < 1 << 30 && (1..LENGTH_MOST).contains(&length);
    let named = memory.u64(kind.checked_add(24).filter(|_| likely)?)?;
    (memory.bytes(named, name.len()) == name).then_some((references, length))
}

/// `PyBytesObject`: references, type, size, hash, and the bytes.
fn bytes_object(memory: &ProcessMemory, at: u64) -> Option<Vec<u8>> {
    let (references, length) = object(memory, at, b"bytes\0")?;
    let bytes = memory.bytes(at + 32, length as usize);
    (references > 0 && bytes.len() as u64 == length).then_some(bytes)
}

/// What the writer has neither taken of it nor written. `at` is where the object's bytes are.
fn rest(
    memory: &ProcessMemory,
    writer: &Buffer,
    at: u64,
    object: Vec<u8>,
    lasts: &[LastWrite],
) -> Option<Vec<u8>> {
    // Of `buffered` in bufferedio.c.
    let field = |offset| memory.u64(writer.address + offset);
    let (buffer, position, end) = (field(56)?, field(88)?, field(96)?);
    let held =
        memory.bytes(buffer + position, end.saturating_sub(position).min(writer.buffer_bytes) as usize);
    let waits = end != u64::MAX && !held.is_empty();
    if waits && (held.ends_with(&object) || object.ends_with(&held)) {
        return None;
    }
    // More than its buffer has room for is written from where it is.
    let written = lasts.iter().find_map(|last| last.wrote_of(at, object.len() as u64)).unwrap_or(0);
    Some(object[written as usize..].to_vec()).filter(|rest| !rest.is_empty())
}
