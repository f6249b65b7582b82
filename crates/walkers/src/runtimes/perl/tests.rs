//! Tests on memory with Perl's structures, also damaged ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_sys::memory::Memory;

use super::layers::PerlLayers;
use super::{PerlHandles, tables};
use crate::copied_memory::{MAX_BUFFER, PENDING_KEPT};
use crate::tests::{BASE, TestMemory, hostile_words};
use crate::{Walker, stream_buffer};

/// Indices of the words of a table with one handle: its layer `perlio`, the layer `unix` below it, and the text.
const TABLE: usize = 0;
const SLOT: usize = 4;
const TOP: usize = 300;
const UNIX: usize = 320;
const TEXT: usize = 340;
const TABS: PerlLayers = PerlLayers { perlio: BASE + 8 * 400, unix: BASE + 8 * 440 };

const FLAGS_WRITTEN: u64 = 0x2_0200;
const FLAGS_READ: u64 = 0x4_0400;

fn at(index: usize) -> u64 {
    BASE + 8 * index as u64
}

fn handle(flags: u64) -> Vec<u64> {
    let mut words = vec![0; 600];
    (words[SLOT], words[SLOT + 3]) = (at(TOP), at(SLOT));
    let layer = [at(UNIX), TABS.perlio, flags, at(SLOT), at(TEXT), at(TEXT) + 5, at(TEXT) + 2, 0, 24];
    words[TOP..TOP + 9].copy_from_slice(&layer);
    words[UNIX..UNIX + 5].copy_from_slice(&[0, TABS.unix, 0x20_0000, at(SLOT), 7]);
    words[TEXT] = u64::from_le_bytes(*b"abcdefgh");
    for (tab, bytes) in [(400, 80), (440, 40)] {
        (words[tab], words[tab + 2]) = (224, bytes);
    }
    words
}

/// Descriptor, pending bytes and read-ahead bytes.
type HandleBytes = (i32, Vec<u8>, Vec<u8>);

fn handles(words: &[u64], first: &[u64]) -> Vec<HandleBytes> {
    let perl = PerlHandles::new(u32::MAX, TABS);
    let found = stream_buffer::buffers(perl.read_tables(
        &TestMemory::of(words),
        &first.iter().copied().collect(),
        PENDING_KEPT,
    ));
    found.into_iter().map(|one| (one.fd, one.pending, one.unread)).collect()
}

#[test]
fn a_handle() {
    assert!(TABS.are_known(&TestMemory::of(&handle(0))));
    assert_eq!(handles(&handle(FLAGS_WRITTEN), &[at(TABLE)]), [(7, b"ab".to_vec(), vec![])]);
    assert_eq!(handles(&handle(FLAGS_READ), &[at(TABLE)]), [(7, vec![], b"cde".to_vec())]);
    assert_eq!(handles(&handle(0), &[at(TABLE)]), [(7, vec![], vec![])]);
    assert_eq!(handles(&handle(FLAGS_READ | FLAGS_WRITTEN), &[at(TABLE)]), [], "it cannot be both");
}

/// Adds a layer `:encoding` with this object and the text "cd" above the layer `perlio`.
fn add_encoding(words: &mut [u64], name: &[u8; 8], bytes: u64) {
    const LAYER: usize = 60;
    const TAB: usize = 80;
    words[SLOT] = at(LAYER);
    let layer =
        [at(TOP), at(TAB), FLAGS_WRITTEN, at(SLOT), at(TEXT + 1), at(TEXT + 1) + 8, at(TEXT + 1) + 2, 0, 24];
    words[LAYER..LAYER + 9].copy_from_slice(&layer);
    words[LAYER + 12] = at(110);
    words[TEXT + 1] = u64::from_le_bytes(*b"cd\0\0\0\0\0\0");
    (words[TAB], words[TAB + 1], words[TAB + 2]) = (224, at(85), 120);
    (words[85], words[86]) = (u64::from_le_bytes(*b"encoding"), 0);
    // A reference, the hash with its body and array, the entry, its key, and its value with its body and text.
    (words[111], words[112]) = (0x800 << 32, at(120));
    (words[120], words[121], words[122]) = (at(130), 12 << 32, at(140));
    (words[133], words[141]) = (1, at(150));
    (words[151], words[152]) = (at(160), at(170));
    (words[160], words[161]) = (4 << 32, u64::from_le_bytes(*b"Name\0\0\0\0"));
    (words[170], words[171], words[172]) = (at(180), 0x400 << 32, at(190));
    (words[182], words[190]) = (bytes, u64::from_le_bytes(*name));
    words[191] = u64::from_le_bytes(*b"rict\0\0\0\0");
}

#[test]
fn only_a_layer_of_utf8_has_the_bytes_that_perl_writes() {
    let with = |name: &[u8; 8], bytes, change: (usize, u64)| {
        let mut words = handle(FLAGS_WRITTEN);
        add_encoding(&mut words, name, bytes);
        if change.0 > 0 {
            words[change.0] = change.1;
        }
        let perl = PerlHandles::new(u32::MAX, TABS);
        let first = [at(TABLE)].into_iter().collect();
        let found = perl.read_tables(&TestMemory::of(&words), &first, PENDING_KEPT);
        assert_eq!(found.len(), 1);
        let buffer = &found[0].buffer;
        let all = (buffer.pending.clone(), buffer.unconverted_bytes);
        (all, found[0].clone().pending().map(|one| (one.bytes, !one.drain_stores.is_empty())))
    };
    let (all, exact) = (b"abcd".to_vec(), (b"abcd".to_vec(), false));
    assert_eq!(with(b"utf-8-st", 12, (0, 0)), ((all.clone(), 0), Some(exact.clone())));
    assert_eq!(with(b"utf8\0\0\0\0", 4, (0, 0)), ((all.clone(), 0), Some(exact)));
    // The bytes of the lower layer are converted already, and can be drained.
    let lower = ((all.clone(), 2), Some((b"ab".to_vec(), true)));
    assert_eq!(with(b"utf-16LE", 8, (0, 0)), lower);
    let surrogate = u64::from_le_bytes(*b"\xed\xa0\0\0\0\0\0\0");
    let replaced = with(b"utf-8-st", 12, (TEXT + 1, surrogate));
    assert_eq!(
        ((replaced.0).1, replaced.1),
        (2, Some((b"ab".to_vec(), true))),
        "strict UTF-8 has no surrogates"
    );
    let damages = [
        (111, 0, "no reference"),
        (121, 7 << 32, "no hash"),
        (133, u64::MAX, "an endless array"),
        (150, at(150), "a ring of entries"),
        (171, 0, "no string"),
        (182, 65, "a long name"),
    ];
    for (index, value, why) in damages {
        let found = with(b"utf-8-st", 12, (index, value));
        if index != 133 && index != 150 {
            assert_eq!(found, lower, "{why}");
        }
    }
}

#[test]
fn damaged_structures_are_left_out() {
    let changes = [
        (SLOT + 1, 1, "a slot with functions"),
        (SLOT + 3, at(SLOT + 4), "a slot that is not in use"),
        (TABLE + 3, at(TABLE), "a link with a head"),
        (TOP, at(TOP), "a ring of layers"),
        (TOP, 0, "no descriptor"),
        (TOP + 3, at(SLOT + 4), "a layer of another handle"),
        (UNIX + 3, at(SLOT + 4), "a lowest layer of another handle"),
        (UNIX, at(TOP), "a layer below the lowest"),
        (UNIX + 4, u64::MAX, "a closed descriptor"),
        (TOP + 4, at(TEXT + 1), "a position before the buffer"),
        (TOP + 6, at(TEXT + 4), "a position after the buffer"),
        (TOP + 8, MAX_BUFFER + 1, "too large a buffer"),
        (TOP + 8, u64::MAX, "a buffer that does not end"),
        (TOP + 4, 16, "a buffer that is not mapped"),
    ];
    for (index, value, why) in changes {
        let mut words = handle(FLAGS_WRITTEN);
        words[index] = value;
        assert_eq!(handles(&words, &[at(TABLE)]), [], "{why}");
    }
}

#[test]
fn tables_in_a_ring_end() {
    let mut words = handle(FLAGS_WRITTEN);
    words[TABLE] = at(TABLE);
    assert_eq!(handles(&words, &[at(TABLE), at(TABLE)]).len(), 1);
    assert_eq!(handles(&words, &[at(TABLE) + 8, at(599), u64::MAX]), [], "no tables");
}

#[test]
fn another_layout_is_not_known() {
    for (index, bytes) in [(402, 72), (442, 32), (400, 216), (440, 0)] {
        let mut words = handle(0);
        words[index] = bytes;
        assert!(!TABS.are_known(&TestMemory::of(&words)), "{index}: {bytes}");
    }
    assert!(!TABS.are_known(&TestMemory(Vec::new())));
}

#[test]
fn a_table_is_found_by_its_slots() {
    let words = handle(FLAGS_WRITTEN);
    let (memory, mut slots) = (TestMemory::of(&words), Vec::new());
    tables::add_slots(BASE, &memory.0, &mut slots);
    assert_eq!(slots, [at(SLOT)]);
    assert_eq!(tables::table_of(&memory, at(SLOT)), Some(at(TABLE)));
    let mut endless = words.clone();
    for slot in (0..600).step_by(4) {
        endless[slot + 3] = at(slot);
    }
    assert_eq!(tables::table_of(&TestMemory::of(&endless), at(400)), None, "no table has so many slots");
}

/// Makes slots and layers of random words, which then pass the checks by chance often enough.
fn shape_as_handles(words: &mut [u64]) {
    for slot in (4..256).step_by(4) {
        (words[slot + 1], words[slot + 3]) = (0, at(slot));
        words[slot] = at(260 + 16 * (words[slot] as usize % 8));
    }
    words[1..4].fill(0);
    for (index, layer) in (260..388).step_by(16).enumerate() {
        let tab = if index % 2 == 0 { TABS.perlio } else { TABS.unix };
        (words[layer], words[layer + 1]) = (at(260 + 16 * (words[layer] as usize % 9)), tab);
        words[layer + 3] = at(4 + 4 * (words[layer + 3] as usize % 8));
        words[layer + 8] %= 8192;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_memory_is_handled(mut words in hostile_words(600), is_shaped in any::<bool>()) {
        if is_shaped {
            shape_as_handles(&mut words);
        }
        let memory = TestMemory::of(&words);
        let tables: BTreeSet<u64> = (BASE..BASE + 8 * 590).step_by(8).collect();
        let perl = PerlHandles::new(u32::MAX, TABS);
        for one in stream_buffer::buffers(perl.read_tables(&memory, &tables, PENDING_KEPT)) {
            prop_assert_eq!(one.pending.len() as u64, one.pending_bytes.min(256));
            prop_assert_eq!(one.unread.len() as u64, one.unread_bytes.min(64));
            prop_assert!(one.fd >= 0 && one.pending_bytes.max(one.unread_bytes) <= 16 * MAX_BUFFER);
        }
        for slot in &tables {
            tables::table_of(&memory, *slot);
            perl.layers.descriptor(&memory, *slot, memory.u64(*slot).unwrap_or(0));
        }
        prop_assert_eq!(perl.buffers(&memory), [], "there is no such process to search");
    }
}
