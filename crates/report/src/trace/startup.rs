//! Streams of a program's start: the loader's, those of locale files, and those of wrapper shells, which run before the
//! program and then execute it. They say nothing about the program, so the report folds them into one line.

use std::collections::{HashMap, HashSet};

use weir_model::trace::Process;
use weir_model::{Direction, Finding, StreamKind, Untrusted};

use super::labels::counted;
use super::listed_stream::{self, ListedStream};
use crate::text::list;

/// Files that the C library reads by itself at the start of a program.
const FILES: [&str; 4] = ["/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/locale.alias"];
/// Directories of locale data.
const DIRECTORIES: [&str; 5] = [
    "/usr/lib/locale/",
    "/usr/share/locale/",
    "/usr/share/i18n/",
    "/usr/share/zoneinfo/",
    "/usr/share/locale-langpack/",
];
/// Largest number of calls and of bytes per opening that the loader needs: it reads the headers and maps the rest.
const LOADER_CALLS: u64 = 8;
const LOADER_BYTES: u64 = 8192;

/// The wrapper shells of a recording.
pub(super) struct StartupStreams<'a> {
    processes: HashMap<u32, &'a Process>,
    /// Processes that ended before the program began.
    wrappers: HashSet<u32>,
}

impl<'a> StartupStreams<'a> {
    /// Finds the wrapper shells of a recording.
    pub fn of(recorded: &'a [Process]) -> Self {
        let processes: HashMap<u32, &Process> =
            recorded.iter().map(|process| (process.pid, process)).collect();
        let wrappers = recorded.iter().filter(|process| is_wrapper(process, &processes));
        let wrappers = wrappers.map(|process| process.pid).collect();
        Self { processes, wrappers }
    }

    /// Returns whether the report folds a stream: it belongs to a start and no finding is about it. Its cost does not count:
    /// in a run of a few milliseconds the loader's calls are a large share, and the line has that share.
    pub fn folds(&self, stream: &ListedStream, findings: &[Finding]) -> bool {
        let belongs = is_loader(stream) || is_locale(stream) || self.is_of_wrapper(stream);
        belongs && !stream.is_found(findings)
    }

    /// Returns whether a wrapper shell has the stream. Its output to files, terminals and sockets is the user's data.
    fn is_of_wrapper(&self, stream: &ListedStream) -> bool {
        let is_output = stream.direction != Direction::In;
        if is_output && !matches!(stream.kind, StreamKind::Pipe | StreamKind::Device) {
            return false;
        }
        let is_replaced = || {
            let process = self.processes.get(&stream.pid).zip(stream.image);
            process.is_some_and(|(process, image)| is_launcher(process, image))
        };
        self.wrappers.contains(&stream.pid) || is_replaced()
    }
}

/// Returns the totals of the folded streams as one line; `None` without any.
pub(super) fn totals(folded: &[ListedStream]) -> Option<String> {
    if folded.is_empty() {
        return None;
    }
    let kinds = [
        ("the loader", folded.iter().any(is_loader)),
        ("locale files", folded.iter().any(is_locale)),
        ("wrapper shells", folded.iter().any(|stream| !is_loader(stream) && !is_locale(stream))),
    ];
    let kinds: Vec<String> = kinds.iter().filter(|(_, any)| *any).map(|(name, _)| name.to_string()).collect();
    let streams = counted(folded.len() as u64, "stream");
    Some(format!("start-up: {streams} of {}: {}", list(&kinds), listed_stream::totals(folded)))
}

fn is_read_file(stream: &ListedStream) -> bool {
    stream.kind == StreamKind::File && stream.direction == Direction::In
}

/// Returns whether the dynamic loader reads the stream: the first bytes of a shared object, or its own configuration.
fn is_loader(stream: &ListedStream) -> bool {
    let name = stream.path.exact().rsplit('/').next().unwrap_or_default();
    let is_object = name.ends_with(".so") || name.contains(".so.");
    let openings = stream.openings.max(1);
    let reads_headers = stream.calls <= LOADER_CALLS * openings && stream.bytes <= LOADER_BYTES * openings;
    is_read_file(stream) && (is_object && reads_headers || FILES[..2].contains(&stream.path.exact()))
}

fn is_locale(stream: &ListedStream) -> bool {
    let is_module = || stream.path.exact().contains("/gconv/");
    let is_data = || DIRECTORIES.iter().any(|directory| stream.path.exact().starts_with(directory));
    is_read_file(stream) && (FILES[2..].contains(&stream.path.exact()) || is_data() || is_module())
}

/// Returns whether an image of a process is a launcher: the process replaced it with another program later.
fn is_launcher(process: &Process, image: usize) -> bool {
    image + 1 < process.images.len()
}

/// Returns whether a process belongs to the wrapper shells: it or one of its ancestors is a subshell of a launcher, which ends
/// with the launcher's program, and it ended before the launcher executed its last program.
fn is_wrapper(process: &Process, processes: &HashMap<u32, &Process>) -> bool {
    /// A chain of more generations is a broken recording.
    const MAX_GENERATIONS: usize = 64;
    let Some(ended_s) = process.ended_s else { return false };
    let mut chain = vec![process];
    while chain.len() < MAX_GENERATIONS {
        let parent = chain.last().and_then(|process| process.parent).and_then(|pid| processes.get(&pid));
        let Some(ancestor) = parent else { return false };
        let Some((last, launchers)) = ancestor.images.split_last() else { return false };
        let is_same =
            |exe: &Untrusted| !exe.is_empty() && launchers.iter().any(|launcher| &launcher.exe == exe);
        let is_subshell = |one: &&Process| one.images.last().is_some_and(|image| is_same(&image.exe));
        if last.started_s >= ended_s && chain.iter().any(is_subshell) {
            return true;
        }
        chain.push(ancestor);
    }
    false
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Image, OpenFile, Process, Recording, TraceResult};

    use super::super::fixture::{clean, counts, file, process};
    use super::*;

    /// Returns a run of `wrapper`, a shell script that starts a subshell and then executes the program `cp`.
    fn wrapped() -> Recording {
        let mut recording = clean();
        let shell = |started_s| Image {
            started_s,
            exe: "/usr/bin/bash".into(),
            comm: "bash".into(),
            ..Image::default()
        };
        recording.processes[0].images.insert(0, shell(0.0));
        recording.processes[0].images[1].started_s = 0.5;
        recording.counts.iter_mut().for_each(|counts| counts.image = 1);
        let mut subshell: Process = process(5000, Some(4711), "bash", &["bash"]);
        subshell.ended_s = Some(0.4);
        recording.processes.push(subshell);
        let files: [OpenFile; 4] = [
            file(2, "/root/wrapper", StreamKind::File),
            file(3, "pipe:[7]", StreamKind::Pipe),
            file(4, "/usr/lib/locale/C.utf8/LC_CTYPE", StreamKind::File),
            file(5, "/lib/x86_64-linux-gnu/libc.so.6", StreamKind::File),
        ];
        recording.files.extend(files);
        let mut locale = counts(4711, 9, 4, Direction::In, 2, 4000);
        let mut library = counts(4711, 9, 5, Direction::In, 1, 832);
        (locale.image, library.image) = (1, 1);
        recording.counts.extend([
            counts(4711, 255, 2, Direction::In, 3, 100),
            counts(5000, 1, 3, Direction::Out, 1, 21),
            locale,
            library,
        ]);
        recording
    }

    fn folded(recording: &Recording) -> Vec<String> {
        let trace = TraceResult::new(recording, &[], "", &[]);
        let startup = StartupStreams::of(&recording.processes);
        let folded = trace.streams.iter().filter(|stream| startup.folds(&(*stream).into(), &[]));
        folded.map(|stream| stream.path.to_string()).collect()
    }

    #[test]
    fn the_streams_of_a_start_are_folded_and_those_of_the_program_are_not() {
        let recording = wrapped();
        let paths = folded(&recording);
        assert_eq!(paths.len(), 4, "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("/tmp/")), "{paths:?}");
    }

    #[test]
    fn the_streams_of_a_start_are_folded_in_a_run_of_which_they_take_most() {
        let mut recording = wrapped();
        recording.elapsed_s = 1e-6;
        let trace = TraceResult::new(&recording, &[], "", &[]);
        let library = trace.streams.iter().find(|stream| stream.path.exact().ends_with("libc.so.6")).unwrap();
        assert!(library.share > 0.1, "{library:?}");
        assert_eq!(folded(&recording).len(), 4, "{:?}", folded(&recording));
    }

    #[test]
    fn a_program_before_the_last_one_is_no_wrapper_shell() {
        let mut recording = wrapped();
        recording.processes[1].images[0].exe = "/usr/bin/sort".into();
        assert!(!folded(&recording).contains(&"pipe:[7]".into()));
        let mut recording = wrapped();
        recording.processes[1].ended_s = Some(0.6);
        assert!(!folded(&recording).contains(&"pipe:[7]".into()), "it ran beside the program");
    }

    #[test]
    fn a_shells_output_to_a_file_is_not_folded() {
        let mut recording = wrapped();
        recording.files[3].kind = StreamKind::File;
        assert!(!folded(&recording).contains(&"pipe:[7]".into()));
    }

    #[test]
    fn a_shared_object_that_is_read_as_data_is_not_folded() {
        let mut recording = wrapped();
        let library = recording.counts.last_mut().unwrap();
        (library.calls, library.bytes) = (16, 2 << 20);
        assert!(!folded(&recording).iter().any(|path| path.ends_with("libc.so.6")));
    }
}
