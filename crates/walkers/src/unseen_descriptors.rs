//! Descriptors that a program may write through a buffer which no walker knows.

use std::collections::HashSet;

use weir_model::trace::RuntimeId;
use weir_model::{StreamKind, Untrusted};
use weir_sys::elf::ElfFile;
use weir_sys::file_system::status_of_descriptor;
use weir_sys::open_files::{fdinfo, kind_of};
use weir_sys::{executable, proc, process_status};

use crate::{ProgramDetection, Walker, runtime_of};

/// The most descriptors that are read of one process, at about 10 µs each.
const MAX_DESCRIPTORS: usize = 1024;

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
/// those in `known`, those of its parent, and the pipes that it reads itself. None in execve(2).
pub fn unseen_descriptors(pid: u32, known: &[i32]) -> Vec<UnseenDescriptor> {
    // A read of its descriptors would wait for the file that it executes.
    if process_status::is_executing(pid) {
        return Vec::new();
    }
    let mut fds: Vec<i32> = proc::some_numbers(&format!("/proc/{pid}/fd"), MAX_DESCRIPTORS)
        .into_iter()
        .filter_map(|fd| i32::try_from(fd).ok())
        .collect();
    fds.sort_unstable();
    let (mut found, mut read_pipes) = (Vec::new(), HashSet::new());
    for fd in fds {
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
    let parent = parent_of_other_program(pid);
    let is_inherited = |one: &UnseenDescriptor| {
        parent.is_some_and(|parent| proc::descriptor(parent, one.fd).as_ref() == Some(&one.path))
    };
    found.retain(|one| !read_pipes.contains(&one.path) && !is_inherited(one));
    found
}

/// Returns the parent of a process if it runs another program: what both have open was opened for a purpose of the parent's.
fn parent_of_other_program(pid: u32) -> Option<u32> {
    let parent = proc::status(pid)?.ppid as u32;
    let program = |pid: u32| std::fs::read_link(executable::link(pid)).ok();
    if process_status::is_executing(parent) {
        return None;
    }
    (parent > 1 && program(parent) != program(pid)).then_some(parent)
}

/// Returns a sentence about the descriptors of [`unseen_descriptors`] if the process runs a program of no known runtime: it may
/// have buffers of its own. `walkers` are those of the process, `known` the descriptors of their streams.
pub fn unseen_sentence(pid: u32, walkers: &[Box<dyn Walker>], known: &[i32]) -> Option<String> {
    let of_c = [RuntimeId::GLIBC, RuntimeId::MUSL, RuntimeId::CPP, RuntimeId::LIBWEIR];
    if walkers.iter().any(|walker| !of_c.contains(&walker.runtime())) {
        return None;
    }
    let (exe, comm, _) = proc::names(pid);
    let elf = ElfFile::open(&executable::link(pid));
    let sections = elf.as_ref().and_then(|elf| elf.sections().ok());
    let runtime = runtime_of(exe.exact(), comm.exact(), sections.as_ref());
    if matches!(runtime.detection, ProgramDetection::ProgramNames { .. }) {
        return None;
    }
    let found = unseen_descriptors(pid, known);
    let first = found.first()?;
    let others = match found.len() - 1 {
        0 => String::new(),
        1 => " and one other".into(),
        count => format!(" and {count} others"),
    };
    Some(format!(
        "if {comm} keeps bytes for descriptor {} ({}){others} in memory of its own, weir cannot read them",
        first.fd, first.path
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

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
