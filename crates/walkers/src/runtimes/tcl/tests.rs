//! Tests on memory with Tcl's structures, also damaged ones.

use proptest::prelude::*;

use super::{TclChannels, candidates, channel, channels};
use crate::Walker;
use crate::copied_memory::BUFFER_MOST;
use crate::tests::{BASE, TestMemory, hostile_words};

/// Indices of the words of a thread's data, a state, its channel, the channel's file, type and name, and two buffers.
const THREAD: usize = 2;
const STATE: usize = 20;
const CHANNEL: usize = 60;
const FILE: usize = 70;
const TYPE: usize = 80;
const NAME: usize = 81;
const FIRST: usize = 90;
const SECOND: usize = 100;

fn at(index: usize) -> u64 {
    BASE + 8 * index as u64
}

/// Returns a channel of descriptor 7 with "abc" in the buffer that is being filled.
fn words() -> Vec<u64> {
    let mut words = vec![0; 130];
    words[THREAD + 1] = at(STATE);
    (words[THREAD + 3], words[THREAD + 5], words[THREAD + 7]) = (1, 1, 1);
    (words[STATE + 12], words[STATE + 21]) = (at(SECOND), 4096);
    (words[STATE + 25], words[STATE + 26]) = (at(CHANNEL), at(CHANNEL));
    words[CHANNEL..CHANNEL + 3].copy_from_slice(&[at(STATE), at(FILE), at(TYPE)]);
    words[FILE..FILE + 2].copy_from_slice(&[at(CHANNEL), 7]);
    (words[TYPE], words[NAME]) = (at(NAME), u64::from_le_bytes(*b"file\0\0\0\0"));
    for (buffer, text) in [(FIRST, b"12345678"), (SECOND, b"abcdefgh")] {
        words[buffer..buffer + 3].copy_from_slice(&[1 | 19 << 32, 16 | 40 << 32, 0]);
        words[buffer + 5] = u64::from_le_bytes(*text);
    }
    words
}

fn tcl() -> TclChannels {
    TclChannels {
        pid: u32::MAX,
        threads: [at(THREAD)].into_iter().collect::<std::collections::BTreeSet<_>>().into(),
    }
}

fn pending(words: &[u64]) -> Vec<(i32, Vec<u8>)> {
    tcl().pending(&TestMemory::of(words)).into_iter().map(|one| (one.fd, one.bytes)).collect()
}

#[test]
fn a_channel() {
    let memory = TestMemory::of(&words());
    assert_eq!(candidates(BASE, &memory.0).collect::<Vec<_>>(), [at(THREAD)]);
    assert_eq!(channels(&memory, at(THREAD)), [at(STATE)]);
    assert_eq!(pending(&words()), [(7, b"abc".to_vec())]);
    let mut queued = words();
    queued[STATE + 13] = at(FIRST);
    assert_eq!(pending(&queued), [(7, b"123abc".to_vec())], "the queue comes first");
    assert!(
        tcl().pending(&TestMemory::of(&queued))[0].drain_stores.is_empty(),
        "TclChannels goes on with the queue"
    );
}

#[test]
fn descriptors_by_type() {
    for (name, file, fd) in [
        (b"tty\0\0\0\0\0", [7, 0], 7),
        (b"pipe\0\0\0\0", [8, 5], 4),
        (b"pipe\0\0\0\0", [8, 0], 7),
        (b"tcp\0\0\0\0\0", [0, 9], 9),
    ] {
        let mut words = words();
        words[NAME] = u64::from_le_bytes(*name);
        words[FILE + 1..FILE + 3].copy_from_slice(&file);
        assert_eq!(pending(&words), [(fd, b"abc".to_vec())]);
    }
}

#[test]
fn drained_as_tcl_flushes() {
    let mut memory = TestMemory::of(&words());
    let one = tcl().pending(&memory).remove(0);
    let mut put = |stores: Vec<crate::MemoryStore>| {
        for store in stores {
            let start = (store.address - BASE) as usize;
            memory.0[start..start + store.bytes.len()].copy_from_slice(&store.bytes);
        }
        tcl().pending(&memory).into_iter().map(|one| one.bytes).collect::<Vec<_>>()
    };
    assert_eq!(put(one.partial_drain(2).unwrap()), [b"c".to_vec()]);
    assert_eq!(put(one.drain_stores), Vec::<Vec<u8>>::new());
}

#[test]
fn damaged_structures_are_left_out() {
    let changes = [
        (STATE + 25, at(FILE), "a channel of another state"),
        (STATE + 26, 0, "no channel"),
        (STATE + 21, u64::MAX, "a size below nothing"),
        (FILE, at(FILE), "the file of another channel"),
        (FILE + 1, u64::MAX, "a closed descriptor"),
        (NAME, u64::from_le_bytes(*b"zlib\0\0\0\0"), "a type without a descriptor"),
        (SECOND, 1 | 50 << 32, "more than the buffer takes"),
        (SECOND, 1 | 15 << 32, "less than nothing"),
        (SECOND + 2, at(SECOND), "a ring of buffers"),
        (STATE + 12, 16, "a buffer that is not there"),
    ];
    for (index, value, why) in changes {
        let mut words = words();
        words[index] = value;
        assert_eq!(pending(&words), [], "{why}");
    }
}

#[test]
fn a_list_in_a_ring_ends() {
    let mut words = words();
    words[STATE + 27] = at(STATE);
    assert_eq!(channels(&TestMemory::of(&words), at(THREAD)), [at(STATE)]);
}

#[test]
fn bytes_of_stacked_channels_are_only_counted() {
    let mut words = words();
    words[STATE + 25] = at(110);
    words[110] = at(STATE);
    assert_eq!(pending(&words), []);
    assert_eq!(tcl().buffers(&TestMemory::of(&words))[0].pending_bytes, 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_memory_is_handled(mut words in hostile_words(400)) {
        for state in (0..200).step_by(40) {
            (words[state + 25], words[state + 26]) = (at(300 + state / 40 * 8), at(300 + state / 40 * 8));
            words[300 + state / 40 * 8] = at(state);
        }
        let memory = TestMemory::of(&words);
        for state in (BASE..BASE + 8 * 420).step_by(8) {
            channels(&memory, state);
            channel::is_stacked(&memory, state);
            if let Some(one) = channel::stream(&memory, state, BUFFER_MOST) {
                prop_assert!(one.buffer.fd >= 0 && one.buffer.unread.len() <= 64);
                prop_assert_eq!(one.buffer.pending.len() as u64, one.buffer.pending_bytes);
            }
        }
        candidates(BASE, &memory.0).for_each(drop);
    }
}
