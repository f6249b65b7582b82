//! Tests on memory with Rust's structures, also damaged ones.

use proptest::prelude::*;

use super::layouts::{BufferTarget, RustLayout, RustLayouts};
use super::validate::BufferValidator;
use crate::copied_memory::MAX_BUFFER;
use crate::tests::{BASE, TestMemory, hostile_words};

const WRITER: RustLayout = RustLayout {
    inner: BufferTarget::Descriptor,
    inner_at: 28,
    capacity: 0,
    data: 8,
    length: 16,
    panicked: Some(24),
    used: None,
};
const STDOUT: RustLayout = RustLayout { inner: BufferTarget::Stdout, inner_at: 32, ..WRITER };
const READER: RustLayout = RustLayout {
    inner: BufferTarget::Descriptor,
    inner_at: 40,
    capacity: 8,
    data: 0,
    length: 24,
    panicked: None,
    used: Some(16),
};

/// Returns a writer at word 0 with 5 pending bytes in a buffer of 256 bytes at word 40, which malloc returned.
fn writer() -> Vec<u64> {
    let mut words = vec![0; 80];
    words[..4].copy_from_slice(&[256, BASE + 8 * 40, 5, 3 << 32]);
    (words[39], words[73]) = (272 | 1, 1);
    words[40] = u64::from_le_bytes(*b"hello...");
    words
}

fn pending(words: &[u64]) -> Option<(i32, Vec<u8>)> {
    let (memory, layouts) =
        (TestMemory::of(words), RustLayouts { all: vec![WRITER], ..RustLayouts::default() });
    let open_for = |fd, writes| [1, 3].contains(&fd) && writes;
    let validator =
        BufferValidator { memory: &memory, layouts: &layouts, stdout: None, open_for: &open_for, kept: 100 };
    validator.candidate(BASE, &WRITER).map(|one| (one.stream.buffer.fd, one.stream.buffer.pending))
}

#[test]
fn a_writer_is_accepted_if_all_its_fields_agree() {
    assert_eq!(pending(&writer()), Some((3, b"hello".to_vec())));
    let wrong = [
        (0, 0),           // no buffer
        (0, 4),           // more pending than there is room
        (0, 1 << 40),     // too large
        (0, 320),         // not what malloc gave out
        (0, 250),         // of no usual size
        (1, 1),           // a buffer that is nowhere
        (1, BASE + 8),    // one that malloc did not give out
        (2, 257),         // more pending than there is room
        (3, 3 << 32 | 2), // a flag that is none
        (3, 4 << 32),     // a descriptor that is not open
        (3, 1 << 32),     // standard output, which nobody owns
        (3, u64::MAX),    // none
        (39, 256 | 1),    // a smaller piece
        (39, 320 | 1),    // a larger one
        (73, 0),          // one that was freed
    ];
    for (word, value) in wrong {
        let mut words = writer();
        words[word] = value;
        assert_eq!(pending(&words), None, "{word}: {value:#x}");
    }
}

#[test]
fn only_whole_names_of_types_describe_writers() {
    let of = |names: &str| {
        let found = super::writers_in(names.as_bytes());
        (found.files, found.others)
    };
    assert_eq!(of("BufWriter<std::fs::File>\0"), (true, false));
    assert_eq!(of("x\0flush<std::io::buffered::BufWriter<std::fs::File>>\0"), (false, false), "a function");
    assert_eq!(of("BufWriter<std::fs::File> as core::fmt::Write>::{vtable}\0"), (false, false));
    let boxed = "BufWriter<alloc::boxed::Box<dyn std::io::Write, alloc::alloc::Global>>\0";
    assert_eq!(of(boxed), (false, true));
    assert_eq!(of(&["BufWriter<std::fs::File>\0", boxed].concat()), (true, true));
    for name in ["BufWriter<std::io::stdio::StdoutRaw>\0", "BufWriter<W>\0", "BufWriter<"] {
        assert_eq!(of(name), (false, false), "{name}");
    }
    assert_eq!(of("BufWriter<alloc::vec::Vec<u8, alloc::alloc::Global>>\0"), (false, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_memory_is_handled(words in hostile_words(400)) {
        let layouts = RustLayouts { all: vec![WRITER, STDOUT, READER], lines: true, ..RustLayouts::default() };
        let memory = TestMemory::of(&words);
        let stdout = Some(BASE + 800);
        let validator = BufferValidator { memory: &memory, layouts: &layouts, stdout, open_for: &|_, _| true, kept: 256 };
        for layout in &layouts.all {
            let seen = layout.candidates(&memory.0).filter_map(|at| validator.candidate(BASE + at as u64, layout));
            for one in seen.map(|one| one.stream.buffer) {
                prop_assert!(one.pending_bytes.max(one.unread_bytes) <= one.buffer_bytes);
                prop_assert!(one.buffer_bytes <= MAX_BUFFER && one.pending.len() <= 256 && one.fd >= 0);
            }
        }
    }
}
