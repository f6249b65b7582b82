//! Reads of memory and files that other processes control, made by a child that weir can abandon.
//!
//! A page of another process, or a path that it names, may belong to a server that never answers (FUSE, NFS,
//! userfaultfd(2)), and no check of mappings or mounts excludes it: another thread can change them before the read. So weir opens
//! no such path itself, and reads no memory of another user's process. One child reads for all threads of weir; it is replaced
//! if it does not answer. weir itself reads memory of processes of its own user, which is faster, if `served_mappings` finds no
//! server.

mod answers;
mod channel;
mod reader;
mod silent;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use rustix::thread::CapabilitySet;

use answers::Operation;
use reader::ForeignReader;
use silent::{is_silent, is_silent_path, note_silent, note_silent_path};

use crate::expendable::{self, Limits, Rights};
use crate::process_identity::ProcessIdentity;
use crate::served_mounts::ServedMounts;
use crate::{cached_paths, living_thread, memory, proc, served_mappings};

pub use answers::FileStatus;
pub(crate) use channel::DATA_BYTES;
pub(crate) use silent::{answers, silent_files, silent_processes};

/// The limits of a read. A server that is busy for longer counts as one that does not answer: meanwhile a process that is
/// traced stays stopped.
const LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: Some(Duration::from_secs(20)) };
/// The most files and processes that may cost weir the limit. After them only memory of other processes is read.
const MAX_SILENT_PATHS: usize = 16;

/// The children, and the processes and paths that did not answer.
#[derive(Debug, Default)]
struct ForeignReads {
    reader: Option<ForeignReader>,
    /// Another child, which alone may write to memory.
    writer: Option<ForeignReader>,
    /// The process that started the child: one that weir forks has a copy of this struct.
    owner: u32,
    /// Processes whose memory or files did not answer, each with a sentence from the time when it lived.
    silent: Vec<(ProcessIdentity, String)>,
    /// Mount points whose files did not answer, or paths if no mount point is known.
    silent_paths: HashSet<PathBuf>,
}

static READS: Mutex<Option<ForeignReads>> = Mutex::new(None);
/// True after the first process or path that did not answer; before it a request needs no search for them.
static HAS_SILENT: AtomicBool = AtomicBool::new(false);
/// The child may not read memory that this process may read: Yama (kernel.yama.ptrace_scope) lets only ancestors and the
/// tracer read the processes of the same user.
static IS_DENIED: AtomicBool = AtomicBool::new(false);

/// The child gave no answer within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Silent;

impl ForeignReads {
    /// Returns whether the process that has this number now did not answer.
    fn knows_silent(&self, pid: u32) -> bool {
        self.silent.iter().any(|(process, _)| process.pid() == pid && process.is_current())
    }

    /// Makes a request. Returns None if there can be no child.
    fn ask(
        &mut self,
        operation: Operation,
        words: [u64; 4],
        bytes: &[u8],
    ) -> Option<Result<(i64, &ForeignReader), Silent>> {
        let (child, rights) = match operation {
            Operation::WriteMemory => (&mut self.writer, Rights::WritingMemory),
            _ => (&mut self.reader, Rights::ReadingOnly),
        };
        if child.is_none() {
            *child = ForeignReader::start(rights);
            end_at_exit();
        }
        let result = child.as_mut()?.ask(operation, words, bytes, LIMITS);
        if result.is_none() {
            *child = None;
        }
        Some(result.and_then(|result| Some((result, child.as_ref()?))).ok_or(Silent))
    }
}

/// Lets exit(3) end the children.
fn end_at_exit() {
    static REGISTERED: Once = Once::new();
    extern "C" fn handler() {
        end();
    }
    // SAFETY: the handler does not unwind, and exit(3) calls it while this program's code is still mapped.
    let register = || unsafe { libc::atexit(handler) };
    // If it fails, the children die with weir.
    REGISTERED.call_once(|| _ = register());
}

/// Ends and reaps the children, so that no process of weir is left when it ends or becomes the command. Does nothing while
/// another thread waits for an answer: then the children die with weir.
pub(crate) fn end() {
    let Ok(mut reads) = READS.try_lock() else { return };
    if let Some(reads) = reads.as_mut().filter(|reads| reads.owner == std::process::id()) {
        (reads.reader, reads.writer) = (None, None);
    }
}

fn with_reads<T>(act: impl FnOnce(&mut ForeignReads) -> T) -> T {
    let mut reads = READS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    if reads.as_ref().is_none_or(|reads| reads.owner != own) {
        // The copy of a parent's child is not ours to end.
        std::mem::forget(reads.replace(ForeignReads { owner: own, ..ForeignReads::default() }));
    }
    act(reads.get_or_insert_default())
}

/// Reads segments of the memory of a process or thread, which fill the buffer of at most [`DATA_BYTES`], until one cannot be
/// read. Returns the number of bytes. A process that did not answer is not asked again.
pub(crate) fn read_memory(tid: u32, segments: &[libc::iovec], buffer: &mut [u8]) -> usize {
    let no_memory = -i64::from(libc::ESRCH);
    let got = match read_memory_of(tid, segments, buffer) {
        error if error == no_memory => {
            living_thread::other(tid).map_or(error, |other| read_memory_of(other, segments, buffer))
        }
        got => got,
    };
    usize::try_from(got).unwrap_or(0)
}

/// As [`read_memory`]. Returns the number of bytes, or a negative errno.
fn read_memory_of(tid: u32, segments: &[libc::iovec], buffer: &mut [u8]) -> i64 {
    let direct = |buffer: &mut [u8]| memory::read_process(tid, segments, buffer);
    if expendable::is_child() || IS_DENIED.load(Relaxed) {
        return direct(buffer);
    }
    if served_mappings::is_of_own_user(tid) && !served_mappings::touch(tid, segments) {
        return direct(buffer);
    }
    if HAS_SILENT.load(Relaxed) && is_silent(tid) {
        return 0;
    }
    let wanted: Vec<u8> = segments
        .iter()
        .flat_map(|segment| [segment.iov_base as u64, segment.iov_len as u64])
        .flat_map(u64::to_le_bytes)
        .collect();
    let words = [wanted.len() as u64, u64::from(tid), buffer.len() as u64, 0];
    let got = with_reads(|reads| {
        Some(reads.ask(Operation::Memory, words, &wanted)?.map(|(got, reader)| {
            let length = usize::try_from(got).unwrap_or(0).min(buffer.len());
            reader.answer(&mut buffer[..length]);
            (got, length)
        }))
    });
    match got {
        None => direct(buffer),
        Some(Ok((error, _))) if error == -i64::from(libc::EPERM) => direct_if_permitted(buffer, direct),
        Some(Ok((error, _))) if error < 0 => error,
        Some(Ok((_, length))) => length as i64,
        Some(Err(Silent)) => {
            note_silent(proc::process_of(tid).unwrap_or(tid));
            0
        }
    }
}

/// Writes to the memory of a process or thread. Returns false if not all bytes were written.
pub(crate) fn write_memory(tid: u32, address: u64, bytes: &[u8]) -> bool {
    let direct = |address: u64, bytes: &[u8]| memory::write_process(tid, address, bytes);
    let is_direct = expendable::is_child() || IS_DENIED.load(Relaxed) || served_mappings::is_of_own_user(tid);
    if !is_direct && HAS_SILENT.load(Relaxed) && is_silent(tid) {
        return false;
    }
    bytes.chunks(DATA_BYTES).enumerate().all(|(index, part)| {
        let at = address.wrapping_add((index * DATA_BYTES) as u64);
        let words = [part.len() as u64, u64::from(tid), at, 0];
        let ask = |reads: &mut ForeignReads| {
            Some(reads.ask(Operation::WriteMemory, words, part)?.map(|(put, _)| put))
        };
        let put = match if is_direct { None } else { with_reads(ask) } {
            None => direct(at, part),
            Some(Ok(put)) if put == -i64::from(libc::EPERM) && !has_ptrace_capability() => direct(at, part),
            Some(Ok(put)) => put,
            Some(Err(Silent)) => {
                note_silent(proc::process_of(tid).unwrap_or(tid));
                return false;
            }
        };
        usize::try_from(put) == Ok(part.len())
    })
}

/// With CAP_SYS_PTRACE a child may do to a process all that weir may.
fn has_ptrace_capability() -> bool {
    let held = rustix::thread::capabilities(None).map(|held| held.effective);
    held.is_ok_and(|held| held.contains(CapabilitySet::SYS_PTRACE))
}

/// Reads memory in this process that the child may not read.
fn direct_if_permitted(buffer: &mut [u8], direct: impl FnOnce(&mut [u8]) -> i64) -> i64 {
    if has_ptrace_capability() {
        return 0;
    }
    let got = direct(buffer);
    IS_DENIED.fetch_or(got > 0, Relaxed);
    got
}

/// Makes a request about a path that another process may have chosen, and passes the answer to `convert`. A child that can
/// be abandoned does the work itself. Fails with TimedOut if a server does not answer.
pub(crate) fn ask_about<T>(
    operation: Operation,
    path: &Path,
    word: u64,
    convert: impl FnOnce(&[u8], Option<OwnedFd>) -> Option<T>,
) -> io::Result<T> {
    if expendable::is_child() {
        let (bytes, file) = operation.answer(path, word)?;
        return convert(&bytes, file).ok_or_else(|| io::ErrorKind::InvalidData.into());
    }
    let silent = || io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer");
    if HAS_SILENT.load(Relaxed) && is_silent_path(path) {
        return Err(silent());
    }
    let bytes = path.as_os_str().as_bytes();
    let answer = with_reads(|reads| {
        let answer = reads.ask(operation, [bytes.len() as u64, word, 0, 0], bytes)?;
        Some(answer.map(|(result, reader)| {
            let mut bytes = vec![0; usize::try_from(result).unwrap_or(0).min(DATA_BYTES)];
            reader.answer(&mut bytes);
            let file = (operation == Operation::Open && result >= 0).then(|| reader.receive_file());
            (result, bytes, file.flatten())
        }))
    });
    match answer {
        // No child can be started: the machine has no room for another process.
        None => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        Some(Err(Silent)) => {
            note_silent_path(path);
            Err(silent())
        }
        Some(Ok((result, ..))) if result < 0 => Err(io::Error::from_raw_os_error(-result as i32)),
        Some(Ok((_, bytes, file))) => convert(&bytes, file).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// Returns a local file; None in a child that can be abandoned, which has no need of it.
fn find(path: &Path, follows: bool) -> Option<OwnedFd> {
    if expendable::is_child() { None } else { cached_paths::find(path, follows) }
}

/// Returns the status of a file, of a symbolic link itself if `follows` is false.
pub(crate) fn status(path: &Path, follows: bool) -> io::Result<FileStatus> {
    let known = find(path, follows).and_then(|found| File::from(found).metadata().ok());
    match known {
        Some(about) => Ok(FileStatus::of(&about)),
        None => ask_about(Operation::Status, path, follows.into(), |bytes, _| FileStatus::decode(bytes)),
    }
}

/// Returns the status of the open file of a descriptor. Without an answer of a FUSE server, size and times are the last that the
/// kernel received.
pub(crate) fn status_of_descriptor(pid: u32, fd: i32) -> io::Result<FileStatus> {
    let of_thread = |tid: u32| {
        let link = PathBuf::from(format!("/proc/{tid}/fd/{fd}"));
        match !expendable::is_child() && ServedMounts::asks_at_descriptor(tid, fd) {
            true => ask_about(Operation::Status, &link, 1, |bytes, _| FileStatus::decode(bytes)),
            false => cached_paths::status_of_link(&link),
        }
    };
    of_thread(pid).or_else(|error| living_thread::other(pid).map_or(Err(error), of_thread))
}

/// Returns the status of a file, which may be the last that the kernel received.
pub(crate) fn last_status(path: &Path) -> io::Result<FileStatus> {
    match cached_paths::status(path) {
        Some(known) => Ok(known),
        None => ask_about(Operation::Status, path, 1, |bytes, _| FileStatus::decode(bytes)),
    }
}

/// As [`std::fs::canonicalize`].
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    if let Some(known) = find(path, true).and_then(|found| cached_paths::path_of(found.as_fd())) {
        return Ok(known);
    }
    let convert = |bytes: &[u8], _| Some(std::ffi::OsString::from_vec(bytes.to_vec()).into());
    ask_about(Operation::Canonicalize, path, 0, convert)
}

/// Returns the first `most` bytes of a file of /proc that needs the memory of a process.
pub(crate) fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    ask_about(Operation::Beginning, path, most.min(DATA_BYTES as u64), |bytes, _| Some(bytes.to_vec()))
}

/// Opens a regular file, and returns its status. If a server answers for the file, returns a copy of its bytes.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, FileStatus)> {
    if let Some(found) = find(path, true) {
        let file = cached_paths::open_regular(found)?;
        let status = FileStatus::of(&file.metadata()?);
        return Ok((file, status));
    }
    ask_about(Operation::Open, path, 0, |bytes, file| Some((File::from(file?), FileStatus::decode(bytes)?)))
}

/// Returns the names in a directory; None if there are more than `most` or more than fit into an answer.
pub(crate) fn names(path: &Path, most: usize) -> io::Result<Option<Vec<std::ffi::OsString>>> {
    let convert = |bytes: &[u8], _| {
        let (first, rest) = bytes.split_first()?;
        let names = rest.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Some(
            (*first == 0)
                .then(|| names.map(|name| std::ffi::OsStr::from_bytes(name).to_os_string()).collect()),
        )
    };
    ask_about(Operation::Names, path, most as u64, convert)
}
