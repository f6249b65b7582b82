//! Turns the path arguments of calls into absolute paths, by the working directory of the process at the call.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet, HashSetExt};
use weir_model::{Untrusted, os_string_of, text_of};
use weir_sys::file_system::{canonicalize, status};
use weir_sys::proc;
use weir_trace_api::WorkingDirectory;

/// Limit of directories that are compared with that of a process that has exited.
const MAX_TRIED: usize = 64;

/// The last known working directory by PID. A process may have exited by the time that its event is recorded.
#[derive(Debug, Default)]
pub(super) struct WorkingDirectories(HashMap<u32, KnownDirectory>);

#[derive(Debug, Clone)]
enum KnownDirectory {
    /// Read from /proc/PID/cwd, which may change without a report.
    Read(PathBuf),
    /// The backend reports each change. None if no path could be found for the directory.
    Reported(Option<PathBuf>),
}

impl WorkingDirectories {
    /// Returns the absolute path of `name`. If no working directory was reported or read, takes weir's own, in which a command
    /// starts. Returns none if the reported one has no known path.
    pub fn absolute(&mut self, pid: u32, name: &str) -> Option<Untrusted> {
        if name.starts_with('/') {
            let path: PathBuf = Path::new(&os_string_of(name)).components().collect();
            return Some(Untrusted::of_os(path));
        }
        let directory = match self.get(pid) {
            Some(directory) => directory,
            None if self.0.contains_key(&pid) => return None,
            None => std::env::current_dir().ok()?,
        };
        // Removes "." parts. ".." stays, because of symbolic links.
        let path: PathBuf = directory.join(os_string_of(name)).components().collect();
        Some(Untrusted::of_os(path))
    }

    /// Returns whether the working directory is known. That of an exited process is known only if it was reported, or read
    /// before.
    pub fn knows(&mut self, pid: u32) -> bool {
        self.get(pid).is_some()
    }

    /// Returns the working directory of a process that has just called execve(2), or None if it is unknown.
    pub fn start_of_image(&mut self, pid: u32) -> Option<Untrusted> {
        self.get(pid).map(Untrusted::of_os)
    }

    fn get(&mut self, pid: u32) -> Option<PathBuf> {
        if !matches!(self.0.get(&pid), Some(KnownDirectory::Reported(_)))
            && let Some(now) = proc::directory(pid)
        {
            self.0.insert(pid, KnownDirectory::Read(now));
        }
        self.0.get(&pid)?.path().cloned()
    }

    /// Enters the directory that the backend reports.
    pub fn report(&mut self, pid: u32, reported: &WorkingDirectory) {
        let path = self.path_of_reported(pid, reported);
        self.0.insert(pid, KnownDirectory::Reported(path));
    }

    /// Finds the path of a reported directory as weir sees it. The path of the report fits if weir has the same root and mounts, and the
    /// directory was neither moved nor removed. Otherwise it is that of /proc/PID/cwd, if the process is still in the directory; or
    /// weir's own, or one that is known from another process. All of them are compared with the directory's inode.
    fn path_of_reported(&self, pid: u32, reported: &WorkingDirectory) -> Option<PathBuf> {
        let path = reported.path.as_ref().map(Untrusted::to_path);
        let found = path.as_deref().map(status);
        match found {
            Some(Ok(now)) if now.ino == reported.ino => return path,
            // The file system does not answer.
            Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => return path,
            _ => {}
        }
        let is_removed = matches!(found, Some(Err(error)) if error.kind() == io::ErrorKind::NotFound);
        let current =
            || proc::directory(pid).filter(|now| status(now).is_ok_and(|now| now.ino == reported.ino));
        current().or_else(|| self.find(reported.dev, reported.ino)).or_else(|| path.filter(|_| is_removed))
    }

    /// Finds a directory by its inode among weir's own, in which a command starts, and those of other processes.
    fn find(&self, dev: u64, ino: u64) -> Option<PathBuf> {
        let own = std::env::current_dir().ok();
        let mut tried = HashSet::new();
        let others = self.0.values().filter_map(KnownDirectory::path);
        let known = own.iter().chain(others).filter(|path| tried.insert(*path)).take(MAX_TRIED);
        let is_same =
            |path: &&PathBuf| status(path.as_path()).is_ok_and(|now| (now.dev, now.ino) == (dev, ino));
        known.into_iter().find(is_same).cloned()
    }

    /// Copies the parent's working directory to a child.
    pub fn fork(&mut self, parent: u32, child: u32) {
        match self.0.get(&parent).cloned() {
            Some(directory) => self.0.insert(child, directory),
            None => self.0.remove(&child), // the PID may be reused
        };
    }

    /// Removes the directory of a process that has exited.
    pub fn exit(&mut self, pid: u32) {
        self.0.remove(&pid);
    }
}

impl KnownDirectory {
    fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Read(path) => Some(path),
            Self::Reported(path) => path.as_ref(),
        }
    }
}

/// Joins the directory of openat(2) and its name.
pub(super) fn join_path<'a>(directory: Option<&str>, name: &'a str) -> Cow<'a, str> {
    match directory {
        Some(directory) if !name.starts_with('/') && !name.is_empty() => {
            format!("{}/{name}", directory.trim_end_matches('/')).into()
        }
        _ => name.into(),
    }
}

/// Removes `..` from the path of an opened directory. Otherwise the paths grow without limit in a program that
/// walks a tree and returns by `..`.
pub(super) fn without_parent_parts(name: Cow<'_, str>, flags: i32) -> Cow<'_, str> {
    let has_parent_part = || name.split('/').any(|part| part == "..");
    let directory = flags & libc::O_DIRECTORY != 0 || name.ends_with("/..");
    if !name.starts_with('/') || !directory || !has_parent_part() {
        return name;
    }
    match canonicalize(Path::new(&os_string_of(&name))) {
        Ok(path) => text_of(path).into(),
        Err(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Above the kernel's largest PID (PID_MAX_LIMIT).
    const NO_PID: u32 = 4_194_305;

    #[test]
    fn names_are_below_the_directory_that_was_given() {
        assert_eq!(join_path(Some("/d"), "file"), "/d/file");
        assert_eq!(join_path(Some("/"), "file"), "/file");
        assert_eq!(join_path(Some("/d"), "/etc/file"), "/etc/file");
        assert_eq!(join_path(None, "file"), "file");
        assert_eq!(join_path(Some("/d"), ""), "");
    }

    #[test]
    fn an_exited_process_keeps_its_last_directory() {
        let mut directories = WorkingDirectories::default();
        assert_eq!(directories.absolute(0, "/d/./file"), Some("/d/file".into()));
        let mut child = std::process::Command::new("sleep").arg("60").current_dir("/usr").spawn().unwrap();
        while directories.absolute(child.id(), "x") != Some("/usr/x".into()) {
            std::thread::yield_now(); // the child changes its directory before execve(2)
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(directories.absolute(child.id(), "./y"), Some("/usr/y".into()));
        directories.fork(child.id(), NO_PID);
        directories.exit(child.id());
        assert_eq!(directories.absolute(child.id(), "z"), Some(below_own_directory("z")));
        assert_eq!(directories.absolute(NO_PID, "z"), Some("/usr/z".into()), "the parent's directory");
    }

    fn below_own_directory(name: &str) -> Untrusted {
        std::env::current_dir().unwrap().join(name).to_string_lossy().into_owned().into()
    }

    /// Returns what the kernel reports of the directory `of`, with this path.
    fn reported(of: &str, path: Option<&str>) -> WorkingDirectory {
        let found = rustix::fs::stat(of).unwrap();
        WorkingDirectory { dev: found.st_dev, ino: found.st_ino, path: path.map(Untrusted::from) }
    }

    #[test]
    fn the_directory_of_an_exited_process_is_known_from_the_report() {
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().canonicalize().unwrap().join("sub").to_string_lossy().into_owned();
        std::fs::create_dir(&sub).unwrap();
        let mut directories = WorkingDirectories::default();
        let mut entered = |directory: &WorkingDirectory| {
            directories.report(NO_PID, directory);
            assert_eq!(directories.knows(NO_PID), directories.absolute(NO_PID, "z").is_some());
            directories.absolute(NO_PID, "z")
        };
        let below_sub = Some(Untrusted::from(format!("{sub}/z")));
        let in_sub = reported(&sub, Some(&sub));
        assert_eq!(entered(&in_sub), below_sub);
        let other_device = WorkingDirectory { dev: 0, ..in_sub.clone() };
        assert_eq!(entered(&other_device), below_sub, "stat(2) has another device on btrfs");
        assert_eq!(entered(&reported(".", None)), Some(below_own_directory("z")), "found by its inode");
        assert_eq!(entered(&reported("/etc", None)), None, "an unknown directory is not weir's own");
        assert_eq!(entered(&reported("/etc", Some("/usr"))), None, "the path leads to another directory");
        std::fs::remove_dir(&sub).unwrap();
        assert_eq!(entered(&in_sub), below_sub, "the directory was removed later");
    }

    #[test]
    fn a_report_takes_precedence_over_the_present_directory() {
        let (mut directories, pid) = (WorkingDirectories::default(), std::process::id());
        directories.report(pid, &reported("/usr", Some("/usr")));
        assert_eq!(directories.absolute(pid, "x"), Some("/usr/x".into()));
        directories.report(pid, &reported(".", Some("/usr")));
        assert_eq!(directories.absolute(pid, "x"), Some(below_own_directory("x")), "from /proc/PID/cwd");
        directories.fork(pid, NO_PID);
        assert_eq!(directories.absolute(NO_PID, "x"), Some(below_own_directory("x")));
    }

    #[test]
    fn a_parent_directory_has_a_path_without_dots() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let root = root.to_string_lossy();
        let opened = |name: &str, flags: i32| {
            without_parent_parts(format!("{root}/{name}").into(), flags).into_owned()
        };
        assert_eq!(opened("a/b/..", libc::O_RDONLY), format!("{root}/a"));
        assert_eq!(opened("a/../a/b", libc::O_DIRECTORY), format!("{root}/a/b"));
        assert_eq!(
            opened("a/../file", libc::O_RDONLY),
            format!("{root}/a/../file"),
            "the path of a file stays as given"
        );
        assert_eq!(opened("gone/..", libc::O_RDONLY), format!("{root}/gone/.."));
    }
}
