//! The reads that the kernel itself does at execve(2) and counts for the process in /proc/PID/io: the headers and program
//! headers of the executable, of its loader, and of the interpreters of scripts.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use std::path::{Path, PathBuf};

use foldhash::HashMap;
use object::read::elf::ProgramHeader;
use object::{LittleEndian, elf};
use weir_model::trace::IoTotals;
use weir_sys::elf::{ElfFile, ElfSegment};
use weir_sys::file_system::{open_regular, status};

/// BINPRM_BUF_SIZE of linux/binfmts.h.
const HEAD_BYTES: u64 = 256;
/// The kernel's limit of nested interpreters (exec_binprm in fs/exec.c).
const MAX_SCRIPTS: usize = 5;
/// Files in the cache. A build runs a few hundred executables; the limit bounds the memory.
const MAX_FILES: usize = 4096;

/// The version of a file: device, inode, size, and time of change in seconds and nanoseconds.
type FileVersion = (u64, u64, u64, i64, i64);

/// The kernel's reads for each live process.
#[derive(Debug, Default)]
pub(super) struct ImageReads {
    by_process: HashMap<u32, IoTotals>,
    by_file: HashMap<PathBuf, (FileVersion, IoTotals)>,
}

impl ImageReads {
    /// Adds the reads of an execve(2) of `exe` by process `pid`.
    pub fn exec(&mut self, pid: u32, exe: &Path) {
        if let Some(reads) = self.of_file(&resolve(pid, exe), MAX_SCRIPTS) {
            let sum = self.by_process.entry(pid).or_default();
            *sum = sum.plus(reads);
        }
    }

    /// Returns the sum for a process.
    pub fn of(&self, pid: u32) -> IoTotals {
        self.by_process.get(&pid).copied().unwrap_or_default()
    }

    /// Returns the sum for a process that has exited, and removes it.
    pub fn take(&mut self, pid: u32) -> IoTotals {
        self.by_process.remove(&pid).unwrap_or_default()
    }

    fn of_file(&mut self, path: &Path, scripts: usize) -> Option<IoTotals> {
        let file = status(path).ok()?;
        let version = (file.dev, file.ino, file.size, file.inode_changed.0, file.inode_changed.1);
        if let Some((_, reads)) = self.by_file.get(path).filter(|cached| cached.0 == version) {
            return Some(*reads);
        }
        let mut head = Vec::new();
        open_regular(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        let own = reads([head.len() as u64]);
        let rest = match interpreter(&head) {
            Some(next) => self.of_file(next, scripts.checked_sub(1)?)?,
            None => of_executable(path)?,
        };
        if self.by_file.len() >= MAX_FILES {
            self.by_file.clear();
        }
        self.by_file.insert(path.into(), (version, own.plus(rest)));
        Some(own.plus(rest))
    }
}

/// Returns the path, as weir can open it, of a file that process `pid` has executed by the name `exe`.
fn resolve(pid: u32, exe: &Path) -> PathBuf {
    if exe.starts_with("/dev/fd") {
        return format!("/proc/{pid}/exe").into(); // by execveat(2) of a descriptor
    }
    let own = if exe.is_absolute() { exe.into() } else { Path::new(&format!("/proc/{pid}/cwd")).join(exe) };
    // The process may have exited; then its working directory was most likely weir's.
    if status(&own).is_ok() { own } else { exe.into() }
}

/// Returns the interpreter in the first line of a script.
fn interpreter(head: &[u8]) -> Option<&Path> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(Path::new(std::ffi::OsStr::from_bytes(word)))
}

/// Returns the reads of an ELF file: its program headers, the name of the loader (PT_INTERP), and the loader's ELF header and program
/// headers. Returns None if one of the files cannot be read.
fn of_executable(path: &Path) -> Option<IoTotals> {
    let executable = ElfFile::open(path)?;
    let segments = executable.segments().ok()?;
    let own = reads([size_of_val(segments) as u64]);
    let is_interpreter = |segment: &&ElfSegment| segment.p_type(LittleEndian) == elf::PT_INTERP;
    let Some(name) = segments.iter().find(is_interpreter) else { return Some(own) };
    let loader = Path::new(std::ffi::OsStr::from_bytes(executable.interpreter().ok()??));
    let loader = ElfFile::open(loader)?;
    let header = size_of::<elf::FileHeader64<LittleEndian>>() as u64;
    let of_loader = reads([name.p_filesz(LittleEndian), header, size_of_val(loader.segments().ok()?) as u64]);
    Some(own.plus(of_loader))
}

/// Returns the sum of reads of these sizes, in bytes.
fn reads<const CALLS: usize>(bytes: [u64; CALLS]) -> IoTotals {
    IoTotals { read_calls: CALLS as u64, read_bytes: bytes.iter().sum(), ..IoTotals::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Returns the kernel's totals of a process that is stopped at the end of its execve(2), before it reads anything.
    fn counted_by_kernel(path: &Path) -> IoTotals {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: ptrace(2) is async-signal-safe.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        let mut child = command.spawn().unwrap();
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        unsafe { libc::waitpid(child.id() as libc::pid_t, &mut status, 0) };
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let io = weir_sys::proc::io(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        io
    }

    #[test]
    fn reads_equal_the_count_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\nexit 0\n").unwrap();
        let second = dir.path().join("second");
        std::fs::write(&second, format!("#!{}\n# {}\n", script.display(), "-".repeat(300))).unwrap();
        for path in [&script, &second] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let mut images = ImageReads::default();
        for path in [Path::new("/bin/sh"), Path::new("/bin/true"), &script, &second, &script] {
            images.exec(7, path);
            assert_eq!(images.take(7), counted_by_kernel(path), "{}", path.display());
        }
        images.exec(7, &dir.path().join("nothing"));
        assert_eq!(images.of(7), IoTotals::default());
    }
}
