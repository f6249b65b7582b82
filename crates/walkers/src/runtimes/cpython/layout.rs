//! Memory layouts of CPython by version. Between 3.9 and 3.15 the io objects differ in one size only.

use weir_sys::memory::Memory;

use crate::copied_memory::{int, structure, word};

/// Offsets and sizes of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PythonLayout {
    /// Offset in _PyRuntime of the list of interpreters. The main interpreter follows the head of the list.
    pub head: u64,
    /// Offset of sys.modules in PyInterpreterState.
    pub modules: u64,
    /// tp_basicsize of TextIOWrapper, which shows whether the layout is the known one.
    pub text_bytes: u64,
    /// Offset of the characters of an ASCII string and of other compact strings.
    pub ascii: u64,
    pub compact: u64,
    /// The keys of a dictionary store their sizes as powers of two (3.11).
    pub log2_keys: bool,
    /// A string's state can begin with 8 or 16 bits for `interned` instead of 2, as in the first releases of 3.14.
    pub wide_interned: bool,
    /// The bytes of an object before its last count of references and its type: 16 in a free-threaded interpreter, with the
    /// owner, a lock and the owner's count; 0 in others. All that comes after is laid out alike.
    pub before_counts: u64,
    /// A lock is a semaphore, as in all versions up to 3.14; later ones were not examined.
    pub has_semaphores: bool,
    pub attributes: AttributePlace,
}

/// Where an object of a program's class has its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributePlace {
    /// In a dictionary at an offset that the type has, up to 3.10.
    Dictionary,
    /// In an array, else in a dictionary; pointers to both are in front of the object (3.11).
    ArrayOrDictionary,
    /// As before, with one pointer for both: to a dictionary, or to the byte before an array, which is an odd address (3.12).
    Tagged,
    /// In an array at the end of the object, else in a dictionary (from 3.13 on).
    InObject,
}

const UP_TO_3_10: PythonLayout = PythonLayout {
    head: 32,
    modules: 856,
    text_bytes: 192,
    ascii: 48,
    compact: 72,
    log2_keys: false,
    wide_interned: false,
    before_counts: 0,
    has_semaphores: true,
    attributes: AttributePlace::Dictionary,
};
const OF_3_11: PythonLayout = PythonLayout {
    head: 40,
    modules: 888,
    log2_keys: true,
    attributes: AttributePlace::ArrayOrDictionary,
    ..UP_TO_3_10
};
const OF_3_12: PythonLayout = PythonLayout {
    head: 40,
    modules: 944,
    text_bytes: 200,
    ascii: 40,
    compact: 56,
    log2_keys: true,
    wide_interned: false,
    before_counts: 0,
    has_semaphores: true,
    attributes: AttributePlace::Tagged,
};

/// Size of the part of an object's head that only a free-threaded interpreter has, and offsets in it.
pub(super) const FREE_THREADED_HEAD: u64 = 16;
const MUTEX: usize = 10;
const OWNER_COUNT: usize = 12;
/// The bits of `ob_ref_shared` that are flags.
const SHARED_FLAGS: u32 = 2;

/// "xdebugpy": the magic number of the table of offsets at the start of _PyRuntime.
const COOKIE: u64 = 0x7970_6775_6265_6478;

impl PythonLayout {
    /// Returns the layout of version 3.`minor`; None if it is not supported.
    pub fn of(memory: &dyn Memory, minor: u32, runtime: u64) -> Option<PythonLayout> {
        match minor {
            9 | 10 => Some(UP_TO_3_10),
            11 => Some(OF_3_11),
            12 => Some(OF_3_12),
            13 => PythonLayout::read_offsets(memory, runtime, 88),
            14 | 15 => {
                let layout = PythonLayout::read_offsets(memory, runtime, 96)?;
                // No free-threaded 3.15 was ever tried.
                let is_known = minor == 14 || layout.before_counts == 0;
                let has_semaphores = minor == 14;
                is_known.then_some(PythonLayout { wide_interned: true, has_semaphores, ..layout })
            }
            _ => None,
        }
    }

    /// Reads the layout from the interpreter's table of offsets. `modules_at` is the position of sys.modules in it.
    fn read_offsets(memory: &dyn Memory, runtime: u64, modules_at: u64) -> Option<PythonLayout> {
        if memory.u64(runtime)? != COOKIE {
            return None;
        }
        let before_counts = match is_free_threaded(memory, runtime)? {
            true => FREE_THREADED_HEAD,
            false => 0,
        };
        let (head, modules) = (memory.u64(runtime + 40)?, memory.u64(runtime + modules_at)?);
        let is_plausible = head < 1 << 20 && modules < 1 << 20;
        let attributes = AttributePlace::InObject;
        is_plausible.then_some(PythonLayout { head, modules, before_counts, attributes, ..OF_3_12 })
    }

    /// Returns the address in an object from which all interpreters lay it out alike: a count of references, the type, the
    /// fields. None for an address that no object has.
    pub fn counts_at(&self, object: u64) -> Option<u64> {
        object.checked_add(self.before_counts)
    }

    /// Returns whether an object is in use. `copy` is one from its counts on.
    pub fn is_referenced(&self, memory: &dyn Memory, object: u64, copy: &[u8]) -> bool {
        if self.before_counts == 0 {
            return int(copy, 0) != 0;
        }
        let head: Option<[u8; FREE_THREADED_HEAD as usize]> = structure(memory, object);
        // The owner's count and that of the others may have opposite signs until they are merged.
        head.is_some_and(|head| int(&head, OWNER_COUNT) != 0 || word(copy, 0) >> SHARED_FLAGS != 0)
    }

    /// Returns whether a thread is inside a critical section of an object, or waits for it; false with a global lock.
    pub fn in_critical_section(&self, memory: &dyn Memory, object: u64) -> bool {
        let head: Option<[u8; FREE_THREADED_HEAD as usize]> = structure(memory, object);
        self.before_counts != 0 && head.is_none_or(|head| head[MUTEX] != 0)
    }
}

/// Returns whether an interpreter of 3.13 or later has no global lock; None if it cannot be read or has another number there.
pub(super) fn is_free_threaded(memory: &dyn Memory, runtime: u64) -> Option<bool> {
    match memory.u64(runtime + 16)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
