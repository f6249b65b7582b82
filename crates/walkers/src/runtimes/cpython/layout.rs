//! Memory layouts of CPython by version. Between 3.9 and 3.15 the io objects differ in one size only.

use weir_sys::memory::Memory;

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
    /// A string's state can begin with 16 bits for `interned` instead of 2, as in the first releases of 3.14.
    pub wide_interned: bool,
}

const UP_TO_3_10: PythonLayout = PythonLayout {
    head: 32,
    modules: 856,
    text_bytes: 192,
    ascii: 48,
    compact: 72,
    log2_keys: false,
    wide_interned: false,
};
const OF_3_11: PythonLayout = PythonLayout { head: 40, modules: 888, log2_keys: true, ..UP_TO_3_10 };
const OF_3_12: PythonLayout = PythonLayout {
    head: 40,
    modules: 944,
    text_bytes: 200,
    ascii: 40,
    compact: 56,
    log2_keys: true,
    wide_interned: false,
};

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
                Some(PythonLayout { wide_interned: true, ..PythonLayout::read_offsets(memory, runtime, 96)? })
            }
            _ => None,
        }
    }

    /// Reads the layout from the interpreter's table of offsets. `modules_at` is the position of sys.modules in it. A
    /// free-threaded interpreter has larger objects and is not supported.
    fn read_offsets(memory: &dyn Memory, runtime: u64, modules_at: u64) -> Option<PythonLayout> {
        let free_threaded = memory.u64(runtime + 16)?;
        if memory.u64(runtime)? != COOKIE || free_threaded != 0 {
            return None;
        }
        let (head, modules) = (memory.u64(runtime + 40)?, memory.u64(runtime + modules_at)?);
        (head < 1 << 20 && modules < 1 << 20).then_some(PythonLayout { head, modules, ..OF_3_12 })
    }
}
