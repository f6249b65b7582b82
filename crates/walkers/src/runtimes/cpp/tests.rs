//! File buffers and their types in made-up memory, also hostile one.

use proptest::prelude::*;
use weir_model::Mode;

use super::is_relocated;
use weir_sys::maps::{MappedRegion, MappingKind};

use super::filebuf::{self, FILE, OBJECT_BYTES, PBASE, PPTR};
use super::types::{FILE_BUFFER_TYPE, FileBufferTypes, is_plain_facet};
use crate::pending_bytes::MemoryStore;
use crate::stream_buffer::StreamBuffer;
use crate::tests::{BASE, TestMemory, hostile_words};

/// Where the buffer is in the test memory, and its size.
const BUFFER: u64 = BASE + 512;
const SIZE: u64 = 100;

/// Returns an open file buffer for writing with this many bytes before `pbase` and before `pptr`.
fn writing(written: u64, put: u64) -> [u8; OBJECT_BYTES] {
    let mut object = [0; OBJECT_BYTES];
    for (at, value) in [
        (8, BUFFER),
        (16, BUFFER),
        (24, BUFFER),
        (PBASE, BUFFER + written),
        (PPTR, BUFFER + put),
        (48, BUFFER + SIZE - 1),
        (FILE, BASE),
        (FILE + 48, BUFFER),
        (FILE + 56, SIZE),
        (FILE + 96, BASE),
    ] {
        object[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    // std::ios::out, and _M_writing.
    (object[FILE + 16], object[FILE + 66]) = (16, 1);
    object
}

fn memory() -> TestMemory {
    TestMemory((0..1024).map(|at| (at % 251) as u8).collect())
}

fn read(object: &[u8; OBJECT_BYTES]) -> Option<StreamBuffer> {
    let stream = || filebuf::stream(&memory(), 0x100, object, 5, || false, 1 << 20);
    filebuf::is_open(object).then(stream).flatten()
}

fn set(object: &mut [u8; OBJECT_BYTES], at: usize, value: u64) {
    object[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn pending_bytes_are_between_pbase_and_pptr() {
    let stream = read(&writing(0, 7)).expect("a stream");
    assert_eq!((stream.buffer.fd, stream.buffer.mode, stream.buffer.buffer_bytes), (5, Some(Mode::Full), 99));
    let pending = stream.pending().expect("bytes");
    assert_eq!((pending.stream, pending.bytes.len(), pending.data_address), (BUFFER, 7, Some(BUFFER)));
    assert_eq!(pending.drain_stores, [MemoryStore::u64(0x100 + PBASE as u64, BUFFER + 7)]);
    assert_eq!(
        pending.partial_drain(3).expect("a part"),
        [MemoryStore::u64(0x100 + PBASE as u64, BUFFER + 3)]
    );
    let rest = read(&writing(3, 7)).and_then(StreamBuffer::pending).expect("bytes");
    assert_eq!((rest.bytes.len(), rest.data_address, rest.stream), (4, Some(BUFFER + 3), BUFFER));
    let all = read(&writing(0, SIZE)).and_then(StreamBuffer::pending).expect("with overflow's argument");
    assert_eq!(all.bytes.len(), 100);
    assert_eq!(read(&writing(7, 7)).expect("an empty stream").buffer.pending_bytes, 0);
}

#[test]
fn contradicting_fields_are_rejected() {
    let change = |at: usize, value: u64| {
        let mut object = writing(0, 7);
        set(&mut object, at, value);
        read(&object)
    };
    assert!(change(PPTR, BUFFER + 8).is_some());
    for (at, value) in [
        (PBASE, BUFFER - 1),
        (PBASE, BUFFER + 8),
        (PPTR, BUFFER + SIZE + 1),
        (48, BUFFER + SIZE),
        (48, 0),
        (FILE, 0),
        (FILE, BASE + 4),
        (FILE + 48, 0),
        (FILE + 56, 0),
        (FILE + 56, u64::MAX),
    ] {
        assert!(change(at, value).is_none(), "{at} {value:x}");
    }
    for (at, value) in [(FILE + 16, 2), (FILE + 17, 1), (FILE + 64, 2), (FILE + 65, 1), (FILE + 88, 2)] {
        let mut object = writing(0, 7);
        object[at] = value;
        assert!(read(&object).is_none(), "{at} {value}");
    }
    // set_buffer() moves pptr first: with a moved pbase the state in between has no pending bytes.
    assert!(read(&writing(3, 0)).is_none());
}

#[test]
fn converted_bytes_are_counted_and_not_drained() {
    let object = writing(0, 7);
    let stream = filebuf::stream(&memory(), 0x100, &object, 5, || true, 1 << 20).expect("a stream");
    assert_eq!((stream.buffer.pending_bytes, stream.buffer.pending.len()), (7, 0));
    assert_eq!(stream.pending(), None);
}

#[test]
fn read_ahead_bytes_and_a_pushed_back_one() {
    let mut object = writing(0, 0);
    (object[FILE + 16], object[FILE + 65], object[FILE + 66]) = (8, 1, 0);
    for (at, value) in [(16, BUFFER + 2), (24, BUFFER + 9), (PBASE, 0), (PPTR, 0), (48, 0)] {
        set(&mut object, at, value);
    }
    assert_eq!(read(&object).expect("a stream").buffer.unread_bytes, 7);
    // The get area is the pushed-back character; the saved one continues after it.
    for (at, value) in [
        (8, BUFFER + 90),
        (16, BUFFER + 90),
        (24, BUFFER + 91),
        (FILE + 72, BUFFER + 3),
        (FILE + 80, BUFFER + 9),
    ] {
        set(&mut object, at, value);
    }
    object[FILE + 88] = 1;
    assert_eq!(read(&object).expect("a stream").buffer.unread_bytes, 7);
}

/// Memory with the type information and virtual tables of the file buffer and of a derived type.
fn with_types(overrides: bool) -> (TestMemory, u64) {
    let word = |index: u64| BASE + 8 * index;
    let (name, derived_name) = (word(60), word(70));
    let mut words = vec![0; 80];
    // The type informations: their own tables, names, and the base.
    (words[2], words[3]) = (0x7000, name);
    (words[6], words[7], words[8]) = (0x7000, derived_name, word(2));
    // The virtual tables: offset, type, fourteen functions.
    (words[10], words[11]) = (0, word(2));
    (words[30], words[31]) = (0, word(6));
    for slot in 0..14 {
        words[12 + slot] = 0x5000 + slot as u64;
        words[32 + slot] = if slot < 2 || overrides && slot == 6 { 0x6000 } else { 0x5000 } + slot as u64;
    }
    let mut memory = TestMemory::of(&words);
    memory.0[480..480 + FILE_BUFFER_TYPE.len()].copy_from_slice(FILE_BUFFER_TYPE);
    memory.0[560..566].copy_from_slice(b"5Named");
    (memory, name)
}

#[test]
fn derived_types_are_found_and_those_with_functions_of_their_own_marked() {
    let word = |index: u64| BASE + 8 * index;
    let (memory, name) = with_types(false);
    let find = |memory: &TestMemory| FileBufferTypes::find(memory, &[name], &[(BASE, 480)]);
    assert_eq!(find(&memory).tables, [word(12), word(32)]);
    assert!(find(&memory).overriding.is_empty());
    let types = find(&with_types(true).0);
    assert_eq!((types.tables, types.overriding), (vec![word(12), word(32)], vec![word(32)]), "with sync()");
    assert_eq!(FileBufferTypes::find(&memory, &[0], &[(BASE, 480)]).tables, Vec::<u64>::new());
    assert_eq!(FileBufferTypes::find(&memory, &[name], &[(BASE, u64::MAX)]).tables, Vec::<u64>::new());
}

#[test]
fn a_library_that_is_being_loaded_is_not_unreadable() {
    let region = |start, writable| MappedRegion {
        start,
        end: start + 0x1000,
        writable,
        executable: false,
        private: true,
        offset: 0,
        device: (8, 1),
        inode: 1,
        kind: MappingKind::Anonymous,
    };
    let sections = [(0x1100, 0x20), (0x3000, 0x40)];
    assert!(!is_relocated(&[region(0x1000, true), region(0x3000, true)], &sections));
    assert!(!is_relocated(&[region(0x1000, false), region(0x3000, true)], &sections));
    assert!(!is_relocated(&[region(0x1000, false)], &sections), "a part is not mapped");
    assert!(is_relocated(&[region(0x1000, false), region(0x3000, false)], &sections));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_memory_has_no_false_bytes(words in hostile_words(200)) {
        let memory = TestMemory::of(&words);
        for at in (0..words.len() * 8 - OBJECT_BYTES).step_by(8) {
            let object: &[u8; OBJECT_BYTES] = memory.0[at..].first_chunk().expect("an object");
            let stream = || filebuf::stream(&memory, BASE + at as u64, object, 3, || false, 1 << 20);
            if let Some(stream) = filebuf::is_open(object).then(stream).flatten() {
                prop_assert_eq!(stream.buffer.pending.len() as u64, stream.buffer.pending_bytes);
            }
        }
        let types = FileBufferTypes::find(&memory, &words[..8], &[(BASE, 8 * 200)]);
        prop_assert!(types.tables.len() <= words.len());
        let _is_decided = is_plain_facet(&memory, words[0]);
    }
}
