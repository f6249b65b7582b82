//! Files for which a program of no known runtime may keep bytes in a buffer that no walker knows: those that it has opened for
//! writing and not written (a program of Go may have a queue for such a file, too), those that it did not write after its last input, and at a kill its standard output and all that it
//! wrote, if it worked on after its last write. Only a process that was killed, or still runs, can have such bytes.

use std::collections::{BTreeMap, HashMap, HashSet};

use weir_model::trace::{
    Call, EventKind, Exit, Op, OpenFile, Process, SnapshotMoment, StreamCounts, UnreadableBuffers,
};
use weir_model::{Direction, SourceLanguage, StreamKind, Untrusted};
use weir_recorder::RecorderOutput;
use weir_sys::proc;
use weir_walkers::{UnseenDescriptor, language_of_unreadable, named_and_counted, unseen_descriptors};

use crate::input_after_write::input_after_write;
use crate::work_at_kill::{outputs_of, worked_after_last_write};

/// The most processes that still run whose descriptors are read.
const MAX_RUNNING: usize = 16;

/// Returns the buffers that such programs may have, without those of the processes in `unreadable` whose own buffers these are. A
/// program of C that loads a library of another language has its own buffers beside the library's. `direct_errors` are the processes
/// whose standard error is a stream without a buffer.
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
            _ if is_of_go(process) && is_killed => distinct(ends.unwritten(output, process, is_created)),
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

/// Returns whether the last image of a process is a program of C or C++, or unknown.
fn is_unknown(process: &Process) -> bool {
    let language = process.images.last().and_then(|image| image.language);
    matches!(language, None | Some(SourceLanguage::C | SourceLanguage::Cpp))
}

fn is_of_go(process: &Process) -> bool {
    process.images.last().and_then(|image| image.language) == Some(SourceLanguage::Go)
}

/// Returns whether these buffers are those of a library that a process has loaded, and its program is of C or C++.
fn is_of_library(process: &Process, buffers: &UnreadableBuffers) -> bool {
    let is_c =
        |language: Option<SourceLanguage>| matches!(language, Some(SourceLanguage::C | SourceLanguage::Cpp));
    let of_buffers = language_of_unreadable(&buffers.buffers);
    is_c(process.images.last().and_then(|image| image.language)) && of_buffers.is_some() && !is_c(of_buffers)
}

fn sentence_subject(comm: &Untrusted, paths: &[Untrusted]) -> Option<String> {
    let paths: Vec<String> = paths.iter().map(Untrusted::to_string).collect();
    let named = named_and_counted(&paths, "other files")?;
    Some(format!("bytes that {comm} may keep for {named} in memory of its own"))
}

/// The descriptors of the last images of all processes, as far as events show them.
#[derive(Default)]
struct Descriptors {
    /// The open files that a process has opened itself and not closed.
    opened: HashMap<u32, BTreeMap<i32, u32>>,
    /// The descriptors for which a walker has found a stream.
    streams: HashMap<u32, HashSet<i32>>,
    /// Those of them whose stream the program has used. The C library has one for each standard descriptor, used or not.
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
        let opened = self.opened.entry(pid).or_default();
        let new = call.result as i32;
        match call.op {
            op if op.opens() => {
                opened.remove(&new);
                opened.extend(call.file.map(|file| (new, file)));
                self.streams.entry(pid).or_default().remove(&new);
                self.used.entry(pid).or_default().remove(&new);
            }
            Op::Close => {
                opened.remove(&call.fd);
            }
            // Its arguments tell which descriptors it closes, and few programs call it late.
            Op::CloseRange => opened.clear(),
            // The duplicate serves another program or purpose, for example a child's standard output.
            Op::Dup | Op::Dup2 | Op::Dup3 => {
                opened.remove(&new);
                opened.remove(&call.fd);
            }
            Op::Fcntl if [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(call.args[1] as i32)) => {
                opened.remove(&new);
                opened.remove(&call.fd);
            }
            op if op.writes() || op.copies() => self.written.extend(call.file),
            _ => {}
        }
    }

    /// Returns the paths for which a killed process may have kept bytes.
    fn unseen_at_kill(&self, output: &RecorderOutput, process: &Process, number: i32) -> Vec<Untrusted> {
        let mut paths = self.unwritten(output, process, is_for_writing);
        if number != libc::SIGPIPE {
            paths.extend(self.behind_input(output, process));
        }
        if number != libc::SIGPIPE && worked_after_last_write(output, process) {
            paths.extend(self.unseen_outputs(output, process, true));
            if paths.is_empty() {
                paths.extend(self.unseen_outputs(output, process, false));
            }
        }
        distinct(paths)
    }

    /// Returns the paths of the files and pipes that a killed process wrote, or that of its unwritten standard output, without those
    /// that belong to a stream which a walker reads.
    fn unseen_outputs(&self, output: &RecorderOutput, process: &Process, written: bool) -> Vec<Untrusted> {
        let is_used = |fd: i32| self.used.get(&process.pid).is_some_and(|used| used.contains(&fd));
        let has_stream = |fd: i32| self.streams.get(&process.pid).is_some_and(|known| known.contains(&fd));
        let is_seen = |fd: i32| if fd <= 2 { is_used(fd) } else { has_stream(fd) };
        let is_written = |file: u32| outputs_of(output, process).any(|stream| stream.file == file);
        let open = output.open_at_kill.get(&process.pid).into_iter().flatten();
        let candidates = open.filter(|(fd, file)| is_written(*file) == written && (written || *fd == 1));
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
        let Some(opened) = self.opened.get(&process.pid) else { return Vec::new() };
        let streams = self.streams.get(&process.pid);
        let unseen = opened.iter().filter(|(fd, _)| streams.is_none_or(|known| !known.contains(fd)));
        let files = unseen.filter_map(|(_, file)| output.files.get(*file as usize));
        let unwritten = files.filter(|file| is_meant(file) && !self.written.contains(&file.id));
        unwritten.map(|file| file.path.clone()).collect()
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
        let is_written = outputs_of(output, process).any(|stream| stream.file == file.id);
        self.executed.contains(&process.pid) && !is_own && !is_written
    }

    /// As [`Self::unwritten`] and [`Self::behind_input`], of a process that still runs, also for files that it had open before the recording.
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
    let is_emptied = file.flags & libc::O_ACCMODE == libc::O_RDWR && file.flags & libc::O_TRUNC != 0;
    is_for_writing(file) || is_emptied && file.kind == StreamKind::File
}

/// Returns whether an open file is a regular file or a FIFO that can only be written.
fn is_for_writing(file: &OpenFile) -> bool {
    let is_fifo = file.kind == StreamKind::Pipe && file.path.exact().starts_with('/');
    (file.kind == StreamKind::File || is_fifo) && file.flags & libc::O_ACCMODE == libc::O_WRONLY
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Event, Image};
    use weir_sys::open_files::unknown_file;

    use super::*;

    /// Returns what is said of process 7, which this signal ended, and which opened /d/out as descriptor 5 before `calls`.
    fn said(
        exit: Exit,
        language: SourceLanguage,
        flags: i32,
        calls: &[(Op, i32, [u64; 6], i64)],
    ) -> Vec<String> {
        let call = |op, fd, args, result, file| Call {
            op,
            fd,
            file,
            args,
            result,
            asked: 0,
            position: None,
            head: Vec::new(),
            tail: None,
            paths: Vec::new(),
            rename: None,
        };
        let event = |call| Event { at_s: 1.0, pid: 7, tid: 7, kind: EventKind::Call(call) };
        let opening = event(call(Op::Openat, -1, [0; 6], 5, Some(0)));
        let others =
            calls.iter().map(|(op, fd, args, result)| event(call(*op, *fd, *args, *result, Some(0))));
        let image = Image { comm: "own".into(), language: Some(language), ..Image::default() };
        let output = RecorderOutput {
            processes: vec![Process {
                pid: 7,
                images: vec![image],
                ended_s: Some(2.0),
                exit: Some(exit),
                ..Process::default()
            }],
            files: vec![OpenFile { path: "/d/out".into(), flags, ..unknown_file(StreamKind::File) }],
            events: std::iter::once(opening).chain(others).collect(),
            ..RecorderOutput::default()
        };
        let told = [
            UnreadableBuffers { buffers: "others".into(), pids: vec![8] },
            UnreadableBuffers { buffers: "Fortran's own buffers".into(), pids: vec![7] },
        ];
        // Only a program of C or C++ has its own buffers beside those of such a library.
        let told = if language == SourceLanguage::Go { &told[..1] } else { &told };
        unseen_files(&output, told, &HashSet::new()).into_iter().map(|one| one.buffers).collect()
    }

    #[test]
    fn a_file_that_a_killed_program_has_not_written() {
        let (killed, write) = (Exit::Signal(9), libc::O_WRONLY | libc::O_CREAT);
        let text = "bytes that own may keep for /d/out in memory of its own";
        assert_eq!(said(killed, SourceLanguage::C, write, &[]), [text]);
        let set_flags = (Op::Fcntl, 5, [5, libc::F_SETFD as u64, 0, 0, 0, 0], 0);
        assert_eq!(said(killed, SourceLanguage::Cpp, write, &[set_flags]), [text]);
        assert_eq!(
            said(killed, SourceLanguage::Go, write, &[]),
            [text],
            "a queue that another goroutine writes"
        );
        let created = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
        assert_eq!(said(killed, SourceLanguage::Go, created, &[]), [text], "os.Create");
        for (why, exit, language, flags, calls) in [
            ("it ended by itself", Exit::Code(1), SourceLanguage::C, write, &[][..]),
            ("a walker reads its buffers", killed, SourceLanguage::Python, write, &[]),
            ("it is read", killed, SourceLanguage::C, libc::O_RDONLY, &[]),
            ("it was written", killed, SourceLanguage::C, write, &[(Op::Write, 5, [5, 0, 9, 0, 0, 0], 9)]),
            ("it is closed", killed, SourceLanguage::C, write, &[(Op::Close, 5, [5, 0, 0, 0, 0, 0], 0)]),
            ("it is given away", killed, SourceLanguage::C, write, &[(Op::Dup2, 5, [5, 1, 0, 0, 0, 0], 1)]),
        ] {
            assert!(said(exit, language, flags, calls).is_empty(), "{why}");
        }
    }
}
