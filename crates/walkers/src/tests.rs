//! Hostile memory: a walker ends, stays within bounds and rejects values that change, whatever a process has in its
//! memory.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use weir_model::trace::Buffer;
use weir_sys::maps::{self, MappingKind};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::copied_memory::{MAX_BUFFER, MAX_STREAMS, PENDING_KEPT, UNREAD_KEPT, structure};
use crate::elf_image::image;
use crate::fuzzing::{self, CraftedMemory};
use crate::image_memory::ImageMemory;
use crate::list_head;
use crate::runtimes::cpp;
use crate::runtimes::glibc::{self, GlibcStreams};
use crate::runtimes::libweir;
use crate::runtimes::musl::list_search::MuslListSearch;
use crate::runtimes::musl::{self, MuslStreams, OpenFileList};
use crate::runtimes::rust::RustStdout;

pub(crate) const BASE: u64 = 0x10000;

/// Memory that begins at [`BASE`].
pub(crate) struct TestMemory(pub Vec<u8>);

impl TestMemory {
    pub fn of(words: &[u64]) -> TestMemory {
        TestMemory(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    fn set(&mut self, address: u64, word: u64) {
        let at = (address - BASE) as usize;
        self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

impl Memory for TestMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(at) = address.checked_sub(BASE).filter(|at| *at < self.0.len() as u64) else { return 0 };
        let from = &self.0[at as usize..];
        let bytes = from.len().min(into.len());
        into[..bytes].copy_from_slice(&from[..bytes]);
        bytes
    }
}

/// Returns words that are likely to break a walker: pointers into the memory itself, magic numbers, small and huge
/// numbers.
pub(crate) fn hostile_words(count: usize) -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        4 => (0..count as u64).prop_map(|index| BASE + 8 * index),
        2 => (0..0x1000u64).prop_map(|flags| 0xfbad_0000 | flags),
        1 => Just(1024),
        1 => Just(0x6d72_7473_7269_6577),
        1 => Just(0x6461_6568_7269_6577),
        2 => 0..64u64,
        1 => (0..3u64).prop_map(|fd| fd | 1 << 32),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ];
    proptest::collection::vec(word, count)
}

fn sound(found: &[Buffer]) {
    for one in found {
        assert_eq!(one.pending.len() as u64, one.pending_bytes.min(PENDING_KEPT));
        assert_eq!(one.unread.len() as u64, one.unread_bytes.min(UNREAD_KEPT));
        assert!(one.pending_bytes.max(one.unread_bytes) <= 5 * MAX_BUFFER && one.fd >= -1, "{one:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_memory_is_handled(words in hostile_words(600)) {
        let memory = TestMemory::of(&words);
        let area = || ImageMemory::crafted((BASE, BASE + 8 * 500), (BASE + 8 * 500, BASE + 8 * 600));
        for at in (BASE..BASE + 8 * 600).step_by(8 * 7) {
            sound(&GlibcStreams::at(at).buffers(&memory));
            sound(&RustStdout { stdout: at }.buffers(&memory));
            let others = [OpenFileList::Head(at), OpenFileList::Search(MuslListSearch { area: area() })];
            for others in others {
                sound(&MuslStreams { standard: vec![at, at + 8], others }.buffers(&memory));
            }
            if let Some(stream) = structure(&memory, at) {
                sound(&libweir::read(&memory, at, &stream, 4096, PENDING_KEPT).map(|one| one.buffer).into_iter().collect::<Vec<_>>());
            }
        }
        if let Some(glibc) = glibc::list_search::search(&memory, &area()) {
            sound(&glibc.buffers(&memory));
        }
        if let Some(musl) = musl::list_search::search(&memory, area()) {
            sound(&musl.buffers(&memory));
        }
    }

    #[test]
    fn a_file_that_is_no_elf_has_no_head(bytes in proptest::collection::vec(any::<u8>(), 0..3000), elf in any::<bool>()) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let start: &[u8] = if elf { b"\x7fELF\x02\x01\x01" } else { b"" };
        std::fs::write(file.path(), [start, &bytes].concat()).unwrap();
        prop_assert_eq!(list_head(file.path()), None);
    }
}

#[test]
fn files_of_other_machines_are_foreign() {
    for (class, order, foreign) in [(1, 1, true), (2, 2, true), (2, 1, false)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [b"\x7fELF".as_slice(), &[class, order], &[0; 100]].concat()).unwrap();
        assert_eq!(image(file.path()).is_some_and(|image| image.foreign), foreign);
    }
}

/// The code of a process begins in its first executable segment that the kernel maps. Some linkers make PT_PHDR executable too.
#[test]
fn the_code_begins_in_a_mapped_segment() {
    const HEADERS: usize = 64;
    const FLAGS: usize = HEADERS + 4;
    const PT_PHDR: u8 = 6;
    let regions = maps::regions(std::process::id());
    let library = regions.iter().find(|one| one.name().starts_with("libc.so")).expect("the C library");
    let MappingKind::File(path) = &library.kind else { panic!("no file") };
    let mut bytes = std::fs::read(path).expect("the file");
    assert_eq!(bytes[HEADERS], PT_PHDR);
    bytes[FLAGS] |= 1;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    assert!(list_head(path).is_some());
    assert_eq!(list_head(file.path()), list_head(path));
}

/// Returns fully buffered streams of glibc in a list, each with 5 pending bytes. The head is the first word.
fn glibc_streams(count: u64) -> TestMemory {
    let mut memory = TestMemory(vec![0; 4096]);
    memory.set(BASE, BASE + 256);
    for index in 0..count {
        let at = BASE + 256 * (index + 1);
        memory.set(at, 0xfbad_0800);
        for (field, value) in [(32, 3072), (40, 3077), (48, 3100), (56, 3072), (64, 3100)] {
            memory.set(at + field, BASE + value);
        }
        memory.set(at + 104, if index + 1 < count { at + 256 } else { 0 });
        memory.set(at + 112, index);
        memory.set(at + 216, BASE);
    }
    memory.0[3072..3077].copy_from_slice(b"hello");
    memory
}

fn pending(memory: &dyn Memory) -> Vec<(i32, Vec<u8>)> {
    GlibcStreams::at(BASE).buffers(memory).into_iter().map(|one| (one.fd, one.pending)).collect()
}

#[test]
fn a_list_in_a_ring_ends() {
    let mut memory = glibc_streams(3);
    let hello = |fd| (fd, b"hello".to_vec());
    assert_eq!(pending(&memory), [hello(0), hello(1), hello(2)]);
    memory.set(BASE + 256 * 3 + 104, BASE + 256);
    assert_eq!(pending(&memory), [hello(0), hello(1), hello(2)]);
    memory.set(BASE + 256 + 104, BASE + 256);
    assert_eq!(pending(&memory), [hello(0)]);
}

#[test]
fn a_stream_out_of_bounds_is_left_out() {
    for (field, value) in [(40, BASE + 3101), (40, BASE + 3071), (32, BASE), (64, u64::MAX), (56, 1 << 40)] {
        let mut memory = glibc_streams(3);
        memory.set(BASE + 512 + field, value);
        assert_eq!(pending(&memory).iter().map(|one| one.0).collect::<Vec<_>>(), [0, 2], "{field}: {value}");
    }
}

/// Memory in which the write pointer moves at each read, as in a program that writes during the snapshot.
struct Moving {
    memory: TestMemory,
    stops_after: u64,
    reads: AtomicU64,
    at: Cell<u64>,
}

impl Memory for Moving {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let got = self.memory.read(address, into);
        if (BASE + 256..BASE + 512).contains(&address) && got >= 48 {
            let moved = self.reads.fetch_add(1, Ordering::Relaxed).min(self.stops_after) % 28;
            self.at.set(moved);
            into[40..48].copy_from_slice(&(BASE + 3072 + moved).to_le_bytes());
        }
        got
    }
}

#[test]
fn a_changing_stream_is_read_again_or_rejected() {
    let moving = |stops_after| Moving {
        memory: glibc_streams(1),
        stops_after,
        reads: AtomicU64::new(1),
        at: Cell::new(0),
    };
    let settles = moving(4);
    let found = GlibcStreams::at(BASE).buffers(&settles);
    assert_eq!((found[0].pending_bytes, settles.at.get()), (4, 4));
    assert_eq!(GlibcStreams::at(BASE).buffers(&moving(1000)), []);
}

/// Memory that counts its reads.
pub(crate) struct Counted {
    pub memory: TestMemory,
    pub reads: Cell<usize>,
}

impl Memory for Counted {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.reads.set(self.reads.get() + 1);
        self.memory.read(address, into)
    }
}

/// A hostile process can have thousands of pointers to long lists. The reads of all lists together have a limit.
#[test]
fn many_heads_of_long_lists_cost_no_more_than_one() {
    const COUNT: u64 = 2048;
    let streams = BASE + 8 * COUNT;
    let mut memory = TestMemory(vec![0; (8 * COUNT + 256 * (COUNT + 2)) as usize]);
    for index in 0..COUNT {
        let at = streams + 256 * index;
        // The list of glibc begins at any of its streams, that of musl only at its first one.
        memory.set(BASE + 8 * index, at);
        let musl = [(24, BASE), (64, BASE), (80, BASE), (88, BASE), (96, 0)];
        let links = [(104, if index == 0 { 0 } else { at - 256 }), (112, at + 256)];
        for (field, value) in musl.into_iter().chain(links) {
            memory.set(at + field, value);
        }
    }
    let musl = MuslListSearch { area: ImageMemory::crafted((BASE, streams), (BASE, BASE + 8)) };
    let counted = Counted { memory, reads: Cell::new(0) };
    assert_eq!(musl.longest_list(&counted, &[]).len(), COUNT as usize);
    let mut memory = counted.memory;
    for index in 0..COUNT {
        // One stream is the target of all pointers.
        memory.set(BASE + 8 * index, streams);
    }
    let counted = Counted { memory, reads: Cell::new(0) };
    assert_eq!(musl.longest_list(&counted, &[]).len(), COUNT as usize);
    assert!(counted.reads.get() <= MAX_STREAMS + 2 * COUNT as usize, "{}", counted.reads.get());

    let mut memory = counted.memory;
    for index in 0..COUNT {
        let at = streams + 256 * index;
        memory.set(BASE + 8 * index, at);
        for (field, value) in
            [(0, 0xfbad_0000), (104, if index + 1 < COUNT { at + 256 } else { 0 }), (216, BASE)]
        {
            memory.set(at + field, value);
        }
    }
    let last = streams + 256 * (COUNT - 1);
    let counted = Counted { memory, reads: Cell::new(0) };
    let glibc = GlibcStreams::one_of((0..COUNT).map(|index| BASE + 8 * index).collect(), last);
    assert_eq!(glibc.files(&counted).len(), COUNT as usize);
    assert!(counted.reads.get() <= MAX_STREAMS + COUNT as usize, "{}", counted.reads.get());
}

/// Every entry for crafted memory is the subject of a fuzz target.
#[test]
fn every_walker_has_a_fuzz_target() {
    let targets = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/src/bin");
    let entries = include_str!("fuzzing.rs").lines();
    let names =
        entries.filter_map(|line| line.strip_prefix("pub fn ")?.strip_suffix("(memory: &CraftedMemory) {"));
    let without: Vec<&str> =
        names.clone().filter(|name| !targets.join(format!("walker_{name}.rs")).exists()).collect();
    assert!(names.count() >= 12 && without.is_empty(), "no fuzz target: {without:?}");
}

/// The seeds of C++ lead the fuzz targets into an open file buffer.
#[test]
fn seeds_of_cpp_have_a_file_buffer() {
    let memory = |seed: &[u8]| CraftedMemory::of(seed).expect("memory");
    let name = fuzzing::BASE + 8 * 60;
    let of_libstdcxx = memory(include_bytes!("../../../fuzz/seeds/walker_cpp/2"));
    let streams = cpp::fuzzing::streams(&of_libstdcxx, name).expect("types").read(&of_libstdcxx, 100);
    assert_eq!(streams.iter().map(|one| one.buffer.pending_bytes).collect::<Vec<_>>(), [7]);
    let of_libcxx = memory(include_bytes!("../../../fuzz/seeds/walker_libcxx/1"));
    let streams = cpp::fuzzing::libcxx_streams(&of_libcxx, name).expect("types").read(&of_libcxx, 100);
    assert_eq!(streams.iter().map(|one| one.buffer.pending_bytes).collect::<Vec<_>>(), [7]);
}
