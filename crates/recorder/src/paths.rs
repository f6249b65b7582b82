//! Names that programs give to files, as paths from the root.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use weir_sys::proc;
use weir_trace_api::WorkingDirectory;

/// In which directories processes were seen last: who has ended by the time that his report is taken has none.
#[derive(Debug, Default)]
pub(super) struct WorkingDirectories(HashMap<u32, PathBuf>);

impl WorkingDirectories {
    /// A path as seen from the process's directory, which is asked for if it may be another than before; None where it
    /// cannot be told.
    pub fn absolute(&mut self, pid: u32, name: &str, stands: Option<WorkingDirectory>) -> Option<String> {
        if name.starts_with('/') {
            let path: PathBuf = Path::new(name).components().collect();
            return Some(path.to_string_lossy().into_owned());
        }
        let directory = self.of(pid, stands).or_else(|| std::env::current_dir().ok())?;
        // "." and "./x" are what they stand for; ".." is left as it is, because of symbolic links.
        let path: PathBuf = directory.join(name).components().collect();
        Some(path.to_string_lossy().into_owned())
    }

    /// Whether it is known where the process stands: who is gone, and was not asked while it was there, stood nobody knows
    /// where.
    pub fn knows(&mut self, pid: u32, stands: Option<WorkingDirectory>) -> bool {
        self.of(pid, stands).is_some()
    }

    fn of(&mut self, pid: u32, stands: Option<WorkingDirectory>) -> Option<PathBuf> {
        let known = stands == Some(WorkingDirectory::Unchanged) && self.0.contains_key(&pid);
        let now = if known { None } else { proc::directory(pid) };
        match now {
            Some(directory) => drop(self.0.insert(pid, directory)),
            // It has moved, and cannot be asked any more where it went.
            None if stands == Some(WorkingDirectory::Changed) => drop(self.0.remove(&pid)),
            None => {}
        }
        self.0.get(&pid).cloned()
    }

    /// A child stands where its parent does.
    pub fn fork(&mut self, parent: u32, child: u32) {
        match self.0.get(&parent).cloned() {
            Some(directory) => self.0.insert(child, directory),
            None => self.0.remove(&child), // it may have been another's number
        };
    }

    /// The process has ended.
    pub fn exit(&mut self, pid: u32) {
        self.0.remove(&pid);
    }
}

/// A name that openat(2) was given with that directory.
pub(super) fn below<'a>(directory: Option<&str>, name: &'a str) -> Cow<'a, str> {
    match directory {
        Some(directory) if !name.starts_with('/') && !name.is_empty() => {
            format!("{}/{name}", directory.trim_end_matches('/')).into()
        }
        _ => name.into(),
    }
}

/// The name of a directory that was opened to find others below it, without the `..` in it: who walks through a tree and goes
/// up by `..` would make all names of what he finds then longer and longer.
pub(super) fn resolved(name: Cow<'_, str>, flags: i32) -> Cow<'_, str> {
    let goes_up = || name.split('/').any(|part| part == "..");
    let directory = flags & libc::O_DIRECTORY != 0 || name.ends_with("/..");
    if !name.starts_with('/') || !directory || !goes_up() {
        return name;
    }
    match std::fs::canonicalize(&*name) {
        Ok(path) => path.to_string_lossy().into_owned().into(),
        Err(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is no such process.
    const NOBODY: u32 = 4_194_305;

    #[test]
    fn names_are_below_the_directory_that_was_given() {
        assert_eq!(below(Some("/d"), "file"), "/d/file");
        assert_eq!(below(Some("/"), "file"), "/file");
        assert_eq!(below(Some("/d"), "/etc/file"), "/etc/file");
        assert_eq!(below(None, "file"), "file");
        assert_eq!(below(Some("/d"), ""), "");
    }

    #[test]
    fn a_process_that_is_gone_was_where_it_was_last() {
        let mut directories = WorkingDirectories::default();
        assert_eq!(directories.absolute(0, "/d/./file", None).as_deref(), Some("/d/file"));
        let mut child = std::process::Command::new("sleep").arg("60").current_dir("/usr").spawn().unwrap();
        while directories.absolute(child.id(), "x", None).as_deref() != Some("/usr/x") {
            std::thread::yield_now(); // it changes its directory before it becomes sleep
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(directories.absolute(child.id(), "./y", None).as_deref(), Some("/usr/y"));
        directories.fork(child.id(), NOBODY);
        directories.exit(child.id());
        let here = std::env::current_dir().unwrap().join("z").to_string_lossy().into_owned();
        assert_eq!(directories.absolute(child.id(), "z", None).as_ref(), Some(&here));
        let mut of_child = |stands| directories.absolute(NOBODY, "z", Some(stands));
        assert_eq!(of_child(WorkingDirectory::Unchanged).as_deref(), Some("/usr/z"), "where its parent was");
        assert_eq!(of_child(WorkingDirectory::Changed), Some(here), "wherever that is");
    }

    #[test]
    fn who_has_not_moved_is_not_asked_again() {
        let mut directories = WorkingDirectories(HashMap::from_iter([(std::process::id(), "/d".into())]));
        let mut own = |stands| directories.absolute(std::process::id(), "x", stands);
        assert_eq!(own(Some(WorkingDirectory::Unchanged)).as_deref(), Some("/d/x"));
        let here = std::env::current_dir().unwrap().join("x").to_string_lossy().into_owned();
        assert_eq!(own(Some(WorkingDirectory::Changed)), Some(here));
    }

    #[test]
    fn a_directory_above_has_a_name_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let root = root.to_string_lossy();
        let opened = |name: &str, flags: i32| resolved(format!("{root}/{name}").into(), flags).into_owned();
        assert_eq!(opened("a/b/..", libc::O_RDONLY), format!("{root}/a"));
        assert_eq!(opened("a/../a/b", libc::O_DIRECTORY), format!("{root}/a/b"));
        assert_eq!(
            opened("a/../file", libc::O_RDONLY),
            format!("{root}/a/../file"),
            "as the program named it"
        );
        assert_eq!(opened("gone/..", libc::O_RDONLY), format!("{root}/gone/.."));
    }
}
