//! Classes that a program derives from the io types: their objects have the same fields, and can have functions of their own.

use weir_sys::memory::Memory;

use super::layout::PythonLayout;
use super::objects::{SIZE, TYPE, dict_get, dict_values, type_name};
use crate::copied_memory::word;

/// Offset of PyWeakReference.wr_object.
const REFERENT: u64 = 16;
/// Offset of the first item of a tuple.
const TUPLE_ITEMS: u64 = 24;
/// Offsets of tp_dict, tp_mro and tp_subclasses.
const DICT: u64 = 264;
const MRO: u64 = 344;
const SUBCLASSES: u64 = 360;

/// A bound for damaged types, and for programs that make classes all the time.
const MAX_CLASSES: usize = 256;
/// A bound for damaged tuples.
const MAX_BASES: u64 = 64;

/// The functions of an object that the layer above it calls to write bytes.
const WRITE_FUNCTIONS: [&str; 4] = ["write", "seek", "tell", "__getattribute__"];

/// A class derived from an io type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DerivedType {
    #[allow(missing_docs)]
    pub address: u64,
    /// The class or one between it and the io type defines one of [`WRITE_FUNCTIONS`], or that is unknown.
    pub has_own_functions: bool,
}

/// Returns the classes that are derived from the type at this address, at any distance.
pub(super) fn derived_types(memory: &dyn Memory, layout: &PythonLayout, base: u64) -> Vec<DerivedType> {
    let mut found: Vec<DerivedType> = Vec::new();
    let mut parents = vec![base];
    while let Some(parent) = parents.pop() {
        for address in subclasses(memory, layout, parent).unwrap_or_default() {
            let is_new = found.len() < MAX_CLASSES && !found.iter().any(|one| one.address == address);
            let Some(between) = is_new.then(|| bases_before(memory, layout, address, base)).flatten() else {
                continue;
            };
            let has_own_functions = between.iter().any(|class| has_own_functions(memory, layout, *class));
            found.push(DerivedType { address, has_own_functions });
            parents.push(address);
        }
    }
    found
}

/// Returns the classes that name a type as one of their bases. The type has a dictionary of weak references to them.
fn subclasses(memory: &dyn Memory, layout: &PythonLayout, kind: u64) -> Option<Vec<u64>> {
    let dict = memory.u64(layout.counts_at(kind)?.checked_add(SUBCLASSES)?)?;
    let references = dict_values(memory, layout, dict)?;
    let referent = |reference: u64| {
        let at = layout.counts_at(reference)?;
        let name = type_name(memory, layout, memory.u64(at.checked_add(TYPE)?)?)?;
        name.starts_with(b"weakref").then(|| memory.u64(at.checked_add(REFERENT)?)).flatten()
    };
    Some(references.into_iter().take(MAX_CLASSES).filter_map(referent).collect())
}

/// Returns a class and those of its bases in which Python looks for a function before it does in `base`; None if `base` is no base.
fn bases_before(memory: &dyn Memory, layout: &PythonLayout, class: u64, base: u64) -> Option<Vec<u64>> {
    let tuple = layout.counts_at(memory.u64(layout.counts_at(class)?.checked_add(MRO)?)?)?;
    let count = memory.u64(tuple.checked_add(SIZE)?)?.min(MAX_BASES);
    let items = memory.bytes(tuple.checked_add(TUPLE_ITEMS)?, count as usize * 8);
    let mut classes: Vec<u64> = items.chunks_exact(8).map(|item| word(item, 0)).collect();
    let at = classes.iter().position(|one| *one == base)?;
    classes.truncate(at);
    (classes.first() == Some(&class)).then_some(classes)
}

fn has_own_functions(memory: &dyn Memory, layout: &PythonLayout, class: u64) -> bool {
    let dict = || memory.u64(layout.counts_at(class)?.checked_add(DICT)?).filter(|dict| *dict != 0);
    let Some(dict) = dict() else { return true };
    // Each class has this name. Without it, the dictionary was not read.
    let found = dict_get(memory, layout, dict, &["__module__"])[0].is_some();
    !found || dict_get(memory, layout, dict, &WRITE_FUNCTIONS).iter().any(Option::is_some)
}
