//! The functions of a Go program, from the tables that its own runtime unwinds stacks with.

use weir_sys::memory::Memory;

use crate::copied_memory::{int, structure, word};

/// Bounds the memory for the tables: no known program has larger ones.
const MAX_TABLE: u64 = 256 << 20;
const MAX_NAME: usize = 256;
/// Bounds the time for a crafted table. Each return of a function adds two entries or three.
const MAX_STACK_SIZES: usize = 1 << 14;
/// `pcHeader.magic` of Go 1.16; the later ones are smaller. Earlier versions have other tables.
const MAGIC_1_16: u32 = 0xffff_fffa;
const MAGIC_1_18: u32 = 0xffff_fff0;
const MAGICS: std::ops::RangeInclusive<u32> = MAGIC_1_18..=MAGIC_1_16;
/// `text` is this word of `moduledata`.
const TEXT_WORD: usize = 22;
/// `bss` and `ebss`, the begin and the end of the variables without an initial value.
const VARIABLES_WORDS: std::ops::Range<usize> = 28..30;

/// The tables of functions.
#[derive(Debug, Default)]
pub(super) struct GoFunctions {
    /// Entry address of each function and the offset of its description, in ascending order.
    entries: Vec<(u64, u64)>,
    names: Vec<u8>,
    stack_sizes: Vec<u8>,
    descriptions: Vec<u8>,
    /// The offset of the name in a description.
    name_at: usize,
}

/// Returns the begin and the end of the variables without an initial value; None if this `moduledata` has another layout.
pub(super) fn variables(memory: &dyn Memory, module: &[u64]) -> Option<(u64, u64)> {
    magic(memory, module)?;
    let &[start, end] = module.get(VARIABLES_WORDS)? else { return None };
    Some((start, end))
}

/// Returns the magic number of the tables of functions; None if their version is unknown.
fn magic(memory: &dyn Memory, module: &[u64]) -> Option<u32> {
    let magic = int(&structure::<4>(memory, *module.first()?)?, 0) as u32;
    MAGICS.contains(&magic).then_some(magic)
}

/// A function as the runtime's tables describe it.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoFunction<'a> {
    pub entry: u64,
    pub name: &'a [u8],
    stack_sizes: &'a [u8],
}

impl GoFunctions {
    /// Reads the tables of the program with this `moduledata`; None if the version's tables are unknown.
    pub fn read(memory: &dyn Memory, module: &[u64]) -> Option<GoFunctions> {
        let magic = magic(memory, module)?;
        let table = |index: usize, width: u64| {
            let (at, length) = (*module.get(index)?, module.get(index + 1)?.checked_mul(width)?);
            let bytes = memory.bytes(at, length.min(MAX_TABLE) as usize);
            (bytes.len() as u64 == length).then_some(bytes)
        };
        let is_old = magic == MAGIC_1_16;
        let text = *module.get(TEXT_WORD)?;
        let entries = table(16, if is_old { 16 } else { 8 })?;
        let entry = |pair: &[u8]| match is_old {
            true => (word(pair, 0), word(pair, 8)),
            false => (text.wrapping_add(int(pair, 0) as u32 as u64), int(pair, 4) as u32 as u64),
        };
        let entries: Vec<(u64, u64)> = entries.chunks_exact(if is_old { 16 } else { 8 }).map(entry).collect();
        entries.is_sorted_by_key(|one| one.0).then_some(GoFunctions {
            entries,
            names: table(1, 1)?,
            stack_sizes: table(10, 1)?,
            descriptions: table(13, 1)?,
            name_at: if is_old { 8 } else { 4 },
        })
    }

    /// Returns the function at an address. The last entry is the end of the code.
    pub fn at(&self, address: u64) -> Option<GoFunction<'_>> {
        let next = self.entries.partition_point(|one| one.0 <= address);
        (next > 0 && next < self.entries.len()).then(|| self.function(next - 1))?
    }

    /// Returns the entry addresses of the functions that have such a name.
    pub fn entries_of(&self, has_name: impl Fn(&[u8]) -> bool) -> Vec<u64> {
        let functions = (0..self.entries.len().saturating_sub(1)).filter_map(|index| self.function(index));
        functions.filter(|one| has_name(one.name)).map(|one| one.entry).collect()
    }

    fn function(&self, index: usize) -> Option<GoFunction<'_>> {
        let (entry, at) = *self.entries.get(index)?;
        let description = self.descriptions.get(usize::try_from(at).ok()?..)?;
        let number = |at: usize| usize::try_from(int(description, at)).ok();
        let name = self.names.get(number(self.name_at)?..)?;
        let end = name.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
        // nameoff, args, deferreturn, pcsp.
        let stack_sizes = self.stack_sizes.get(number(self.name_at + 12)?..)?;
        Some(GoFunction { entry, name: &name[..end], stack_sizes })
    }
}

impl GoFunction<'_> {
    /// Returns the distance from the stack pointer to the return address at an address of the function. The table has
    /// pairs of a change of the value (zigzag) and the number of bytes of code for which the new value holds.
    pub fn stack_bytes(&self, address: u64) -> Option<u64> {
        let (mut rest, mut end, mut value) = (self.stack_sizes, self.entry, -1i64);
        for index in 0..MAX_STACK_SIZES {
            let change = varint(&mut rest)?;
            if change == 0 && index > 0 {
                return None;
            }
            value = value.wrapping_add((change >> 1) as i64 ^ -((change & 1) as i64));
            // The minimal size of an instruction is 1 on x86-64.
            end = end.checked_add(varint(&mut rest)?)?;
            if address < end {
                return u64::try_from(value).ok();
            }
        }
        None
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_stack_sizes_is_decoded() {
        // 0 for 1 byte, 8 for 3, 64 for 200, 0 for 1; the end.
        let function =
            GoFunction { entry: 100, name: b"f", stack_sizes: &[2, 1, 16, 3, 112, 200, 1, 127, 1, 0] };
        let sizes = [100, 101, 103, 104, 303, 304, 305].map(|address| function.stack_bytes(address));
        assert_eq!(sizes, [Some(0), Some(8), Some(8), Some(64), Some(64), Some(0), None]);
        let cut = GoFunction { stack_sizes: &[2, 1, 16], ..function };
        assert_eq!((cut.stack_bytes(100), cut.stack_bytes(101)), (Some(0), None));
    }

    #[test]
    fn a_crafted_table_of_stack_sizes_is_read_in_part() {
        // 0, and 8 more for each further byte of code.
        let table = [&[2, 1][..], &[16, 1].repeat(2 * MAX_STACK_SIZES)].concat();
        let function = GoFunction { entry: 100, name: b"f", stack_sizes: &table };
        let last = MAX_STACK_SIZES as u64 - 1;
        let sizes = [last, last + 1].map(|byte| function.stack_bytes(100 + byte));
        assert_eq!(sizes, [Some(8 * last), None]);
    }
}
