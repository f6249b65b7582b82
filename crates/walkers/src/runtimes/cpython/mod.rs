//! CPython: the buffers of io.BufferedWriter, BufferedReader and BufferedRandom, and the text that TextIOWrapper
//! holds before them.
//!
//! The interpreter's dictionary of modules leads to the module `_io` and so to the types. A search of the heap finds
//! every object of these types; an object is accepted only if all that it points to is valid.

mod derived_types;
mod drain;
pub(crate) mod fuzzing;
mod layout;
mod log_records;
mod object_search;
mod objects;
mod streams;
#[cfg(test)]
mod tests;
mod unread_versions;

use std::cell::RefCell;
use std::ops::Range;

use weir_model::trace::{Buffer, RuntimeId};
use weir_sys::maps::MappedRegion;
use weir_sys::memory::Memory;

use crate::Walker;
use crate::elf_image::ElfImage;
use crate::known_objects::KnownObjects;
use crate::stream_buffer::StreamBuffer;
use crate::{
    BufferAccess, Detected, Hook, HookVariable, IgnoresEnvironment, OptionSyntax, ProcessImages,
    ProgramDetection, RuntimeEntry, WalkerEntry,
};
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};

pub(crate) use layout::PythonLayout;
use layout::is_free_threaded;
use objects::{dict_get, module_dict};
use streams::{IoType, IoTypes};
pub use unread_versions::entry_for;
pub(crate) use unread_versions::unread_buffers;

/// The function that executes the bytecode of a program; the functions that it calls are written in C.
const EVALUATOR: &str = "_PyEval_EvalFrameDefault";

pub(crate) static HOOK: Hook = Hook {
    folder: "python",
    file: "sitecustomize.py",
    bytes: include_bytes!("sitecustomize.py"),
    variables: &[HookVariable::PathList("PYTHONPATH")],
    walker_bounds_delay: true,
};

pub(crate) const UNBUFFERED: RuntimeFix = RuntimeFix::Environment {
    variables: &[("PYTHONUNBUFFERED", "1")],
    effect: "PYTHONUNBUFFERED=1: each write goes out at once",
};
pub(crate) const LINE_BUFFERED: RuntimeFix =
    RuntimeFix::Hook("a sitecustomize makes sys.stdout line-buffered");
/// The options of CPython and PyPy.
pub(crate) static OPTIONS: OptionSyntax = OptionSyntax {
    with_rest: "",
    with_value: "QWX",
    with_program: "cm",
    long_with_value: &["check-hash-based-pycs", "jit"],
    ignores_variables: "EI",
    // No module site, which imports the hook.
    ignores_hook: "S",
    disables_variables: &[],
};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::CPYTHON,
        name: "Python",
        language: SourceLanguage::Python,
        fixes: RuntimeFixes {
            unbuffered: UNBUFFERED,
            line_buffered: LINE_BUFFERED,
            fully_buffered: RuntimeFix::Environment {
                variables: &[("PYTHONUNBUFFERED", "")],
                effect: "Python's own full buffer, of 8 KiB",
            },
            max_delay: RuntimeFix::Outside,
            rescue: RuntimeFix::Outside,
            fork: RuntimeFix::Outside,
            order: UNBUFFERED,
            other_streams: RuntimeFix::Impossible("Python buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits { has_global_lock: true, ..RuntimeLimits::NONE },
    },
    order: 10,
    detection: ProgramDetection::ProgramNames {
        names: &["python"],
        marks: &["Py_BytesMain", "Py_Main", "_Py_UnixMain", "libpython", "PYTHONHOME"],
    },
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["_PyRuntime", "Py_Version", EVALUATOR],
        own_symbols: &["_PyRuntime", "Py_Version"],
        libraries: &["libpython3."],
        detect,
    }),
    unreached: &[],
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Options(&OPTIONS),
};

fn detect(process: &ProcessImages, found: &mut Detected) {
    let mut has_image = false;
    for (region, image) in process.images_with("libpython", "_PyRuntime") {
        // Versions before 3.7 have no such variable.
        let Some(image) = image.filter(|image| image.symbol("_PyRuntime").is_some()) else {
            if let Some(version) = unread_versions::of_library(region.name()) {
                has_image = true;
                found.add_unreadable(region.start, &version);
            }
            continue;
        };
        has_image = true;
        match version(&process.memory, &image, region) {
            Ok(layout) => {
                let runtime = image.symbol_at("_PyRuntime", region.start).unwrap_or(0);
                let evaluator = image.function_at(EVALUATOR, region.start);
                found
                    .add(region.start, Box::new(PythonStreams::new(process.pid, runtime, layout, evaluator)));
            }
            Err(name) => found.add_unreadable(region.start, &name),
        }
    }
    if let Some(region) = process.executable_start().filter(|_| !has_image) {
        let file = process.image_file(region);
        let version = file.and_then(|(path, image)| unread_versions::of_static(region.name(), &path, &image));
        version.into_iter().for_each(|version| found.add_unreadable(region.start, &version));
    }
}

/// Returns the layout of the interpreter in an image. Fails with the name of an unsupported version.
pub(super) fn version(
    memory: &dyn Memory,
    image: &ElfImage,
    region: &MappedRegion,
) -> Result<PythonLayout, String> {
    let number = image.symbol_at("Py_Version", region.start).and_then(|at| memory.u64(at));
    let minor = match number {
        Some(number) if number >> 24 == 3 => u32::try_from(number >> 16 & 0xff).ok(),
        Some(_) => None,
        None => named_version(region.name()),
    };
    let runtime = image.symbol_at("_PyRuntime", region.start).unwrap_or(0);
    let suffix = if is_free_threaded(memory, runtime) == Some(true) { "t" } else { "" };
    let name = || {
        minor.map_or("python of an unknown version".to_string(), |minor| format!("python 3.{minor}{suffix}"))
    };
    minor.and_then(|minor| PythonLayout::of(memory, minor, runtime)).ok_or_else(name)
}

/// Returns the minor version from the name of the file, the only source before 3.11: python3.9, libpython3.10.so.1.0.
fn named_version(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once("python3.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// The walker of CPython.
#[derive(Debug)]
pub struct PythonStreams {
    pid: u32,
    runtime: u64,
    layout: PythonLayout,
    evaluator: Range<u64>,
    known: RefCell<IoObjects>,
}

/// The results of the last search.
#[derive(Debug, Clone, Default)]
struct IoObjects {
    types: IoTypes,
    objects: KnownObjects<u64>,
}

impl PythonStreams {
    pub(crate) fn new(pid: u32, runtime: u64, layout: PythonLayout, evaluator: Range<u64>) -> PythonStreams {
        PythonStreams { pid, runtime, layout, evaluator, known: RefCell::default() }
    }

    /// Returns the dictionary of the main interpreter's modules; None while it is not initialized.
    fn modules(&self, memory: &dyn Memory) -> Option<u64> {
        let main = self.runtime + self.layout.head + 8; // the first of the list is the newest
        let interpreter = memory.u64(main).filter(|at| *at != 0)?;
        memory.u64(interpreter.checked_add(self.layout.modules)?)
    }

    /// Returns the types of the module `_io`; None while the interpreter is not initialized.
    fn types(&self, memory: &dyn Memory) -> Option<IoTypes> {
        let modules = self.modules(memory)?;
        let module = dict_get(memory, &self.layout, modules, &["_io"])[0]?;
        let names = IoType::ALL.map(IoType::name);
        let found = dict_get(memory, &self.layout, module_dict(memory, &self.layout, module)?, &names);
        IoTypes::of(memory, &self.layout, &found)
    }

    /// Returns the streams, also those whose bytes go to an object of the program.
    fn all_streams(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut known = self.known.borrow_mut();
        if !known.types.are_valid(memory, &self.layout) {
            *known =
                IoObjects { types: self.types(memory).unwrap_or_default(), objects: KnownObjects::default() };
        }
        if known.types.is_empty() {
            return Vec::new();
        }
        if known.objects.is_search_due() {
            known.types.find_derived(memory, &self.layout);
        }
        let types = &known.types.clone();
        let search = || object_search::objects(self.pid, memory, &self.layout, types);
        let objects = known.objects.get(search);
        streams::streams(memory, &self.layout, types, objects, kept)
    }
}

impl Walker for PythonStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::CPYTHON
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.all_streams(memory, kept);
        found.retain(|one| one.buffer.fd != streams::NO_DESCRIPTOR);
        found
    }

    fn cookie_buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let buffers = self.all_streams(memory, 0).into_iter().map(|one| one.buffer);
        let has_own_functions = |one: &Buffer| one.fd == streams::NO_DESCRIPTOR || one.found_by_search;
        buffers.filter(|one| has_own_functions(one) && one.pending_bytes > 0).collect()
    }

    fn read_in_exit_order(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut found = self.read(memory, kept);
        // At exit, Python flushes sys.stdout and sys.stderr before it frees the other streams.
        found.sort_by_key(|one| !matches!(one.buffer.fd, 1 | 2));
        found
    }

    fn kept_records(&self, memory: &dyn Memory) -> u64 {
        self.modules(memory).map_or(0, |modules| log_records::kept_records(memory, &self.layout, modules))
    }

    fn text_layers(&self, memory: &dyn Memory) -> Vec<(u64, u64)> {
        let known = self.known.borrow();
        streams::text_layers(memory, &self.layout, &known.types, known.objects.found().iter())
    }

    fn streams_in_use(&self, memory: &dyn Memory) -> Vec<u64> {
        let known = self.known.borrow();
        streams::in_use(memory, &self.layout, &known.types, known.objects.found().iter())
    }

    fn bytes_before_counts(&self) -> u64 {
        self.layout.before_counts
    }

    fn interpreter_code(&self) -> Range<u64> {
        self.evaluator.clone()
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        let known = self.known.clone();
        Some(Box::new(PythonStreams { pid: child, evaluator: self.evaluator.clone(), known, ..*self }))
    }

    fn search_again(&self) {
        self.known.borrow_mut().objects.search_again();
    }
}
