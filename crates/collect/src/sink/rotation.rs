//! Rotates the log: it gets a finished name, and a new file gets its name. A thread does the slow work, which is the sync, the
//! compression and the removal of old files, while records go to the new file.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, open};
use rustix::io::Errno;

use super::SinkOptions;
use super::finishing::{
    Compression, Retention, RotatedFile, compressed_form, finish_file, remove_parts, rename_new,
    rotated_names,
};
use super::log_file::{LogFile, directory_of};
use super::log_name::{Finish, StampSource, parse};
use crate::error::{Error, io_error};

/// When the log is rotated, and what becomes of finished files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RotationPolicy {
    /// The largest size of a file, unless one record is larger; `None` is no limit.
    pub bytes: Option<u64>,
    /// The longest time for which a file gets records; `None` is no limit.
    pub interval: Option<Duration>,
    /// The compression of finished files.
    pub compression: Compression,
    /// Finished files beyond these limits are removed.
    pub retention: Retention,
}

/// Renames logs, and finishes them in a thread.
#[derive(Debug)]
pub(super) struct Rotator {
    stamps: StampSource,
    jobs: Option<Sender<RotatedFile>>,
    messages: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Rotator {
    /// Starts the thread if the log has a path, and submits the files that an earlier run left unfinished.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn new(options: &SinkOptions, messages: &mut Vec<String>) -> Result<Self, Error> {
        let (jobs, incoming) = channel::<RotatedFile>();
        let (outgoing, received) = channel();
        let mut rotator =
            Self { stamps: StampSource::default(), jobs: None, messages: received, thread: None };
        let Some(log) = options.path.clone() else { return Ok(rotator) };
        let policy = options.rotation;
        let work = move || {
            for job in incoming {
                if let Err(error) = finish_file(&log, job, policy) {
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

    /// Submits the files that an earlier run did not finish or compress, and makes all new stamps later than those of its files.
    /// Removes a new log that got no name, and the parts of compressed files.
    fn adopt_unfinished(&mut self, options: &SinkOptions, messages: &mut Vec<String>) {
        let Some(log) = &options.path else { return };
        let _ = rustix::fs::unlink(next_path(log));
        remove_parts(log);
        for name in rotated_names(log) {
            let Some(parts) = parse(log.file_name().unwrap_or_default(), &name) else { continue };
            self.stamps.skip_to(parts.stamp);
            let path = directory_of(log).join(&name);
            let is_finished = parts.finish == Finish::Safe
                && (options.rotation.compression == Compression::None && compressed_form(&path).is_none());
            if is_finished || parts.compressed {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            match open(&path, flags, Mode::empty()) {
                Ok(fd) => self.submit(RotatedFile { path, fd: Arc::new(fd) }),
                Err(errno) => messages
                    .push(format!("open {}: {errno}: it stays unfinished", crate::error::shown(&path))),
            }
        }
    }

    fn submit(&self, job: RotatedFile) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// Gives `file` its finished name, and returns the file that takes its place at the path of the log.
    ///
    /// # Errors
    /// No new file can be made, or a rename failed. `file` then still is the log. Only if a second rename, which undoes the
    /// first, fails too, it has the finished name already.
    pub(super) fn rotate(&mut self, file: &LogFile, options: &SinkOptions) -> Result<LogFile, Error> {
        let (Some(log), Some(fd)) = (&options.path, file.sync_fd()) else {
            return Err(Error::text(format!("{}: only a file can be rotated", file.name())));
        };
        let next = next_path(log);
        let new = create(&next)?;
        let finished = finished_path(log, &self.stamps.next());
        let rename = || {
            rename_new(log, &finished)?;
            rename_new(&next, log).inspect_err(|_| {
                let _ = rename_new(&finished, log);
            })
        };
        let rename_failed =
            |errno| Error::call("rename", file.name(), &io_error(errno), "free the name, or the file system");
        let new = prepare(&new, &next, file)
            .and_then(|()| LogFile::from_fd(new, Some(log.clone()), file.name().to_string(), options))
            .and_then(|new| rename().map(|()| new).map_err(rename_failed))
            .inspect_err(|_| {
                let _ = rustix::fs::unlink(&next);
            })?;
        self.submit(RotatedFile { path: finished, fd });
        Ok(new)
    }

    pub(super) fn take_messages(&self) -> Vec<String> {
        self.messages.try_iter().collect()
    }

    /// Waits until all submitted files are finished.
    pub(super) fn join(&mut self) {
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

/// Creates an empty file that only its owner can open.
fn create(path: &Path) -> Result<OwnedFd, Error> {
    let flags =
        OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    open(path, flags, Mode::from_raw_mode(0o600)).map_err(|errno| {
        let name = crate::error::shown(path);
        Error::call("open", &name, &io_error(errno), "free space, or remove this file")
    })
}

/// Gives a new log the attributes of `file`, and locks it (flock(2)).
fn prepare(new: &OwnedFd, path: &Path, file: &LogFile) -> Result<(), Error> {
    let failed = |call: &'static str, name: String| {
        move |errno| Error::call(call, &name, &io_error(errno), "check the file system (dmesg)")
    };
    let stat = fstat(file.as_fd()).map_err(failed("fstat", file.name().to_string()))?;
    copy_attributes(new, &stat).map_err(failed("fchmod", crate::error::shown(path)))?;
    let _ = rustix::fs::flock(new, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    Ok(())
}

/// Gives a new file the permission bits and, if permitted, the owner and the group of the file with this status.
pub(super) fn copy_attributes(new: impl AsFd, stat: &Stat) -> Result<(), Errno> {
    let new = new.as_fd();
    let group = Some(Gid::from_raw(stat.st_gid));
    // Only root may give a file away. An owner may give it to its own groups.
    let has_group =
        fchown(new, Some(Uid::from_raw(stat.st_uid)), group).is_ok() || fchown(new, None, group).is_ok();
    let mode = stat.st_mode & 0o777;
    let mode = if has_group { mode } else { mode_in_other_group(mode) };
    fchmod(new, Mode::from_raw_mode(mode))
}

/// Returns the permission bits for a copy in another group: group and others may do what both may do with the original.
fn mode_in_other_group(mode: u32) -> u32 {
    let both = mode & (mode >> 3) & 0o7;
    mode & 0o700 | both << 3 | both
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::finishing::with_suffix;
    use super::*;
    use crate::framing::Framing;
    use crate::options::{Flush, SyncPolicy};
    use crate::sink::TornTail;

    fn options(log: &Path, retention: Retention) -> SinkOptions {
        SinkOptions {
            path: Some(log.into()),
            flush: Flush::Line,
            sync: SyncPolicy::None,
            buffer_bytes: 4096,
            rotation: RotationPolicy { retention, ..RotationPolicy::default() },
            framing: Framing::Delimiter(b'\n'),
            torn: TornTail::default(),
            ack: false,
            drops: false,
        }
    }

    fn entries(directory: &Path) -> Vec<OsString> {
        let names = std::fs::read_dir(directory).expect("a directory").map(|one| one.expect("an entry"));
        names.map(|entry| entry.file_name()).collect()
    }

    #[test]
    fn a_log_without_successor_keeps_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options(&dir.path().join("log"), Retention::default());
        let (file, _) = LogFile::open(&options, &mut Vec::new()).expect("opened");
        let mut rotator = Rotator::new(&options, &mut Vec::new()).expect("a thread");
        let refused = SinkOptions { buffer_bytes: usize::MAX, ..options.clone() };
        rotator.rotate(&file, &refused).expect_err("no buffer is so large");
        assert!(file.is_at_path());
        assert_eq!(entries(dir.path()), ["log"]);
        let new = rotator.rotate(&file, &options).expect("rotated");
        assert!(new.is_at_path() && !file.is_at_path());
    }

    #[test]
    fn unfinished_files_are_not_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        let path = |hour| finished_path(&log, &format!("20261124T{hour}0000.000000Z"));
        let paths = [11, 12, 13].map(path);
        paths.iter().for_each(|path| std::fs::write(path, "a\n").expect("written"));
        let policy = options(&log, Retention { files: Some(1), bytes: None }).rotation;
        for path in paths.clone() {
            let fd = Arc::new(File::open(&path).expect("opened").into());
            finish_file(&log, RotatedFile { path, fd }, policy).expect("finished");
        }
        assert_eq!(entries(dir.path()), [paths[2].with_extension("safe").file_name().unwrap_or_default()]);
    }

    /// As a kill during compression leaves them.
    #[test]
    fn files_of_a_killed_run_are_compressed() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        let safe = |hour| finished_path(&log, &format!("20261124T{hour}0000.000000Z")).with_extension("safe");
        let [both, part, plain] = [11, 12, 13].map(safe);
        for path in [&both, &part, &plain] {
            std::fs::write(path, "a\n").expect("written");
        }
        std::fs::write(with_suffix(&both, ".gz"), "complete").expect("written");
        std::fs::write(with_suffix(&part, ".partial"), "in part").expect("written");
        let mut options = options(&log, Retention::default());
        options.rotation.compression = Compression::Gzip;
        let mut rotator = Rotator::new(&options, &mut Vec::new()).expect("a thread");
        rotator.join();
        let mut left = entries(dir.path());
        left.sort();
        let expected = [&both, &part, &plain].map(|path| with_suffix(path, ".gz"));
        assert_eq!(left, expected.each_ref().map(|path| path.file_name().unwrap_or_default()));
        assert_eq!(std::fs::read(&expected[0]).expect("its text"), b"complete", "it stays");
    }

    #[test]
    fn a_compressed_file_has_the_owner_and_the_mode_of_its_log() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        let path = finished_path(&log, "20261124T110000.000000Z");
        std::fs::write(&path, "a\n").expect("written");
        // Only root may give a file away.
        let owner =
            if rustix::process::geteuid().is_root() { 1234 } else { rustix::process::geteuid().as_raw() };
        let own_group = std::fs::metadata(&path).expect("its status").gid();
        let group = if rustix::process::geteuid().is_root() { 2345 } else { own_group };
        chown(&path, Some(owner), Some(group)).expect("given");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
        let mut policy = options(&log, Retention::default()).rotation;
        policy.compression = Compression::Gzip;
        let fd = Arc::new(File::open(&path).expect("opened").into());
        finish_file(&log, RotatedFile { path: path.clone(), fd }, policy).expect("finished");
        let compressed = with_suffix(&path.with_extension("safe"), ".gz");
        let status = std::fs::metadata(compressed).expect("its status");
        assert_eq!((status.uid(), status.gid(), status.mode() & 0o777), (owner, group, 0o640));
    }

    #[test]
    fn a_file_in_another_group_is_readable_to_no_more_users() {
        for (mode, expected) in [(0o640, 0o600), (0o644, 0o644), (0o664, 0o644), (0o604, 0o600)] {
            assert_eq!(mode_in_other_group(mode), expected, "{mode:o}");
        }
    }
}
