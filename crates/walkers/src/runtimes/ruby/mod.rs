//! Ruby 2.7 to 3.4: the buffers of its IO objects. RUBYOPT loads a hook.
//!
//! Symbols lead to the standard streams only. Every other IO is an object of type T_FILE on Ruby's heap, so a search of
//! the heap finds it. In Ruby 3 its rb_io_t points back to the object; in Ruby 2.7 its class must inherit from IO.

pub(crate) mod fuzzing;
mod io;
mod layout;
#[cfg(test)]
mod tests;
mod version;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use weir_model::trace::RuntimeId;
use weir_sys::memory::Memory;

pub use self::version::rescued_at_end;

use self::io::IoClass;
use self::layout::{KNOWN_VERSIONS, RubyLayout};
use crate::Walker;
use crate::copied_memory::{MAX_STREAMS, word};
use crate::elf_image::ElfImage;
use crate::heap_search::blocks;
use crate::known_objects::KnownObjects;
use crate::stream_buffer::StreamBuffer;
use crate::{
    BufferAccess, Detected, Hook, HookVariable, IgnoresEnvironment, OptionSyntax, ProcessImages,
    ProgramDetection, RuntimeEntry, WalkerEntry,
};
use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeLimits, SourceLanguage};

static HOOK: Hook = Hook {
    folder: "ruby",
    file: "weir_run.rb",
    bytes: include_bytes!("weir_run.rb"),
    // One variable: a program that sets or removes RUBYLIB must still find the file, or Ruby does not start.
    variables: &[HookVariable::AppendedWords { variable: "RUBYOPT", before: "-r", after: "/weir_run.rb" }],
    walker_bounds_delay: false,
};

static OPTIONS: OptionSyntax = OptionSyntax {
    with_rest: "FKTWix",
    with_value: "CEIXer",
    with_program: "",
    long_with_value: &[
        "backtrace-limit",
        "disable",
        "dump",
        "enable",
        "encoding",
        "external-encoding",
        "internal-encoding",
    ],
    ignores_variables: "",
    ignores_hook: "",
    disables_variables: &["all", "rubyopt"],
};

const SYNC: RuntimeFix = RuntimeFix::Hook("RUBYOPT loads a file that sets STDOUT.sync");

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::RUBY,
        name: "Ruby",
        language: SourceLanguage::Ruby,
        fixes: RuntimeFixes {
            unbuffered: SYNC,
            line_buffered: SYNC,
            fully_buffered: RuntimeFix::NotNeeded(
                "Ruby's own buffer is full, of 8 KiB, on everything but a terminal",
            ),
            max_delay: RuntimeFix::Hook("RUBYOPT loads a file with a thread that flushes STDOUT"),
            rescue: RuntimeFix::HookSubstitute("RUBYOPT loads a thread that flushes STDOUT every 10 ms"),
            fork: RuntimeFix::NotNeeded("Ruby itself flushes STDOUT before a fork"),
            order: SYNC,
            other_streams: RuntimeFix::Impossible("Ruby buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits {
            coalesce: Some("Ruby handles SIGSYS, the signal by which calls would be intercepted"),
            has_global_lock: true,
            ..RuntimeLimits::NONE
        },
    },
    order: 30,
    detection: ProgramDetection::ProgramNames { names: &["ruby"], marks: &["ruby_", "libruby", "RUBYOPT"] },
    buffers: BufferAccess::Readable(WalkerEntry {
        symbols: &["ruby_version", "rb_stdin", "rb_stdout", "rb_stderr", IO_CLASS],
        own_symbols: &["ruby_version"],
        libraries: &["libruby"],
        detect,
    }),
    unreached: &[],
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Options(&OPTIONS),
};

fn detect(process: &ProcessImages, found: &mut Detected) {
    for (region, image) in process.images_with("libruby", "ruby_version") {
        let unknown = || Err("ruby of an unknown version".to_string());
        let ruby = |image: Arc<ElfImage>| RubyStreams::of(process.pid, &process.memory, &image, region.start);
        match image.map_or_else(unknown, ruby) {
            Ok(ruby) => found.add(region.start, Box::new(ruby)),
            Err(name) => found.add_unreadable(region.start, &name),
        }
    }
}

/// The symbols of the standard streams.
const STANDARD: [&str; 3] = ["rb_stdout", "rb_stderr", "rb_stdin"];
/// The variable that points to the class IO.
const IO_CLASS: &str = "rb_cIO";

/// The walker of Ruby.
#[derive(Debug)]
pub struct RubyStreams {
    pid: u32,
    /// Addresses of the variables that point to the standard streams.
    standard: Vec<u64>,
    layout: &'static RubyLayout,
    /// Address of the variable that points to the class IO; 0 without such a symbol.
    io_class: u64,
    /// The objects that the last search found.
    objects: RefCell<KnownObjects<u64>>,
}

impl RubyStreams {
    /// Makes the walker of the Ruby in an image. Fails with the name of an unsupported version.
    pub(super) fn of(
        pid: u32,
        memory: &dyn Memory,
        image: &ElfImage,
        start: u64,
    ) -> Result<RubyStreams, String> {
        let text = image.symbol_at("ruby_version", start).map(|at| memory.bytes(at, 16)).unwrap_or_default();
        let version =
            String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        let Some(layout) = RubyLayout::of(&version) else {
            return Err(match version.as_str() {
                "" => "ruby of an unknown version".into(),
                _ => format!("ruby {version} (known to weir: {KNOWN_VERSIONS})"),
            });
        };
        let standard = STANDARD.iter().filter_map(|name| image.symbol_at(name, start)).collect();
        let io_class = image.symbol_at(IO_CLASS, start).unwrap_or(0);
        Ok(RubyStreams { pid, standard, layout, io_class, objects: RefCell::default() })
    }

    fn class(&self, memory: &dyn Memory) -> IoClass {
        IoClass { layout: self.layout, address: memory.u64(self.io_class).unwrap_or(0) }
    }
}

impl Walker for RubyStreams {
    fn runtime(&self) -> RuntimeId {
        RuntimeId::RUBY
    }

    /// Reads the streams by address, the order in which Ruby finalizes its objects.
    fn read(&self, memory: &dyn Memory, kept: u64) -> Vec<StreamBuffer> {
        let (class, mut objects) = (self.class(memory), self.objects.borrow_mut());
        let known = objects.get(|| search(self.pid, memory, class));
        known.extend(self.standard.iter().filter_map(|at| memory.u64(*at)));
        known.retain(|object| class.fptr(memory, *object).is_some());
        known.iter().filter_map(|object| class.stream(memory, *object, kept)).collect()
    }

    fn for_child(&self, child: u32) -> Option<Box<dyn Walker>> {
        Some(Box::new(RubyStreams {
            pid: child,
            standard: self.standard.clone(),
            layout: self.layout,
            io_class: self.io_class,
            objects: self.objects.clone(),
        }))
    }

    fn search_again(&self) {
        self.objects.borrow_mut().search_again();
    }
}

/// Returns the addresses of all IO objects.
fn search(pid: u32, memory: &dyn Memory, class: IoClass) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    blocks(pid, memory, |start, data| {
        let likely = candidates(class, start, data).filter(|object| class.fptr(memory, *object).is_some());
        found.extend(likely);
        if found.len() < MAX_STREAMS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

/// Returns the addresses at which an object of type T_FILE can begin.
fn candidates(class: IoClass, start: u64, data: &[u8]) -> impl Iterator<Item = u64> {
    let words = data.as_chunks::<8>().0.iter().enumerate();
    // The first word rules out most addresses, so it is checked alone first.
    let likely = words.filter(move |(_, bytes)| class.may_be_flags(u64::from_le_bytes(**bytes)));
    let complete = likely.filter(move |(index, _)| class.may_be(&data[8 * index..]));
    complete.map(move |(index, _)| start + 8 * index as u64)
}

/// Returns the first three words of an object: flags, class, rb_io_t.
fn head(bytes: &[u8]) -> [u64; 3] {
    [word(bytes, 0), word(bytes, 8), word(bytes, 16)]
}
