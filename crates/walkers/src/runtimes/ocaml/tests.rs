//! Tests on memory with channels of OCaml 4 and 5, also damaged ones.

use proptest::prelude::*;
use weir_sys::memory::Memory;

use super::{BUFFER_BYTES, BufferPlace, LAYOUTS, OcamlChannels};
use crate::tests::{BASE, TestMemory, hostile_words};
use crate::{PendingBytes, Walker};

/// The address of the first and of the second channel.
const FIRST: u64 = BASE + 64;
const SECOND: u64 = FIRST + 66_000;

fn set(memory: &mut TestMemory, address: u64, bytes: &[u8]) {
    let at = (address - BASE) as usize;
    memory.0[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns the address of a channel's buffer.
fn data_of(version: usize, at: u64) -> u64 {
    match LAYOUTS[version].buffer {
        BufferPlace::Inside(offset) => at + offset,
        BufferPlace::Pointer(_) => at + 256,
    }
}

/// Returns a list of two output channels: of descriptor 7 with the bytes "abc", and of descriptor 1 with "x".
fn channels(version: usize) -> TestMemory {
    let layout = &LAYOUTS[version];
    let mut memory = TestMemory(vec![0; 140_000]);
    set(&mut memory, BASE, &FIRST.to_le_bytes());
    for (at, fd, text, next) in [(FIRST, 7u64, &b"abc"[..], SECOND), (SECOND, 1, b"x", 0)] {
        let data = data_of(version, at);
        if let BufferPlace::Pointer(offset) = layout.buffer {
            set(&mut memory, at + offset as u64, &data.to_le_bytes());
        }
        let words = [fd, 1000, data + BUFFER_BYTES, data + text.len() as u64, 0];
        for (index, word) in words.into_iter().enumerate() {
            set(&mut memory, at + 8 * index as u64, &word.to_le_bytes());
        }
        set(&mut memory, at + layout.next as u64, &next.to_le_bytes());
        set(&mut memory, data, text);
    }
    memory
}

fn pending(memory: &dyn Memory) -> Vec<PendingBytes> {
    OcamlChannels { list: BASE }.pending(memory)
}

#[test]
fn the_channels_of_each_version_in_the_order_of_their_opening() {
    for version in 0..LAYOUTS.len() {
        let mut memory = channels(version);
        let found = pending(&memory);
        let shown: Vec<_> = found.iter().map(|one| (one.fd, one.bytes.as_slice())).collect();
        assert_eq!(shown, [(1, &b"x"[..]), (7, b"abc")]);
        let stores = found[1].partial_drain(2).expect("a part stays");
        stores.iter().chain(&found[0].drain_stores).for_each(|one| set(&mut memory, one.address, &one.bytes));
        let left = pending(&memory);
        assert_eq!((left.len(), left[0].fd, left[0].bytes.as_slice()), (1, 7, &b"c"[..]));
        let position = |at| memory.u64(at + super::OFFSET as u64);
        assert_eq!((position(FIRST), position(SECOND)), (Some(1002), Some(1001)));
    }
}

#[test]
fn a_channel_in_use_a_closed_one_and_one_for_input() {
    let mut memory = channels(1);
    set(&mut memory, FIRST + super::MUTEX as u64, &1u64.to_le_bytes());
    assert_eq!(pending(&memory)[1].locked, Some(true));
    set(&mut memory, FIRST, &u64::MAX.to_le_bytes());
    assert_eq!(pending(&memory).len(), 1, "the descriptor of a closed channel is -1");
    let data = data_of(1, SECOND);
    set(&mut memory, SECOND + super::MAX as u64, &(data + 4).to_le_bytes());
    let found = OcamlChannels { list: BASE }.buffers(&memory);
    assert_eq!((found[0].pending_bytes, found[0].unread_bytes), (0, 3));
}

#[test]
fn a_program_with_other_channels_is_not_read() {
    let mut memory = channels(0);
    assert!(OcamlChannels { list: BASE }.is_known(&memory));
    for at in [FIRST, SECOND] {
        set(&mut memory, at + super::END as u64, &(at + 4096).to_le_bytes());
    }
    assert!(!OcamlChannels { list: BASE }.is_known(&memory) && pending(&memory).is_empty());
    assert!(OcamlChannels { list: BASE + 8 }.is_known(&memory), "no channel yet");
}

#[test]
fn a_channel_without_a_buffer_is_passed_over() {
    let mut memory = channels(2);
    set(&mut memory, FIRST + 112, &[0; 8]);
    let found = pending(&memory);
    assert_eq!((found.len(), found[0].fd), (1, 1));
}

#[test]
fn a_list_that_is_a_ring_ends() {
    let mut memory = channels(0);
    set(&mut memory, SECOND + LAYOUTS[0].next as u64, &FIRST.to_le_bytes());
    assert_eq!(pending(&memory).len(), 2, "each channel counts once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_memory_is_handled(words in hostile_words(600)) {
        let memory = TestMemory::of(&words);
        for at in (BASE..BASE + 8 * 600).step_by(8 * 7) {
            let found = OcamlChannels { list: at }.buffers(&memory);
            prop_assert!(found.iter().all(|one| one.fd >= 0 && one.pending_bytes <= BUFFER_BYTES));
        }
    }
}
