//! Watches the directory of followed files, so that nothing has to be polled.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use glob::Pattern;
use rustix::fd::BorrowedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::position::FollowedFile;
use crate::error::{Error, io_error};

/// A watched directory, and the pattern of the names in it.
pub(super) struct Watch {
    inotify: OwnedFd,
    directory: PathBuf,
    pattern: Pattern,
    reported: Vec<PathBuf>,
    /// The cookies and names of renames whose second event has not come yet.
    moved_from: Vec<(u32, OsString)>,
}

/// The most renames that wait for their second event.
const MOVES: usize = 64;

/// A file that had a followed name and was renamed.
#[derive(Debug)]
struct RenamedFile {
    /// The name that the file has now.
    path: PathBuf,
    /// The followed name that it had.
    followed_path: PathBuf,
    /// The result of opening `path`, since the file has this name.
    opened: Option<std::io::Result<FollowedFile>>,
}

/// The most attempts to open renamed files while they are renamed again.
const ATTEMPTS: usize = 100;

impl Watch {
    /// Watches the directory of a path whose last part may be a pattern.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pattern = Pattern::new(&name)
            .map_err(|error| Error::text(format!("--follow {}: {error}", crate::error::shown(&name))))?;
        let shown = crate::error::shown(&directory);
        let failed = |errno| {
            let advice = match errno {
                Errno::NOENT | Errno::NOTDIR => {
                    "create the directory; patterns are allowed in the last part of the path"
                }
                Errno::NOSPC => "raise fs.inotify.max_user_watches",
                _ => "make the directory readable",
            };
            Error::call("inotify", &shown, &io_error(errno), advice)
        };
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failed)?;
        let events = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, &directory, events).map_err(failed)?;
        Ok(Self { inotify, directory, pattern, reported: Vec::new(), moved_from: Vec::new() })
    }

    /// Opens the files that had a followed name and were renamed since the last call, in this order. Returns also whether the
    /// kernel has dropped events.
    pub(super) fn take_renamed(&mut self) -> (Vec<FollowedFile>, bool) {
        let (mut files, mut overflowed) = (Vec::new(), false);
        for _ in 0..ATTEMPTS {
            overflowed |= self.read_events(&mut files);
            let unopened: Vec<_> = files.iter_mut().filter(|file| file.opened.is_none()).collect();
            // No event came since each file was opened, so each name led to the file that is meant.
            if unopened.is_empty() {
                break;
            }
            for file in unopened {
                file.opened = Some(FollowedFile::open(&file.path, &file.followed_path));
            }
        }
        let opened = files.into_iter().filter_map(|file| file.opened?.ok());
        (opened.collect(), overflowed)
    }

    /// Reads the pending events: adds renamed files, and updates the names of those that were renamed again. Returns whether
    /// the kernel has dropped events.
    fn read_events(&mut self, files: &mut Vec<RenamedFile>) -> bool {
        let mut overflowed = false;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(self.inotify.as_fd(), &mut buffer);
        while let Ok(event) = reader.next() {
            overflowed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else {
                continue;
            };
            if event.events().contains(ReadFlags::MOVED_FROM) {
                self.moved_from.push((event.cookie(), name.to_owned()));
            } else if event.events().contains(ReadFlags::MOVED_TO)
                && let Some(index) = self.moved_from.iter().position(|(cookie, _)| *cookie == event.cookie())
            {
                let (_, from) = self.moved_from.remove(index);
                note_rename(&self.directory, &self.pattern, &from, name, files);
            }
        }
        // A file that left the directory has no second event.
        let surplus = self.moved_from.len().saturating_sub(MOVES);
        self.moved_from.drain(..surplus);
        overflowed
    }

    /// Returns whether the pattern is a name.
    pub(super) fn is_one_name(&self) -> bool {
        Pattern::escape(self.pattern.as_str()) == self.pattern.as_str()
    }

    /// Returns the existing paths that match.
    pub(super) fn matching_paths(&self) -> Vec<PathBuf> {
        if self.is_one_name() {
            return vec![self.directory.join(self.pattern.as_str())];
        }
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let matching = names.filter(|name| self.pattern.matches(&name.to_string_lossy()));
        let mut paths: Vec<PathBuf> = matching.map(|name| self.directory.join(name)).collect();
        paths.sort();
        paths
    }

    /// Adds a sentence about a path, the first time.
    pub(super) fn report_once(&mut self, path: &Path, text: String, messages: &mut Vec<String>) {
        if !self.reported.iter().any(|known| known == path) {
            self.reported.push(path.to_path_buf());
            messages.push(text);
        }
    }
}

/// Adds a renamed file to `files`, or updates the name of one that was renamed again (log.1 to log.2).
fn note_rename(directory: &Path, pattern: &Pattern, from: &OsStr, to: &OsStr, files: &mut Vec<RenamedFile>) {
    let is_followed = |name: &OsStr| pattern.matches(&name.to_string_lossy());
    let (from_path, path) = (directory.join(from), directory.join(to));
    if let Some(file) = files.iter_mut().rev().find(|file| file.path == from_path) {
        file.path = path;
        file.opened = None;
    } else if is_followed(from) && !is_followed(to) {
        files.push(RenamedFile { path, followed_path: from_path, opened: None });
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
