//! Watches the directory of followed files, so that nothing has to be polled.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use glob::Pattern;
use rustix::fd::BorrowedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::error::{Error, io_error};

/// A watched directory, and the pattern of the names in it.
pub(super) struct Watch {
    inotify: OwnedFd,
    directory: PathBuf,
    pattern: Pattern,
    reported: Vec<PathBuf>,
}

/// The changes in the directory that need an action.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The new names of files that had a followed name, in order.
    pub(super) moved_to: Vec<PathBuf>,
    pub(super) overflowed: bool,
}

impl Watch {
    /// Watches the directory of a path whose last part may be a pattern.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pattern =
            Pattern::new(&name).map_err(|error| Error::text(format!("--follow {name}: {error}")))?;
        let shown = directory.display().to_string();
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
        Ok(Self { inotify, directory, pattern, reported: Vec::new() })
    }

    /// Returns what happened since the last call.
    pub(super) fn take_events(&mut self) -> Events {
        let mut events = Events::default();
        let mut moved_from = Vec::new();
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(self.inotify.as_fd(), &mut buffer);
        while let Ok(event) = reader.next() {
            events.overflowed |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else {
                continue;
            };
            let is_followed = self.pattern.matches(&name.to_string_lossy());
            if event.events().contains(ReadFlags::MOVED_FROM) && is_followed {
                moved_from.push(event.cookie());
            }
            if event.events().contains(ReadFlags::MOVED_TO)
                && !is_followed
                && moved_from.contains(&event.cookie())
            {
                events.moved_to.push(self.directory.join(name));
            }
        }
        events
    }

    /// Returns the existing paths that match.
    pub(super) fn matching_paths(&self) -> Vec<PathBuf> {
        if Pattern::escape(self.pattern.as_str()) == self.pattern.as_str() {
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

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
