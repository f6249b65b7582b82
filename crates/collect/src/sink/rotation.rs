//! Rotation: the log gets a finished name, and a new file takes its place. What takes time – the sync, the compression and
//! the removal of old files – is done by a thread, while records go to the new file.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstat, open, renameat_with};
use rustix::io::Errno;

use super::SinkOptions;
use super::log_file::{LogFile, directory_of, sync_directory};
use super::log_name::{Finish, StampSource, parse};
use crate::error::{Error, io_error};

/// When the log is rotated, and what becomes of finished files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RotationPolicy {
    /// The largest size of a file, unless one record is larger.
    pub bytes: Option<u64>,
    /// The longest time for which a file gets records.
    pub interval: Option<Duration>,
    /// The compression of finished files.
    pub compression: Compression,
    /// The limits for finished files.
    pub retention: Retention,
}

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

/// Limits for finished files; the oldest are removed. The default keeps every file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The number of finished files.
    pub files: Option<usize>,
    /// The size of all finished files.
    pub bytes: Option<u64>,
}

/// Renames logs, and finishes them in a thread.
#[derive(Debug)]
pub(super) struct Rotator {
    stamps: StampSource,
    jobs: Option<Sender<Job>>,
    messages: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

/// A file that was renamed.
struct Job {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

impl Rotator {
    /// Starts the thread, and finishes the files that an earlier run left unfinished.
    pub(super) fn new(options: &SinkOptions, messages: &mut Vec<String>) -> Result<Self, Error> {
        let (jobs, incoming) = channel::<Job>();
        let (outgoing, received) = channel();
        let mut rotator =
            Self { stamps: StampSource::default(), jobs: None, messages: received, thread: None };
        let Some(log) = options.path.clone() else { return Ok(rotator) };
        let policy = options.rotation;
        let work = move || {
            for job in incoming {
                if let Err(error) = finish(&log, job, policy) {
                    let _ = outgoing.send(error.to_string());
                }
            }
        };
        let failed = |error: io::Error| {
            Error::call("clone", "a rotation thread", &error, "raise the limit (ulimit -u)")
        };
        rotator.thread =
            Some(std::thread::Builder::new().name("weir-log-rotate".into()).spawn(work).map_err(failed)?);
        rotator.jobs = Some(jobs);
        rotator.adopt_unfinished(options, messages);
        Ok(rotator)
    }

    /// Finishes the files of an earlier run, and continues after its stamps.
    fn adopt_unfinished(&mut self, options: &SinkOptions, messages: &mut Vec<String>) {
        let Some(log) = &options.path else { return };
        let _ = rustix::fs::unlink(next_path(log));
        for name in finished_names(log) {
            let Some(parts) = parse(log.file_name().unwrap_or_default(), &name) else { continue };
            self.stamps.skip_to(parts.stamp);
            if parts.finish != Finish::Unfinished {
                continue;
            }
            let path = directory_of(log).join(&name);
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            match open(&path, flags, Mode::empty()) {
                Ok(fd) => self.submit(Job { path, fd: Arc::new(fd) }),
                Err(errno) => messages.push(format!("open {}: {errno}: it stays unfinished", path.display())),
            }
        }
    }

    fn submit(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// Gives `file` its finished name, and returns the file that takes its place at the path of the log. After an error the
    /// log is as before.
    pub(super) fn rotate(&mut self, file: &LogFile, options: &SinkOptions) -> Result<LogFile, Error> {
        let (Some(log), Some(fd)) = (&options.path, file.sync_fd()) else {
            return Err(Error::text(format!("{}: only a file can be rotated", file.name())));
        };
        let next = next_path(log);
        let new = create_like(&next, file)?;
        let finished = finished_path(log, &self.stamps.next());
        let renamed = rename_new(log, &finished).and_then(|()| {
            rename_new(&next, log).inspect_err(|_| {
                let _ = rename_new(&finished, log);
            })
        });
        if let Err(errno) = renamed {
            let _ = rustix::fs::unlink(&next);
            return Err(Error::call(
                "rename",
                file.name(),
                &io_error(errno),
                "free the name, or the file system",
            ));
        }
        let new = LogFile::from_fd(new, Some(log.clone()), file.name().to_string(), options);
        self.submit(Job { path: finished, fd });
        new
    }

    pub(super) fn take_messages(&self) -> Vec<String> {
        self.messages.try_iter().collect()
    }

    /// Waits until all files are finished.
    pub(super) fn finish(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The new log, before it has its name.
fn next_path(log: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(log.file_name().unwrap_or_default());
    name.push(".next");
    directory_of(log).join(name)
}

fn finished_path(log: &Path, stamp: &str) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(format!(".{stamp}.{}", Finish::Unfinished.suffix()));
    PathBuf::from(path)
}

/// Creates an empty file with the mode and owner of `file`.
fn create_like(path: &Path, file: &LogFile) -> Result<OwnedFd, Error> {
    let name = path.display().to_string();
    let failed = |errno| Error::call("open", &name, &io_error(errno), "free space, or remove this file");
    let flags =
        OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = open(path, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
    let stat = fstat(file.as_fd()).map_err(failed)?;
    // Only root may give a file away; the mode then is the closest that is safe.
    let _ = fchown(&fd, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
    fchmod(&fd, Mode::from_raw_mode(stat.st_mode & 0o777)).map_err(failed)?;
    let _ = rustix::fs::flock(&fd, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    Ok(fd)
}

/// Renames a file to a name that does not exist.
fn rename_new(from: &Path, to: &Path) -> Result<(), Errno> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system has RENAME_NOREPLACE (vfat before Linux 6.0).
        Err(Errno::INVAL | Errno::NOSYS)
            if rustix::fs::lstat(to).is_err_and(|errno| errno == Errno::NOENT) =>
        {
            rustix::fs::rename(from, to)
        }
        result => result,
    }
}

/// Returns the names of finished logs, the oldest first.
fn finished_names(log: &Path) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(directory_of(log)) else { return Vec::new() };
    let own = log.file_name().unwrap_or_default();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names: Vec<OsString> = names.filter(|name| parse(own, name).is_some()).collect();
    names.sort();
    names
}

/// Syncs a finished log, marks it as safe, compresses it, and removes the oldest ones.
fn finish(log: &Path, job: Job, policy: RotationPolicy) -> Result<(), Error> {
    let name = job.path.display().to_string();
    rustix::fs::fsync(&job.fd).map_err(|errno| {
        Error::call("fsync", &name, &io_error(errno), "it stays marked as unfinished; check the device")
    })?;
    let safe = job.path.with_extension(Finish::Safe.suffix());
    rename_new(&job.path, &safe)
        .map_err(|errno| Error::call("rename", &name, &io_error(errno), "it stays marked as unfinished"))?;
    sync_directory(log)?;
    compress(&safe, policy.compression)?;
    remove_oldest(log, policy.retention)
}

/// Compresses a file: the compressed one gets its name when it is durable, and only then the other one is removed.
fn compress(path: &Path, compression: Compression) -> Result<(), Error> {
    let suffix = match compression {
        Compression::None => return Ok(()),
        Compression::Zstd => "zst",
        Compression::Gzip => "gz",
    };
    let name = path.display().to_string();
    let failed = |error: io::Error| Error::call("compress", &name, &error, "it stays uncompressed");
    let with_suffix = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{suffix}"));
        PathBuf::from(name)
    };
    let (partial, target) = (with_suffix("partial"), with_suffix(suffix));
    let written = write_compressed(path, &partial, compression);
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written.map_err(failed)?;
    std::fs::rename(&partial, &target).map_err(failed)?;
    sync_directory(path)?;
    std::fs::remove_file(path).map_err(failed)
}

fn write_compressed(from: &Path, to: &Path, compression: Compression) -> io::Result<()> {
    let mut input = File::open(from)?;
    let _ = std::fs::remove_file(to);
    let out = File::options().write(true).create_new(true).open(to)?;
    out.set_permissions(input.metadata()?.permissions())?;
    let out = match compression {
        Compression::None => return Ok(()),
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(out, 3)?;
            io::copy(&mut input, &mut encoder)?;
            encoder.finish()?
        }
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(6));
            io::copy(&mut input, &mut encoder)?;
            encoder.finish()?
        }
    };
    out.sync_all()
}

/// Removes the oldest finished logs beyond the limits.
fn remove_oldest(log: &Path, retention: Retention) -> Result<(), Error> {
    if retention == Retention::default() {
        return Ok(());
    }
    let directory = directory_of(log);
    let (mut files, mut bytes) = (0, 0);
    for name in finished_names(log).into_iter().rev() {
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
                    &path.display().to_string(),
                    &error,
                    "remove it, or make the directory writable",
                )
            })?;
        }
    }
    Ok(())
}
