//! Where CPython keeps what, by version. The io objects are the same from 3.9 to 3.14 but for one size.

use weir_sys::memory::Memory;

/// Offsets of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PythonLayout {
    /// In _PyRuntime: the list of interpreters; behind its head is the main one.
    pub head: u64,
    /// In PyInterpreterState: sys.modules.
    pub modules: u64,
    /// PyTypeObject.tp_basicsize of TextIOWrapper: tells whether the layout is the one we know.
    pub text_bytes: u64,
    /// Before the characters of an ASCII string, and of another.
    pub ascii: u64,
    pub compact: u64,
    /// The dictionary's keys have their sizes as powers of two (3.11).
    pub log2_keys: bool,
    /// A string's state begins at this bit (3.14 has 16 bits for `interned` where there were 2).
    pub state_shift: u32,
}

const UP_TO_3_10: PythonLayout = PythonLayout {
    head: 32,
    modules: 856,
    text_bytes: 192,
    ascii: 48,
    compact: 72,
    log2_keys: false,
    state_shift: 0,
};
const OF_3_11: PythonLayout = PythonLayout { head: 40, modules: 888, log2_keys: true, ..UP_TO_3_10 };
const OF_3_12: PythonLayout = PythonLayout {
    head: 40,
    modules: 944,
    text_bytes: 200,
    ascii: 40,
    compact: 56,
    log2_keys: true,
    state_shift: 0,
};

/// "xdebugpy": at the start of _PyRuntime there is a table of offsets.
const COOKIE: u64 = 0x7970_6775_6265_6478;

impl PythonLayout {
    /// Of 3.`minor`; None where it is not known.
    pub fn of(memory: &dyn Memory, minor: u32, runtime: u64) -> Option<PythonLayout> {
        match minor {
            9 | 10 => Some(UP_TO_3_10),
            11 => Some(OF_3_11),
            12 => Some(OF_3_12),
            13 => PythonLayout::told(memory, runtime, 88),
            14 => Some(PythonLayout { state_shift: 14, ..PythonLayout::told(memory, runtime, 96)? }),
            _ => None,
        }
    }

    /// As the running interpreter itself tells it; `modules_at` is where in the table. A free-threaded one has
    /// larger objects.
    fn told(memory: &dyn Memory, runtime: u64, modules_at: u64) -> Option<PythonLayout> {
        let free_threaded = memory.u64(runtime + 16)?;
        if memory.u64(runtime)? != COOKIE || free_threaded != 0 {
            return None;
        }
        let (head, modules) = (memory.u64(runtime + 40)?, memory.u64(runtime + modules_at)?);
        (head < 1 << 20 && modules < 1 << 20).then_some(PythonLayout { head, modules, ..OF_3_12 })
    }
}
