//! The tables by which an interface of Go knows its type: those of `io.Writer` and `io.Reader` over a descriptor.
//!
//! A Go program has a list of them (`.itablink`), stripped or not; each names an interface and a type, and their
//! names lie behind a base that only the program's description of itself (`moduledata`) has. Which of its words is
//! the base, by version, need not be known: it is the one behind which the names are.

use weir_sys::memory::Memory;

use crate::copied_memory::{int, structure, word};

/// Where the parts of a Go program are, as its ELF file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct GoSections {
    /// Of the table of functions; `moduledata` begins with a pointer to it.
    pub functions: u64,
    /// The list of pointers to tables: address and bytes.
    pub links: (u64, u64),
    /// Where `moduledata` may be: address and bytes.
    pub data: Vec<(u64, u64)>,
}

/// What the tables of a process say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GoItabs {
    /// Of `io.Writer`.
    pub writers: Vec<u64>,
    /// Of `io.Reader`.
    pub readers: Vec<u64>,
}

/// Types that are a pointer to a pointer to a `poll.FD`: with others it is not known where bytes go.
const TYPES: [&str; 3] = ["*os.File", "*net.TCPConn", "*net.UnixConn"];

/// `moduledata` has some 75 words.
const MODULE_WORDS: usize = 96;
const TABLES_MOST: u64 = 1 << 16;
const DATA_MOST: u64 = 16 << 20;

/// `abi.Type`: the offset of its name.
const TYPE_NAME: u64 = 40;
/// `abi.Name`: flags, the length (of names this short, one byte), the text.
const NAME_BYTES: usize = 2 + 24;

impl GoItabs {
    /// Of a process whose program was loaded with this bias. None where nothing like it is there.
    pub fn of(memory: &dyn Memory, parts: &GoSections, bias: u64) -> Option<GoItabs> {
        let links =
            memory.bytes(parts.links.0.wrapping_add(bias), parts.links.1.min(8 * TABLES_MOST) as usize);
        let tables: Vec<(u64, [u8; 16])> =
            words(&links).filter_map(|at| Some((at, structure(memory, at)?))).collect();
        let module = module(memory, parts, bias)?;
        module.into_iter().filter(|base| *base != 0).find_map(|base| TypeNames { memory, base }.tables(&tables))
    }

    /// The lowest and the highest: they lie close to each other.
    pub fn range(&self) -> std::ops::RangeInclusive<u64> {
        let all = || self.writers.iter().chain(&self.readers).copied();
        all().min().unwrap_or(u64::MAX)..=all().max().unwrap_or(0)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// The words of the program's description of itself.
fn module(memory: &dyn Memory, parts: &GoSections, bias: u64) -> Option<Vec<u64>> {
    let first = parts.functions.wrapping_add(bias);
    let within = |&(at, bytes): &(u64, u64)| {
        let data = memory.bytes(at.wrapping_add(bias), bytes.min(DATA_MOST) as usize);
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
    /// The tables, if the names lie behind this base. Every program with a file has one of them for `io.Writer`.
    fn tables(&self, all: &[(u64, [u8; 16])]) -> Option<GoItabs> {
        let mut interfaces: Vec<u64> = all.iter().map(|(_, table)| word(table, 0)).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        let named = |name| interfaces.iter().copied().find(|at| self.is(*at, name));
        let (writer, reader) = (named("*io.Writer"), named("*io.Reader"));
        let of = |interface: Option<u64>| {
            let known = |table: &[u8; 16]| {
                interface == Some(word(table, 0)) && TYPES.iter().any(|name| self.is(word(table, 8), name))
            };
            all.iter().filter(|(_, table)| known(table)).map(|(at, _)| *at).collect::<Vec<_>>()
        };
        let found = GoItabs { writers: of(writer), readers: of(reader) };
        (!found.writers.is_empty() || !found.readers.is_empty()).then_some(found)
    }

    fn is(&self, of_type: u64, name: &str) -> bool {
        let offset = of_type.checked_add(TYPE_NAME).and_then(|at| structure::<4>(self.memory, at));
        let Some(at) = offset.and_then(|bytes| self.base.checked_add_signed(int(&bytes, 0).into())) else {
            return false;
        };
        let text = self.memory.bytes(at, NAME_BYTES);
        text.get(1).is_some_and(|length| usize::from(*length) == name.len())
            && text.get(2..).is_some_and(|text| text.starts_with(name.as_bytes()))
    }
}
