//! What is lost when a power cut leaves a renamed file empty: the new content always; the old one's too, where there was
//! one. ext4 (auto_da_alloc, on by default) and btrfs write a file out at a rename that replaces another, so that one of
//! the two is there; xfs does not, nor do they where they are told not to.

use std::collections::{HashMap, HashSet};

use weir_model::trace::{OpenFile, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::Context;
use crate::language::Language;
use crate::renames::Renamed;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The name is new: nothing that was there before is lost.
    New,
    /// The old content can be made again, and so can the new one: from other files, or by this run itself.
    Again,
    /// Nobody has the old content any more.
    Old,
}

/// A process that saves to one name so often, and over so many seconds, keeps its state there: that is more than a step of
/// a build.
const STATE: u32 = 3;
const STATE_S: f64 = 1.0;

/// What was written is about as much as was read elsewhere: from a half to …
const LEAST_PART: f64 = 0.5;
/// … so many times of it. A few numbers found in many files are no copy of these.
const MOST_TIMES: f64 = 4.0;

/// Where programs have what belongs to them, and not to what they are to do.
const SYSTEM: &[&str] =
    &["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/"];

/// What is known of names and of writers, gathered while the renames of a run are gone through in order of time.
pub(crate) struct Names<'a> {
    /// How often a process has renamed something to a name, and since when.
    times: HashMap<(u32, &'a str), (u32, f64)>,
    /// Names that something was renamed to.
    taken: HashSet<&'a str>,
    /// When a file of this name was made and written for the first time.
    made: HashMap<&'a str, f64>,
    /// All names that something is renamed to.
    replaced: HashSet<&'a str>,
    /// Who writes into pipes and sockets.
    feeders: HashSet<u32>,
    /// What writers read, by process.
    sources: HashMap<u32, Sources<'a>>,
}

/// What a process wrote to files, and what went into it.
#[derive(Default)]
struct Sources<'a> {
    written: u64,
    read: u64,
    /// Of that, by path.
    by_path: HashMap<&'a str, u64>,
}

impl<'a> Names<'a> {
    /// Before the first of all these.
    pub fn new<'b: 'a>(context: &Context<'b>, all: &'a [Renamed]) -> Self {
        let replaced = all.iter().map(|one| one.to.as_str()).collect();
        let mut made: HashMap<&str, f64> = HashMap::new();
        let mut feeders = HashSet::new();
        for flow in context.toward(Direction::Out).filter(|flow| flow.bytes > 0) {
            let file = context.recording.file(flow.file);
            if let Some(file) = file.filter(|file| file.is_made_by_opening()) {
                let first_s = made.entry(&file.path).or_insert(flow.first_s);
                *first_s = first_s.min(flow.first_s);
            }
            if context.is_channel(flow) {
                feeders.insert(flow.pid);
            }
        }
        let (times, taken, sources) = (HashMap::new(), HashSet::new(), HashMap::new());
        Self { times, taken, made, replaced, feeders, sources }
    }

    /// The damage of a rename.
    pub fn damage<'b: 'a>(&mut self, context: &Context<'b>, renamed: &'a Renamed) -> Damage {
        let (times, since_s) = self.times.entry((renamed.pid, &renamed.to)).or_insert((0, renamed.at_s));
        *times += 1;
        let state = *times >= STATE && renamed.at_s - *since_s >= STATE_S;
        let made = self.made.get(renamed.to.as_str()).is_some_and(|&made_s| made_s < renamed.at_s);
        let made_here = !self.taken.insert(&renamed.to) || made;
        match renamed.replaced {
            Some(false) => Damage::New,
            _ if state => Damage::Old,
            _ if made_here || self.is_derived(context, renamed) => Damage::Again,
            _ => Damage::Old,
        }
    }

    /// Whether the file was made of others, which are there still: its writer, or who gave it its input, read about as
    /// much of other files as it wrote; and not of those that it replaced.
    fn is_derived<'b: 'a>(&mut self, context: &Context<'b>, renamed: &Renamed) -> bool {
        let sources = self
            .sources
            .entry(renamed.writer)
            .or_insert_with(|| context.sources(renamed.writer, &self.feeders));
        let own = sources.by_path.get(renamed.to.as_str()).copied().unwrap_or(0);
        let replaced = |path: &&str| self.replaced.contains(*path);
        let lost: u64 =
            sources.by_path.iter().filter(|(path, _)| replaced(path)).map(|(_, bytes)| bytes).sum();
        let times = (sources.read - lost) as f64 / sources.written.max(1) as f64;
        (LEAST_PART..=MOST_TIMES).contains(&times) && own * 2 < renamed.bytes
    }
}

impl<'a> Context<'a> {
    fn sources(&self, writer: u32, feeders: &HashSet<u32>) -> Sources<'a> {
        let own = self.flows(writer);
        let written = own.iter().filter(|flow| self.is_output(flow)).map(|flow| flow.bytes).sum();
        let mut sources = Sources { written, ..Sources::default() };
        own.iter().for_each(|flow| self.add_source(flow, &mut sources));
        let fed = own.iter().filter(|flow| flow.direction == Direction::In && self.is_channel(flow));
        if fed.map(|flow| flow.bytes).sum::<u64>() * 2 >= written {
            let others =
                self.toward(Direction::In).filter(|flow| flow.pid != writer && feeders.contains(&flow.pid));
            others.for_each(|flow| self.add_source(flow, &mut sources));
        }
        sources
    }

    fn add_source(&self, flow: &StreamCounts, sources: &mut Sources<'a>) {
        if let Some(file) = self.input(flow) {
            sources.read += flow.bytes;
            *sources.by_path.entry(&file.path).or_default() += flow.bytes;
        }
    }

    fn is_output(&self, flow: &StreamCounts) -> bool {
        flow.direction == Direction::Out && self.kind(flow.file) == StreamKind::File
    }

    fn is_channel(&self, flow: &StreamCounts) -> bool {
        matches!(self.kind(flow.file), StreamKind::Pipe | StreamKind::Socket)
    }

    /// A file that is read for what is in it, by the first of its names: not what belongs to the program.
    fn input(&self, flow: &StreamCounts) -> Option<&'a OpenFile> {
        let named = self.recording.file(flow.file)?;
        let read = flow.direction == Direction::In && flow.bytes > 0 && named.kind == StreamKind::File;
        let system = SYSTEM.iter().any(|start| named.path.starts_with(start));
        let file = self.recording.first_name(flow.file);
        file.filter(|_| read && !system && !self.is_program(flow, named))
    }

    /// Whether a process reads this to know what to do: a library, a script, a module.
    fn is_program(&self, flow: &StreamCounts, file: &OpenFile) -> bool {
        let ends: &[&str] = match self.language(flow.pid, flow.first_s) {
            Language::Python => &[".pyc"],
            Language::Node => &[".js", ".cjs", ".mjs"],
            Language::Ruby => &[".rb"],
            Language::Perl => &[".pl", ".pm"],
            Language::Tcl => &[".tcl"],
            Language::Java => &[".jar", ".class"],
            _ => &[],
        };
        let library = file.path.ends_with(".so") || file.path.contains(".so.");
        let script = || {
            let image = self.image_at(flow.pid, flow.first_s).map(|(_, image)| image);
            let interpreted =
                !matches!(self.language(flow.pid, flow.first_s), Language::C | Language::Go | Language::Rust);
            let named = |word: &String| crate::renames::base(word) == crate::renames::base(&file.path);
            // The first file among an interpreter's arguments is what it runs.
            let first =
                |argv: &[String]| argv.iter().skip(1).find(|word| !word.starts_with('-')).is_some_and(named);
            interpreted && image.is_some_and(|image| first(&image.argv))
        };
        library || ends.iter().any(|end| file.path.ends_with(end)) || script()
    }
}
