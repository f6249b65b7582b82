//! What the kernel reads of files at execve(2): the heads of a program, of the interpreters that it names, and where their
//! parts lie. The kernel counts that for the process, as if it had read it itself.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use object::read::elf::ProgramHeader;
use object::{LittleEndian, elf};
use weir_model::trace::IoTotals;
use weir_sys::elf::{ElfFile, ElfSegment};

/// So much of a file is read to see what it is (BINPRM_BUF_SIZE).
const HEAD_BYTES: u64 = 256;
/// So many scripts may name each other as interpreters.
const SCRIPTS: usize = 5;
/// Files that are remembered; a build in many directories makes many.
const MOST: usize = 4096;

/// Whether a file is still what it was: device, inode, size, and when it changed.
type Stamp = (u64, u64, u64, i64, i64);

/// What was read for the processes that live.
#[derive(Debug, Default)]
pub(super) struct ImageReads {
    read: HashMap<u32, IoTotals>,
    known: HashMap<PathBuf, (Stamp, IoTotals)>,
}

impl ImageReads {
    /// A process has become this program.
    pub fn exec(&mut self, pid: u32, exe: &Path) {
        if let Some(read) = self.of_file(&found(pid, exe), SCRIPTS) {
            let sum = self.read.entry(pid).or_default();
            *sum = sum.plus(read);
        }
    }

    /// What the kernel has read for a process.
    pub fn read_of(&self, pid: u32) -> IoTotals {
        self.read.get(&pid).copied().unwrap_or_default()
    }

    /// The same of one that has ended.
    pub fn ended(&mut self, pid: u32) -> IoTotals {
        self.read.remove(&pid).unwrap_or_default()
    }

    fn of_file(&mut self, path: &Path, scripts: usize) -> Option<IoTotals> {
        let is = path.metadata().ok()?;
        let stamp = (is.dev(), is.ino(), is.size(), is.ctime(), is.ctime_nsec());
        if let Some((_, read)) = self.known.get(path).filter(|known| known.0 == stamp) {
            return Some(*read);
        }
        let mut head = Vec::new();
        File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        let own = reads([head.len() as u64]);
        let rest = match interpreter(&head) {
            Some(next) => self.of_file(next, scripts.checked_sub(1)?)?,
            None => of_program(path)?,
        };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(path.into(), (stamp, own.plus(rest)));
        Some(own.plus(rest))
    }
}

/// Where a file is that a process has executed by this name.
fn found(pid: u32, exe: &Path) -> PathBuf {
    if exe.starts_with("/dev/fd") {
        return format!("/proc/{pid}/exe").into(); // by execveat(2) of a descriptor
    }
    let own = if exe.is_absolute() { exe.into() } else { Path::new(&format!("/proc/{pid}/cwd")).join(exe) };
    // One that has ended already stood where weir stands, most likely.
    if own.exists() { own } else { exe.into() }
}

/// Of a script: who is to run it.
fn interpreter(head: &[u8]) -> Option<&Path> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(Path::new(std::ffi::OsStr::from_bytes(word)))
}

/// The table of its parts, the name of its loader, and the loader's head and table.
fn of_program(path: &Path) -> Option<IoTotals> {
    let program = ElfFile::open(path)?;
    let parts = program.segments().ok()?;
    let table = reads([size_of_val(parts) as u64]);
    let names = |part: &&ElfSegment| part.p_type(LittleEndian) == elf::PT_INTERP;
    let Some(name) = parts.iter().find(names) else { return Some(table) };
    let loader = Path::new(std::ffi::OsStr::from_bytes(program.interpreter().ok()??));
    let loader = ElfFile::open(loader)?;
    let head = size_of::<elf::FileHeader64<LittleEndian>>() as u64;
    let more = reads([name.p_filesz(LittleEndian), head, size_of_val(loader.segments().ok()?) as u64]);
    Some(table.plus(more))
}

/// Calls that read so many bytes each.
fn reads<const CALLS: usize>(bytes: [u64; CALLS]) -> IoTotals {
    IoTotals { read_calls: CALLS as u64, read_bytes: bytes.iter().sum(), ..IoTotals::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// What the kernel counts for one that has read nothing by itself, as it stands still at the end of its execve(2).
    fn counted(path: &Path) -> IoTotals {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: one call that is safe after fork.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        let mut child = command.spawn().unwrap();
        let mut status = 0;
        // SAFETY: the child is this test's own, and `status` is valid.
        unsafe { libc::waitpid(child.id() as libc::pid_t, &mut status, 0) };
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let io = weir_sys::proc::io(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        io
    }

    #[test]
    fn it_is_what_the_kernel_counts() {
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
            assert_eq!(images.ended(7), counted(path), "{}", path.display());
        }
        images.exec(7, &dir.path().join("nothing"));
        assert_eq!(images.read_of(7), IoTotals::default());
    }
}
