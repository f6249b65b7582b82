//! One invocation of `weir copy`: finds the target of each operand and copies it.

use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};

use crate::backup::backup_name;
use crate::context::{Context, CopyReporter, Worker};
use crate::control::CopyControl;
use crate::durability::note_directory;
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::node::copy_node;
use crate::options::{CopyOptions, CopySync, Tristate};
use crate::parents::{ParentPair, finish_parents, make_parents};
use crate::stream_file::{copy_to_file, pump};
use crate::tally::CopyTally;
use crate::target::quoted;
use crate::tree::{UNKNOWN, copy_tree};

/// Where the copies go.
#[derive(Debug, Clone)]
pub enum CopyDestination {
    /// The last operand: a directory that exists, or the name of the copy.
    Guess(PathBuf),
    /// `-t`: a directory.
    Directory(PathBuf),
    /// `-T`: the name of the copy.
    Exact(PathBuf),
}

/// The result of a run of [`copy`].
#[derive(Debug)]
pub struct CopySummary {
    /// The counts of all threads.
    pub tally: CopyTally,
    /// The time from the first call to the last sync.
    pub elapsed: Duration,
}

/// Copies all sources. Errors of single files are reported and counted; the others are copied.
pub fn copy(
    options: &CopyOptions,
    sources: &[PathBuf],
    destination: &CopyDestination,
    control: &CopyControl,
    reporter: &dyn CopyReporter,
) -> CopySummary {
    let started = Instant::now();
    let mut context = Context::new(options, control, reporter, sources.len() > 1);
    context.names_root = matches!(destination, CopyDestination::Guess(path) if !path.is_dir());
    let mut worker = Worker::new();
    if let Err(error) =
        Operands::new(sources, destination).and_then(|mut operands| operands.copy_all(&context, &mut worker))
    {
        context.report_error(&mut worker, &error);
    }
    if options.sync_level() != CopySync::None && !control.is_stopping() {
        for error in context.ledger.sync(control, &mut worker.tally) {
            context.report_error(&mut worker, &error);
        }
    }
    CopySummary { tally: worker.tally, elapsed: started.elapsed() }
}

/// The sources and where they go.
struct Operands<'a> {
    sources: &'a [PathBuf],
    target: &'a Path,
    /// The copies go into the target, with the sources' names.
    into_directory: bool,
    /// Sources that were copied, to find one that is named twice.
    done: HashSet<((u64, u64), OsString)>,
}

impl<'a> Operands<'a> {
    fn new(sources: &'a [PathBuf], destination: &'a CopyDestination) -> CopyResult<Self> {
        let is_directory = |path: &Path| {
            rustix::fs::stat(path).is_ok_and(|stat| FileStat::from(stat).kind() == FileType::Directory)
        };
        let (target, into_directory) = match destination {
            CopyDestination::Exact(path) => (path, false),
            CopyDestination::Directory(path) => (path, true),
            CopyDestination::Guess(path) => (path, path.as_os_str() != "-" && is_directory(path)),
        };
        let needs_directory = matches!(destination, CopyDestination::Directory(_))
            || (sources.len() > 1 && target.as_os_str() != "-");
        if needs_directory && !(into_directory && is_directory(target)) {
            return Err(CopyError::Refused(format!(
                "target {} is not a directory: create it first, or name one source",
                quoted(target)
            )));
        }
        Ok(Self { sources, target, into_directory, done: HashSet::new() })
    }

    fn copy_all(&mut self, context: &Context, worker: &mut Worker) -> CopyResult<()> {
        if context.defers_syncs && self.into_directory {
            note_directory(context, self.target)?;
        }
        for source in self.sources {
            context.control.check()?;
            if let Err(error) = self.copy_one(context, worker, source) {
                context.report_error(worker, &error);
            }
        }
        Ok(())
    }

    fn copy_one(&mut self, context: &Context, worker: &mut Worker, source: &Path) -> CopyResult<()> {
        let stripped =
            if context.options.strip_trailing_slashes { without_slashes(source) } else { source.into() };
        let source = stripped.as_path();
        if source.as_os_str() == "-" || self.target.as_os_str() == "-" {
            return self.copy_standard_stream(context, worker, source);
        }
        let (target, parents) = self.target_of(context, worker, source)?;
        let copied = self.copy_to(context, worker, source, &target);
        finish_parents(context, worker, &parents)?;
        copied
    }

    /// Copies an operand that is no stream.
    fn copy_to(
        &mut self,
        context: &Context,
        worker: &mut Worker,
        source: &Path,
        target: &Path,
    ) -> CopyResult<()> {
        if !self.is_new_operand(context, source) {
            return Ok(());
        }
        let (source_name, target_name) = (c_string(source)?, c_string(target)?);
        refuse_missing_directory(source, target)?;
        let entry = Entry { dir: None, source: &source_name, target: &target_name };
        let own_backup = own_backup(context, &entry)?;
        let entry = own_backup.as_deref().map_or(entry, |backup| entry.with_target(backup));
        refuse_inside_itself(context, source, target)?;
        if let Some(root) = copy_node(context, worker, &entry, UNKNOWN)? {
            if root.is_new && !self.into_directory {
                // The new directory's own name is in the one above it.
                note_directory(context, target.join("..").as_path())?;
            }
            copy_tree(context, worker, root);
        }
        Ok(())
    }

    /// Returns the path of the copy of a source. With `--parents` makes the directories above it.
    fn target_of(
        &self,
        context: &Context,
        worker: &mut Worker,
        source: &Path,
    ) -> CopyResult<(PathBuf, Vec<ParentPair>)> {
        if context.options.parents {
            if !self.into_directory {
                return Err(CopyError::Refused(format!(
                    "with --parents, the destination {} must be a directory",
                    quoted(self.target)
                )));
            }
            return make_parents(context, worker, source, self.target);
        }
        if !self.into_directory {
            return Ok((self.target.into(), Vec::new()));
        }
        // `cp -r a/. b` and `cp -r .. b` copy the content into b itself.
        let target = match last_name(source) {
            Some(name) => self.target.join(name),
            None => self.target.into(),
        };
        Ok((target, Vec::new()))
    }

    /// Returns false, with a warning, for a source that was named before: its copy would replace the first one.
    fn is_new_operand(&mut self, context: &Context, source: &Path) -> bool {
        if self.sources.len() < 2 || context.options.backup.is_some() {
            return true;
        }
        let Ok(stat) = rustix::fs::lstat(source).map(FileStat::from) else { return true };
        let name = last_name(source).map(OsStr::to_os_string).unwrap_or_default();
        let is_new = self.done.insert((stat.id(), name));
        if !is_new {
            let kind = if stat.kind() == FileType::Directory { "directory" } else { "file" };
            context
                .reporter
                .warning(&format!("warning: source {kind} {} specified more than once", quoted(source)));
        }
        is_new
    }

    /// Copies from standard input or to standard output.
    fn copy_standard_stream(&self, context: &Context, worker: &mut Worker, source: &Path) -> CopyResult<()> {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let opened;
        let (input, input_name) = if source.as_os_str() == "-" {
            let name = Path::new("standard input");
            check_open(0).on(name, "read")?;
            (stdin.as_fd(), name)
        } else {
            let stat: FileStat = rustix::fs::stat(source).on(source, "stat")?.into();
            crate::stream_file::check_device(context, &stat, source)?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
            opened = rustix::fs::open(source, flags, Mode::empty()).on(source, "open")?;
            (opened.as_fd(), source)
        };
        if self.target.as_os_str() == "-" {
            refuse_promises(context.options)?;
            let name = Path::new("standard output");
            check_open(1).on(name, "write")?;
            let pumped = pump(context, worker, (input, input_name), (stdout.as_fd(), name), false);
            if pumped.as_ref().is_err_and(|error| error.errno() == Some(libc::EPIPE)) {
                worker.tally.reader_left = true;
                return Err(CopyError::Interrupted);
            }
            return pumped.map(drop);
        }
        if self.into_directory {
            return Err(CopyError::Refused(format!(
                "{} is a directory: name the file that standard input becomes",
                quoted(self.target)
            )));
        }
        refuse_missing_directory(source, self.target)?;
        let stat: FileStat = rustix::fs::fstat(input).on(input_name, "fstat")?.into();
        let target_stat = rustix::fs::stat(self.target).map(FileStat::from);
        let is_regular = stat.kind() == FileType::RegularFile;
        if is_regular && target_stat.is_ok_and(|target| target.id() == stat.id()) {
            let target = quoted(self.target);
            return Err(CopyError::Refused(format!(
                "{} and {target} are the same file",
                input_name.display()
            )));
        }
        let (source_name, target_name) = (c_string(input_name)?, c_string(self.target)?);
        let entry = Entry { dir: None, source: &source_name, target: &target_name };
        copy_to_file(context, worker, &entry, input, &stat, false)
    }
}

/// Fails if weir inherited this standard descriptor closed.
fn check_open(fd: i32) -> rustix::io::Result<()> {
    if weir_sys::inherited::was_closed(fd) { Err(rustix::io::Errno::BADF) } else { Ok(()) }
}

/// Fails if an option needs a property that standard output does not have.
fn refuse_promises(options: &CopyOptions) -> CopyResult<()> {
    let promises = [
        (options.atomic, "--atomic"),
        (options.sync != CopySync::None, "--sync"),
        (options.verify, "--verify"),
        (options.reflink == Tristate::Always, "--reflink=always"),
    ];
    match promises.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, option)) => Err(CopyError::Refused(format!(
            "standard output: {option} needs a file with a name: give its path instead of -"
        ))),
        None => Ok(()),
    }
}

/// Fails if a file is to become `DIRECTORY/`, which does not exist.
fn refuse_missing_directory(source: &Path, target: &Path) -> CopyResult<()> {
    let is_missing = || rustix::fs::stat(target).is_err_and(|errno| errno == rustix::io::Errno::NOENT);
    if !target.as_os_str().as_bytes().ends_with(b"/") || source.is_dir() || !is_missing() {
        return Ok(());
    }
    Err(CopyError::Refused(format!(
        "{}: no such directory: create it: mkdir -p {}",
        quoted(target),
        quoted(&without_slashes(target))
    )))
}

fn c_string(path: &Path) -> CopyResult<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(std::io::Error::from).on(path, "open")
}

/// Returns the last component of a path as it is written; None for `.`, `..`, `/` and the empty path.
fn last_name(path: &Path) -> Option<&OsStr> {
    let bytes = without_trailing_slashes(path.as_os_str().as_bytes());
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    (!name.is_empty() && name != b"." && name != b"..").then(|| OsStr::from_bytes(name))
}

fn without_trailing_slashes(mut path: &[u8]) -> &[u8] {
    while let [rest @ .., b'/'] = path {
        path = rest;
    }
    path
}

pub(crate) fn without_slashes(path: &Path) -> PathBuf {
    match without_trailing_slashes(path.as_os_str().as_bytes()) {
        [] => path.into(),
        bytes => OsString::from_vec(bytes.to_vec()).into(),
    }
}

/// `cp --backup --force FILE FILE` makes a backup of a file: the copy gets the backup's name.
fn own_backup(context: &Context, entry: &Entry) -> CopyResult<Option<CString>> {
    match context.options.backup {
        Some(names) if context.options.force && entry.source == entry.target => {
            let is_regular = entry.source_stat(true).is_ok_and(|stat| stat.kind() == FileType::RegularFile);
            is_regular.then(|| backup_name(entry, context.options, names)).transpose()
        }
        _ => Ok(None),
    }
}

/// Fails if a directory would be copied into itself: then nothing is copied at all.
fn refuse_inside_itself(context: &Context, source: &Path, target: &Path) -> CopyResult<()> {
    if !context.options.recursive {
        return Ok(());
    }
    let Ok(stat) = rustix::fs::stat(source).map(FileStat::from) else { return Ok(()) };
    if stat.kind() != FileType::Directory {
        return Ok(());
    }
    // The target itself may be missing; the directories above it exist.
    let start = match std::fs::canonicalize(target) {
        Ok(real) => real,
        Err(_) => {
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            match std::fs::canonicalize(parent.unwrap_or(Path::new("."))) {
                Ok(real) => real,
                Err(_) => return Ok(()),
            }
        }
    };
    let is_source =
        |folder: &Path| rustix::fs::stat(folder).is_ok_and(|found| FileStat::from(found).id() == stat.id());
    if start.ancestors().any(is_source) {
        return Err(CopyError::Refused(format!(
            "cannot copy a directory, {}, into itself, {}",
            quoted(source),
            quoted(target)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_path_is_found_as_it_is_written() {
        let name = |path: &str| last_name(Path::new(path)).map(|name| name.to_str().unwrap().to_string());
        assert_eq!(name("a/b"), Some("b".into()));
        assert_eq!(name("a/b//"), Some("b".into()));
        assert_eq!((name("a/."), name("a/.."), name("/"), name(".")), (None, None, None, None));
    }
}
