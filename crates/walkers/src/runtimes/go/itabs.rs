//! The itabs (tables of an interface and a type) of `io.Writer` and `io.Reader` over a descriptor.
//!
//! A Go program has a list of its itabs (`.itablink`), also when it is stripped. Since Go 1.27 there is no list: the itabs
//! follow the types (`.go.type`) without gaps, and the structure `moduledata` has the distance and the size. Each itab points
//! to an interface and a type, whose names are at offsets from a base address. The base is a word of `moduledata`. Its
//! position depends on the version, so the walker takes the word from which the known names are found.

use weir_sys::memory::Memory;

use crate::copied_memory::{int, structure, word};

/// The sections of a Go program that lead to its itabs, in the file's addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct GoSections {
    /// Address of the table of functions. `moduledata` begins with a pointer to it.
    pub functions: u64,
    pub itabs: ItabSection,
    /// The sections that can contain `moduledata`: address and size.
    pub data: Vec<(u64, u64)>,
    /// A profile decided which functions the compiler made a part of others.
    pub is_profiled: bool,
}

/// The section that leads to the itabs: its address and size in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItabSection {
    /// `.itablink`, a list of pointers to itabs, up to Go 1.26.
    Links(u64, u64),
    /// `.go.type`, which contains the itabs, since Go 1.27.
    Types(u64, u64),
}

impl Default for ItabSection {
    fn default() -> ItabSection {
        ItabSection::Links(0, 0)
    }
}

/// Addresses of the itabs of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GoItabs {
    /// Itabs of `io.Writer`.
    pub writers: Vec<u64>,
    /// Itabs of `io.Reader`.
    pub readers: Vec<u64>,
    /// The itab of `io.Writer` and `*os.File`.
    pub file_writer: Option<u64>,
}

/// Types that are a pointer to a pointer to a `poll.FD`. Of other types the descriptor is unknown.
const TYPES: [&str; 3] = ["*os.File", "*net.TCPConn", "*net.UnixConn"];

/// An upper bound: `moduledata` has about 75 words.
const MODULE_WORDS: usize = 96;
const MAX_TABLES: u64 = 1 << 16;
const MAX_DATA: u64 = 16 << 20;

/// The fields of `moduledata` in Go 1.27: `types`, `etypes`, and the distance from `types` to the itabs with their size.
const TYPES_WORD: usize = 37;
const TYPES_END_WORD: usize = 39;
const ITABS_WORD: usize = 40;
const ITABS_SIZE_WORD: usize = 41;
/// The number of methods in `abi.InterfaceType`. An itab has room for one method, and a word for each further one.
const METHODS: u64 = 64;
const MAX_METHODS: u64 = 1 << 10;
const ITAB_BYTES: usize = 32;
const FIRST_METHOD: usize = 24;

/// Offset of the name in `abi.Type`.
const TYPE_NAME: u64 = 40;
/// Size of `abi.Name`: flags, the length, the text. Since Go 1.17 the length of a short name has one byte, before that two, of
/// which the first one is 0.
const NAME_BYTES: usize = 3 + 24;

impl GoItabs {
    /// Finds the itabs of a process whose executable has this load bias: none if the program has none of the known ones, and so no
    /// buffer over a descriptor. Returns None if they cannot be read.
    pub fn of(memory: &dyn Memory, parts: &GoSections, bias: u64) -> Option<GoItabs> {
        let module = module(memory, parts, bias)?;
        let addresses = match parts.itabs {
            ItabSection::Links(at, bytes) => {
                words(&memory.bytes(at.wrapping_add(bias), bytes.min(8 * MAX_TABLES) as usize)).collect()
            }
            ItabSection::Types(at, bytes) => {
                itabs_behind_types(memory, &module, at.wrapping_add(bias), bytes)?
            }
        };
        let tables: Vec<(u64, [u8; 16])> =
            addresses.into_iter().filter_map(|at| Some((at, structure(memory, at)?))).collect();
        let bases = || module.iter().filter(|base| **base != 0).map(|&base| TypeNames { memory, base });
        let has_names = || bases().any(|names| names.are_of_interfaces(&tables)).then(GoItabs::default);
        bases().find_map(|names| names.tables(&tables)).or_else(has_names)
    }

    /// Returns whether a process has none of the known itabs.
    pub fn is_empty(&self) -> bool {
        self.writers.is_empty() && self.readers.is_empty()
    }

    /// Returns the range from the lowest to the highest itab. They are close to each other, so the range rules out
    /// most words.
    pub fn range(&self) -> std::ops::RangeInclusive<u64> {
        let all = || self.writers.iter().chain(&self.readers).copied();
        all().min().unwrap_or(u64::MAX)..=all().max().unwrap_or(0)
    }
}

/// Returns the addresses of the itabs in a section of types; None if `moduledata` does not describe this section.
fn itabs_behind_types(memory: &dyn Memory, module: &[u64], start: u64, bytes: u64) -> Option<Vec<u64>> {
    let of = |index: usize| module.get(index).copied();
    let end = of(TYPES_END_WORD).filter(|end| *end <= start.saturating_add(bytes))?;
    (of(TYPES_WORD)? == start).then_some(())?;
    let mut at = start.checked_add(of(ITABS_WORD)?)?;
    let end = at.checked_add(of(ITABS_SIZE_WORD)?).filter(|itabs_end| *itabs_end <= end)?;
    let mut found = Vec::new();
    while at < end && (found.len() as u64) < MAX_TABLES {
        found.push(at);
        let itab = structure::<ITAB_BYTES>(memory, at)?;
        let methods = memory.u64(word(&itab, 0).checked_add(METHODS)?)?;
        let further = if word(&itab, FIRST_METHOD) == 0 { 0 } else { methods.checked_sub(1)? };
        at += ITAB_BYTES as u64 + 8 * Some(further).filter(|further| *further < MAX_METHODS)?;
    }
    Some(found)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Returns the words of `moduledata`.
pub(super) fn module(memory: &dyn Memory, parts: &GoSections, bias: u64) -> Option<Vec<u64>> {
    let first = parts.functions.wrapping_add(bias);
    let within = |&(at, bytes): &(u64, u64)| {
        let data = memory.bytes(at.wrapping_add(bias), bytes.min(MAX_DATA) as usize);
        let index = words(&data).position(|word| word == first)?;
        Some(words(&data).skip(index).take(MODULE_WORDS).collect())
    };
    parts.data.iter().find_map(within)
}

struct TypeNames<'a> {
    memory: &'a dyn Memory,
    base: u64,
}

impl TypeNames<'_> {
    /// Returns the known itabs if the names of their types are at offsets from this base; None if there are none.
    fn tables(&self, all: &[(u64, [u8; 16])]) -> Option<GoItabs> {
        let interfaces = interfaces(all);
        let named = |name| interfaces.iter().copied().find(|at| self.is(*at, name));
        let (writer, reader) = (named("*io.Writer"), named("*io.Reader"));
        let of = |interface: Option<u64>| {
            let known = |table: &[u8; 16]| {
                interface == Some(word(table, 0)) && TYPES.iter().any(|name| self.is(word(table, 8), name))
            };
            all.iter().filter(|(_, table)| known(table)).map(|(at, _)| *at).collect::<Vec<_>>()
        };
        let is_file = |table: &u64| {
            let its_type = all.iter().find(|(at, _)| at == table).map(|(_, table)| word(table, 8));
            its_type.is_some_and(|its_type| self.is(its_type, TYPES[0]))
        };
        let (writers, readers) = (of(writer), of(reader));
        let file_writer = writers.iter().copied().find(is_file);
        let found = GoItabs { writers, readers, file_writer };
        (!found.is_empty()).then_some(found)
    }

    /// Returns whether names that interfaces can have are at offsets from this base. Each program has itabs for `error`.
    fn are_of_interfaces(&self, all: &[(u64, [u8; 16])]) -> bool {
        let interfaces = interfaces(all);
        interfaces.iter().any(|at| self.is(*at, "*error"))
            && interfaces.iter().all(|at| self.name(*at).is_some_and(|(_, text)| text.starts_with(b"*")))
    }

    fn is(&self, of_type: u64, name: &str) -> bool {
        let found = self.name(of_type);
        found.is_some_and(|(length, text)| length == name.len() && text.starts_with(name.as_bytes()))
    }

    /// Returns the length of a type's name, and its beginning with the bytes after it.
    fn name(&self, of_type: u64) -> Option<(usize, Vec<u8>)> {
        let offset = structure::<4>(self.memory, of_type.checked_add(TYPE_NAME)?)?;
        let at = self.base.checked_add_signed(int(&offset, 0).into())?;
        let text = self.memory.bytes(at, NAME_BYTES);
        let (length, text) = text.get(if text.get(1) == Some(&0) { 2 } else { 1 }..)?.split_first()?;
        Some((usize::from(*length), text.to_vec()))
    }
}

/// Returns the addresses of the interfaces of these itabs.
fn interfaces(all: &[(u64, [u8; 16])]) -> Vec<u64> {
    let mut interfaces: Vec<u64> = all.iter().map(|(_, table)| word(table, 0)).collect();
    interfaces.sort_unstable();
    interfaces.dedup();
    interfaces
}
