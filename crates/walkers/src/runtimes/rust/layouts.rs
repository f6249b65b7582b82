//! Memory layouts of `std::io::BufWriter` and `BufReader` from the program's debug information: the compiler chooses
//! the order of their fields.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;

use gimli::{AttributeValue, EndianSlice, LittleEndian, UnitOffset, constants};
use weir_sys::elf::{ElfFile, ElfSections};

/// Bounds the time to read the debug information.
pub(super) const MAX_INFO: u64 = 24 << 20;
/// The deepest nesting of structures that is followed.
const MAX_DEPTH: usize = 8;
/// Bounds the time for crafted debug information, whose structures can contain themselves. A type has some twenty members.
const MAX_MEMBERS: usize = 1 << 20;
/// The number of bytes read of each object. No known version has larger ones.
pub(super) const OBJECT_BYTES: usize = 64;

/// Types that contain a descriptor and nothing else.
const DESCRIPTORS: [&str; 7] = [
    "std::fs::File",
    "std::process::ChildStdin",
    "std::process::ChildStdout",
    "std::net::tcp::TcpStream",
    "std::os::unix::net::stream::UnixStream",
    "std::os::fd::owned::OwnedFd",
    "std::io::pipe::PipeWriter",
];
/// Types that contain a pointer to the lock of standard output.
const STDOUTS: [&str; 2] = ["std::io::stdio::Stdout", "std::io::stdio::StdoutLock"];

/// Target of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferTarget {
    Descriptor,
    Stdout,
}

/// Offsets of the fields of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RustLayout {
    pub inner: BufferTarget,
    pub inner_at: usize,
    /// Offsets of the size and the address of the buffer.
    pub capacity: usize,
    pub data: usize,
    /// Offset of the number of pending bytes (BufWriter) or of the bytes read (BufReader).
    pub length: usize,
    /// Offset of the flag that a write panicked; None for a BufReader.
    pub panicked: Option<usize>,
    /// Offset of the number of used bytes; None for a BufWriter.
    pub used: Option<usize>,
}

/// The layouts of all types in a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RustLayouts {
    pub all: Vec<RustLayout>,
    /// The program has LineWriters.
    pub lines: bool,
    /// A panic unwinds the stack. Each call that can panic then keeps the fields of a writer in memory, because the
    /// unwinding drops the writer.
    pub unwinds: bool,
    /// A type of the program has a vector and a file at the same distance as a BufWriter.
    pub has_lookalike: bool,
}

type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;

/// Reads the layouts of a file; None without readable debug information or without these types.
pub(crate) fn of(file: File) -> Option<RustLayouts> {
    let elf = ElfFile::from_file(file)?;
    let sections = elf.sections().ok()?;
    let section = |name: &str| sections.bytes(name, MAX_INFO);
    let load = |id: gimli::SectionId| -> Result<DwarfSlice, gimli::Error> {
        Ok(EndianSlice::new(section(id.name()).unwrap_or(&[]), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(load).ok()?;
    // Most programs have none of these types, and need no walk through their debug information.
    let has = |part: &[u8]| section(".debug_str").is_some_and(|text| contains(text, part));
    if !has(b"BufWriter<") && !has(b"BufReader<") {
        return None;
    }
    let mut layouts = read(&dwarf);
    layouts.unwinds = has_symbol(&sections, b"_Unwind_RaiseException");
    (!layouts.all.is_empty()).then_some(layouts)
}

fn has_symbol(sections: &ElfSections, name: &[u8]) -> bool {
    [true, false].iter().any(|dynamic| sections.any_symbol(*dynamic, |one| one == name) == Some(true))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.split(|byte| *byte == b'B').any(|rest| rest.starts_with(&part[1..]))
}

fn read(dwarf: &gimli::Dwarf<DwarfSlice>) -> RustLayouts {
    let mut found = RustLayouts::default();
    // The distances from a vector of bytes to a file in other types than BufWriter.
    let mut lookalikes = BTreeSet::new();
    let types = DebugTypes::of(dwarf);
    for unit in 0..types.units.len() {
        let _broken = types.add_unit(unit, &mut found, &mut lookalikes);
    }
    let is_writer = |one: &&RustLayout| one.used.is_none();
    let distance = |one: &RustLayout| one.inner_at.wrapping_sub(one.capacity.min(one.data).min(one.length));
    found.has_lookalike = found.all.iter().filter(is_writer).any(|one| lookalikes.contains(&distance(one)));
    found
}

/// The types that consist of a vector of bytes.
const VECTORS: [&str; 3] = ["Vec<u8, alloc::alloc::Global>", "Vec<u8>", "String"];

/// The types that the debug information describes. In optimized programs the fields of a type have types of other units.
struct DebugTypes<'a> {
    dwarf: &'a gimli::Dwarf<DwarfSlice<'a>>,
    /// In the order of their offsets in the section.
    units: Vec<gimli::Unit<DwarfSlice<'a>>>,
    /// The number of members that may still be compared with the name of a field.
    members_left: Cell<usize>,
}

/// A type: the index of its unit, and its offset in that unit.
type TypePosition = (usize, UnitOffset);

/// Name, offset and type of a field.
type StructField<'a> = (&'a str, usize, TypePosition);

impl<'a> DebugTypes<'a> {
    fn of(dwarf: &'a gimli::Dwarf<DwarfSlice<'a>>) -> Self {
        let (mut headers, mut units) = (dwarf.units(), Vec::new());
        while let Ok(Some(header)) = headers.next() {
            units.extend(dwarf.unit(header).ok());
        }
        DebugTypes { dwarf, units, members_left: Cell::new(MAX_MEMBERS) }
    }

    /// Adds the layouts of a unit's types.
    fn add_unit(
        &self,
        unit: usize,
        found: &mut RustLayouts,
        lookalikes: &mut BTreeSet<usize>,
    ) -> gimli::Result<()> {
        let mut entries = self.units[unit].entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != constants::DW_TAG_structure_type {
                continue;
            }
            let Some(name) = entry.attr_value(constants::DW_AT_name).and_then(|name| self.text(unit, name))
            else {
                continue;
            };
            let at = (unit, entry.offset());
            found.lines |= name.starts_with("LineWriter<");
            let of = |start: &str| name.strip_prefix(start).and_then(|rest| rest.strip_suffix('>'));
            let layout = match (of("BufWriter<"), of("BufReader<")) {
                (Some(inner), _) => self.writer(at, inner),
                (_, Some(inner)) => self.reader(at, inner),
                _ => None,
            };
            if !name.starts_with("BufWriter<") {
                lookalikes.extend(self.distances(at));
            }
            found.all.extend(layout.filter(|one| !found.all.contains(one)));
        }
        Ok(())
    }

    /// Returns the distances from a vector of bytes to a file in a structure.
    fn distances(&self, at: TypePosition) -> Vec<usize> {
        let members = self.members(at);
        if members.len() < 2 {
            return Vec::new();
        }
        let vectors = members.iter().filter(|one| VECTORS.contains(&self.type_name(one.2)));
        let files = |vector: usize| {
            let files = members.iter().filter(|one| self.is_descriptor(one));
            files.map(move |file| file.1.wrapping_sub(vector)).collect::<Vec<_>>()
        };
        vectors.flat_map(|vector| files(vector.1)).collect()
    }

    /// Returns whether a field is a file, or a number that is named as a descriptor.
    fn is_descriptor(&self, (name, _, of_type): &StructField) -> bool {
        match self.type_name(*of_type) {
            "File" | "ChildStdin" | "TcpStream" | "UnixStream" | "OwnedFd" | "PipeWriter" => true,
            "i32" => name.contains("fd"),
            _ => false,
        }
    }

    /// Returns the name of a type without its path; empty if it has none.
    fn type_name(&self, (unit, at): TypePosition) -> &'a str {
        let entry = self.units[unit].entry(at).ok();
        entry.and_then(|entry| self.text(unit, entry.attr_value(constants::DW_AT_name)?)).unwrap_or("")
    }

    fn byte_size(&self, (unit, at): TypePosition) -> Option<u64> {
        self.units[unit].entry(at).ok()?.attr_value(constants::DW_AT_byte_size)?.udata_value()
    }

    fn text(&self, unit: usize, value: AttributeValue<DwarfSlice<'a>>) -> Option<&'a str> {
        std::str::from_utf8(self.dwarf.attr_string(&self.units[unit], value).ok()?.slice()).ok()
    }

    /// Returns the type that an attribute of a unit's entry refers to.
    fn referenced(&self, unit: usize, value: AttributeValue<DwarfSlice<'a>>) -> Option<TypePosition> {
        match value {
            AttributeValue::UnitRef(at) => Some((unit, at)),
            AttributeValue::DebugInfoRef(at) => {
                let start =
                    |unit: &gimli::Unit<_>| unit.header.debug_info_offset().map_or(0, |start| start.0);
                let unit = self.units.partition_point(|one| start(one) <= at.0).checked_sub(1)?;
                Some((unit, at.to_unit_offset(&self.units[unit].header)?))
            }
            _ => None,
        }
    }

    fn writer(&self, at: TypePosition, inner: &str) -> Option<RustLayout> {
        let members = self.members(at);
        let (_, vector_at, vector) = *members.iter().find(|one| one.0 == "buf")?;
        let within = |name| Some(vector_at + self.find(vector, name, MAX_DEPTH)?);
        let target = inner_of(inner)?;
        let (_, inner_at, inner_type) = *members.iter().find(|one| one.0 == "inner")?;
        // Old versions have an Option there. If the descriptor has no spare value for None, the word before it is the tag.
        let is_tagged = target == BufferTarget::Descriptor && self.byte_size(inner_type) == Some(8);
        sound(RustLayout {
            inner: target,
            inner_at: if is_tagged { inner_at + 4 } else { inner_at },
            capacity: within("cap")?,
            data: within("ptr")?,
            length: within("len")?,
            panicked: Some(members.iter().find(|one| one.0 == "panicked")?.1),
            used: None,
        })
    }

    fn reader(&self, at: TypePosition, inner: &str) -> Option<RustLayout> {
        let members = self.members(at);
        let (_, buffer_at, buffer) = *members.iter().find(|one| one.0 == "buf")?;
        let within = |name| Some(buffer_at + self.find(buffer, name, MAX_DEPTH)?);
        sound(RustLayout {
            inner: inner_of(inner).filter(|inner| *inner == BufferTarget::Descriptor)?,
            inner_at: members.iter().find(|one| one.0 == "inner")?.1,
            capacity: within("length")?,
            data: within("data_ptr")?,
            length: within("filled")?,
            panicked: None,
            used: Some(within("pos")?),
        })
    }

    fn members(&self, (unit, at): TypePosition) -> Vec<StructField<'a>> {
        let mut found = Vec::new();
        let Ok(mut tree) = self.units[unit].entries_tree(Some(at)) else { return found };
        let Ok(root) = tree.root() else { return found };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            if entry.tag() == constants::DW_TAG_member {
                let name = entry.attr_value(constants::DW_AT_name).and_then(|name| self.text(unit, name));
                let offset = entry.attr_value(constants::DW_AT_data_member_location);
                let offset = offset.and_then(|offset| usize::try_from(offset.udata_value()?).ok());
                let of_type = entry.attr_value(constants::DW_AT_type);
                let of_type = of_type.and_then(|of_type| self.referenced(unit, of_type));
                if let (Some(name), Some(offset), Some(of_type)) = (name, offset, of_type) {
                    found.push((name, offset, of_type));
                }
            }
        }
        found
    }

    /// Returns the offset of a field in the structure or in a nested one; None after too many members.
    fn find(&self, at: TypePosition, name: &str, deep: usize) -> Option<usize> {
        let members = self.members(at);
        self.members_left.set(self.members_left.get().checked_sub(members.len())?);
        if let Some(found) = members.iter().find(|one| one.0 == name) {
            return Some(found.1);
        }
        let within = |one: &StructField| one.1.checked_add(self.find(one.2, name, deep - 1)?);
        if deep == 0 { None } else { members.iter().find_map(within) }
    }
}

pub(super) fn inner_of(name: &str) -> Option<BufferTarget> {
    let descriptor = DESCRIPTORS.contains(&name).then_some(BufferTarget::Descriptor);
    descriptor.or_else(|| STDOUTS.contains(&name).then_some(BufferTarget::Stdout))
}

/// Returns the layout if all fields are within [`OBJECT_BYTES`] and aligned.
fn sound(layout: RustLayout) -> Option<RustLayout> {
    let words = [Some(layout.capacity), Some(layout.data), Some(layout.length), layout.used];
    let fits = words.into_iter().flatten().all(|at| at % 8 == 0 && at + 8 <= OBJECT_BYTES);
    let small = layout.inner_at.max(layout.panicked.unwrap_or(0)) + 8 <= OBJECT_BYTES;
    (fits && small && layout.inner_at.is_multiple_of(4)).then_some(layout)
}

#[cfg(test)]
mod tests {
    use gimli::{DebugAbbrev, DebugInfo};

    use super::*;

    /// A unit, a structure with a name, a member with name, offset and type.
    const ABBREVIATIONS: &[u8] =
        &[1, 0x11, 1, 0, 0, 2, 0x13, 1, 3, 8, 0, 0, 3, 0x0d, 0, 3, 8, 0x38, 0x0b, 0x49, 0x13, 0, 0, 0];

    /// Returns debug information of a BufWriter, both of whose members have a type with 64 members of that type itself.
    fn nested_in_itself() -> Vec<u8> {
        let mut info = vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
        let nested = info.len() as u32;
        let member = |name: &[u8]| [&[3], name, &[0, 0], &nested.to_le_bytes()[..]].concat();
        info.extend([&b"\x02T\0"[..], &member(b"x").repeat(64), &[0]].concat());
        let name = b"\x02BufWriter<std::fs::File>\0";
        info.extend([name, &member(b"buf")[..], &member(b"inner"), &[0, 0]].concat());
        let bytes = info.len() as u32 - 4;
        info[..4].copy_from_slice(&bytes.to_le_bytes());
        info
    }

    #[test]
    fn a_structure_in_itself_is_searched_for_a_limited_time() {
        let info = nested_in_itself();
        let dwarf = gimli::Dwarf {
            debug_abbrev: DebugAbbrev::new(ABBREVIATIONS, LittleEndian),
            debug_info: DebugInfo::new(&info, LittleEndian),
            ..gimli::Dwarf::default()
        };
        let types = DebugTypes::of(&dwarf);
        let (mut found, mut lookalikes) = (RustLayouts::default(), BTreeSet::new());
        types.add_unit(0, &mut found, &mut lookalikes).expect("debug information");
        assert!(found.all.is_empty());
        // The last structure that was read had more members than were left.
        assert!(types.members_left.get() < 64, "{}", types.members_left.get());
    }
}
