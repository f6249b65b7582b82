//! Tests on memory with Ruby's structures, also damaged ones.

use proptest::prelude::*;

use super::io::IoClass;
use super::layout::RubyLayout;
use super::{RubyStreams, candidates};
use crate::Walker;
use crate::copied_memory::MAX_BUFFER;
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

/// Indices of the words of a class, the class IO, and the variable that points to it.
const CLASS: usize = 100;
const IO_CLASS: usize = 105;
const IO_VARIABLE: usize = 111;

const VERSIONS: [&str; 4] = ["2.7.4", "3.0.6", "3.1.2", "3.4.11"];

/// Returns a stream of descriptor 7 with the pending bytes "cde", as Ruby 3.1 lays it out.
fn stream() -> TestMemory {
    stream_of("3.1.2")
}

fn stream_of(version: &str) -> TestMemory {
    let mut words = vec![0; 120];
    words[OBJECT..OBJECT + 3].copy_from_slice(&[0x0b, at(CLASS), at(IO)]);
    let io = match layout(version).has_self() {
        true => IO + 1,
        false => IO,
    };
    words[IO] = at(OBJECT);
    words[io + 1] = 7 | 2 << 32;
    words[io + 5..io + 8].copy_from_slice(&[at(TEXT), 2 | 3 << 32, 64]);
    words[io + 23] = at(MUTEX);
    words[MUTEX + 4] = at(FIBER);
    words[TEXT] = u64::from_le_bytes(*b"abcdefgh");
    (words[CLASS + 2], words[IO_VARIABLE]) = (at(IO_CLASS), at(IO_CLASS));
    TestMemory::of(&words)
}

fn layout(version: &str) -> &'static RubyLayout {
    RubyLayout::of(version).expect("a supported version")
}

fn set(memory: &mut TestMemory, address: u64, value: &[u8]) {
    let start = (address - BASE) as usize;
    memory.0[start..start + value.len()].copy_from_slice(value);
}

fn ruby() -> RubyStreams {
    ruby_of("3.1.2")
}

fn ruby_of(version: &str) -> RubyStreams {
    RubyStreams {
        pid: u32::MAX,
        standard: vec![at(110)],
        layout: layout(version),
        io_class: at(IO_VARIABLE),
        objects: crate::known_objects::KnownObjects::of([at(OBJECT)]).into(),
    }
}

fn class_of(version: &str) -> IoClass {
    IoClass { layout: layout(version), address: at(IO_CLASS) }
}

fn pending(memory: &TestMemory) -> Vec<(i32, Vec<u8>)> {
    ruby().pending(memory).into_iter().map(|one| (one.fd, one.bytes)).collect()
}

#[test]
fn a_stream_of_each_version() {
    for version in VERSIONS {
        let mut memory = stream_of(version);
        let found: Vec<u64> = candidates(class_of(version), BASE, &memory.0).collect();
        assert_eq!(found, [at(OBJECT)], "{version}");
        let found = ruby_of(version).pending(&memory);
        let one = &found[0];
        assert_eq!((one.fd, one.bytes.as_slice(), one.locked), (7, &b"cde"[..], Some(false)), "{version}");
        set(&mut memory, at(FIBER), &5u64.to_le_bytes());
        let found = ruby_of(version).pending(&memory);
        assert_eq!((found[0].locked, found[0].lock_owner), (Some(true), 5), "{version}");
    }
    for version in ["", "3", "2.6.10", "3.5.0", "4.0.0", "x.y"] {
        assert_eq!(RubyLayout::of(version), None, "{version}");
    }
}

#[test]
fn a_lock_inside_its_object() {
    let mut memory = stream_of("3.4.11");
    set(&mut memory, at(MUTEX + 3), &3u64.to_le_bytes());
    set(&mut memory, at(MUTEX + 4), &5u64.to_le_bytes());
    let found = ruby_of("3.4.11").pending(&memory);
    assert_eq!((found[0].locked, found[0].lock_owner), (Some(true), 5));
}

#[test]
fn the_shape_of_an_object() {
    let mut memory = stream();
    set(&mut memory, at(OBJECT), &(0x0bu64 | 7 << 32).to_le_bytes());
    assert_eq!(pending(&memory), [], "3.1 has no shapes");
    assert_eq!(ruby_of("3.3.8").pending(&memory)[0].bytes, b"cde");
    set(&mut memory, at(OBJECT), &(0x0bu64 | 1 << 60).to_le_bytes());
    assert!(ruby_of("3.3.8").pending(&memory).is_empty(), "more shapes than there can be");
}

#[test]
fn only_classes_below_io_in_2_7() {
    let mut memory = stream_of("2.7.4");
    set(&mut memory, at(CLASS + 2), &at(TEXT).to_le_bytes());
    assert!(ruby_of("2.7.4").pending(&memory).is_empty(), "another superclass");
    set(&mut memory, at(CLASS + 2), &at(CLASS).to_le_bytes());
    assert!(ruby_of("2.7.4").pending(&memory).is_empty(), "a ring of superclasses");
    set(&mut memory, at(OBJECT + 1), &at(IO_CLASS).to_le_bytes());
    assert_eq!(ruby_of("2.7.4").pending(&memory).len(), 1, "IO itself");
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
        (IO + 2, 7, "open for neither"),
        (IO + 2, u64::MAX, "closed"),
        (IO + 7, 2 | 63 << 32, "more than there is room for"),
        (IO + 7, u64::MAX, "less than nothing"),
        (IO + 8, MAX_BUFFER + 1, "too large a buffer"),
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
        for class in VERSIONS.map(class_of) {
            for object in candidates(class, BASE, &memory.0).chain([BASE + 8 * 399, u64::MAX]) {
                if let Some(one) = class.stream(&memory, object, MAX_BUFFER) {
                    prop_assert!(one.buffer.fd >= 0 && one.buffer.pending_bytes <= MAX_BUFFER);
                    prop_assert_eq!(one.buffer.pending.len() as u64, one.buffer.pending_bytes);
                    prop_assert!(one.buffer.unread.len() <= 64);
                }
            }
        }
    }
}
