//! Files for which a program of no known runtime may keep bytes in a buffer that no walker knows. Only a process that was killed,
//! or that still runs, can have such bytes, and at any end one of Go, which flushes nothing at its exit. The files are
//! - those that it has opened for writing and not written; a program of Go may have a queue for such a file, too;
//! - those that it did not write after its last input;
//! - at a kill, if it worked on after its last write: all that it wrote, else its standard output.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use weir_model::trace::{
    Call, EventKind, Exit, Op, OpenFile, Process, SnapshotMoment, StreamCounts, UnreadableBuffers,
};
use weir_model::{Direction, SourceLanguage, StreamKind, Untrusted};
use weir_recorder::RecorderOutput;
use weir_sys::{proc, syscalls};
use weir_walkers::{
    UnseenDescriptor, go_contains_compressor, language_of_unreadable, named_and_counted, unseen_descriptors,
};

use crate::input_after_write::input_after_write;
use crate::work_at_kill::{outputs_of, worked_after_last_write};

#[cfg(test)]
mod tests;

/// The most processes that still run whose descriptors are read.
const MAX_RUNNING: usize = 16;

/// Returns the buffers that such programs may have. Leaves out the processes whose own buffers are in `unreadable` already; a program
/// of C that loads a library of another language has its own buffers beside the library's. `direct_errors` are the processes whose
/// standard error is a stream without a buffer.
pub(crate) fn unseen_files(
    output: &RecorderOutput,
    unreadable: &[UnreadableBuffers],
    direct_errors: &HashSet<u32>,
) -> Vec<UnreadableBuffers> {
    let is_told = |process: &Process| {
        let mut told = unreadable.iter().filter(|one| one.pids.contains(&process.pid));
        told.any(|one| !is_of_library(process, one))
    };
    let ends = Descriptors::at_end(output);
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut running = 0;
    for process in output.processes.iter().filter(|process| !is_told(process)) {
        let is_killed = matches!(process.exit, Some(Exit::Signal(_)));
        let paths = match process.exit {
            // A goroutine may write the records of others, such as that of an asynchronous logger.
            _ if is_of_go(process) && is_killed => {
                distinct(ends.unwritten_by_go(output, process, is_created))
            }
            // Nothing in Go writes the buffers of a program that ends.
            Some(Exit::Code(_)) if is_of_go(process) => {
                distinct(ends.unwritten_by_go(output, process, is_emptied))
            }
            _ if !is_unknown(process) => continue,
            Some(Exit::Signal(number)) => ends.unseen_at_kill(output, process, number),
            None if process.ended_s.is_none() && running < MAX_RUNNING => {
                running += 1;
                ends.unwritten_now(output, process, direct_errors.contains(&process.pid))
            }
            _ => continue,
        };
        if let Some(text) = sentence_subject(process.comm(), &paths) {
            found.entry(text).or_default().push(process.pid);
        }
    }
    found.into_iter().map(|(buffers, pids)| UnreadableBuffers { buffers, pids }).collect()
}

fn last_language(process: &Process) -> Option<SourceLanguage> {
    process.images.last().and_then(|image| image.language)
}

/// Returns whether the last image of a process is a program of C or C++, or unknown.
fn is_unknown(process: &Process) -> bool {
    last_language(process).is_none_or(SourceLanguage::is_c_family)
}

fn is_of_go(process: &Process) -> bool {
    last_language(process) == Some(SourceLanguage::Go)
}

/// Returns whether these buffers are those of a library that a process has loaded, and its program is of C or C++.
fn is_of_library(process: &Process, buffers: &UnreadableBuffers) -> bool {
    let of_buffers = language_of_unreadable(&buffers.buffers);
    last_language(process).is_some_and(SourceLanguage::is_c_family)
        && of_buffers.is_some_and(|language| !language.is_c_family())
}

fn sentence_subject(comm: &Untrusted, paths: &[Untrusted]) -> Option<String> {
    let paths: Vec<String> = paths.iter().map(Untrusted::to_string).collect();
    let named = named_and_counted(&paths, "other files")?;
    Some(format!("bytes that {comm} may keep for {named} in memory of its own"))
}

/// The descriptors of the last images of all processes, as far as events show them.
#[derive(Default)]
struct Descriptors {
    /// The open files that the image of a process has opened and not closed, or that its parent had when it forked.
    opened: HashMap<u32, BTreeMap<i32, u32>>,
    /// The descriptors for which a walker has found a stream.
    streams: HashMap<u32, HashSet<i32>>,
    /// Those of `streams` whose stream the program has used. The C library has one for each standard descriptor, used or not.
    used: HashMap<u32, HashSet<i32>>,
    /// Open files to which a call wrote.
    written: HashSet<u32>,
    /// Processes that have executed a program: what was open before, another program has opened.
    executed: HashSet<u32>,
}

impl Descriptors {
    fn at_end(output: &RecorderOutput) -> Descriptors {
        let mut all = Descriptors::default();
        let writes = |one: &&StreamCounts| one.direction == Direction::Out && one.calls + one.bytes > 0;
        all.written.extend(output.streams.iter().filter(writes).map(|one| one.file));
        for event in &output.events {
            match &event.kind {
                EventKind::Call(call) if call.result >= 0 => all.note_call(event.pid, call),
                // A child has its parent's descriptors, and its parent's streams.
                EventKind::Fork { child } => {
                    let opened = all.opened.get(&event.pid).cloned();
                    all.opened.insert(*child, opened.unwrap_or_default());
                    for streams in [&mut all.streams, &mut all.used] {
                        let of_parent = streams.get(&event.pid).cloned();
                        streams.insert(*child, of_parent.unwrap_or_default());
                    }
                }
                EventKind::Exec { .. } => {
                    all.executed.insert(event.pid);
                    all.opened.remove(&event.pid);
                    all.streams.remove(&event.pid);
                    all.used.remove(&event.pid);
                }
                // The streams of the image before.
                EventKind::Buffers { moment: SnapshotMoment::Exec, .. } => {}
                EventKind::Buffers { buffers, .. } => {
                    let used = buffers.iter().filter(|one| one.mode.is_some() || one.pending_bytes > 0);
                    all.used.entry(event.pid).or_default().extend(used.map(|one| one.fd));
                    all.streams.entry(event.pid).or_default().extend(buffers.iter().map(|one| one.fd));
                }
                _ => {}
            }
        }
        all
    }

    fn note_call(&mut self, pid: u32, call: &Call) {
        let new = call.result as i32;
        // The event of dup(2) and its kin has the new descriptor as `call.fd`; that of fcntl(2) has the old one.
        let from = call.args[0] as i32;
        let duplicates = match call.op {
            Op::Dup | Op::Dup2 | Op::Dup3 => true,
            Op::Fcntl => [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(call.args[1] as i32)),
            _ => false,
        };
        match call.op {
            op if op.opens() => {
                self.forget(pid, |fd| fd == new);
                self.opened.entry(pid).or_default().extend(call.file.map(|file| (new, file)));
            }
            Op::Close => self.forget(pid, |fd| fd == call.fd),
            Op::CloseRange => {
                if let Some(closed) = syscalls::closed_range(&call.args) {
                    self.forget(pid, |fd| closed.contains(&fd));
                }
            }
            // The duplicate serves another program or purpose, for example a child's standard output.
            _ if duplicates && new != from => {
                self.forget(pid, |fd| fd == new);
                self.opened.entry(pid).or_default().remove(&from);
            }
            op if op.writes() || op.copies() => self.written.extend(call.file),
            _ => {}
        }
    }

    /// Forgets what was known of the descriptors that a process has closed.
    fn forget(&mut self, pid: u32, is_closed: impl Fn(i32) -> bool) {
        if let Some(opened) = self.opened.get_mut(&pid) {
            opened.retain(|fd, _| !is_closed(*fd));
        }
        for streams in [&mut self.streams, &mut self.used] {
            if let Some(streams) = streams.get_mut(&pid) {
                streams.retain(|fd| !is_closed(*fd));
            }
        }
    }

    /// Returns the paths for which a killed process may have kept bytes.
    fn unseen_at_kill(&self, output: &RecorderOutput, process: &Process, number: i32) -> Vec<Untrusted> {
        let mut paths = self.unwritten(output, process, is_for_writing);
        if number != libc::SIGPIPE {
            paths.extend(self.behind_input(output, process));
            if worked_after_last_write(output, process) {
                paths.extend(self.unseen_outputs(output, process, |_, file| wrote(output, process, file)));
                if paths.is_empty() {
                    let is_unwritten = |fd, file| fd == 1 && !wrote(output, process, file);
                    paths.extend(self.unseen_outputs(output, process, is_unwritten));
                }
            }
        }
        distinct(paths)
    }

    /// Returns the paths of the files and pipes of a killed process that `is_meant` selects by descriptor and open file, without
    /// standard error and without those that belong to a stream which a walker reads.
    fn unseen_outputs(
        &self,
        output: &RecorderOutput,
        process: &Process,
        is_meant: impl Fn(i32, u32) -> bool,
    ) -> Vec<Untrusted> {
        let is_used = |fd: i32| self.used.get(&process.pid).is_some_and(|used| used.contains(&fd));
        let has_stream = |fd: i32| self.streams.get(&process.pid).is_some_and(|known| known.contains(&fd));
        let is_seen = |fd: i32| if fd <= 2 { is_used(fd) } else { has_stream(fd) };
        let open = output.open_at_kill.get(&process.pid).into_iter().flatten();
        let candidates = open.filter(|(fd, file)| is_meant(*fd, *file));
        let unseen = candidates.filter(|(fd, _)| *fd != 2 && !is_seen(*fd));
        let files = unseen.filter_map(|(_, file)| output.files.get(*file as usize));
        let mut paths: Vec<Untrusted> =
            files.filter(|file| is_output(file)).map(|file| file.path.clone()).collect();
        paths.sort_by(|a, b| a.exact().cmp(b.exact()));
        paths
    }

    /// Returns the paths of the files that a killed process had open for writing and had not written.
    fn unwritten(
        &self,
        output: &RecorderOutput,
        process: &Process,
        is_meant: fn(&OpenFile) -> bool,
    ) -> Vec<Untrusted> {
        let files = self.opened_without_stream(output, process);
        let unwritten = files.filter(|file| is_meant(file) && !self.written.contains(&file.id));
        unwritten.map(|file| file.path.clone()).collect()
    }

    /// As [`Self::unwritten`], of a program of Go, and without such a file those that it has created and that a compressor may have
    /// written in part.
    fn unwritten_by_go(
        &self,
        output: &RecorderOutput,
        process: &Process,
        is_meant: fn(&OpenFile) -> bool,
    ) -> Vec<Untrusted> {
        let unwritten = self.unwritten(output, process, is_meant);
        let mut created =
            self.opened_without_stream(output, process).filter(|file| is_emptied(file)).peekable();
        let compresses = || {
            let image = process.images.last();
            image.is_some_and(|image| go_contains_compressor(Path::new(image.exe.exact())))
        };
        if !unwritten.is_empty() || created.peek().is_none() || !compresses() {
            return unwritten;
        }
        created.map(|file| file.path.clone()).collect()
    }

    /// Returns the files that a process has opened and not closed, and for which weir knows no stream.
    fn opened_without_stream<'a>(
        &'a self,
        output: &'a RecorderOutput,
        process: &Process,
    ) -> impl Iterator<Item = &'a OpenFile> {
        let opened = self.opened.get(&process.pid).into_iter().flatten();
        let streams = self.streams.get(&process.pid);
        let unseen = opened.filter(move |(fd, _)| streams.is_none_or(|known| !known.contains(fd)));
        unseen.filter_map(|(_, file)| output.files.get(*file as usize))
    }

    /// Returns the paths of the files that a killed process had open for writing, and to which it wrote nothing after its last input.
    fn behind_input(&self, output: &RecorderOutput, process: &Process) -> Vec<Untrusted> {
        let open = || {
            let open = output.open_at_kill.get(&process.pid).into_iter().flatten();
            open.filter_map(|(fd, file)| Some((*fd, output.files.get(*file as usize)?)))
        };
        let streams = self.streams.get(&process.pid);
        let of_errors = open().find(|(fd, _)| *fd == 2).map(|(_, file)| &file.path);
        let candidates = open().filter(|(fd, file)| {
            *fd > 2
                && file.kind == StreamKind::File
                && is_for_writing(file)
                && streams.is_none_or(|known| !known.contains(fd))
                && of_errors != Some(&file.path)
                && !self.is_of_other_program(output, process, file)
        });
        let behind = candidates.filter(|(_, file)| input_after_write(output, process, &file.path));
        behind.map(|(_, file)| file.path.clone()).collect()
    }

    /// Returns whether a process has an open file from another program, and has not written it.
    fn is_of_other_program(&self, output: &RecorderOutput, process: &Process, file: &OpenFile) -> bool {
        let is_own = file.opened_by == Some(process.pid);
        self.executed.contains(&process.pid) && !is_own && !wrote(output, process, file.id)
    }

    /// As [`Self::unwritten`] and [`Self::behind_input`], of a process that still runs. Includes files that it had open before the
    /// recording.
    fn unwritten_now(
        &self,
        output: &RecorderOutput,
        process: &Process,
        has_direct_errors: bool,
    ) -> Vec<Untrusted> {
        if proc::comm(process.pid) != *process.comm() {
            return Vec::new();
        }
        let streams = self.streams.get(&process.pid).into_iter().flatten();
        let found = unseen_descriptors(process.pid, &streams.copied().collect::<Vec<i32>>()).into_iter();
        let is_written = |path: &Untrusted| {
            output.files.iter().any(|file| file.path == *path && self.written.contains(&file.id))
        };
        let of_errors = proc::descriptor(process.pid, 2);
        let is_unseen = |one: &UnseenDescriptor| {
            let is_behind = || {
                let has_log = one.is_file && one.fd > 2 && of_errors.as_ref() != Some(&one.path);
                has_log && input_after_write(output, process, &one.path)
            };
            let is_direct = one.fd == 2 && has_direct_errors;
            !is_direct && (one.is_unwritten_file && !is_written(&one.path) || is_behind())
        };
        let mut unseen: Vec<UnseenDescriptor> = found.filter(is_unseen).collect();
        // The first is named: rather a log than a file that is still empty.
        unseen.sort_by_key(|one| one.is_unwritten_file);
        distinct(unseen.into_iter().map(|one| one.path).collect())
    }
}

fn wrote(output: &RecorderOutput, process: &Process, file: u32) -> bool {
    outputs_of(output, process).any(|stream| stream.file == file)
}

/// Returns the paths in their order, each once.
fn distinct(mut paths: Vec<Untrusted>) -> Vec<Untrusted> {
    let mut known = HashSet::new();
    paths.retain(|path| known.insert(path.clone()));
    paths
}

/// Returns whether an open file is a regular file or a pipe that can be written.
fn is_output(file: &OpenFile) -> bool {
    matches!(file.kind, StreamKind::File | StreamKind::Pipe) && file.flags & libc::O_ACCMODE != libc::O_RDONLY
}

/// As [`is_for_writing`], or emptied when it was opened: `os.Create` of Go opens files for both directions.
fn is_created(file: &OpenFile) -> bool {
    is_for_writing(file) || is_emptied(file)
}

/// Returns whether a regular file can be written and was emptied when it was opened.
fn is_emptied(file: &OpenFile) -> bool {
    let is_writable = file.flags & libc::O_ACCMODE != libc::O_RDONLY;
    is_writable && file.flags & libc::O_TRUNC != 0 && file.kind == StreamKind::File
}

/// Returns whether an open file is a regular file or a FIFO that can only be written.
fn is_for_writing(file: &OpenFile) -> bool {
    (file.kind == StreamKind::File || file.is_fifo()) && file.flags & libc::O_ACCMODE == libc::O_WRONLY
}
