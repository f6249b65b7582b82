//! The executable of a process, or the file of a future one: its architecture and its privilege.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::elf::{ElfFile, ElfSections};
use crate::maps::{self, MappedRegion, MappingKind};
use crate::{file_system, living_thread, proc};

/// The section of Go's table of functions, which also a program without symbols has.
const GO_FUNCTIONS: &str = ".gopclntab";
/// More than the table of any program, of which only this many bytes are searched for a name.
const MAX_GO_FUNCTIONS: u64 = 256 << 20;
/// The wrapper of ptrace(2) in the package of system calls that debuggers of Go use.
const GO_UNIX_PTRACE: &[u8] = b"golang.org/x/sys/unix.ptrace";
/// The instructions that make the call ptrace(2), as in the wrappers of glibc and musl: its number, and the call.
#[cfg(target_arch = "x86_64")]
const PTRACE_CODE: &[u8] = b"\xb8\x65\0\0\0\x0f\x05";
#[cfg(target_arch = "aarch64")]
const PTRACE_CODE: &[u8] = b"\xa8\x0e\x80\xd2\x01\0\0\xd4";
/// More than the code of most static programs; a search takes about a millisecond for 10 MiB.
const MAX_TEXT: u64 = 32 << 20;

/// Returns the path of the link to the executable of a process (`/proc/PID/exe`).
pub fn link(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", living_thread::of(pid)))
}

/// Returns whether the executable of a process is for another architecture than weir's, such as 32-bit x86.
pub fn is_foreign(pid: u32) -> bool {
    file_is_foreign(&link(pid))
}

/// Returns whether an executable file is for another architecture than weir's.
pub fn file_is_foreign(path: &Path) -> bool {
    ElfFile::open(path).is_some_and(|elf| elf.is_foreign() || elf.is_native().is_ok_and(|own| !own))
}

/// Returns whether the executable of a process imports ptrace(2) or contains its wrapper, as debuggers and strace do. See also
/// [`libraries_trace_others`].
pub fn traces_others(pid: u32) -> bool {
    let Some(elf) = ElfFile::open(&link(pid)) else { return false };
    let Ok(sections) = elf.sections() else { return false };
    let is_ptrace = |name: &[u8]| matches!(name, b"ptrace" | b"syscall.ptrace" | GO_UNIX_PTRACE);
    // A program with -static-pie has a .dynsym, which is empty.
    sections.any_symbol(true, is_ptrace) == Some(true)
        || sections.has(GO_FUNCTIONS) && has_go_ptrace(&sections)
        || !sections.has(".interp")
            && sections.any_symbol(false, is_ptrace).unwrap_or_else(|| has_ptrace_code(&sections))
}

/// Returns whether a static program without symbols contains the code of the C library's ptrace(2).
fn has_ptrace_code(sections: &ElfSections<'_>) -> bool {
    let text = sections.bytes(".text", MAX_TEXT);
    !sections.has(GO_FUNCTIONS) && text.is_some_and(|text| memchr::memmem::find(text, PTRACE_CODE).is_some())
}

/// A file, as /proc/PID/maps has it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MappedFile {
    path: PathBuf,
    device: (u32, u32),
    inode: u64,
}

impl MappedFile {
    /// Returns None for a mapping without a file.
    fn of(region: &MappedRegion) -> Option<Self> {
        let MappingKind::File(path) = &region.kind else { return None };
        Some(Self { path: path.clone(), device: region.device, inode: region.inode })
    }
}

/// Returns whether a library that a process has mapped imports ptrace(2). A program that calls it by an address that it looks up
/// itself, as Python's ctypes does, is not found.
pub fn libraries_trace_others(pid: u32) -> bool {
    /// The answers, by file: a program that forks often has the same libraries as before. In another mount namespace the same path and
    /// inode may be a file of another device.
    static KNOWN: Mutex<BTreeMap<MappedFile, bool>> = Mutex::new(BTreeMap::new());
    /// More than the libraries of all programs of a build.
    const MAX_KNOWN: usize = 4096;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    let imports = |path: &Path| {
        let inside = Path::new("/proc")
            .join(pid.to_string())
            .join("root")
            .join(path.strip_prefix("/").unwrap_or(path));
        let elf = ElfFile::open(&inside);
        elf.is_some_and(|elf| elf.sections().is_ok_and(|sections| sections.imports(b"ptrace")))
    };
    let executable = maps::regions(pid).into_iter().filter(|region| region.executable);
    let mut files = executable.filter_map(|region| MappedFile::of(&region));
    files.any(|file| *known.entry(file).or_insert_with_key(|file| imports(&file.path)))
}

/// Returns whether a program of Go contains a wrapper of ptrace(2), also one without symbols. Its table of functions has their names.
fn has_go_ptrace(sections: &ElfSections<'_>) -> bool {
    let Some(table) = sections.bytes(GO_FUNCTIONS, MAX_GO_FUNCTIONS) else { return false };
    memchr::memmem::find(table, GO_UNIX_PTRACE).is_some()
        || memchr::memmem::find(table, b"\0syscall.ptrace").is_some()
}

/// Returns whether a process runs without the privilege of its set-user-ID or set-group-ID executable. The kernel denies
/// it if the tracer is unprivileged (ptrace(2)) or no_new_privs is set (PR_SET_NO_NEW_PRIVS(2const)).
pub fn loses_privilege(pid: u32) -> bool {
    let is_restricted = || proc::status(pid).is_some_and(|status| status.nonewprivs == Some(1));
    let exe = link(pid);
    file_loses_privilege(&exe) || gives_privilege(&exe) && is_restricted()
}

/// Returns whether an executable file would run without its set-user-ID or set-group-ID privilege under weir.
pub fn file_loses_privilege(path: &Path) -> bool {
    takes_privilege() && gives_privilege(path)
}

/// Returns whether a tracee of weir gets no privilege from a set-user-ID or set-group-ID program (ptrace(2)).
pub fn takes_privilege() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Returns whether an executable file is set-user-ID or set-group-ID to another user or group than weir's.
fn gives_privilege(path: &Path) -> bool {
    let Ok(exe) = file_system::status(path) else { return false };
    let owner = exe.mode & libc::S_ISUID != 0 && exe.uid != rustix::process::geteuid().as_raw();
    let group = exe.mode & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
        && exe.gid != rustix::process::getegid().as_raw();
    owner || group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_path_and_inode_of_another_device_is_another_file() {
        let of = |line: &str| {
            let region = maps::parse_regions(line.as_bytes()).pop().expect("a region");
            MappedFile::of(&region).expect("a file")
        };
        let library = of("1000-2000 r-xp 00000000 00:20 7 /usr/lib/a.so");
        assert!(library == of("3000-4000 r-xp 00001000 00:20 7 /usr/lib/a.so"));
        assert!(library != of("1000-2000 r-xp 00000000 00:21 7 /usr/lib/a.so"));
        assert!(library != of("1000-2000 r-xp 00000000 00:20 8 /usr/lib/a.so"));
    }
}
