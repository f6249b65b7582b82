//! Names the code at an address of an image: function, file and line by its debug information, or else the
//! function by its symbol table.

use std::borrow::Cow;
use std::rc::Rc;

use addr2line::{Context, gimli};
use gimli::{EndianRcSlice, LittleEndian};
use weir_model::Untrusted;
use weir_sys::elf::ElfSections;

/// Limits of debug information in bytes and of symbols. Larger ones are not read, because the user waits for
/// the report.
const MAX_DEBUG_BYTES: u64 = 256 << 20;
const MAX_SYMBOLS: usize = 4 << 20;

type Slice = EndianRcSlice<LittleEndian>;

/// The symbols of one image, by its own addresses.
#[derive(Default)]
pub(super) struct Symbols {
    debug: Option<Context<Slice>>,
    /// Address, size in bytes and name of each function, sorted by address.
    functions: Vec<(u64, u64, Box<str>)>,
}

/// A function and source position. An inlined function has its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SymbolName {
    pub function: Option<Untrusted>,
    pub file: Option<Untrusted>,
    pub line: Option<u32>,
}

impl Symbols {
    pub fn of(sections: &ElfSections) -> Symbols {
        Symbols { debug: debug(sections), functions: functions(sections) }
    }

    /// Returns the functions at an address, innermost first. Returns one without a name if nothing is known.
    pub fn names(&self, address: u64) -> Vec<SymbolName> {
        let mut found = self.by_debug(address).unwrap_or_default();
        if found.is_empty() {
            found.push(SymbolName::default());
        }
        // With line tables only (-g1), the function is in the symbol table.
        if let Some(outermost) = found.last_mut().filter(|name| name.function.is_none()) {
            outermost.function = self.function(address);
        }
        found
    }

    fn by_debug(&self, address: u64) -> Option<Vec<SymbolName>> {
        // addr2line adds 1 to the address. One of a hostile stack can be the last one.
        address.checked_add(1)?;
        let mut frames = self.debug.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let function =
                frame.function.and_then(|name| Some(Untrusted::from(demangled(&name.raw_name().ok()?))));
            let (file, line) =
                frame.location.map_or((None, None), |at| (at.file.map(Untrusted::from), at.line));
            found.push(SymbolName { function, file, line });
        }
        Some(found)
    }

    fn function(&self, address: u64) -> Option<Untrusted> {
        let end = self.functions.partition_point(|(start, _, _)| *start <= address);
        let before = self.functions[..end].iter().rev().take(8);
        let mut containing = before.filter(|(start, bytes, _)| address - start < (*bytes).max(1));
        let (_, _, name) = containing.next()?;
        Some(demangled(name).into())
    }
}

/// Returns the name of a function in its source. A name that is not mangled stays: a demangler of C++ also reads types, and
/// makes `float` of a function `f` in C.
fn demangled(name: &str) -> String {
    match name.starts_with("_Z") || name.starts_with("_R") {
        true => addr2line::demangle_auto(Cow::from(name), None).into_owned(),
        false => name.into(),
    }
}

fn functions(sections: &ElfSections) -> Vec<(u64, u64, Box<str>)> {
    let named = sections.functions(MAX_SYMBOLS).into_iter().filter_map(|one| {
        let name = std::str::from_utf8(one.name).ok().filter(|name| !name.is_empty())?;
        Some((one.address, one.bytes, Box::from(name)))
    });
    let mut found: Vec<(u64, u64, Box<str>)> = named.collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn debug(sections: &ElfSections) -> Option<Context<Slice>> {
    let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
        let bytes = sections.bytes(id.name(), MAX_DEBUG_BYTES).unwrap_or_default();
        Ok(EndianRcSlice::new(Rc::from(bytes), LittleEndian))
    };
    if !sections.has(".debug_info") {
        return None;
    }
    Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use weir_sys::elf::ElfFile;

    use super::*;

    #[test]
    fn only_mangled_names_change() {
        // Each of the first is also the mangled name of a type.
        for name in ["f", "i", "v", "main", "_Start", "operator"] {
            assert_eq!(demangled(name), name);
        }
        assert_eq!(demangled("_ZN3Log5writeEv"), "Log::write()");
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
    }

    #[test]
    fn the_last_address_has_no_name() {
        let elf = ElfFile::open(&std::env::current_exe().expect("its path")).expect("an ELF file");
        let symbols = Symbols::of(&elf.sections().expect("its sections"));
        assert!(symbols.debug.is_some(), "the tests have debug information");
        assert_eq!(symbols.names(u64::MAX), [SymbolName::default()]);
    }
}
