//! Descriptors that a program may write through a buffer which no walker knows.

use std::collections::HashSet;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use weir_model::trace::RuntimeId;
use weir_model::{SourceLanguage, StreamKind, Untrusted};
use weir_sys::elf::ElfFile;
use weir_sys::file_system::status_of_descriptor;
use weir_sys::open_files::{fdinfo, kind_of};
use weir_sys::{executable, proc, process_status};

use crate::{ProgramDetection, Walker, runtime_of};

/// The most descriptors that are read of one process, at about 10 µs each.
const MAX_DESCRIPTORS: usize = 1024;
/// The most generations of forks that are followed from a process to the one that executed its program.
const MAX_FORKS: usize = 16;
/// The most files that a sentence names one by one, so that it stays within a few lines.
const MAX_NAMED: usize = 4;

/// A descriptor that is open for writing, and for which no walker has a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenDescriptor {
    #[allow(missing_docs)]
    pub fd: i32,
    /// Target of the descriptor's link in /proc.
    pub path: Untrusted,
    /// A regular file, not a pipe.
    pub is_file: bool,
    /// A regular file at position 0: nothing was written to it through this open file.
    pub is_unwritten_file: bool,
}

/// Returns the regular files and pipes that a process has open for writing only, in the order of their descriptors, without
/// those in `known`, those of its parent, and the pipes that it reads itself. Empty during execve(2).
pub fn unseen_descriptors(pid: u32, known: &[i32]) -> Vec<UnseenDescriptor> {
    // A read of the descriptors would block until the executable is loaded.
    if process_status::is_executing(pid) {
        return Vec::new();
    }
    let (mut found, mut read_pipes) = (Vec::new(), HashSet::new());
    for fd in open_descriptors(pid) {
        let (Some(info), Some(path)) = (fdinfo(pid, fd), proc::descriptor(pid, fd)) else { continue };
        let is_pipe = path.exact().starts_with("pipe:");
        match info.flags & libc::O_ACCMODE {
            libc::O_WRONLY if known.contains(&fd) => {}
            libc::O_WRONLY if is_pipe || path.exact().starts_with('/') => {
                let kind = status_of_descriptor(pid, fd).ok().map(|status| kind_of(status.mode));
                let is_file = kind == Some(StreamKind::File);
                if is_file || kind == Some(StreamKind::Pipe) {
                    let is_unwritten_file = is_file && info.position == 0;
                    found.push(UnseenDescriptor { fd, path, is_file, is_unwritten_file });
                }
            }
            libc::O_RDONLY if is_pipe => {
                read_pipes.insert(path);
            }
            _ => {}
        }
    }
    let starter = ancestor_of_other_program(pid);
    found.retain(|one| !read_pipes.contains(&one.path) && !is_inherited(starter, one));
    found
}

/// Returns the descriptors of a process in their order, at most [`MAX_DESCRIPTORS`].
fn open_descriptors(pid: u32) -> Vec<i32> {
    let numbers = proc::some_numbers(&format!("/proc/{pid}/fd"), MAX_DESCRIPTORS).into_iter();
    let mut fds: Vec<i32> = numbers.filter_map(|fd| i32::try_from(fd).ok()).collect();
    fds.sort_unstable();
    fds
}

fn is_inherited(starter: Option<u32>, one: &UnseenDescriptor) -> bool {
    starter.is_some_and(|starter| proc::descriptor(starter, one.fd).as_ref() == Some(&one.path))
}

/// Returns the nearest ancestor of a process that runs another program. A file that both have open serves a purpose of the ancestor,
/// also if processes of the same program have forked in between.
fn ancestor_of_other_program(pid: u32) -> Option<u32> {
    let program = |pid: u32| std::fs::read_link(executable::link(pid)).ok();
    let parent = |pid: &u32| Some(proc::status(*pid)?.ppid as u32).filter(|parent| *parent > 1);
    let mut ancestors = std::iter::successors(parent(&pid), parent).take(MAX_FORKS);
    let own = program(pid);
    let other = ancestors.find(|one| process_status::is_executing(*one) || program(*one) != own)?;
    (!process_status::is_executing(other)).then_some(other)
}

/// Returns a sentence about the descriptors of [`unseen_descriptors`] if the process runs a program of no known runtime: it may
/// have buffers of its own. `walkers` are those of the process, `known` the descriptors of their streams.
pub fn unseen_sentence(pid: u32, walkers: &[Box<dyn Walker>], known: &[i32]) -> Option<String> {
    if walkers.iter().any(|walker| walker.runtime() == RuntimeId::GO) {
        let (named, comm) = (named_descriptors(&unwritten_files_of_go(pid, known))?, proc::comm(pid));
        return Some(format!(
            "if {comm} keeps bytes for {named} in a writer that weir does not find, such as a bufio.Writer over another \
             writer, weir cannot read them"
        ));
    }
    let memory = Holder::of(pid, walkers)?.own_buffers()?;
    let (named, comm) = (named_descriptors(&unseen_descriptors(pid, known))?, proc::comm(pid));
    Some(format!("if {comm} keeps bytes for {named} in {memory}, weir cannot read them"))
}

/// Returns the empty files that a process of Go has open for writing and has not written, without those in `known`, those of the
/// process that started it, and those that it locks: `os.Create` opens a file for both directions, as a lock file is opened.
fn unwritten_files_of_go(pid: u32, known: &[i32]) -> Vec<UnseenDescriptor> {
    if process_status::is_executing(pid) {
        return Vec::new();
    }
    let starter = ancestor_of_other_program(pid);
    let fds = open_descriptors(pid).into_iter().filter(|fd| *fd > 2 && !known.contains(fd));
    let unwritten = |fd: i32| {
        let (info, path) = (fdinfo(pid, fd)?, proc::descriptor(pid, fd)?);
        let is_writable = info.flags & libc::O_ACCMODE != libc::O_RDONLY && info.position == 0;
        let status = status_of_descriptor(pid, fd).ok().filter(|_| is_writable)?;
        let is_empty = kind_of(status.mode) == StreamKind::File && status.size == 0;
        let is_locked = || {
            let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            info.lines().any(|line| line.starts_with("lock:"))
        };
        let one = UnseenDescriptor { fd, path, is_file: true, is_unwritten_file: true };
        (is_empty && !is_locked() && !is_inherited(starter, &one)).then_some(one)
    };
    fds.filter_map(unwritten).collect()
}

/// Returns a sentence about standard output if the process runs a program of Rust without symbols: weir cannot find its buffer. Rust
/// writes each line to a file or a pipe, so that only the beginning of a line can be in it.
pub fn hidden_stdout_sentence(pid: u32) -> Option<String> {
    let elf = ElfFile::open(&executable::link(pid))?;
    if !crate::runtimes::rust::is_without_stdout(&elf.sections().ok()?) {
        return None;
    }
    let (path, comm) = (proc::descriptor(pid, 1)?, proc::comm(pid));
    let is_writable = fdinfo(pid, 1).is_some_and(|info| info.flags & libc::O_ACCMODE != libc::O_RDONLY);
    (is_writable && *path.exact() != *"/dev/null").then(|| {
        format!("if {comm} keeps the beginning of a line for descriptor 1 ({path}), weir cannot read it: it is a Rust program without symbols")
    })
}

/// As [`unseen_sentence`], of the process `pid` in its exit stop, which a signal ends. Its thread `tid` still has the descriptors.
pub fn unseen_at_kill((pid, tid): (u32, u32), walkers: &[Box<dyn Walker>], known: &[i32]) -> Option<String> {
    let (holder, mut descriptors) = (Holder::of(tid, walkers)?, unseen_descriptors(tid, known));
    if holder == Holder::Php {
        let comm = proc::comm(pid);
        return Some(format!(
            "if {comm} ({pid}) kept output in {PHP_BUFFERS}, it is lost: weir cannot read it"
        ));
    }
    // An unnamed pipe, except as a standard stream, comes from the program that started this one, or connects its processes.
    descriptors.retain(|one| one.fd <= 2 || one.path.exact().starts_with('/'));
    if holder == Holder::Node {
        // Those of the standard streams have a queue only while a pipe is full: see `queued_at_exit`.
        descriptors.retain(|one| one.fd > 2 && one.is_file);
    }
    let (named, comm) = (named_descriptors(&descriptors)?, proc::comm(pid));
    let memory = holder.own_buffers().unwrap_or("the queue of an fs.WriteStream");
    Some(format!(
        "if {comm} ({pid}) kept bytes for {named} in {memory}, they are lost: weir cannot read them"
    ))
}

/// Returns a sentence about the bytes that the process `pid` of Node, in its exit stop, can have queued for its standard streams:
/// Node queues the bytes that a full pipe does not take, and process.exit does not wait for the reader.
pub fn queued_at_exit((pid, tid): (u32, u32)) -> Option<String> {
    let is_full = |fd: &i32| {
        let access = fdinfo(tid, *fd).map(|info| info.flags & libc::O_ACCMODE);
        let path = proc::descriptor(tid, *fd).unwrap_or_default();
        access == Some(libc::O_WRONLY) && path.exact().starts_with("pipe:") && is_full_pipe(tid, *fd)
    };
    let full: Vec<i32> = [1, 2].into_iter().filter(is_full).collect();
    if full.is_empty() || Holder::of(tid, &[]) != Some(Holder::Node) {
        return None;
    }
    let named: Vec<String> = full.iter().map(|fd| format!("descriptor {fd}")).collect();
    let (named, comm) = (named.join(" and "), proc::comm(pid));
    Some(format!(
        "the pipe of {named} was full when {comm} ({pid}) ended: if Node had queued bytes for it, they are lost; weir cannot read them"
    ))
}

/// Returns whether a pipe that a process writes to is full, so that a write(2) with O_NONBLOCK would fail with EAGAIN.
fn is_full_pipe(pid: u32, fd: i32) -> bool {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(pipe) = open(format!("/proc/{pid}/fd/{fd}"), flags, Mode::empty()) else { return false };
    let mut polled = [PollFd::new(&pipe, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Without a reader, poll(2) reports an error.
    poll(&mut polled, Some(&now)) == Ok(0)
}

/// The buffers in which a program of PHP can keep its output.
const PHP_BUFFERS: &str = "a buffer of ob_start() or output_buffering";

/// The owner of bytes that no walker reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// A program of no known runtime.
    Program,
    Node,
    Php,
}

impl Holder {
    /// Returns the kind of program that a process is; None if it is a program of a known runtime.
    fn of(pid: u32, walkers: &[Box<dyn Walker>]) -> Option<Holder> {
        let of_c = [RuntimeId::GLIBC, RuntimeId::MUSL, RuntimeId::CPP, RuntimeId::LIBWEIR];
        if walkers.iter().any(|walker| !of_c.contains(&walker.runtime())) {
            return None;
        }
        let (exe, comm, _) = proc::names(pid);
        let elf = ElfFile::open(&executable::link(pid));
        let sections = elf.as_ref().and_then(|elf| elf.sections().ok());
        let runtime = runtime_of(exe.exact(), comm.exact(), sections.as_ref());
        match runtime.detection {
            _ if runtime.facts.language == SourceLanguage::Node => Some(Holder::Node),
            _ if runtime.facts.language == SourceLanguage::Php => Some(Holder::Php),
            ProgramDetection::ProgramNames { .. } => None,
            _ => Some(Holder::Program),
        }
    }

    /// Returns where a program of no known runtime keeps bytes.
    fn own_buffers(self) -> Option<&'static str> {
        (self == Holder::Program).then_some("memory of its own")
    }
}

/// Returns the descriptors with their files; None if there are none.
fn named_descriptors(descriptors: &[UnseenDescriptor]) -> Option<String> {
    let names: Vec<String> =
        descriptors.iter().map(|one| format!("descriptor {} ({})", one.fd, one.path)).collect();
    named_and_counted(&names, "others")
}

/// Returns the names as a part of a sentence: all, or the first ones and the number of the others, which are called `others`. None
/// if there are no names.
pub fn named_and_counted(names: &[String], others: &str) -> Option<String> {
    let (last, first) = names.split_last()?;
    Some(match first.len() {
        0 => last.clone(),
        count if count < MAX_NAMED => format!("{} and {last}", first.join(", ")),
        count => format!("{} and {} {others}", first[..MAX_NAMED - 1].join(", "), count + 2 - MAX_NAMED),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_few_names_are_listed_and_more_are_counted() {
        let listed = |count: usize| {
            let names: Vec<String> =
                ["/a", "/b", "/c", "/d", "/e", "/f"][..count].iter().map(|name| name.to_string()).collect();
            named_and_counted(&names, "other files")
        };
        assert_eq!(listed(0), None);
        assert_eq!(listed(1).as_deref(), Some("/a"));
        assert_eq!(listed(2).as_deref(), Some("/a and /b"));
        assert_eq!(listed(4).as_deref(), Some("/a, /b, /c and /d"));
        assert_eq!(listed(5).as_deref(), Some("/a, /b, /c and 2 other files"));
        assert_eq!(listed(6).as_deref(), Some("/a, /b, /c and 3 other files"));
    }

    #[test]
    fn a_pipe_without_room_is_full() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let is_full = || is_full_pipe(std::process::id(), writer.as_raw_fd());
        assert!(!is_full());
        std::io::Write::write_all(&mut &writer, &[b'x'; 65536]).unwrap();
        assert!(is_full());
        drop(reader);
        assert!(!is_full(), "nobody would read a queue");
        std::io::Write::flush(&mut writer).unwrap();
    }

    #[test]
    fn a_forked_child_has_the_descriptors_of_the_program_that_started_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("inherited")).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let script = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\ntime.sleep(60)";
        let mut python = std::process::Command::new("python3");
        let python = python.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn();
        let mut parent = python.expect("python3 starts");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(parent.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a number");
        let child: u32 = line.trim().parse().expect("a number");
        let has_file = |pid| unseen_descriptors(pid, &[]).iter().any(|one| one.fd == file.as_raw_fd());
        let found = [parent.id(), child].map(has_file);
        let signal = rustix::process::Signal::KILL;
        rustix::process::kill_process(rustix::process::Pid::from_raw(child as i32).unwrap(), signal).unwrap();
        parent.kill().expect("a signal");
        parent.wait().expect("its end");
        assert_eq!(found, [false, false]);
    }

    #[test]
    fn files_and_pipes_that_are_only_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("written");
        let write = File::create(&path).unwrap();
        let read = File::open(&path).unwrap();
        let (own_end, other_end) = std::io::pipe().unwrap();
        let of = |known: &[i32]| unseen_descriptors(std::process::id(), known);
        let found = of(&[]);
        let has = |fd: i32| found.iter().find(|one| one.fd == fd);
        assert!(
            has(write.as_raw_fd())
                .is_some_and(|one| one.is_unwritten_file && one.path == *path.to_str().unwrap())
        );
        assert!(has(read.as_raw_fd()).is_none(), "it is only read");
        assert!(has(other_end.as_raw_fd()).is_none(), "the process reads it itself");
        drop(own_end);
        let found = of(&[write.as_raw_fd()]);
        assert!(found.iter().any(|one| one.fd == other_end.as_raw_fd() && !one.is_unwritten_file));
        assert!(found.iter().all(|one| one.fd != write.as_raw_fd()), "a walker has it");
        std::io::Write::write_all(&mut &write, b"x").unwrap();
        assert!(of(&[]).iter().any(|one| one.fd == write.as_raw_fd() && !one.is_unwritten_file));
    }
}
