//! Records that a program's logging.handlers.MemoryHandler keeps as objects, before it makes text of them: a kill loses them.
//!
//! The module `logging` has a list of weak references to all handlers. A handler's attributes are in a dictionary, or in an array
//! beside the object, see [`AttributePlace`]. Its buffer is the list among them that has records.

use weir_sys::memory::Memory;

use super::layout::{AttributePlace, PythonLayout};
use super::objects::{LIST_ITEMS, SIZE, TYPE, checked, dict_get, dict_values, module_dict, type_name};
use crate::copied_memory::word;

/// Offset of PyWeakReference.wr_object.
const REFERENT: u64 = 16;
/// Offsets of tp_basicsize, tp_base and tp_dictoffset.
const BASIC_SIZE: u64 = 32;
const BASE: u64 = 256;
const DICT_OFFSET: u64 = 288;
/// Offsets of an object's dictionary and, in 3.11, of its values.
const MANAGED_DICT: u64 = 24;
const MANAGED_VALUES: u64 = 32;

/// A bound for damaged lists, and for programs that make handlers all the time.
const MAX_HANDLERS: u64 = 1024;
/// A bound for damaged lists of records.
const MAX_RECORDS: u64 = 1 << 24;
/// The most bases of a class that are followed.
const MAX_BASES: usize = 16;
/// The most attributes that CPython keeps in an array (SHARED_KEYS_MAX_SIZE).
const MAX_ATTRIBUTES: u64 = 30;

/// Returns the number of records in all MemoryHandlers of an interpreter with this dictionary of modules; 0 if they are unknown.
pub(super) fn kept_records(memory: &dyn Memory, layout: &PythonLayout, modules: u64) -> u64 {
    // A free-threaded interpreter has the attributes of its objects elsewhere.
    if layout.before_counts > 0 {
        return 0;
    }
    let reader = HandlerReader { memory, layout };
    reader.kept_records(modules).unwrap_or(0)
}

struct HandlerReader<'m> {
    memory: &'m dyn Memory,
    layout: &'m PythonLayout,
}

impl HandlerReader<'_> {
    fn kept_records(&self, modules: u64) -> Option<u64> {
        let (memory, layout) = (self.memory, self.layout);
        let found = dict_get(memory, layout, modules, &["logging", "logging.handlers"]);
        let variable = |module: Option<u64>, name: &str| {
            dict_get(memory, layout, module_dict(memory, layout, module?)?, &[name])[0]
        };
        let class = variable(found[1], "MemoryHandler")?;
        let references = self.items(variable(found[0], "_handlerList")?, MAX_HANDLERS)?;
        let handlers = references.into_iter().filter_map(|reference| self.referent(reference));
        let of_class = handlers.filter(|handler| self.is_instance(*handler, class));
        Some(of_class.filter_map(|handler| self.records(handler)).sum())
    }

    /// Returns the items of a list, at most `most`; None if the object is no list.
    fn items(&self, list: u64, most: u64) -> Option<Vec<u64>> {
        let list = checked(self.memory, self.layout, list, b"list")?;
        let count = self.memory.u64(list + SIZE)?.min(most);
        let items = self.memory.bytes(self.memory.u64(list + LIST_ITEMS)?, count as usize * 8);
        Some(items.chunks_exact(8).map(|item| word(item, 0)).collect())
    }

    /// Returns the object of a weak reference; None for other objects.
    fn referent(&self, reference: u64) -> Option<u64> {
        let kind = type_name(self.memory, self.layout, self.type_of(reference)?)?;
        kind.starts_with(b"weakref").then(|| self.memory.u64(reference.checked_add(REFERENT)?)).flatten()
    }

    fn type_of(&self, object: u64) -> Option<u64> {
        self.memory.u64(object.checked_add(TYPE)?)
    }

    fn is_instance(&self, object: u64, class: u64) -> bool {
        let base = |kind: &u64| self.memory.u64(kind.checked_add(BASE)?).filter(|base| *base != 0);
        std::iter::successors(self.type_of(object), base).take(MAX_BASES).any(|kind| kind == class)
    }

    /// Returns how many records a handler keeps: the length of the list among its attributes that has records.
    fn records(&self, handler: u64) -> Option<u64> {
        self.attributes(handler)?.into_iter().find_map(|value| self.record_count(value))
    }

    /// Returns the length of a list whose first and last items are records.
    fn record_count(&self, list: u64) -> Option<u64> {
        let at = checked(self.memory, self.layout, list, b"list")?;
        let count = self.memory.u64(at + SIZE)?;
        if count == 0 || count > MAX_RECORDS {
            return None;
        }
        let items = self.memory.u64(at + LIST_ITEMS)?;
        let is_record = |index: u64| {
            let item = self.memory.u64(items.checked_add(8 * index)?)?;
            checked(self.memory, self.layout, item, b"LogRecord")
        };
        (is_record(0).is_some() && is_record(count - 1).is_some()).then_some(count)
    }

    /// Returns the attributes of an object.
    fn attributes(&self, object: u64) -> Option<Vec<u64>> {
        let (memory, kind) = (self.memory, self.type_of(object)?);
        let before = |offset: u64| memory.u64(object.checked_sub(offset)?);
        let of_dict = |dict: u64| dict_values(memory, self.layout, dict);
        match self.layout.attributes {
            AttributePlace::Dictionary => {
                let offset = memory.u64(kind + DICT_OFFSET).filter(|offset| (1..1 << 16).contains(offset))?;
                of_dict(memory.u64(object + offset)?)
            }
            AttributePlace::ArrayOrDictionary => match before(MANAGED_VALUES)? {
                0 => of_dict(before(MANAGED_DICT)?),
                values => self.array(values),
            },
            AttributePlace::Tagged => match before(MANAGED_DICT)? {
                tagged if tagged & 1 != 0 => self.array(tagged.checked_add(1)?),
                dict => of_dict(dict),
            },
            AttributePlace::InObject => match before(MANAGED_DICT)? {
                0 => self.inline_array(object.checked_add(memory.u64(kind + BASIC_SIZE)?)?),
                dict => of_dict(dict),
            },
        }
    }

    /// Returns the values of an array. The byte two before it has their number.
    fn array(&self, values: u64) -> Option<Vec<u64>> {
        let used = self.memory.bytes(values.checked_sub(2)?, 1).first().copied()?;
        Some(self.words(values, used.into()))
    }

    /// Returns the values of an array with its capacity in front.
    fn inline_array(&self, values: u64) -> Option<Vec<u64>> {
        let capacity = self.memory.bytes(values, 1).first().copied()?;
        Some(self.words(values.checked_add(8)?, capacity.into()))
    }

    fn words(&self, address: u64, count: u64) -> Vec<u64> {
        let bytes = self.memory.bytes(address, count.min(MAX_ATTRIBUTES) as usize * 8);
        bytes.chunks_exact(8).map(|value| word(value, 0)).filter(|value| *value != 0).collect()
    }
}
