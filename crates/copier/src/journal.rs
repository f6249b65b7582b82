//! `--resume`: the journal of an incomplete copy, beside its temporary file. It names the source and the SHA-256 of each part
//! that was written, so that a later run continues after the last part that is really there.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::target::quoted;

/// The bytes of a part. Smaller files are copied at once, without a journal.
pub(crate) const PART_BYTES: u64 = 8 << 20;
/// More attempts than other runs for the same target can make fail.
pub(crate) const MAX_ATTEMPTS: u32 = 100;
const SCHEMA: &str = "weir-copy-journal/1";

/// The first line: a source that differs in any of these is copied from its beginning. Device numbers change between mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    schema: String,
    part_bytes: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Header {
    fn of(source: &FileStat) -> Self {
        Self {
            schema: SCHEMA.into(),
            part_bytes: PART_BYTES,
            inode: source.ino,
            bytes: source.size,
            modified: source.modified,
            changed: source.changed,
        }
    }
}

/// One of the other lines: a part that was written, in their order.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    sha256: String,
}

/// The journal of a file that is copied. Another weir that wants the same target is refused.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    pub name: CString,
    /// Bytes at the start of the temporary file that were read back and are as the journal says.
    pub verified_bytes: u64,
}

/// Returns the names of the temporary file and its journal.
pub(crate) fn names(target: &CStr) -> (CString, CString) {
    (name(target, ""), name(target, ".journal"))
}

/// Returns the name of a file beside the target: short, and the same in each run.
pub(crate) fn name(target: &CStr, end: &str) -> CString {
    let hash = Sha256::digest(base_name(target));
    let hex: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = &target.to_bytes()[..target.to_bytes().len() - base_name(target).len()];
    let name = format!(".weir-resume-{hex}{end}");
    CString::new([folder, name.as_bytes()].concat()).expect("no NUL byte in a C string")
}

fn base_name(target: &CStr) -> &[u8] {
    target.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Opens a temporary file or a journal that may be there. It must be a regular file of this user with one name: another
/// user could have put a link there.
fn open_own(entry: &Entry, name: &CStr) -> CopyResult<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let path = entry.with_target(name).target_path();
    let open = || openat(entry.target_dir(), name, flags, Mode::from_raw_mode(0o600));
    let file = retry_on_intr(open).on(&path, "open")?;
    let stat: FileStat = rustix::fs::fstat(&file).on(&path, "fstat")?.into();
    check_own(&stat, &path)?;
    Ok(file)
}

/// Opens the journal and locks it. Opens it again if its name was removed before the lock: the other weir, whose copy is complete,
/// removes it, and a lock on it would not exclude a third one.
fn open_locked(context: &Context, entry: &Entry, name: &CStr) -> CopyResult<OwnedFd> {
    let path = entry.with_target(name).target_path();
    for _ in 0..MAX_ATTEMPTS {
        let file = open_own(entry, name)?;
        if !lock(context, &file, &path)? {
            break;
        }
        if FileStat::from(rustix::fs::fstat(&file).on(&path, "fstat")?).links > 0 {
            return Ok(file);
        }
    }
    Err(busy(entry, &path))
}

/// Refuses a file that is not a regular file of this user with one name, or with none: its name was removed.
pub(crate) fn check_own(stat: &FileStat, path: &Path) -> CopyResult<()> {
    let is_own = stat.kind() == FileType::RegularFile
        && stat.uid == rustix::process::geteuid().as_raw()
        && stat.links <= 1;
    match is_own {
        true => Ok(()),
        false => Err(CopyError::Refused(format!(
            "{} is not a file that weir made for you: look at it, and remove it",
            quoted(path)
        ))),
    }
}

/// Returns the error of a target whose file `locked` another process has locked.
pub(crate) fn busy(entry: &Entry, locked: &Path) -> CopyError {
    CopyError::Refused(format!(
        "{}: another weir copies to this target now (it has locked {}): wait for its end",
        quoted(&entry.target_path()),
        quoted(locked)
    ))
}

/// Locks a file (flock(2)). Returns false if another process keeps it locked for MAX_WAIT. Fails after a stop request. A weir
/// that was killed keeps its lock for a moment, because its worker process ends later.
pub(crate) fn lock(context: &Context, file: &OwnedFd, path: &Path) -> CopyResult<bool> {
    /// A killed process ends only when its write(2) of one chunk to a slow disk has returned.
    const MAX_WAIT: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(20);
    let end = Instant::now() + MAX_WAIT;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if Instant::now() < end => context.control.sleep(PAUSE)?,
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(errno) => return Err(CopyError::call(path, "flock", errno)),
        }
    }
}

impl Journal {
    /// Opens the temporary file of a target and its journal. Reads back what is there, and cuts off the rest.
    pub fn open(
        context: &Context,
        entry: &Entry,
        target: &CStr,
        source: &FileStat,
    ) -> CopyResult<(OwnedFd, CString, Self)> {
        let (temporary_name, name) = names(target);
        let path = entry.with_target(&name).target_path();
        let file = open_locked(context, entry, &name)?;
        let temporary = open_own(entry, &temporary_name)?;
        let mut journal = Self { file: file.into(), name, verified_bytes: 0 };
        let header = Header::of(source);
        let checksums = journal.read(&header).on(&path, "read")?;
        let temporary_path = entry.with_target(&temporary_name).target_path();
        journal.verified_bytes = verified_bytes(&temporary, &checksums).on(&temporary_path, "read")?;
        let kept = (journal.verified_bytes / PART_BYTES) as usize;
        journal.rewrite(&header, &checksums[..kept]).on(&path, "write")?;
        rustix::fs::ftruncate(&temporary, journal.verified_bytes).on(&temporary_path, "ftruncate")?;
        Ok((temporary, temporary_name, journal))
    }

    /// Returns the checksums of all parts, if the journal is about this source. A line that a crash cut ends the list.
    fn read(&mut self, header: &Header) -> std::io::Result<Vec<String>> {
        let mut lines = BufReader::new(&self.file).split(b'\n');
        let first = lines.next().transpose()?.unwrap_or_default();
        if serde_json::from_slice::<Header>(&first).ok().as_ref() != Some(header) {
            return Ok(Vec::new());
        }
        let mut checksums = Vec::new();
        for line in lines {
            let Ok(part) = serde_json::from_slice::<Part>(&line?) else { break };
            checksums.push(part.sha256);
        }
        Ok(checksums)
    }

    fn rewrite(&mut self, header: &Header, checksums: &[String]) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(header)?;
        text.push(b'\n');
        for sha256 in checksums {
            text.extend(line_of(sha256)?);
        }
        self.file.set_len(0)?;
        self.file.write_all_at(&text, 0)?;
        std::io::Seek::seek(&mut self.file, std::io::SeekFrom::End(0)).map(drop)
    }

    /// Notes a part that was written completely.
    pub fn note_part(&mut self, sha256: &Sha256) -> std::io::Result<()> {
        let hex: String = sha256.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.file.write_all(&line_of(&hex)?)
    }
}

fn line_of(sha256: &str) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Part { sha256: sha256.into() })?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the length of the parts, from the start, whose bytes are in the file.
fn verified_bytes(file: &OwnedFd, checksums: &[String]) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut verified = 0;
    for wanted in checksums {
        let mut hash = Sha256::new();
        for at in (verified..verified + PART_BYTES).step_by(buffer.len()) {
            let got = crate::engine::pread_full(file.as_fd(), &mut buffer, at)?;
            hash.update(&buffer[..got]);
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != *wanted {
            break;
        }
        verified += PART_BYTES;
    }
    Ok(verified)
}
