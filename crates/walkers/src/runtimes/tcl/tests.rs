//! Tests on memory with Tcl's structures, also damaged ones.

use proptest::prelude::*;
use weir_model::Mode;

use super::layout::TclLayout;
use super::{ReadLimits, TclChannels, candidates, channel, channels};
use crate::Walker;
use crate::copied_memory::MAX_BUFFER;
use crate::known_objects::KnownObjects;
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

/// Returns a channel of descriptor 7 with "abc" in the buffer that is being filled, as Tcl 8.6.13 lays it out.
fn words() -> Vec<u64> {
    words_of(&of_8_6()[0])
}

fn words_of(layout: &TclLayout) -> Vec<u64> {
    let mut words = vec![0; 130];
    words[THREAD + 1] = at(STATE);
    for mark in layout.marks {
        words[THREAD + mark / 8] |= 1 << (8 * (mark % 8));
    }
    (words[STATE + 12], words[STATE + 21]) = (at(SECOND), 4096);
    (words[STATE + layout.top / 8], words[STATE + layout.bottom() / 8]) = (at(CHANNEL), at(CHANNEL));
    words[CHANNEL..CHANNEL + 3].copy_from_slice(&[at(STATE), at(FILE), at(TYPE)]);
    words[FILE..FILE + 2].copy_from_slice(&[at(CHANNEL), 7]);
    (words[TYPE], words[NAME]) = (at(NAME), u64::from_le_bytes(*b"file\0\0\0\0"));
    for (buffer, text) in [(FIRST, b"12345678"), (SECOND, b"abcdefgh")] {
        match layout.wide {
            false => words[buffer..buffer + 3].copy_from_slice(&[1 | 19 << 32, 16 | 40 << 32, 0]),
            true => words[buffer..buffer + 5].copy_from_slice(&[1, 19, 16, 40, 0]),
        }
        // Behind the head and 16 unused bytes.
        words[buffer + layout.head_bytes() / 8 + 2] = u64::from_le_bytes(*text);
    }
    words
}

fn of_8_6() -> &'static [TclLayout] {
    TclLayout::of_library("libtcl8.6.so")
}

fn all_layouts() -> impl Iterator<Item = &'static TclLayout> {
    of_8_6().iter().chain(TclLayout::of_library("libtcl9.0.so"))
}

fn tcl() -> TclChannels {
    tcl_of(&of_8_6()[0])
}

fn tcl_of(layout: &'static TclLayout) -> TclChannels {
    let layouts = std::slice::from_ref(layout);
    let threads = KnownObjects::of([(at(THREAD), 0)]);
    TclChannels { pid: u32::MAX, layouts, threads: threads.into() }
}

fn pending(words: &[u64]) -> Vec<(i32, Vec<u8>)> {
    pending_of(&of_8_6()[0], words)
}

fn pending_of(layout: &'static TclLayout, words: &[u64]) -> Vec<(i32, Vec<u8>)> {
    let found = tcl_of(layout).pending(&TestMemory::of(words));
    found.into_iter().map(|one| (one.fd, one.bytes)).collect()
}

#[test]
fn a_channel_of_each_version() {
    for layout in all_layouts() {
        let memory = TestMemory::of(&words_of(layout));
        assert_eq!(candidates(layout, BASE, &memory.0).collect::<Vec<_>>(), [at(THREAD)], "{layout:?}");
        assert_eq!(channels(&memory, layout, at(THREAD), &ReadLimits::new()), [at(STATE)], "{layout:?}");
        assert_eq!(pending_of(layout, &words_of(layout)), [(7, b"abc".to_vec())], "{layout:?}");
        let others = all_layouts().filter(|one| one.top != layout.top);
        for other in others {
            assert!(
                channels(&memory, other, at(THREAD), &ReadLimits::new()).is_empty(),
                "{layout:?} as {other:?}"
            );
        }
        let mut queued = words_of(layout);
        queued[STATE + 13] = at(FIRST);
        assert_eq!(pending_of(layout, &queued), [(7, b"123abc".to_vec())], "the queue comes first");
        let found = tcl_of(layout).pending(&TestMemory::of(&queued));
        assert!(found[0].drain_stores.is_empty(), "Tcl goes on with the queue");
    }
    for name in ["libtcl8.5.so", "libtcl8.7.so", "libtclx8.6.so", "libtcl.so"] {
        assert_eq!(TclLayout::of_library(name), [], "{name}");
    }
}

#[test]
fn modes() {
    for layout in all_layouts() {
        let flags = [(0, Mode::Full), (layout.by_line, Mode::Line), (layout.unbuffered(), Mode::None)];
        for (flags, mode) in flags {
            let mut words = words_of(layout);
            words[STATE + 1] = flags as u64;
            let found = tcl_of(layout).buffers(&TestMemory::of(&words));
            assert_eq!(found[0].mode, Some(mode), "{layout:?}");
        }
    }
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
fn a_socket_of_tcl_9() {
    let layout = &TclLayout::of_library("libtcl9.1.so")[0];
    let mut words = words_of(layout);
    words[NAME] = u64::from_le_bytes(*b"tcp\0\0\0\0\0");
    words[FILE + 1..FILE + 4].copy_from_slice(&[0, 0, 9]);
    assert_eq!(pending_of(layout, &words), [(9, b"abc".to_vec())]);
}

#[test]
fn drained_as_tcl_flushes() {
    for layout in all_layouts() {
        let mut memory = TestMemory::of(&words_of(layout));
        let one = tcl_of(layout).pending(&memory).remove(0);
        let mut put = |stores: Vec<crate::MemoryStore>| {
            for store in stores {
                let start = (store.address - BASE) as usize;
                memory.0[start..start + store.bytes.len()].copy_from_slice(&store.bytes);
            }
            tcl_of(layout).pending(&memory).into_iter().map(|one| one.bytes).collect::<Vec<_>>()
        };
        assert_eq!(put(one.partial_drain(2).unwrap()), [b"c".to_vec()], "{layout:?}");
        assert_eq!(put(one.drain_stores), Vec::<Vec<u8>>::new(), "{layout:?}");
    }
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
    assert_eq!(channels(&TestMemory::of(&words), &of_8_6()[0], at(THREAD), &ReadLimits::new()), [at(STATE)]);
}

#[test]
fn bytes_of_stacked_channels_are_only_counted() {
    let mut words = words();
    words[STATE + 25] = at(110);
    words[110] = at(STATE);
    assert_eq!(pending(&words), []);
    assert_eq!(tcl().buffers(&TestMemory::of(&words))[0].pending_bytes, 3);
}

/// Memory that counts its reads.
struct CountedMemory(TestMemory, std::cell::Cell<usize>);

impl weir_sys::memory::Memory for CountedMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.1.set(self.1.get() + 1);
        self.0.read(address, buffer)
    }
}

#[test]
fn lists_that_share_their_ends_are_read_once() {
    let layout = &of_8_6()[0];
    let (states, threads) = (1000, 1000);
    let mut words = vec![0; 30 * states + threads];
    for state in 0..states {
        let own = 30 * state;
        (words[own + layout.top / 8], words[own + layout.bottom() / 8]) = (at(own), at(own));
        words[own] = at(own);
        words[own + layout.next() / 8] = if state + 1 < states { at(own + 30) } else { 0 };
    }
    words[30 * states..].fill(at(0));
    let memory = CountedMemory(TestMemory::of(&words), 0.into());
    let left = ReadLimits::new();
    let found =
        (0..threads).map(|thread| channels(&memory, layout, at(30 * states + thread - 1), &left).len());
    assert_eq!(found.sum::<usize>(), crate::copied_memory::MAX_STREAMS);
    assert!(memory.1.get() < 4 * crate::copied_memory::MAX_STREAMS, "{} reads", memory.1.get());
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
        for layout in all_layouts() {
            for state in (BASE..BASE + 8 * 420).step_by(8) {
                let left = ReadLimits::new();
                channels(&memory, layout, state, &left);
                channel::is_stacked(&memory, layout, state);
                if let Some(one) = channel::stream(&memory, layout, state, (MAX_BUFFER, &left)) {
                    prop_assert!(one.buffer.fd >= 0 && one.buffer.unread.len() <= 64);
                    prop_assert_eq!(one.buffer.pending.len() as u64, one.buffer.pending_bytes);
                }
            }
            candidates(layout, BASE, &memory.0).for_each(drop);
        }
    }
}
