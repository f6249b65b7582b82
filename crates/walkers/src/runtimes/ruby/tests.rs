//! Tests on memory with Ruby's structures, also damaged ones.

use proptest::prelude::*;

use super::{RubyStreams, candidates, io};
use crate::Walker;
use crate::copied_memory::BUFFER_MOST;
use crate::tests::{BASE, TestMemory, hostile_words};

/// Indices of the words of an object, its rb_io_t and its text.
const OBJECT: usize = 0;
const IO: usize = 10;
const TEXT: usize = 60;
const MUTEX: usize = 80;
const FIBER: usize = 90;

fn at(index: usize) -> u64 {
    BASE + 8 * index as u64
}

/// Returns a stream of descriptor 7 with the pending bytes "cde".
fn stream() -> TestMemory {
    let mut words = vec![0; 120];
    words[OBJECT..OBJECT + 3].copy_from_slice(&[0x0b, at(100), at(IO)]);
    (words[IO], words[IO + 2]) = (at(OBJECT), 7 | 2 << 32);
    words[IO + 6..IO + 9].copy_from_slice(&[at(TEXT), 2 | 3 << 32, 64]);
    words[IO + 24] = at(MUTEX);
    words[MUTEX + 4] = at(FIBER);
    words[TEXT] = u64::from_le_bytes(*b"abcdefgh");
    TestMemory::of(&words)
}

fn set(memory: &mut TestMemory, address: u64, value: &[u8]) {
    let start = (address - BASE) as usize;
    memory.0[start..start + value.len()].copy_from_slice(value);
}

fn ruby() -> RubyStreams {
    RubyStreams { pid: u32::MAX, standard: vec![at(110)], objects: Some([at(OBJECT)].into()).into() }
}

fn pending(memory: &TestMemory) -> Vec<(i32, Vec<u8>)> {
    ruby().pending(memory).into_iter().map(|one| (one.fd, one.bytes)).collect()
}

#[test]
fn a_stream() {
    let mut memory = stream();
    assert_eq!(candidates(BASE, &memory.0).collect::<Vec<_>>(), [at(OBJECT)]);
    let found = ruby().pending(&memory);
    assert_eq!((found[0].fd, found[0].bytes.as_slice(), found[0].locked), (7, &b"cde"[..], Some(false)));
    set(&mut memory, at(FIBER), &5u64.to_le_bytes());
    let found = ruby().pending(&memory);
    assert_eq!((found[0].locked, found[0].lock_owner), (Some(true), 5));
}

#[test]
fn drained_as_ruby_flushes() {
    let mut memory = stream();
    let one = ruby().pending(&memory).remove(0);
    for store in one.partial_drain(1).unwrap() {
        set(&mut memory, store.address, &store.bytes);
    }
    assert_eq!(pending(&memory), [(7, b"de".to_vec())]);
    for store in one.drain_stores {
        set(&mut memory, store.address, &store.bytes);
    }
    assert_eq!(pending(&memory), []);
    assert_eq!(ruby().buffers(&memory)[0].buffer_bytes, 64, "the buffer itself remains");
}

#[test]
fn damaged_structures_are_left_out() {
    let changes = [
        (OBJECT, 0x0c, "another type"),
        (OBJECT, 0x0b | 1 << 40, "no flags"),
        (OBJECT + 1, 3, "no class"),
        (OBJECT + 2, at(TEXT), "it leads to something else"),
        (IO, at(OBJECT) + 8, "of another object"),
        (IO + 2, u64::MAX, "closed"),
        (IO + 7, 2 | 63 << 32, "more than there is room for"),
        (IO + 7, u64::MAX, "less than nothing"),
        (IO + 8, BUFFER_MOST + 1, "too large a buffer"),
        (IO + 6, 0, "none"),
        (IO + 6, 16, "one that is not there"),
    ];
    for (index, value, why) in changes {
        let mut memory = stream();
        set(&mut memory, at(index), &value.to_le_bytes());
        assert_eq!(pending(&memory), [], "{why}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_memory_is_handled(mut words in hostile_words(400)) {
        for object in (0..200).step_by(50) {
            words[object..object + 3].copy_from_slice(&[0x0b, at(object), at(200 + object / 2)]);
            words[200 + object / 2] = at(object);
        }
        let memory = TestMemory::of(&words);
        for object in candidates(BASE, &memory.0).chain([BASE + 8 * 399, u64::MAX]) {
            if let Some(one) = io::stream(&memory, object, BUFFER_MOST) {
                prop_assert!(one.buffer.fd >= 0 && one.buffer.pending_bytes <= BUFFER_MOST);
                prop_assert_eq!(one.buffer.pending.len() as u64, one.buffer.pending_bytes);
                prop_assert!(one.buffer.unread.len() <= 64);
            }
        }
    }
}
