//! Tests on memory with Go's structures, also damaged ones.

use proptest::prelude::*;
use weir_sys::memory::Memory;

use super::bufio::{BufioType, BufioValidator};
use super::functions::GoFunctions;
use super::itabs::{GoItabs, GoSections, ItabSection};
use super::live_objects::{LiveObjects, Use};
use super::suspended::signal_registers;
use super::{stacks, suspended};
use crate::ThreadRegisters;
use crate::copied_memory::MAX_BUFFER;
use crate::fuzzing::NO_PROCESS;
use crate::suspended_flush::STACK_POINTER;
use crate::tests::{BASE, TestMemory, hostile_words};

/// Returns a Writer with 5 pending bytes at word 0, its file at word 20, its buffer at word 40. Its itab is at
/// 0x5000.
fn writer() -> Vec<u64> {
    let at = |word: u64| BASE + 8 * word;
    let mut words = vec![0; 64];
    words[..8].copy_from_slice(&[0, 0, at(40), 64, 64, 5, 0x5000, at(20)]);
    (words[20], words[24]) = (at(22), 3);
    words[40] = u64::from_le_bytes(*b"hello...");
    words
}

fn tables() -> GoItabs {
    GoItabs { writers: vec![0x5000], readers: vec![0x5100], file_writer: Some(0x5000) }
}

fn pending(words: &[u64]) -> Option<(i32, Vec<u8>)> {
    let (memory, tables) = (TestMemory::of(words), tables());
    let open_for = |fd, writes| fd == 3 && writes;
    let validator = BufioValidator { memory: &memory, tables: &tables, open_for: &open_for, kept: 100 };
    assert_eq!(validator.around(BASE + 48, 0x5000).collect::<Vec<_>>(), [(BASE, BufioType::Writer)]);
    validator.stream(BASE, BufioType::Writer).map(|one| (one.buffer.fd, one.buffer.pending))
}

#[test]
fn a_writer_is_accepted_if_all_its_fields_agree() {
    assert_eq!(pending(&writer()), Some((3, b"hello".to_vec())));
    let wrong = [
        (1, 1),         // half an error
        (2, 1),         // a buffer that is nowhere
        (3, 0),         // without a size
        (3, 65),        // larger than its capacity
        (4, 1 << 40),   // too large
        (3, 1 << 20),   // the same
        (5, 65),        // more pending than there is room
        (6, 0x5100),    // a reader
        (7, u64::MAX),  // no file
        (20, 22),       // a file without its inner part
        (24, 4),        // a descriptor that is not open
        (24, u64::MAX), // a file that was closed
    ];
    for (word, value) in wrong {
        let mut words = writer();
        words[word] = value;
        assert_eq!(pending(&words), None, "{word}: {value:#x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_memory_is_handled(mut words in hostile_words(400), itab_words in proptest::collection::vec(0..400usize, 60)) {
        for index in itab_words {
            words[index] = 0x5000 + 0x100 * (index as u64 % 2);
        }
        let (memory, tables) = (TestMemory::of(&words), tables());
        let validator = BufioValidator { memory: &memory, tables: &tables, open_for: &|_, _| true, kept: 256 };
        for (index, value) in words.iter().enumerate() {
            let _goroutines = stacks::read(&memory, Some(BASE + 8 * index as u64));
            let _list = stacks::find_list(&memory, BASE + 8 * index as u64, *value);
            for (at, kind) in validator.around(BASE + 8 * index as u64, *value) {
                let Some(one) = validator.stream(at, kind) else { continue };
                let one = one.buffer;
                prop_assert!(one.pending_bytes.max(one.unread_bytes) <= one.buffer_bytes);
                prop_assert!(one.buffer_bytes <= MAX_BUFFER && one.pending.len() <= 256 && one.fd >= 0);
            }
        }
        let addresses: Vec<u64> = (0..words.len() as u64).map(|index| BASE + 8 * index).collect();
        let live = LiveObjects::search(NO_PROCESS, &memory, Some(BASE + 8 * (words[1] % 400)), &addresses);
        let used = addresses.iter().filter(|at| live.use_of(&memory, **at) == Use::Used).count();
        prop_assert!(used <= addresses.len());
        let functions = GoFunctions::read(&memory, &words);
        let threads = words.windows(17).step_by(17).map(|part| ThreadRegisters {
            general: std::array::from_fn(|number| part[number]),
            next: part[16],
        });
        let found = suspended::find(&memory, functions.as_ref(), &live, &threads.collect::<Vec<_>>(), &addresses);
        prop_assert!(found.flushes.len() <= live.goroutines.len());
        for itabs in [ItabSection::Links(BASE, 8 * 300), ItabSection::Types(BASE, 8 * 400)] {
            let parts = GoSections { functions: words[0], itabs, data: vec![(BASE, 8 * 400)], is_profiled: false };
            if let Some(found) = GoItabs::of(&memory, &parts, 0) {
                prop_assert!(found.writers.len() + found.readers.len() <= 600);
            }
        }
    }
}

/// Two goroutines at words 20 and 40, an array of both at word 60, and a slice of it at word 5.
fn listed_goroutines() -> Vec<u64> {
    let at = |word: u64| BASE + 8 * word;
    let mut words = vec![0; 80];
    for goroutine in [20, 40] {
        (words[goroutine], words[goroutine + 1]) = (0x1000, 0x2000);
        words[goroutine + 9] = at(goroutine as u64);
    }
    (words[60], words[61]) = (at(20), at(40));
    (words[5], words[6], words[7]) = (at(60), 2, 4);
    words
}

#[test]
fn the_list_of_goroutines_is_found_without_symbols() {
    let find = |words: &[u64]| stacks::find_list(&TestMemory::of(words), BASE, BASE + 8 * 16);
    let words = listed_goroutines();
    let list = BASE + 8 * 5;
    assert_eq!(find(&words), Some(list));
    assert_eq!(stacks::read(&TestMemory::of(&words), Some(list)).len(), 2);
    let wrong = [
        (6, 1),             // the runtime has more
        (6, 3),             // one that is no goroutine
        (7, 1),             // more elements than there is room
        (29, 0),            // a goroutine that does not name itself
        (61, 8),            // an element that is nowhere
        (5, BASE + 8 * 79), // an array that ends with the memory
    ];
    for (word, value) in wrong {
        let mut words = words.clone();
        words[word] = value;
        assert_eq!(find(&words), None, "{word}: {value:#x}");
    }
    let mut twice = words.clone();
    twice.copy_within(5..8, 10);
    assert_eq!(find(&twice), None, "nothing tells which one is the list");
    let memory = TestMemory::of(&words);
    assert_eq!(
        [(0, 0), (8, 0), (0, u64::MAX)].map(|(start, end)| stacks::find_list(&memory, start, end)),
        [None; 3]
    );
}

#[test]
fn a_list_of_tables_out_of_bounds_is_none() {
    let nothing: &dyn Memory = &TestMemory(Vec::new());
    let parts = GoSections {
        functions: 8,
        itabs: ItabSection::Links(u64::MAX - 7, u64::MAX),
        data: vec![(u64::MAX, u64::MAX), (0, 64)],
        is_profiled: false,
    };
    assert_eq!(GoItabs::of(nothing, &parts, u64::MAX / 2), None);
}

/// The memory of a program of Go 1.27: a word for each of `moduledata`'s fields, and a section of types with three itabs behind
/// them. The second one has two methods, the third one none.
fn types_with_itabs() -> (TestMemory, GoSections) {
    let at = |word: u64| BASE + 8 * word;
    let (types, itabs) = (50, 100);
    let mut words = vec![0; 256];
    (words[0], words[37], words[38], words[39]) = (0x4000, at(types), 8 * 40, at(150));
    (words[40], words[41]) = (8 * (itabs - types), 8 * (4 + 5 + 4));
    // Names: flags, length, text.
    let mut name = |word: usize, text: &str| {
        let bytes: Vec<u8> = [0, text.len() as u8].into_iter().chain(text.bytes()).chain([0; 8]).collect();
        for (index, part) in bytes.as_chunks().0.iter().enumerate() {
            words[word + index] = u64::from_le_bytes(*part);
        }
    };
    ["*io.Writer", "*io.Reader", "*os.File"]
        .into_iter()
        .enumerate()
        .for_each(|(index, text)| name(51 + 4 * index, text));
    // Two interfaces, with one and two methods, and a type, with the offsets of their names.
    for (word, name, methods) in [(160, 51, 1), (170, 55, 2), (180, 59, 0)] {
        words[word + 5] = 8 * (name - types);
        words[word + 8] = methods;
    }
    for (itab, interface, method) in [(100, 160, 1), (104, 170, 1), (109, 160, 0)] {
        (words[itab], words[itab + 1], words[itab + 3]) = (at(interface), at(180), method);
    }
    let itabs = ItabSection::Types(at(types), 8 * 100);
    (
        TestMemory::of(&words),
        GoSections { functions: 0x4000, itabs, data: vec![(BASE, 8 * 256)], is_profiled: false },
    )
}

#[test]
fn itabs_behind_the_types_are_found() {
    let (memory, parts) = types_with_itabs();
    let found = GoItabs::of(&memory, &parts, 0).expect("itabs");
    let at = |word: u64| BASE + 8 * word;
    assert_eq!((found.writers, found.readers), (vec![at(100), at(109)], vec![at(104)]));
    assert_eq!(found.file_writer, Some(at(100)));
}

#[test]
fn itabs_outside_of_the_types_are_none() {
    for (word, value) in [(37, BASE), (39, BASE + 8 * 151), (40, 8 * 95), (41, u64::MAX)] {
        let (memory, parts) = types_with_itabs();
        let mut words: Vec<u64> = memory.0.as_chunks().0.iter().map(|one| u64::from_le_bytes(*one)).collect();
        words[word] = value;
        assert_eq!(GoItabs::of(&TestMemory::of(&words), &parts, 0), None, "{word}");
    }
}

/// Returns a stack of 64 words with a `struct ucontext` at word 8, whose signal stack begins at an address.
fn stack_with_context(signal_stack: u64) -> Vec<u8> {
    let mut words = [0; 64];
    words[10] = signal_stack;
    words[12] = 4096;
    words[28..30].copy_from_slice(&[0x7000, 0x4000]);
    words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect()
}

#[test]
fn only_the_signal_of_this_stack_has_interrupted_the_thread() {
    let start = 0xc000_0000_0000;
    let registers = |signal_stack| signal_registers(&stack_with_context(signal_stack), start);
    let interrupted = registers(start - 1024).expect("the thread is on the signal's stack");
    assert_eq!((interrupted.general[STACK_POINTER], interrupted.next), (0x7000, 0x4000));
    assert_eq!(registers(start + 64), None, "the context of another stack that follows");
}
