//! Classifies what a power cut destroys if it leaves a renamed file empty: its new content, and the old content if there was
//! any. ext4 (with auto_da_alloc, the default) and btrfs write a file's data at a rename that replaces another file, so one of
//! the two contents remains. xfs, and ext4 with noauto_da_alloc, do not.

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

/// A process that renames to one name at least so often, over at least so many seconds, keeps its state in that file. The
/// steps of the builds in the labelled set do so less often or in less time.
const STATE_RENAMES: u32 = 3;
const STATE_S: f64 = 1.0;

/// Bytes that a process reads from files for each byte that it writes to files, in which its output counts as derived from
/// its input. Above the range the output is a small extract, such as a few figures from many files.
const MIN_READ_RATIO: f64 = 0.5;
const MAX_READ_RATIO: f64 = 4.0;

/// Directories of the system: their files are not the data that a program works on.
const SYSTEM_DIRECTORIES: &[&str] =
    &["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/"];

/// The renames up to a time, and the origin of what was written. [`Self::add_and_classify`] must be called for every rename, in
/// order of time.
pub(crate) struct RenameHistory<'a> {
    /// Number and first time of a process's renames to a name.
    renames: HashMap<(u32, &'a str), (u32, f64)>,
    /// Names to which a file was renamed so far.
    earlier_targets: HashSet<&'a str>,
    /// Time in seconds of the first write to a file that was opened with O_CREAT or O_TRUNC, by path.
    first_written: HashMap<&'a str, f64>,
    /// Names to which a file is renamed in the whole run.
    all_targets: HashSet<&'a str>,
    /// Processes that write to pipes or sockets.
    channel_writers: HashSet<u32>,
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
        let mut first_written: HashMap<&str, f64> = HashMap::new();
        let mut channel_writers = HashSet::new();
        for stream in context.streams(Direction::Out).filter(|stream| stream.bytes > 0) {
            let file = context.recording.file(stream.file);
            if let Some(file) = file.filter(|file| file.is_made_by_opening()) {
                let first_s = first_written.entry(file.path.exact()).or_insert(stream.first_s);
                *first_s = first_s.min(stream.first_s);
            }
            if context.is_pipe_or_socket(stream) {
                channel_writers.insert(stream.pid);
            }
        }
        Self {
            renames: HashMap::new(),
            earlier_targets: HashSet::new(),
            first_written,
            all_targets: renamed.iter().map(|renamed| renamed.to.exact()).collect(),
            channel_writers,
            sources: HashMap::new(),
        }
    }

    /// Adds a rename to the history and returns what a power cut after it may destroy.
    pub fn add_and_classify<'b: 'a>(
        &mut self,
        context: &RuleContext<'b>,
        renamed: &'a RenamedFile,
    ) -> PowerCutLoss {
        let (renames, since_s) =
            self.renames.entry((renamed.pid, renamed.to.exact())).or_insert((0, renamed.at_s));
        *renames += 1;
        let holds_state = *renames >= STATE_RENAMES && renamed.at_s - *since_s >= STATE_S;
        let written =
            self.first_written.get(renamed.to.exact()).is_some_and(|&first_s| first_s < renamed.at_s);
        let made_in_run = !self.earlier_targets.insert(renamed.to.exact()) || written;
        match renamed.replaced {
            Some(false) => PowerCutLoss::NewContent,
            _ if holds_state => PowerCutLoss::OldContent,
            _ if made_in_run || self.is_derived(context, renamed) => PowerCutLoss::Reproducible,
            _ => PowerCutLoss::OldContent,
        }
    }

    /// Estimates whether the content can be made again: its writer, with the processes that may have sent it data, read about
    /// as much from files as it wrote, less than half of it from the old file. Files that the run replaces do not count.
    fn is_derived<'b: 'a>(&mut self, context: &RuleContext<'b>, renamed: &RenamedFile) -> bool {
        let sources = self
            .sources
            .entry(renamed.writer)
            .or_insert_with(|| context.writer_sources(renamed.writer, &self.channel_writers));
        let own = sources.read_by_path.get(renamed.to.exact()).copied().unwrap_or(0);
        let replaced = sources.read_by_path.iter().filter(|(path, _)| self.all_targets.contains(*path));
        let replaced_bytes: u64 = replaced.map(|(_, bytes)| bytes).sum();
        let ratio = (sources.read - replaced_bytes) as f64 / sources.written.max(1) as f64;
        (MIN_READ_RATIO..=MAX_READ_RATIO).contains(&ratio) && own * 2 < renamed.bytes
    }
}

impl<'a> RuleContext<'a> {
    /// Returns what a process read from files and wrote to files. If it read at least half as many bytes from pipes and sockets
    /// as it wrote to files, what every process that writes to pipes or sockets read from files counts as its own.
    fn writer_sources(&self, writer: u32, channel_writers: &HashSet<u32>) -> WriterSources<'a> {
        let own = self.streams_of(writer);
        let written =
            own.iter().filter(|stream| self.is_file_output(stream)).map(|stream| stream.bytes).sum();
        let mut sources = WriterSources { written, ..WriterSources::default() };
        own.iter().for_each(|stream| self.add_source(stream, &mut sources));
        let fed =
            own.iter().filter(|stream| stream.direction == Direction::In && self.is_pipe_or_socket(stream));
        if fed.map(|stream| stream.bytes).sum::<u64>() * 2 >= written {
            let inputs = self.streams(Direction::In);
            inputs
                .filter(|stream| stream.pid != writer && channel_writers.contains(&stream.pid))
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

    fn is_pipe_or_socket(&self, stream: &StreamCounts) -> bool {
        matches!(self.kind(stream.file), StreamKind::Pipe | StreamKind::Socket)
    }

    /// Returns the file that a stream reads as data, under the first of its names, or None if the file belongs to a program.
    fn data_input(&self, stream: &StreamCounts) -> Option<&'a OpenFile> {
        let named = self.recording.file(stream.file)?;
        let reads = stream.direction == Direction::In && stream.bytes > 0 && named.kind == StreamKind::File;
        let system = SYSTEM_DIRECTORIES.iter().any(|start| named.path.exact().starts_with(start));
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

    /// Returns whether a file has the base name of the first argument that is no option: an interpreter's script.
    fn is_script(&self, stream: &StreamCounts, file: &OpenFile) -> bool {
        let image = self.image_at(stream.pid, stream.first_s).map(|(_, image)| image);
        image.is_some_and(|image| {
            let script = image.argv.iter().skip(1).find(|word| !word.exact().starts_with('-'));
            script.is_some_and(|script| file_name(script.exact()) == file_name(file.path.exact()))
        })
    }
}
