//! Turns the path arguments of calls into absolute paths, by the working directory of the process at the call.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet, HashSetExt};
use weir_model::Untrusted;
use weir_sys::file_system::{canonicalize, status};
use weir_sys::proc;
use weir_trace_api::WorkingDirectory;

/// Limit of directories that are compared with that of a process that has exited.
const TRIED_MAX: usize = 64;

/// The last known working directory by PID. A process may have exited by the time that its event is recorded.
#[derive(Debug, Default)]
pub(super) struct WorkingDirectories(HashMap<u32, PathBuf>);

impl WorkingDirectories {
    /// Returns the absolute path of `name`. Reads the working directory again if it may have changed, and takes
    /// weir's own if it is unknown.
    pub fn absolute(&mut self, pid: u32, name: &str, change: Option<WorkingDirectory>) -> Option<Untrusted> {
        if name.starts_with('/') {
            let path: PathBuf = Path::new(name).components().collect();
            return Some(path.to_string_lossy().into_owned().into());
        }
        let directory = self.get(pid, change).or_else(|| std::env::current_dir().ok())?;
        // Removes "." parts. ".." stays, because of symbolic links.
        let path: PathBuf = directory.join(name).components().collect();
        Some(path.to_string_lossy().into_owned().into())
    }

    /// Returns whether the working directory is known. That of an exited process is known only if it was read
    /// before.
    pub fn knows(&mut self, pid: u32, change: Option<WorkingDirectory>) -> bool {
        self.get(pid, change).is_some()
    }

    /// Returns the working directory of a process that has just called execve(2), or None if it is unknown.
    pub fn start_of_image(&mut self, pid: u32) -> Option<Untrusted> {
        self.get(pid, None).map(|path| path.to_string_lossy().into_owned().into())
    }

    fn get(&mut self, pid: u32, change: Option<WorkingDirectory>) -> Option<PathBuf> {
        let is_known = change == Some(WorkingDirectory::Unchanged) && self.0.contains_key(&pid);
        let now = if is_known { None } else { proc::directory(pid) };
        match (now, change) {
            (Some(directory), _) => drop(self.0.insert(pid, directory)),
            // The process is gone.
            (None, Some(WorkingDirectory::Changed { dev, ino })) => match self.find(dev, ino) {
                Some(directory) => drop(self.0.insert(pid, directory)),
                None => drop(self.0.remove(&pid)),
            },
            (None, _) => {}
        }
        self.0.get(&pid).cloned()
    }

    /// Finds a directory by its inode among weir's own, in which a command starts, and those of other processes.
    fn find(&self, dev: u64, ino: u64) -> Option<PathBuf> {
        let own = std::env::current_dir().ok();
        let mut tried = HashSet::new();
        let known = own.iter().chain(self.0.values()).filter(|path| tried.insert(*path)).take(TRIED_MAX);
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
    match canonicalize(Path::new(&*name)) {
        Ok(path) => path.to_string_lossy().into_owned().into(),
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
        assert_eq!(directories.absolute(0, "/d/./file", None), Some("/d/file".into()));
        let mut child = std::process::Command::new("sleep").arg("60").current_dir("/usr").spawn().unwrap();
        while directories.absolute(child.id(), "x", None) != Some("/usr/x".into()) {
            std::thread::yield_now(); // the child changes its directory before execve(2)
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(directories.absolute(child.id(), "./y", None), Some("/usr/y".into()));
        directories.fork(child.id(), NO_PID);
        directories.exit(child.id());
        let here = std::env::current_dir().unwrap().join("z").to_string_lossy().into_owned();
        let here = Untrusted::from(here);
        assert_eq!(directories.absolute(child.id(), "z", None), Some(here.clone()));
        let mut of_child = |change| directories.absolute(NO_PID, "z", Some(change));
        assert_eq!(of_child(WorkingDirectory::Unchanged), Some("/usr/z".into()), "the parent's directory");
        let inode_of = |path: &str| {
            let found = rustix::fs::stat(path).unwrap();
            WorkingDirectory::Changed { dev: found.st_dev, ino: found.st_ino }
        };
        assert_eq!(of_child(inode_of("/usr")), Some("/usr/z".into()), "found by its inode");
        assert_eq!(of_child(inode_of(".")), Some(here.clone()), "weir's own, found by its inode");
        assert_eq!(of_child(inode_of("/etc")), Some(here), "an unknown directory");
        assert!(!directories.knows(NO_PID, Some(inode_of("/etc"))));
    }

    #[test]
    fn an_unchanged_directory_is_not_read_again() {
        let mut directories = WorkingDirectories(HashMap::from_iter([(std::process::id(), "/d".into())]));
        let mut own = |change| directories.absolute(std::process::id(), "x", change);
        assert_eq!(own(Some(WorkingDirectory::Unchanged)), Some("/d/x".into()));
        let here = std::env::current_dir().unwrap().join("x").to_string_lossy().into_owned();
        let changed = WorkingDirectory::Changed { dev: 0, ino: 1 };
        assert_eq!(own(Some(changed)), Some(here.into()));
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
