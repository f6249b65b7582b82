//! Perl: the buffers in the layers of its file handles (PerlIO), unchanged since 5.14. PERL5OPT loads a hook.
//!
//! Symbols lead to the functions of the layers, but not to the table of handles. A slot of that table contains its
//! own address, so a search of the heap finds the tables. A handle is accepted only if each of its layers points back
//! to its slot, and the lowest layer has a descriptor.

mod encoding;
mod layers;
mod tables;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use weir_model::trace::RuntimeId;
use weir_sys::memory::Memory;

use crate::Walker;
use crate::known_objects::KnownObjects;
use crate::stream_buffer::StreamBuffer;
use crate::{
    BufferAccess, Detected, Hook, HookVariable, IgnoresEnvironment, OptionSyntax, ProcessImages,
    ProgramDetection, RuntimeEntry, WalkerEntry,
};
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};

pub(crate) use layers::PerlLayers;

static HOOK: Hook = Hook {
    folder: "perl",
    file: "WeirRun.pm",
    bytes: include_bytes!("WeirRun.pm"),
    // One variable: a program that sets or removes PERL5LIB must still find the module, or Perl does not start. Perl ignores the user's
    // PERLLIB if PERL5LIB is set.
    variables: &[HookVariable::AppendedWords { variable: "PERL5OPT", before: "-I", after: " -MWeirRun" }],
    walker_bounds_delay: true,
};

static OPTIONS: OptionSyntax = OptionSyntax {
    with_rest: "CDFMVimx:=",
    with_value: "EIe",
    with_program: "",
    long_with_value: &[],
    // The taint checks.
    ignores_variables: "Tt",
    ignores_hook: "",
    disables_variables: &[],
};

const AUTOFLUSH: RuntimeFix = RuntimeFix::Hook("PERL5OPT loads a module that sets $| = 1");

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::PERL,
        name: "Perl",
        language: SourceLanguage::Perl,
        fixes: RuntimeFixes {
            unbuffered: AUTOFLUSH,
            line_buffered: AUTOFLUSH,
            fully_buffered: RuntimeFix::NotNeeded(
                "Perl's own buffer is full, of 8 KiB, on everything but a terminal",
            ),
            max_delay: RuntimeFix::Outside,
            rescue: RuntimeFix::Outside,
            fork: RuntimeFix::Outside,
            order: AUTOFLUSH,
            other_streams: RuntimeFix::Impossible("Perl buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits {
            unconverted: Some(
                "but not what a handle with the layer :encoding still converts to another encoding than UTF-8",
            ),
            ..RuntimeLimits::NONE
        },
    },
    order: 40,
    detection: ProgramDetection::ProgramNames { names: &["perl"], marks: &["perl_parse", "PERL5LIB"] },
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["PerlIO_perlio", "PerlIO_unix"],
        own_symbols: &["PerlIO_perlio"],
        libraries: &["libperl.so."],
        detect,
    }),
    unreached: &[],
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Options(&OPTIONS),
};

/// Perl's walker comes after those of the mapped libraries, before that of a static C library.
const LAST: u64 = u64::MAX - 2;

/// Finds the interpreter in the executable, or in libperl of this or another program.
fn detect(process: &ProcessImages, found: &mut Detected) {
    let library = process.starts().find(|region| region.name().starts_with("libperl.so"));
    let program = process.executable_start();
    let in_library = library.and_then(|region| PerlLayers::of(process.image(region)?.as_ref(), region.start));
    let in_program = || PerlLayers::of(process.executable.as_ref()?, program?.start);
    let layers = in_library.or_else(in_program);
    let is_program = |name: &str| name == "perl" || name.starts_with("perl5");
    let is_perl = library.is_some() || program.is_some_and(|region| is_program(region.name()));
    match layers.filter(|layers| layers.are_known(&process.memory)) {
        Some(layers) => found.add(LAST, Box::new(PerlHandles::new(process.pid, layers))),
        None if layers.is_some() || is_perl => found.add_unreadable(LAST, "perl"),
        None => {}
    }
}

/// The walker of Perl.
#[derive(Debug)]
pub struct PerlHandles {
    pid: u32,
    layers: PerlLayers,
    /// The tables that the last search found. New handles appear in the same tables.
    known_tables: RefCell<KnownObjects<u64>>,
    /// The next search covers all memory, which takes milliseconds; otherwise it ends at the first table.
    search_all: Cell<bool>,
}

impl PerlHandles {
    pub(crate) fn new(pid: u32, layers: PerlLayers) -> PerlHandles {
        PerlHandles { pid, layers, known_tables: RefCell::default(), search_all: Cell::new(false) }
    }

    fn read_tables(&self, memory: &dyn Memory, tables: &BTreeSet<u64>, kept: u64) -> Vec<StreamBuffer> {
        let handles = tables::handles(memory, tables);
        handles.into_iter().filter_map(|(slot, top)| self.layers.stream(memory, slot, top, kept)).collect()
    }
}

impl Walker for PerlHandles {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::PERL
    }

    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let mut known_tables = self.known_tables.borrow_mut();
        if !known_tables.is_search_due() {
            let found = self.read_tables(memory, known_tables.found(), kept);
            if !found.is_empty() {
                return found;
            }
            known_tables.search_again();
        }
        let tables = known_tables.get(|| {
            tables::search(self.pid, memory, self.search_all.get(), |slot, top| {
                self.layers.descriptor(memory, slot, top).is_some()
            })
        });
        self.read_tables(memory, tables, kept)
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(PerlHandles {
            pid: child,
            layers: self.layers,
            known_tables: self.known_tables.clone(),
            search_all: self.search_all.clone(),
        }))
    }

    fn search_again(&self) {
        self.known_tables.borrow_mut().search_again();
        self.search_all.set(true);
    }

    /// New handles are in the tables that are known.
    fn search_for_new(&self) {}
}
