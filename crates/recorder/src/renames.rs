//! Finds out whether a rename replaced an existing file, for the recording's `rename` of a call. The kernel
//! does not report it at the end of the call. So the recorder remembers which paths exist, from the program's
//! own calls and from a list of the directory made at the start or at the first creation of a file in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use foldhash::{HashMap, HashSet};
use weir_model::Untrusted;
use weir_model::trace::{Op, Rename};
use weir_sys::clock::now_ns;
use weir_sys::file_system;
use weir_trace_api::RawCall;

use crate::fd_table::{FdTable, path_of};
use crate::open_files::OpenFileTable;

/// Limit of directory lists: a program that creates a tree would cause one for each of its directories.
const MAX_DIRECTORIES: usize = 64;

/// Limit of names in a directory list. Reading a larger one would delay the tracee or the recorder.
const MAX_NAMES: usize = 1024;

/// Limit of remembered paths, about 10 MB at 100 bytes each.
const MAX_PATHS: usize = 100_000;

/// RENAME_NOREPLACE and RENAME_EXCHANGE of renameat2(2): neither replaces a file.
const NO_REPLACE: u64 = 1;
const EXCHANGE: u64 = 2;

/// The paths that are known to exist or not to exist.
#[derive(Debug, Default)]
pub(super) struct ExistingNames {
    /// Whether a path existed after the last recorded call on it.
    known: HashMap<Untrusted, bool>,
    listed: HashMap<Untrusted, DirectoryList>,
}

#[derive(Debug)]
struct DirectoryList {
    /// CLOCK_MONOTONIC time of the list.
    ns: u64,
    /// None if there are too many names or the directory is unreadable.
    names: Option<HashSet<OsString>>,
}

impl ExistingNames {
    /// Lists a directory, once.
    pub fn list(&mut self, directory: &Path) {
        let path = Untrusted::of_os(directory);
        if self.listed.len() < MAX_DIRECTORIES && !self.listed.contains_key(&path) {
            let ns = now_ns();
            self.listed.insert(path, DirectoryList { ns, names: names(directory) });
        }
    }

    /// Learns from a call that ended at `ns`. Returns the paths of a successful rename.
    pub fn learn(
        &mut self,
        (table, files): (&mut FdTable, &mut OpenFileTable),
        call: &RawCall,
        pid: u32,
        ns: u64,
    ) -> Option<Rename> {
        use Op::*;
        let succeeded = call.result >= 0;
        match call.op {
            op if op.opens() && (succeeded || call.result == -i64::from(libc::ENOENT)) => {
                let opened = table.get(&(call.result as i32)).filter(|_| succeeded);
                let path = opened.map(|opened| files.all[opened.file as usize].path.clone());
                let path = path.or_else(|| path_of(table, files, call, pid, 0))?;
                if succeeded && files.kernel_reports_files && creates(call) {
                    path.to_path().parent().into_iter().for_each(|directory| self.list(directory));
                }
                self.remember(path, succeeded);
            }
            Unlink | Unlinkat if succeeded => self.remember(path_of(table, files, call, pid, 0)?, false),
            Link | Linkat if succeeded => self.remember(path_of(table, files, call, pid, 1)?, true),
            Rename | Renameat | Renameat2 if succeeded => {
                let from = path_of(table, files, call, pid, 0)?;
                let to = path_of(table, files, call, pid, 1)?;
                return Some(self.rename(from, to, call, ns));
            }
            _ => {}
        }
        None
    }

    fn remember(&mut self, path: Untrusted, exists: bool) {
        if self.known.len() < MAX_PATHS || self.known.contains_key(&path) {
            self.known.insert(path, exists);
        }
    }

    fn rename(&mut self, from: Untrusted, to: Untrusted, call: &RawCall, ns: u64) -> Rename {
        let flags = if call.op == Op::Renameat2 { call.args[4] } else { 0 };
        let replaced = match flags {
            flags if flags & (NO_REPLACE | EXCHANGE) != 0 => Some(false),
            _ => call.replaced.or_else(|| self.existed(&to, ns)),
        };
        self.remember(from.clone(), flags & EXCHANGE != 0);
        self.remember(to.clone(), true);
        Rename { directory: inode(to.to_path().parent()), from, to, replaced }
    }

    /// Returns whether the path existed before `ns`, or none if that is unknown.
    fn existed(&self, path: &Untrusted, ns: u64) -> Option<bool> {
        let listed = || {
            let path = path.to_path();
            let listing = self.listed.get(&Untrusted::of_os(path.parent()?))?;
            let names = listing.names.as_ref().filter(|_| listing.ns < ns)?;
            Some(names.contains(path.file_name()?))
        };
        self.known.get(path).copied().or_else(listed)
    }
}

/// Returns whether an open may have created its file.
fn creates(call: &RawCall) -> bool {
    let flags = match call.op {
        Op::Open => call.args[1],
        Op::Openat => call.args[2],
        _ => libc::O_CREAT as u64, // creat(2); the flags of openat2(2) are unknown
    };
    flags as i32 & libc::O_CREAT != 0
}

fn names(directory: &Path) -> Option<HashSet<OsString>> {
    Some(file_system::names(directory, MAX_NAMES).ok()??.into_iter().collect())
}

fn inode(directory: Option<&Path>) -> Option<u64> {
    let directory = directory.filter(|path| path.as_os_str().as_bytes().starts_with(b"/"))?;
    file_system::status(directory).ok().map(|status| status.ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_trace_api::RawCall;

    const NO_PID: u32 = 4_194_305;

    fn call(op: Op, args: [u64; 6], result: i64, paths: &[&str]) -> RawCall {
        RawCall {
            paths: paths.iter().map(|path| Untrusted::from(*path)).collect(),
            ..RawCall::new(op, args, result)
        }
    }

    /// Returns whether a rename of `new` to `name` replaces a file after these calls, which end at `ns`.
    fn replaced(directory: &Path, calls: &[RawCall], ns: u64, name: &str) -> Option<bool> {
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(true));
        let mut existing = ExistingNames::default();
        existing.list(directory);
        let at = |name: &str| directory.join(name).to_string_lossy().into_owned();
        for call in calls {
            let paths = call.paths.iter().map(|path| at(path.exact()).into()).collect();
            let call = RawCall { paths, ..call.clone() };
            existing.learn((&mut table, &mut files), &call, NO_PID, ns);
        }
        let rename = call(Op::Rename, [0; 6], 0, &[&at("new"), &at(name)]);
        existing.learn((&mut table, &mut files), &rename, NO_PID, ns).expect("a rename").replaced
    }

    #[test]
    fn a_name_in_the_listed_directory_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("old"), "x").unwrap();
        let later = now_ns() + 1_000_000_000;
        assert_eq!(replaced(directory.path(), &[], later, "old"), Some(true));
        assert_eq!(replaced(directory.path(), &[], later, "fresh"), Some(false));
        assert_eq!(replaced(directory.path(), &[], 1, "old"), None, "the directory was listed afterwards");
        let unlinked = call(Op::Unlink, [0; 6], 0, &["old"]);
        assert_eq!(replaced(directory.path(), &[unlinked], later, "old"), Some(false));
    }

    #[test]
    fn what_the_program_found_out_itself_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let at_fdcwd = libc::AT_FDCWD as u64;
        let open = |flags: i32, result: i64| {
            call(Op::Openat, [at_fdcwd, 0, flags as u64, 0, 0, 0], result, &["name"])
        };
        let gone = -i64::from(libc::ENOENT);
        let replaced_after = |calls: &[RawCall]| replaced(directory.path(), calls, 1, "name");
        assert_eq!(replaced_after(&[open(libc::O_RDONLY, gone)]), Some(false));
        assert_eq!(replaced_after(&[open(libc::O_RDONLY, 3)]), Some(true));
        assert_eq!(replaced_after(&[open(libc::O_RDONLY, -i64::from(libc::EACCES))]), None);
        let link = call(Op::Link, [0; 6], 0, &["other", "name"]);
        assert_eq!(replaced_after(&[open(libc::O_RDONLY, gone), link]), Some(true));
        let saved = call(Op::Rename, [0; 6], 0, &["first", "name"]);
        assert_eq!(
            replaced_after(std::slice::from_ref(&saved)),
            Some(true),
            "a second rename replaces the first"
        );
        let moved_away = call(Op::Rename, [0; 6], 0, &["name", "backup"]);
        assert_eq!(replaced_after(&[saved, moved_away]), Some(false), "the name was moved away before");
    }

    #[test]
    fn an_exchange_of_names_replaces_nothing() {
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(true));
        let mut existing = ExistingNames::default();
        let mut exchange = call(Op::Renameat2, [0, 0, 0, 0, EXCHANGE, 0], 0, &["/gone/a", "/gone/b"]);
        let known = existing.learn((&mut table, &mut files), &exchange, NO_PID, 1).unwrap();
        assert_eq!((known.replaced, known.directory), (Some(false), None));
        exchange.args[4] = 0;
        let known = existing.learn((&mut table, &mut files), &exchange, NO_PID, 1).unwrap();
        assert_eq!((known.replaced, known.to.exact()), (Some(true), "/gone/b"));
    }

    #[test]
    fn the_directory_is_known_by_its_inode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("name");
        let ino = rustix::fs::stat(directory.path()).unwrap().st_ino;
        assert_eq!(inode(path.parent()), Some(ino));
        assert_eq!((inode(Path::new("name").parent()), inode(None)), (None, None));
    }
}
