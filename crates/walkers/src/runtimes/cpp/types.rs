//! The types of libstdc++'s file buffers in a process, found by their run-time type information.
//!
//! No symbol is needed: the name of `std::basic_filebuf<char>` is in the library's constants, its type information
//! points to the name, and its virtual table to the type information. Types that are derived from it, such as
//! `__gnu_cxx::stdio_filebuf<char>`, point to its type information too, and types that are derived from these to theirs.

use std::ops::RangeInclusive;

use weir_sys::memory::Memory;

use crate::copied_memory::word;
use crate::stream_buffer::StreamBuffer;

/// The name of `std::basic_filebuf<char>` in the type information of libstdc++.
pub(super) const FILE_BUFFER_TYPE: &[u8] = b"St13basic_filebufIcSt11char_traitsIcEE";
/// The file buffer over a descriptor or a FILE, which std::cout uses after sync_with_stdio(false).
const STDIO_FILE_BUFFER: &[u8] = b"N9__gnu_cxx13stdio_filebufIcSt11char_traitsIcEEE";
/// The facets that change no byte: of the C locale, and of a named one.
const PLAIN_FACETS: [&[u8]; 2] = [b"St7codecvtIcc11__mbstate_tE", b"St14codecvt_bynameIcc11__mbstate_tE"];
/// The longest name of a type that is read.
const MAX_NAME: usize = 256;
/// The first and last slot of a file buffer's virtual functions after its two destructors: imbue to overflow.
const FUNCTIONS: std::ops::Range<u64> = 2..14;
/// Bounds the memory that is searched for virtual tables in one section.
const MAX_SECTION: u64 = 4 << 20;

/// The most types that are derived from the file buffer; a program has a few.
const MAX_TYPES: usize = 256;
/// The most bases of a type with several ones.
const MAX_BASES: u64 = 16;
/// The flags of a base: it is virtual, it is public.
const VIRTUAL: u64 = 1;
const BASE_FLAGS: u64 = 3;
/// The largest offset of a base in its object.
const MAX_OFFSET: u64 = 1 << 20;

/// The virtual tables of the file buffer types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileBufferTypes {
    /// The values of the virtual table pointer in objects, in order.
    pub tables: Vec<u64>,
    /// Those of types that override a function, in order. The effect of such a function on the bytes is unknown.
    pub overriding: Vec<u64>,
}

/// A type, and the offset of the file buffer in its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClassInfo {
    /// The address of its type information.
    at: u64,
    offset: u64,
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
        let tables_of = |class: ClassInfo| {
            // A virtual table begins with the offset from the file buffer back to its complete object.
            pointers_to(class.at)
                .filter(move |at| memory.u64(at.wrapping_sub(8)) == Some(0u64.wrapping_sub(class.offset)))
                .map(|at| at.wrapping_add(8))
        };
        let of_base = |at: u64| ClassInfo { at: at.wrapping_sub(8), offset: 0 };
        let mut classes: Vec<ClassInfo> =
            names.iter().flat_map(|name| pointers_to(*name)).map(of_base).take(MAX_TYPES).collect();
        let base_count = classes.len();
        let mut tables: Vec<u64> = classes.iter().flat_map(|class| tables_of(*class)).collect();
        let Some(base) = tables.first().copied() else { return FileBufferTypes::default() };
        // The file buffer has a single base itself.
        let of_single_base: Vec<u64> = classes.iter().filter_map(|class| memory.u64(class.at)).collect();
        let mut next = 0;
        while let Some(class) = classes.get(next).copied() {
            next += 1;
            for at in pointers_to(class.at) {
                let found = derived_class(memory, at, &of_single_base);
                let found =
                    found.map(|one| ClassInfo { offset: one.offset.wrapping_add(class.offset), ..one });
                classes.extend(found.filter(|one| classes.len() < MAX_TYPES && !classes.contains(one)));
            }
        }
        let mut overriding = Vec::new();
        for class in &classes[base_count..] {
            let is_stdio = type_name(memory, class.at) == STDIO_FILE_BUFFER;
            for table in tables_of(*class) {
                tables.push(table);
                overriding.extend((!is_stdio && !has_functions_of(memory, table, base)).then_some(table));
            }
        }
        for list in [&mut tables, &mut overriding] {
            list.sort_unstable();
            list.dedup();
        }
        FileBufferTypes { tables, overriding }
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

    /// Returns the stream of an object with this virtual table pointer. If functions of the program itself
    /// handle the bytes, these are shown and never written.
    pub fn as_far_as_known(&self, table: u64, stream: StreamBuffer) -> StreamBuffer {
        if self.overriding.contains(&table) { stream.only_shown() } else { stream }
    }
}

/// Returns the type whose type information has the pointer to a base at this address. `of_single_base` are the values of the first
/// word in the information of a type with one base. None if it is no such information, or if the base is a virtual one.
fn derived_class(memory: &dyn Memory, at: u64, of_single_base: &[u64]) -> Option<ClassInfo> {
    let has_name = |info: u64| {
        let name = type_name(memory, info);
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let single = at.wrapping_sub(16);
    if memory.u64(single).is_some_and(|table| of_single_base.contains(&table)) && has_name(single) {
        return Some(ClassInfo { at: single, offset: 0 });
    }
    // A type with several bases: flags and their number after the name, then a pointer, and flags with an offset, of each.
    let base = memory.u64(at.wrapping_add(8))?;
    let offset = base >> 8;
    let is_plain = base & 0xff & !BASE_FLAGS == 0 && base & VIRTUAL == 0;
    if !is_plain || offset > MAX_OFFSET || !offset.is_multiple_of(8) {
        return None;
    }
    (0..MAX_BASES).map(|index| (index, at.wrapping_sub(24 + 16 * index))).find_map(|(index, info)| {
        let counts = memory.u64(info.wrapping_add(16))?;
        let (flags, count) = (counts & 0xffff_ffff, counts >> 32);
        let fits = flags <= 3 && (index + 1..=MAX_BASES).contains(&count);
        let table = memory.u64(info).filter(|table| *table != 0 && !of_single_base.contains(table));
        (fits && table.is_some() && has_name(info)).then_some(ClassInfo { at: info, offset })
    })
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
