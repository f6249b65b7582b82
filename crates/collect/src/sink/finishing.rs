//! Finishes a rotated log: syncs it and marks it as safe, compresses it, and removes the oldest ones.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::log_file::{directory_of, sync_directory};
use super::log_name::{Finish, PARTIAL, parse};
use super::rotation::{RotationPolicy, copy_attributes};
use crate::error::{Error, io_error};

/// The compression of finished files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// They stay as they are.
    #[default]
    None,
    /// Zstandard, level 3.
    Zstd,
    /// gzip, level 6.
    Gzip,
}

/// Limits for finished files; the oldest are removed. The default, without limits, keeps every file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The number of finished files; `None` is no limit.
    pub files: Option<usize>,
    /// The size of all finished files, as they are stored; `None` is no limit.
    pub bytes: Option<u64>,
}

/// A file that was renamed.
pub(super) struct RotatedFile {
    pub(super) path: PathBuf,
    pub(super) fd: Arc<OwnedFd>,
}

/// Renames a file to a name that does not exist.
pub(super) fn rename_new(from: &Path, to: &Path) -> Result<(), Errno> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports RENAME_NOREPLACE (rename(2), EINVAL). Check and rename are then not atomic.
        Err(Errno::INVAL | Errno::NOSYS)
            if rustix::fs::lstat(to).is_err_and(|errno| errno == Errno::NOENT) =>
        {
            rustix::fs::rename(from, to)
        }
        result => result,
    }
}

/// Returns the names of rotated logs, finished or not, the oldest first.
pub(super) fn rotated_names(log: &Path) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(directory_of(log)) else { return Vec::new() };
    let own = log.file_name().unwrap_or_default();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names: Vec<OsString> = names.filter(|name| parse(own, name).is_some()).collect();
    names.sort();
    names
}

/// Syncs a rotated log, marks it as safe, compresses it, and removes the oldest finished ones.
pub(super) fn finish_file(log: &Path, job: RotatedFile, policy: RotationPolicy) -> Result<(), Error> {
    let safe = mark_safe(log, &job)?;
    compress(&safe, policy.compression)?;
    remove_oldest(log, policy.retention)
}

/// Syncs a rotated log and gives it the name of a safe one, which it returns.
fn mark_safe(log: &Path, job: &RotatedFile) -> Result<PathBuf, Error> {
    let safe = job.path.with_extension(Finish::Safe.suffix());
    // A file of an earlier run, which was not compressed.
    if job.path == safe {
        return Ok(safe);
    }
    let name = crate::error::shown(&job.path);
    rustix::fs::fsync(&job.fd).map_err(|errno| {
        Error::call("fsync", &name, &io_error(errno), "it stays marked as unfinished; check the device")
    })?;
    rename_new(&job.path, &safe)
        .map_err(|errno| Error::call("rename", &name, &io_error(errno), "it stays marked as unfinished"))?;
    sync_directory(log)?;
    Ok(safe)
}

/// Returns a path with a further suffix.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the compressed form of a finished log, if there is one. It is complete, since it has its name.
pub(super) fn compressed_form(path: &Path) -> Option<PathBuf> {
    [".gz", ".zst"].map(|suffix| with_suffix(path, suffix)).into_iter().find(|path| path.exists())
}

/// Removes the parts of compressed files that an earlier run left.
pub(super) fn remove_parts(log: &Path) {
    let Ok(entries) = std::fs::read_dir(directory_of(log)) else { return };
    let own = log.file_name().unwrap_or_default();
    for name in entries.filter_map(|entry| Some(entry.ok()?.file_name())) {
        let whole = name.as_bytes().strip_suffix(PARTIAL.as_bytes()).map(OsStr::from_bytes);
        if whole.is_some_and(|whole| parse(own, whole).is_some()) {
            let _ = std::fs::remove_file(directory_of(log).join(&name));
        }
    }
}

/// Compresses a file: the compressed one gets its name when it is durable, and only then the other one is removed. A run that was
/// killed between the two leaves both.
fn compress(path: &Path, compression: Compression) -> Result<(), Error> {
    let name = crate::error::shown(path);
    let unlink = || {
        std::fs::remove_file(path).map_err(|error| {
            Error::call("unlink", &name, &error, "it is compressed, and stays beside the compressed file")
        })
    };
    if compressed_form(path).is_some() {
        return unlink();
    }
    let (suffix, encode): (_, Encode) = match compression {
        Compression::None => return Ok(()),
        Compression::Zstd => (".zst", encode_zstd),
        Compression::Gzip => (".gz", encode_gzip),
    };
    let (partial, target) = (with_suffix(path, PARTIAL), with_suffix(path, suffix));
    write_compressed(path, &partial, encode).and_then(|()| std::fs::rename(&partial, &target)).map_err(
        |error| {
            let _ = std::fs::remove_file(&partial);
            Error::call("compress", &name, &error, "it stays uncompressed")
        },
    )?;
    sync_directory(path)?;
    unlink()
}

/// Copies a file compressed to the end of another one, which it returns.
type Encode = fn(&mut File, File) -> io::Result<File>;

fn encode_zstd(input: &mut File, out: File) -> io::Result<File> {
    let mut encoder = zstd::Encoder::new(out, 3)?;
    io::copy(input, &mut encoder)?;
    encoder.finish()
}

fn encode_gzip(input: &mut File, out: File) -> io::Result<File> {
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(6));
    io::copy(input, &mut encoder)?;
    encoder.finish()
}

fn write_compressed(from: &Path, to: &Path, encode: Encode) -> io::Result<()> {
    let mut input = File::open(from)?;
    let _ = std::fs::remove_file(to);
    let out = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    copy_attributes(&out, &rustix::fs::fstat(&input)?)?;
    encode(&mut input, out)?.sync_all()
}

/// Removes the oldest finished logs beyond the limits. Those that are not finished are neither counted nor removed.
fn remove_oldest(log: &Path, retention: Retention) -> Result<(), Error> {
    if retention == Retention::default() {
        return Ok(());
    }
    let (own, directory) = (log.file_name().unwrap_or_default(), directory_of(log));
    let (mut files, mut bytes) = (0, 0);
    for name in rotated_names(log).into_iter().rev() {
        if parse(own, &name).is_none_or(|parts| parts.finish == Finish::Unfinished) {
            continue;
        }
        let path = directory.join(&name);
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        files += 1;
        bytes += metadata.len();
        if retention.files.is_some_and(|most| files > most)
            || retention.bytes.is_some_and(|most| bytes > most)
        {
            std::fs::remove_file(&path).map_err(|error| {
                Error::call(
                    "unlink",
                    &crate::error::shown(&path),
                    &error,
                    "remove it, or make the directory writable",
                )
            })?;
        }
    }
    Ok(())
}
