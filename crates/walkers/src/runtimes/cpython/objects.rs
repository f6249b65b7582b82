//! Python's basic objects in another process's memory: dictionaries, strings, bytes, lists. Offsets are those after
//! [`PythonLayout::counts_at`].

use std::cell::Cell;
use std::collections::HashMap;

use weir_sys::memory::Memory;

use super::layout::{AttributePlace, PythonLayout};
use crate::copied_memory::{UNREAD_KEPT, structure, word};

/// Offset of PyObject.ob_type.
pub(super) const TYPE: u64 = 8;
/// Offset of PyVarObject.ob_size, and of the length of a string.
pub(super) const SIZE: u64 = 16;
const MODULE_DICT: u64 = 16;
const DICT_KEYS: u64 = 32;
/// Offset of the values of a dictionary that shares its keys with others; 0 in others.
const DICT_VALUES: u64 = 40;
pub(super) const LIST_ITEMS: u64 = 24;
const BYTES_DATA: u64 = 32;
/// Offset of PyASCIIObject.state: kind in bits 2 to 4, compact in bit 5, ascii in bit 6.
const STRING_STATE: usize = 32;
const STATE_COMPACT: u32 = 0x20;
const STATE_ASCII: u32 = 0x40;

/// Offset of PyTypeObject.tp_flags, with two of its flags.
const TYPE_FLAGS: u64 = 168;
const BYTES_SUBCLASS: u64 = 1 << 27;
const UNICODE_SUBCLASS: u64 = 1 << 28;

/// A bound for damaged dictionaries: sys.modules has fewer entries.
const MAX_ENTRIES: u64 = 1 << 16;
/// A bound for damaged lists: a TextIOWrapper hands on its parts long before.
const MAX_PARTS: u64 = 1 << 16;
/// The number of parts that are read with one call, and the bytes that are read of each: most parts are shorter.
const PARTS_AT_ONCE: usize = 1024;
const HEAD_BYTES: usize = 128;
/// A bound for damaged objects, which can share a text. The text layers of real programs have a few KiB each.
pub(super) const MAX_TEXT_BYTES: u64 = 32 << 20;
/// The least bytes that a part counts as, because each takes time.
const MIN_PART_BYTES: usize = 16;

/// The bytes of text that one read of all streams may still take.
#[derive(Debug)]
pub(super) struct TextBudget(Cell<u64>);

impl Default for TextBudget {
    fn default() -> TextBudget {
        TextBudget(Cell::new(MAX_TEXT_BYTES))
    }
}

impl TextBudget {
    /// Takes some bytes. Returns false, and takes none, if so many are not left.
    fn take(&self, bytes: u64) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(self.0.get()));
        left.is_some()
    }
}

/// Returns the name of a type.
pub(super) fn type_name(memory: &dyn Memory, layout: &PythonLayout, kind: u64) -> Option<Vec<u8>> {
    let name = memory.u64(layout.counts_at(kind)?.checked_add(24)?)?;
    let mut text = memory.bytes(name, 64);
    let end = text.iter().position(|byte| *byte == 0)?;
    text.truncate(end);
    Some(text)
}

/// Returns [`PythonLayout::counts_at`] of an object whose type has this name; None for others.
pub(super) fn checked(memory: &dyn Memory, layout: &PythonLayout, object: u64, name: &[u8]) -> Option<u64> {
    let at = layout.counts_at(object)?;
    let kind = memory.u64(at.checked_add(TYPE)?)?;
    (type_name(memory, layout, kind)? == name).then_some(at)
}

/// Returns the dictionary of a module.
pub(super) fn module_dict(memory: &dyn Memory, layout: &PythonLayout, module: u64) -> Option<u64> {
    memory.u64(checked(memory, layout, module, b"module")? + MODULE_DICT)
}

/// Returns the values of keys that are strings; None for a missing key.
pub(super) fn dict_get(
    memory: &dyn Memory,
    layout: &PythonLayout,
    dict: u64,
    keys: &[&str],
) -> Vec<Option<u64>> {
    let mut found = vec![None; keys.len()];
    for (key, value) in entries(memory, layout, dict).unwrap_or_default() {
        let Some(text) = ascii(memory, layout, key) else { continue };
        if let Some(index) = keys.iter().position(|wanted| wanted.as_bytes() == text) {
            found[index] = Some(value);
        }
    }
    found
}

/// Returns the values of a dictionary; None if the object is none.
pub(super) fn dict_values(memory: &dyn Memory, layout: &PythonLayout, dict: u64) -> Option<Vec<u64>> {
    let entries = entries(memory, layout, dict)?;
    let shared = memory.u64(checked(memory, layout, dict, b"dict")? + DICT_VALUES)?;
    if shared == 0 {
        return Some(entries.into_iter().map(|(_, value)| value).collect());
    }
    let first = if layout.attributes == AttributePlace::InObject { 8 } else { 0 };
    let values = memory.bytes(shared.checked_add(first)?, entries.len() * 8);
    Some(values.chunks_exact(8).map(|value| word(value, 0)).filter(|value| *value != 0).collect())
}

fn entries(memory: &dyn Memory, layout: &PythonLayout, dict: u64) -> Option<Vec<(u64, u64)>> {
    let keys = memory.u64(checked(memory, layout, dict, b"dict")? + DICT_KEYS)?;
    let head: [u8; 40] = structure(memory, keys)?;
    let (first, count, only_strings) = if layout.log2_keys {
        (32u64.checked_add(1u64.checked_shl(head[9].into())?)?, word(&head, 24), head[10] != 0)
    } else {
        let slots = word(&head, 8);
        let index_bytes = if slots <= 0xff {
            1
        } else if slots <= 0xffff {
            2
        } else {
            4
        };
        (40u64.checked_add(slots.checked_mul(index_bytes)?)?, word(&head, 32), false)
    };
    if count > MAX_ENTRIES {
        return None;
    }
    let (entry, key) = if only_strings { (16, 0) } else { (24, 8) };
    let table = memory.bytes(keys.checked_add(first)?, count as usize * entry);
    Some(
        table
            .chunks_exact(entry)
            .map(|one| (word(one, key), word(one, key + 8)))
            .filter(|one| one.0 != 0)
            .collect(),
    )
}

/// Returns the state of a string in the layout with 2 bits for `interned`. A kind is never 0, so only 8 bits for `interned` leave bits
/// 2 to 7 empty, and only 16 bits leave bits 2 to 15 empty.
fn state(layout: &PythonLayout, string: &[u8; 40]) -> u32 {
    let state = word(string, STRING_STATE) as u32;
    match layout.wide_interned {
        true if state & 0xfffc == 0 => state >> 14,
        true if state & 0xfc == 0 => state >> 6,
        _ => state,
    }
}

/// Returns the text of a short ASCII string; None for other objects.
fn ascii(memory: &dyn Memory, layout: &PythonLayout, string: u64) -> Option<Vec<u8>> {
    let at = layout.counts_at(string)?;
    let head: [u8; 40] = structure(memory, at)?;
    let length = word(&head, SIZE as usize);
    let plain = state(layout, &head) & (STATE_ASCII | STATE_COMPACT) == STATE_ASCII | STATE_COMPACT;
    (plain && length <= 64).then(|| memory.bytes(at + layout.ascii, length as usize))
}

/// Returns the first characters of a string from `from` on in UTF-8, and the number of bytes of all. Each character beyond the
/// budget counts as one byte.
pub(super) fn text_from(
    memory: &dyn Memory,
    layout: &PythonLayout,
    string: u64,
    from: u64,
    budget: &TextBudget,
) -> Option<(u64, Vec<u8>)> {
    let at = checked(memory, layout, string, b"str")?;
    let head: [u8; 40] = structure(memory, at)?;
    let state = state(layout, &head);
    let (width, ascii) = (u64::from(state >> 2 & 7), state & STATE_ASCII != 0);
    let count = word(&head, SIZE as usize).checked_sub(from).filter(|count| *count <= 1 << 24)?;
    if state & STATE_COMPACT == 0 || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let start = at + if ascii { layout.ascii } else { layout.compact };
    // Only the characters of other strings must be read to be counted.
    let read = if !ascii && budget.take(count * width) { count } else { count.min(UNREAD_KEPT) };
    let data = memory.bytes(start.checked_add(from.checked_mul(width)?)?, (read * width) as usize);
    (data.len() as u64 == read * width).then_some(())?;
    let characters = data.chunks_exact(width as usize).map(|one| {
        let mut word = [0; 4];
        word[..one.len()].copy_from_slice(one);
        char::from_u32(u32::from_le_bytes(word)).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let text = characters.collect::<String>().into_bytes();
    Some((text.len() as u64 + (count - read), text))
}

/// Reads the pending text of a TextIOWrapper: bytes, an ASCII string, or a list of these. Returns only its first parts if the budget
/// is exceeded.
pub(super) fn pending_bytes(
    memory: &dyn Memory,
    layout: &PythonLayout,
    object: u64,
    most: u64,
    budget: &TextBudget,
) -> Option<Vec<u8>> {
    let mut parts = PartReader { memory, layout, places: HashMap::new(), heads: HashMap::new() };
    let mut all = Vec::new();
    let Some(list) = checked(memory, layout, object, b"list") else {
        parts.add(object, most, budget, &mut all)?;
        return Some(all);
    };
    let count = memory.u64(list + SIZE)?.min(MAX_PARTS);
    if !budget.take(count * 8) {
        return Some(all);
    }
    let items = memory.bytes(memory.u64(list + LIST_ITEMS)?, count as usize * 8);
    let items: Vec<u64> = items.chunks_exact(8).map(|item| word(item, 0)).collect();
    for items in items.chunks(PARTS_AT_ONCE) {
        parts.read_heads(items);
        for item in items {
            let room = most.saturating_sub(all.len() as u64);
            if room == 0 || !parts.add(*item, room, budget, &mut all)? {
                return Some(all);
            }
        }
    }
    Some(all)
}

/// Where the objects of a type have their bytes.
#[derive(Debug, Clone, Copy)]
enum BytesPlace {
    /// In the object at this offset.
    Inline(u64),
    /// As [`StringBytes`] of each object.
    OfString,
}

/// Where a string of ASCII characters has its bytes. An object of a subclass of str points to them.
enum StringBytes {
    Inline,
    At(u64),
}

/// Reads many small objects with one call, to keep up with a program that writes all the time.
struct PartReader<'m> {
    memory: &'m dyn Memory,
    layout: &'m PythonLayout,
    places: HashMap<u64, BytesPlace>,
    /// The first bytes of the objects that were read at once, by [`PythonLayout::counts_at`].
    heads: HashMap<u64, Vec<u8>>,
}

impl PartReader<'_> {
    /// Reads the heads of objects. Each is read once: a list of lines has the same object for each line end.
    fn read_heads(&mut self, objects: &[u64]) {
        let mut addresses: Vec<u64> = objects.iter().filter_map(|at| self.layout.counts_at(*at)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let heads = self.memory.blocks(&addresses, HEAD_BYTES);
        self.heads = addresses.into_iter().zip(heads).filter_map(|(at, head)| Some((at, head?))).collect();
    }

    /// Adds the first `most` bytes of a part. Returns false, and adds none, if the budget is exceeded; None for other objects.
    fn add(&mut self, object: u64, most: u64, budget: &TextBudget, all: &mut Vec<u8>) -> Option<bool> {
        let mut part = self.part(object, most)?;
        // The memory limits the bytes that are not in the head.
        let is_allowed = budget.take(part.len().clamp(MIN_PART_BYTES, HEAD_BYTES) as u64);
        if is_allowed {
            all.append(&mut part);
        }
        Some(is_allowed)
    }

    fn part(&mut self, object: u64, most: u64) -> Option<Vec<u8>> {
        let object = self.layout.counts_at(object)?;
        let memory = self.memory;
        let head = self.heads.entry(object).or_insert_with(|| memory.bytes(object, HEAD_BYTES));
        let number = |at: u64| Some(u64::from_le_bytes(*head.get(at as usize..)?.first_chunk()?));
        let (kind, length) = (number(TYPE)?, number(SIZE)?);
        let place = self.place(kind)?;
        let head = self.heads.get(&object)?;
        let start = match place {
            BytesPlace::Inline(start) => start,
            BytesPlace::OfString => match self.string_bytes(head)? {
                StringBytes::Inline => self.layout.ascii,
                StringBytes::At(address) => return memory.content(address, length, most),
            },
        };
        match head.get(start as usize..).and_then(|rest| rest.get(..length.min(most) as usize)) {
            Some(data) => Some(data.to_vec()),
            None => memory.content(object.checked_add(start)?, length, most),
        }
    }

    /// Returns where an object of a subclass of str has its bytes; None if they are not ASCII.
    fn string_bytes(&self, head: &[u8]) -> Option<StringBytes> {
        let state = state(self.layout, head.first_chunk()?);
        let pointer = head.get(self.layout.compact as usize..)?.first_chunk()?;
        match (state & STATE_ASCII != 0, state & STATE_COMPACT != 0) {
            (false, _) => None,
            (true, true) => Some(StringBytes::Inline),
            (true, false) => Some(StringBytes::At(u64::from_le_bytes(*pointer))),
        }
    }

    fn place(&mut self, kind: u64) -> Option<BytesPlace> {
        if let Some(place) = self.places.get(&kind) {
            return Some(*place);
        }
        let place = match type_name(self.memory, self.layout, kind)?.as_slice() {
            b"bytes" => BytesPlace::Inline(BYTES_DATA),
            b"str" => BytesPlace::Inline(self.layout.ascii),
            _ => self.place_of_subclass(kind)?,
        };
        self.places.insert(kind, place);
        Some(place)
    }

    /// Returns where the objects of a type that is derived from bytes or str have their bytes, such as numpy.str_; None for other types.
    fn place_of_subclass(&self, kind: u64) -> Option<BytesPlace> {
        let flags = self.memory.u64(self.layout.counts_at(kind)?.checked_add(TYPE_FLAGS)?)?;
        match (flags & BYTES_SUBCLASS != 0, flags & UNICODE_SUBCLASS != 0) {
            (true, false) => Some(BytesPlace::Inline(BYTES_DATA)),
            (false, true) => Some(BytesPlace::OfString),
            _ => None,
        }
    }
}
