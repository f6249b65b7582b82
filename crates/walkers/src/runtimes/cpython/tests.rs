//! Tests on memory with CPython's structures, also damaged ones.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::layout::PythonLayout;
use super::objects::{MAX_TEXT_BYTES, TextBudget, dict_get, module_dict, pending_bytes, text_from};
use super::streams::{self, IoType, IoTypes};
use super::{PythonStreams, named_version};
use crate::Walker;
use crate::copied_memory::PENDING_KEPT;
use crate::tests::{BASE, TestMemory, hostile_words};

fn layouts() -> Vec<PythonLayout> {
    let all = (9..=12).filter_map(|minor| PythonLayout::of(&TestMemory(Vec::new()), minor, 0));
    all.flat_map(|layout| [layout, PythonLayout { before_counts: 16, ..layout }]).collect()
}

/// Sets words to the addresses of types, so that each check of a type passes by chance often enough.
fn claim_types(words: &mut [u64]) {
    for (index, name) in
        [b"dict\0\0\0\0", b"str\0\0\0\0\0", b"bytes\0\0\0", b"list\0\0\0\0"].iter().enumerate()
    {
        let at = 500 + 8 * index;
        words[at] = u64::from_le_bytes(**name);
        words[at + 4] = BASE + 8 * at as u64;
    }
    for index in (1..480).step_by(3) {
        words[index] = BASE + 8 * (501 + 8 * (words[index] % 4));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn random_memory_is_handled(mut words in hostile_words(600)) {
        claim_types(&mut words);
        let memory = TestMemory::of(&words);
        let objects: BTreeSet<u64> = (BASE..BASE + 8 * 480).step_by(16).collect();
        for layout in layouts() {
            let types = IoType::ALL.iter().zip(words.iter().skip(1).step_by(3)).map(|(kind, at)| (*at, *kind));
            let found = streams::streams(&memory, &layout, &IoTypes::of_known(types.collect()), &mut objects.clone(), PENDING_KEPT);
            let found = crate::stream_buffer::buffers(found);
            prop_assert!(found.iter().all(|one| one.pending.len() <= 256 && one.unread.len() <= 64));
            for at in &objects {
                dict_get(&memory, &layout, *at, &["_io"]);
                module_dict(&memory, &layout, *at);
                text_from(&memory, &layout, *at, words[0], &TextBudget::default());
                pending_bytes(&memory, &layout, *at, 256, &TextBudget::default());
            }
            prop_assert_eq!(PythonStreams::new(0, BASE, layout, 0..0).buffers(&memory), []);
        }
    }
}

#[test]
fn states_of_strings() {
    let of_3_12 = PythonLayout::of(&TestMemory(Vec::new()), 12, 0).expect("a supported version");
    let of_3_14 = PythonLayout { wide_interned: true, ..of_3_12 };
    // A compact ASCII string, interned; 3.14.0 stores 16 bits for that, 3.14.10 again 2 bits.
    // A free-threaded interpreter stores 8 bits.
    let all = [(of_3_12, 0x65), (of_3_14, 0x65), (of_3_14, 1 | 0x19 << 16), (of_3_14, 1 | 0x19 << 8)];
    for (layout, state) in all {
        let mut words = vec![0; 20];
        (words[1], words[2], words[4]) = (BASE + 80, 3, state);
        words[5] = u64::from_le_bytes(*b"abcdefgh");
        (words[13], words[14]) = (BASE + 112, u64::from_le_bytes(*b"str\0\0\0\0\0"));
        let found = text_from(&TestMemory::of(&words), &layout, BASE, 1, &TextBudget::default());
        assert_eq!(found, Some((2, b"bc".to_vec())), "{state:#x}");
    }
}

/// Returns a string of 3.12 at [`BASE`], with some characters at word 32.
fn string(state: u64, count: u64, characters: &[u8]) -> TestMemory {
    let mut words = vec![0; 32];
    (words[1], words[2], words[4]) = (BASE + 8 * 20, count, state);
    (words[23], words[24]) = (BASE + 8 * 28, u64::from_le_bytes(*b"str\0\0\0\0\0"));
    words[28] = words[24];
    let mut memory = TestMemory::of(&words);
    memory.0.extend(characters);
    memory
}

#[test]
fn long_texts_are_read_within_a_budget() {
    let layout = PythonLayout::of(&TestMemory(Vec::new()), 12, 0).expect("a supported version");
    let budget = TextBudget::default();
    let from = |memory: &TestMemory, start: u64, count: u64| {
        // The characters before `start` are the structure itself.
        let found = text_from(memory, &layout, BASE, start, &budget).expect("a string");
        (found.0 - (count - start), found.1.len())
    };
    // Of ASCII characters, which are a byte each, the first ones are enough.
    let in_front = 8 * 32 - layout.ascii;
    let ascii = string(0x64, in_front + (1 << 20), &[b'a'; 64]);
    assert_eq!(from(&ascii, in_front, in_front + (1 << 20)), (0, 64));
    let count = 1 << 20;
    let in_front = (8 * 32 - layout.compact) / 2;
    let wide = string(
        2 << 2 | 0x20,
        in_front + count,
        &"ж".encode_utf16().next().expect("one").to_le_bytes().repeat(count as usize),
    );
    for _ in 0..MAX_TEXT_BYTES / (2 * count) {
        assert_eq!(from(&wide, in_front, in_front + count), (count, 2 * count as usize));
    }
    assert_eq!(
        from(&wide, in_front, in_front + count),
        (64, 128),
        "each further character counts as one byte"
    );
}

/// Crafted text layers can share a list of parts.
#[test]
fn the_parts_of_all_text_layers_have_one_limit() {
    const PARTS: usize = 1 << 16;
    let layout = PythonLayout::of(&TestMemory(Vec::new()), 12, 0).expect("a supported version");
    let at = |word: u64| BASE + 8 * word;
    let mut words = vec![0; 64];
    // A list, its type; a part of 88 bytes, its type.
    (words[1], words[2], words[3]) = (at(4), PARTS as u64, at(64));
    (words[7], words[12]) = (at(12), u64::from_le_bytes(*b"list\0\0\0\0"));
    (words[17], words[18]) = (at(36), 88);
    (words[39], words[44]) = (at(44), u64::from_le_bytes(*b"bytes\0\0\0"));
    words.extend([at(16)].repeat(PARTS));
    let (memory, budget) = (TestMemory::of(&words), TextBudget::default());
    let read = || pending_bytes(&memory, &layout, BASE, u64::MAX, &budget).expect("a list").len();
    assert_eq!(read(), 88 * PARTS);
    let all: usize = (0..20).map(|_| read()).sum();
    assert!((all as u64) < MAX_TEXT_BYTES, "{all}");
}

#[test]
fn versions_by_name() {
    let names = ["python3.9", "libpython3.10.so.1.0", "python3.11-dbg", "python3", "python3.x", "python2.7"];
    assert_eq!(names.map(named_version), [Some(9), Some(10), Some(11), None, None, None]);
}

#[test]
fn the_future_is_not_known() {
    assert_eq!(PythonLayout::of(&TestMemory(Vec::new()), 15, BASE), None);
    assert_eq!(PythonLayout::of(&TestMemory(vec![0; 4096]), 13, BASE), None, "without its table of offsets");
}

/// `_PyRuntime` of a free-threaded or an ordinary 3.13 or 3.14, as far as it is read.
fn runtime(free_threaded: u64) -> TestMemory {
    let mut words = vec![0; 20];
    (words[0], words[2], words[5]) = (u64::from_le_bytes(*b"xdebugpy"), free_threaded, 656);
    (words[11], words[12]) = (7536, 7536);
    TestMemory::of(&words)
}

#[test]
fn free_threaded_interpreters_have_larger_objects() {
    let of = |minor, free_threaded| {
        PythonLayout::of(&runtime(free_threaded), minor, BASE).map(|layout| layout.before_counts)
    };
    assert_eq!([of(13, 0), of(14, 0), of(15, 0)], [Some(0); 3]);
    assert_eq!([of(13, 1), of(14, 1)], [Some(16); 2]);
    assert_eq!([of(15, 1), of(13, 2)], [None; 2], "never tried, and no number of a known table");
}

#[test]
fn counts_of_a_free_threaded_object() {
    let layout = PythonLayout::of(&runtime(1), 13, BASE).expect("a supported version");
    // The owner's count of references is in the upper half of the second word, the lock in its third byte.
    let is_referenced = |owner: u64, others: i64| {
        let words = [7, owner << 32, others.cast_unsigned(), 0];
        let memory = TestMemory::of(&words);
        layout.is_referenced(&memory, BASE, &others.to_le_bytes())
    };
    assert!(is_referenced(1, 0) && is_referenced(0, 1 << 2) && is_referenced(2, -1 << 2));
    assert!(!is_referenced(0, 0) && !is_referenced(0, 3), "freed, without and with merged counts");
    let in_section =
        |lock: u64| layout.in_critical_section(&TestMemory::of(&[7, 1 << 32 | lock << 16, 0, 0]), BASE);
    assert_eq!([0, 1, 2, 3].map(in_section), [false, true, true, true]);
}
