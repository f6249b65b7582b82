//! The loss if a power cut leaves a renamed file empty: its new content, and the old content if there was any. ext4 (with
//! auto_da_alloc, the default) and btrfs write a file's data at a rename that replaces another file, so one of the two
//! contents remains. xfs, and ext4 with noauto_da_alloc, do not.

use std::collections::{HashMap, HashSet};

use weir_model::trace::{OpenFile, StreamCounts};
use weir_model::{Direction, SourceLanguage, StreamKind};

use crate::context::RuleContext;
use crate::language::is_interpreted;
use crate::renames::{RenamedFile, file_name};

/// The content that a power cut may destroy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PowerCutLoss {
    /// Only new content: no other file had the name.
    NewContent,
    /// Content that can be made again, from other files or by repeating the run.
    Reproducible,
    /// Old content that exists nowhere else.
    OldContent,
}

/// The number of renames to one name, and the seconds between the first and the last, from which a process keeps its state
/// there. A step of a build does so less often or in less time.
const STATE_RENAMES: u32 = 3;
const STATE_S: f64 = 1.0;

/// The range of bytes read from other files for each byte written in which a file counts as derived from these files. Above
/// it, a few figures were found in many files.
const LEAST_READ_RATIO: f64 = 0.5;
const MOST_READ_RATIO: f64 = 4.0;

/// Directories of files that belong to programs; they are not the data that a program works on.
const SYSTEM: &[&str] =
    &["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/"];

/// The renames up to a time, and the origin of what was written. [`Self::loss`] must be called for the renames in order of
/// time.
pub(crate) struct RenameHistory<'a> {
    /// Number and first time of a process's renames to a name.
    renames: HashMap<(u32, &'a str), (u32, f64)>,
    /// Names that a rename has created so far.
    created: HashSet<&'a str>,
    /// Time at which a file was created and first written, by path.
    written: HashMap<&'a str, f64>,
    /// All new names of the whole run.
    new_names: HashSet<&'a str>,
    /// Processes that write to pipes or sockets.
    feeders: HashSet<u32>,
    /// The input of writers, by process; filled on demand.
    sources: HashMap<u32, WriterSources<'a>>,
}

/// The file input and output of a process, in bytes.
#[derive(Default)]
struct WriterSources<'a> {
    written: u64,
    read: u64,
    read_by_path: HashMap<&'a str, u64>,
}

impl<'a> RenameHistory<'a> {
    /// Begins the history of all renames of a run.
    pub fn new<'b: 'a>(context: &RuleContext<'b>, renamed: &'a [RenamedFile]) -> Self {
        let mut written: HashMap<&str, f64> = HashMap::new();
        let mut feeders = HashSet::new();
        for stream in context.streams(Direction::Out).filter(|stream| stream.bytes > 0) {
            let file = context.recording.file(stream.file);
            if let Some(file) = file.filter(|file| file.is_made_by_opening()) {
                let first_s = written.entry(file.path.exact()).or_insert(stream.first_s);
                *first_s = first_s.min(stream.first_s);
            }
            if context.is_channel(stream) {
                feeders.insert(stream.pid);
            }
        }
        Self {
            renames: HashMap::new(),
            created: HashSet::new(),
            written,
            new_names: renamed.iter().map(|renamed| renamed.to.exact()).collect(),
            feeders,
            sources: HashMap::new(),
        }
    }

    /// Adds a rename to the history and returns what a power cut after it may destroy.
    pub fn loss<'b: 'a>(&mut self, context: &RuleContext<'b>, renamed: &'a RenamedFile) -> PowerCutLoss {
        let (renames, since_s) =
            self.renames.entry((renamed.pid, renamed.to.exact())).or_insert((0, renamed.at_s));
        *renames += 1;
        let is_state = *renames >= STATE_RENAMES && renamed.at_s - *since_s >= STATE_S;
        let written = self.written.get(renamed.to.exact()).is_some_and(|&first_s| first_s < renamed.at_s);
        let made_in_run = !self.created.insert(renamed.to.exact()) || written;
        match renamed.replaced {
            Some(false) => PowerCutLoss::NewContent,
            _ if is_state => PowerCutLoss::OldContent,
            _ if made_in_run || self.is_derived(context, renamed) => PowerCutLoss::Reproducible,
            _ => PowerCutLoss::OldContent,
        }
    }

    /// Returns whether the file was made from other files that still exist: its writer, or a process that feeds the writer,
    /// read about as much from other files as it wrote. Files that the run replaced do not count.
    fn is_derived<'b: 'a>(&mut self, context: &RuleContext<'b>, renamed: &RenamedFile) -> bool {
        let sources = self
            .sources
            .entry(renamed.writer)
            .or_insert_with(|| context.writer_sources(renamed.writer, &self.feeders));
        let own = sources.read_by_path.get(renamed.to.exact()).copied().unwrap_or(0);
        let replaced = sources.read_by_path.iter().filter(|(path, _)| self.new_names.contains(*path));
        let replaced_bytes: u64 = replaced.map(|(_, bytes)| bytes).sum();
        let ratio = (sources.read - replaced_bytes) as f64 / sources.written.max(1) as f64;
        (LEAST_READ_RATIO..=MOST_READ_RATIO).contains(&ratio) && own * 2 < renamed.bytes
    }
}

impl<'a> RuleContext<'a> {
    /// Returns what a process read and wrote. If most of its input comes through pipes and sockets, the input of all feeders
    /// counts as its own.
    fn writer_sources(&self, writer: u32, feeders: &HashSet<u32>) -> WriterSources<'a> {
        let own = self.streams_of(writer);
        let written =
            own.iter().filter(|stream| self.is_file_output(stream)).map(|stream| stream.bytes).sum();
        let mut sources = WriterSources { written, ..WriterSources::default() };
        own.iter().for_each(|stream| self.add_source(stream, &mut sources));
        let fed = own.iter().filter(|stream| stream.direction == Direction::In && self.is_channel(stream));
        if fed.map(|stream| stream.bytes).sum::<u64>() * 2 >= written {
            let inputs = self.streams(Direction::In);
            inputs
                .filter(|stream| stream.pid != writer && feeders.contains(&stream.pid))
                .for_each(|stream| self.add_source(stream, &mut sources));
        }
        sources
    }

    fn add_source(&self, stream: &StreamCounts, sources: &mut WriterSources<'a>) {
        if let Some(file) = self.data_input(stream) {
            sources.read += stream.bytes;
            *sources.read_by_path.entry(file.path.exact()).or_default() += stream.bytes;
        }
    }

    fn is_file_output(&self, stream: &StreamCounts) -> bool {
        stream.direction == Direction::Out && self.kind(stream.file) == StreamKind::File
    }

    fn is_channel(&self, stream: &StreamCounts) -> bool {
        matches!(self.kind(stream.file), StreamKind::Pipe | StreamKind::Socket)
    }

    /// Returns the file that a stream reads as data, under the first of its names, or None if the file belongs to a program.
    fn data_input(&self, stream: &StreamCounts) -> Option<&'a OpenFile> {
        let named = self.recording.file(stream.file)?;
        let reads = stream.direction == Direction::In && stream.bytes > 0 && named.kind == StreamKind::File;
        let system = SYSTEM.iter().any(|start| named.path.exact().starts_with(start));
        let file = self.recording.first_name(stream.file);
        file.filter(|_| reads && !system && !self.is_code(stream, named))
    }

    /// Returns whether a file that a process reads is code: a library, a module or its script.
    fn is_code(&self, stream: &StreamCounts, file: &OpenFile) -> bool {
        let language = self.language(stream.pid, stream.first_s);
        let endings: &[&str] = match language {
            SourceLanguage::Python => &[".pyc"],
            SourceLanguage::Node => &[".js", ".cjs", ".mjs"],
            SourceLanguage::Ruby => &[".rb"],
            SourceLanguage::Perl => &[".pl", ".pm"],
            SourceLanguage::Tcl => &[".tcl"],
            SourceLanguage::Java => &[".jar", ".class"],
            _ => &[],
        };
        let library = file.path.exact().ends_with(".so") || file.path.exact().contains(".so.");

        library
            || endings.iter().any(|ending| file.path.exact().ends_with(ending))
            || is_interpreted(language) && self.is_script(stream, file)
    }

    /// Returns whether a file is the first argument of its process's command that is no option: an interpreter's script.
    fn is_script(&self, stream: &StreamCounts, file: &OpenFile) -> bool {
        let image = self.image_at(stream.pid, stream.first_s).map(|(_, image)| image);
        image.is_some_and(|image| {
            let script = image.argv.iter().skip(1).find(|word| !word.exact().starts_with('-'));
            script.is_some_and(|script| file_name(script.exact()) == file_name(file.path.exact()))
        })
    }
}
