//! File buffers of libc++ in made-up memory, also hostile one.

use proptest::prelude::*;
use weir_model::Mode;

use super::libcxx_filebuf::{
    self, BYTES, BYTES_SIZE, CONVERTS_NOTHING, CURRENT_MODE, FILE, InnerFile, OBJECT_BYTES, OUT, PBASE, PPTR,
};
use crate::pending_bytes::{InnerStream, MemoryStore};
use crate::stream_buffer::StreamBuffer;
use crate::tests::{BASE, TestMemory, hostile_words};

/// Where the object, its buffer and its FILE are in the test memory, and the size of the buffer.
const AT: u64 = BASE + 8;
const BUFFER: u64 = BASE + 512;
const SIZE: u64 = 100;
const INNER: InnerFile = InnerFile {
    fd: 5,
    pending_bytes: 3,
    area: (BASE + 256, BASE + 300),
    lock: BASE + 400,
    locked: Some(false),
    lock_owner: 0,
    flush_position: None,
};

/// Returns an open file buffer for writing with this many pending bytes.
fn writing(put: u64) -> [u8; OBJECT_BYTES] {
    let mut object = [0; OBJECT_BYTES];
    for (at, value) in [
        (PBASE, BUFFER),
        (PPTR, BUFFER + put),
        (56, BUFFER + SIZE - 1),
        (BYTES, BUFFER),
        (BYTES_SIZE, SIZE),
        (FILE, BASE),
    ] {
        set(&mut object, at, value);
    }
    // std::ios::out.
    (object[152], object[CURRENT_MODE], object[CONVERTS_NOTHING]) = (OUT as u8, OUT as u8, 1);
    object
}

fn set(object: &mut [u8; OBJECT_BYTES], at: usize, value: u64) {
    object[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn read(object: &[u8; OBJECT_BYTES]) -> Option<StreamBuffer> {
    let memory = TestMemory((0..1024).map(|at| (at % 251) as u8).collect());
    let stream = || libcxx_filebuf::stream(&memory, AT, object, INNER, 1 << 20);
    libcxx_filebuf::is_open(AT, object).then(stream).flatten()
}

#[test]
fn pending_bytes_come_after_those_of_the_file() {
    let stream = read(&writing(7)).expect("a stream");
    assert_eq!((stream.buffer.fd, stream.buffer.mode, stream.buffer.buffer_bytes), (5, Some(Mode::Full), 99));
    let pending = stream.pending().expect("bytes");
    assert_eq!((pending.stream, pending.bytes.len(), pending.data_address), (BUFFER, 7, Some(BUFFER)));
    let areas = [INNER.area, (BUFFER, BUFFER + SIZE)];
    let inner = InnerStream { address: BASE, pending_bytes: 3, lock: INNER.lock, areas };
    assert_eq!(pending.inner, Some(inner));
    assert_eq!(pending.early_len(), 0, "no write of the program shows which bytes were written ahead");
    let field = AT + PPTR as u64;
    assert_eq!(pending.drain_stores, [MemoryStore::u64(field, BUFFER)]);
    let left = MemoryStore { address: BUFFER, bytes: pending.bytes[3..].to_vec() };
    assert_eq!(pending.partial_drain(3).expect("a part"), [left, MemoryStore::u64(field, BUFFER + 4)]);
    assert_eq!(read(&writing(0)).expect("an empty stream").buffer.pending_bytes, 0);
    let all = read(&writing(SIZE)).and_then(StreamBuffer::pending).expect("with overflow's argument");
    assert_eq!(all.bytes.len(), 100);
}

#[test]
fn contradicting_fields_are_rejected() {
    for (at, value) in [
        (PBASE, BUFFER - 1),
        (PBASE, 0),
        (PPTR, BUFFER - 1),
        (PPTR, BUFFER + SIZE + 1),
        (56, BUFFER + SIZE),
        (BYTES, 0),
        (BYTES, BUFFER + 1),
        (BYTES, AT + 88),
        (BYTES_SIZE, 8),
        (BYTES_SIZE, u64::MAX),
        (104, BUFFER),
        (112, 8),
        (FILE, 0),
        (FILE, BASE + 4),
    ] {
        let mut object = writing(7);
        set(&mut object, at, value);
        assert!(read(&object).is_none(), "{at} {value:x}");
    }
    for (at, value) in [(152, 2), (153, 1), (CURRENT_MODE, 24), (160, 2), (161, 2), (CONVERTS_NOTHING, 2)] {
        let mut object = writing(7);
        object[at] = value;
        assert!(read(&object).is_none(), "{at} {value}");
    }
}

#[test]
fn converted_bytes_are_counted_and_not_drained() {
    let mut object = writing(7);
    object[CONVERTS_NOTHING] = 0;
    for (at, value) in [(BYTES, BASE + 800), (104, BUFFER), (112, SIZE)] {
        set(&mut object, at, value);
    }
    let stream = read(&object).expect("a stream");
    assert_eq!((stream.buffer.pending_bytes, stream.buffer.pending.len()), (7, 0));
    assert_eq!(stream.pending(), None);
}

#[test]
fn a_file_buffer_without_a_buffer_has_no_pending_bytes() {
    let mut object = writing(0);
    for (at, value) in [(PBASE, 0), (PPTR, 0), (56, 0), (BYTES, AT + 88), (BYTES_SIZE, 8)] {
        set(&mut object, at, value);
    }
    assert_eq!(read(&object).expect("a stream").buffer.mode, Some(Mode::None));
    // In overflow() the put area is a character on the stack.
    for (at, value) in [(PBASE, BASE + 900), (PPTR, BASE + 901)] {
        set(&mut object, at, value);
    }
    assert!(read(&object).is_none());
}

#[test]
fn read_ahead_bytes_are_those_of_the_get_area() {
    let mut object = writing(0);
    (object[152], object[CURRENT_MODE]) = (8, 8);
    for (at, value) in [(16, BUFFER), (24, BUFFER + 2), (32, BUFFER + 9), (PBASE, 0), (PPTR, 0), (56, 0)] {
        set(&mut object, at, value);
    }
    assert_eq!(read(&object).expect("a stream").buffer.unread_bytes, 7);
    set(&mut object, 24, BUFFER + 10);
    assert!(read(&object).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_memory_has_no_false_bytes(words in hostile_words(200)) {
        let memory = TestMemory::of(&words);
        for at in (0..words.len() * 8 - OBJECT_BYTES).step_by(8) {
            let object: &[u8; OBJECT_BYTES] = memory.0[at..].first_chunk().expect("an object");
            let at = BASE + at as u64;
            let stream = || libcxx_filebuf::stream(&memory, at, object, INNER, 1 << 20);
            if let Some(stream) = libcxx_filebuf::is_open(at, object).then(stream).flatten() {
                let is_plain = object[CONVERTS_NOTHING] == 1;
                prop_assert!(!is_plain || stream.buffer.pending.len() as u64 == stream.buffer.pending_bytes);
            }
        }
    }
}
