//! What the code at an address is called: function, file and line by the debug information of its image, or at least
//! the function by its table of symbols.

use std::borrow::Cow;
use std::rc::Rc;

use addr2line::{Context, gimli};
use gimli::{EndianRcSlice, LittleEndian};
use weir_sys::elf::ElfSections;

/// Debug information larger than this, or a table with more symbols, is not read, to be quick.
const DEBUG_MOST: u64 = 256 << 20;
const SYMBOLS_MOST: usize = 4 << 20;

type Slice = EndianRcSlice<LittleEndian>;

/// Of one image file, by its own addresses.
#[derive(Default)]
pub(super) struct Symbols {
    debug: Option<Context<Slice>>,
    /// Where each function begins, how long it is, and what it is called; by address.
    functions: Vec<(u64, u64, Box<str>)>,
}

/// A function, and where in its source; one that was put into its caller by the compiler is one of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SymbolName {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Symbols {
    pub fn of(sections: &ElfSections) -> Symbols {
        Symbols { debug: debug(sections), functions: functions(sections) }
    }

    /// The innermost function first; one without a name where nothing is known.
    pub fn names(&self, address: u64) -> Vec<SymbolName> {
        let mut found = self.by_debug(address).unwrap_or_default();
        if found.is_empty() {
            found.push(SymbolName::default());
        }
        // The compiler may tell lines only.
        if let Some(outermost) = found.last_mut().filter(|name| name.function.is_none()) {
            outermost.function = self.function(address);
        }
        found
    }

    fn by_debug(&self, address: u64) -> Option<Vec<SymbolName>> {
        let mut frames = self.debug.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let (file, line) =
                frame.location.map_or((None, None), |at| (at.file.map(str::to_string), at.line));
            found.push(SymbolName { function, file, line });
        }
        Some(found)
    }

    fn function(&self, address: u64) -> Option<String> {
        let behind = self.functions.partition_point(|(start, _, _)| *start <= address);
        let before = self.functions[..behind].iter().rev().take(8);
        let mut holds = before.filter(|(start, bytes, _)| address - start < (*bytes).max(1));
        let (_, _, name) = holds.next()?;
        Some(addr2line::demangle_auto(Cow::from(&**name), None).into_owned())
    }
}

fn functions(sections: &ElfSections) -> Vec<(u64, u64, Box<str>)> {
    let named = sections.functions(SYMBOLS_MOST).into_iter().filter_map(|one| {
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
        let bytes = sections.bytes(id.name(), DEBUG_MOST).unwrap_or_default();
        Ok(EndianRcSlice::new(Rc::from(bytes), LittleEndian))
    };
    if !sections.has(".debug_info") {
        return None;
    }
    Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}
