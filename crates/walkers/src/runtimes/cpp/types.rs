//! The types of libstdc++'s file buffers in a process, found by their run-time type information.
//!
//! No symbol is needed: the name of `std::basic_filebuf<char>` is in the library's constants, its type information
//! points to the name, and its virtual table to the type information. Types that are derived from it, such as
//! `__gnu_cxx::stdio_filebuf<char>`, point to its type information too.

use std::ops::RangeInclusive;

use weir_sys::memory::Memory;

use crate::copied_memory::word;

/// The name of `std::basic_filebuf<char>` in the type information of libstdc++.
pub(super) const FILE_BUFFER_TYPE: &[u8] = b"St13basic_filebufIcSt11char_traitsIcEE";
/// The file buffer over a descriptor or a FILE, which std::cout uses after sync_with_stdio(false).
const STDIO_FILE_BUFFER: &[u8] = b"N9__gnu_cxx13stdio_filebufIcSt11char_traitsIcEEE";
/// The facets that change no byte: of the C locale, and of a named one.
const PLAIN_FACETS: [&[u8]; 2] = [b"St7codecvtIcc11__mbstate_tE", b"St14codecvt_bynameIcc11__mbstate_tE"];
/// The longest name of a type that is read.
const MAX_NAME: usize = 64;
/// The first and last slot of a file buffer's virtual functions after its two destructors: imbue to overflow.
const FUNCTIONS: std::ops::Range<u64> = 2..14;
/// Bounds the memory that is searched for virtual tables in one section.
const MAX_SECTION: u64 = 4 << 20;

/// The virtual tables of the file buffer types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileBufferTypes {
    /// The values of the virtual table pointer in objects, in order.
    pub tables: Vec<u64>,
}

impl FileBufferTypes {
    /// Finds the types by the addresses of the type's name, in sections (address and size) with type information.
    pub fn find(memory: &dyn Memory, names: &[u64], sections: &[(u64, u64)]) -> FileBufferTypes {
        let sections: Vec<(u64, Vec<u8>)> = sections
            .iter()
            .filter(|(_, bytes)| *bytes <= MAX_SECTION)
            .map(|(start, bytes)| (*start, memory.bytes(*start, *bytes as usize)))
            .collect();
        let pointers_to = |value: u64| sections.iter().flat_map(move |section| pointers(section, value));
        let tables_of = |type_info: u64| {
            // A virtual table begins with the offset of the object in its complete object, which is 0.
            pointers_to(type_info)
                .filter(|at| memory.u64(at.wrapping_sub(8)) == Some(0))
                .map(|at| at.wrapping_add(8))
        };
        let infos: Vec<u64> =
            names.iter().flat_map(|name| pointers_to(*name)).map(|at| at.wrapping_sub(8)).collect();
        let mut tables: Vec<u64> = infos.iter().flat_map(|info| tables_of(*info)).collect();
        let Some(base) = tables.first().copied() else { return FileBufferTypes::default() };
        // The base of a derived type comes after its name.
        let derived = infos.iter().flat_map(|info| pointers_to(*info)).map(|at| at.wrapping_sub(16));
        for info in derived.filter(|info| memory.u64(info.wrapping_add(8)).is_some_and(|name| name != 0)) {
            let is_stdio = type_name(memory, info) == STDIO_FILE_BUFFER;
            let same = |table: &u64| is_stdio || has_functions_of(memory, *table, base);
            tables.extend(tables_of(info).filter(same));
        }
        tables.sort_unstable();
        tables.dedup();
        FileBufferTypes { tables }
    }

    /// Returns the range of the virtual table pointers.
    pub fn range(&self) -> RangeInclusive<u64> {
        let [first, last] =
            [self.tables.first(), self.tables.last()].map(|table| table.copied().unwrap_or(0));
        first..=last
    }

    /// Returns whether a word can be the virtual table pointer of a file buffer.
    pub fn contains(&self, word: u64) -> bool {
        self.tables.contains(&word)
    }
}

/// Returns whether a derived type overrides no function but the destructors, so that it writes as its base does.
fn has_functions_of(memory: &dyn Memory, table: u64, base: u64) -> bool {
    FUNCTIONS.map(|slot| 8 * slot).all(|at| {
        let function = memory.u64(table.wrapping_add(at));
        function.is_some_and(|function| function != 0) && function == memory.u64(base.wrapping_add(at))
    })
}

/// Returns whether a facet changes no byte, by its type.
pub(super) fn is_plain_facet(memory: &dyn Memory, table: u64) -> bool {
    let info = table.checked_sub(8).and_then(|at| memory.u64(at));
    info.is_some_and(|info| PLAIN_FACETS.contains(&type_name(memory, info).as_slice()))
}

/// Returns the name in a type's information, without the mark of a name that is not unique.
fn type_name(memory: &dyn Memory, info: u64) -> Vec<u8> {
    let name = memory.u64(info.wrapping_add(8)).unwrap_or(0);
    let bytes = memory.bytes(name, MAX_NAME);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    bytes[..end].strip_prefix(b"*").unwrap_or(&bytes[..end]).to_vec()
}

/// Returns the addresses of the words in a section that have this value.
fn pointers((start, bytes): &(u64, Vec<u8>), value: u64) -> Vec<u64> {
    let words = (0..bytes.len() / 8).filter(|index| word(bytes, 8 * index) == value);
    words.map(|index| start + 8 * index as u64).collect()
}
