//! What a rename replaces. The kernel does not say it at the end of the call, when an engine is told of it, so it is known
//! from what was said of the name before: by the program's own calls, or by the directory, listed when the run began or
//! when a file was made in it for the first time.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use foldhash::{HashMap, HashSet, HashSetExt};
use weir_model::trace::{Op, Rename};
use weir_sys::clock::now_ns;
use weir_trace_api::RawCall;

use crate::fd_table::{FdTable, path_of};
use crate::open_files::OpenFileTable;

/// So many directories are listed: a program that fills a tree makes it anew.
const DIRECTORIES_MOST: usize = 64;

/// A larger directory is not listed: the program would wait, or be long behind.
const NAMES_MOST: usize = 1024;

/// So many names are remembered.
const KNOWN_MOST: usize = 100_000;

/// Of renameat2(2): the new name must be free, or gets the old one's file.
const NO_REPLACE: u64 = 1;
const EXCHANGE: u64 = 2;

/// Which names lead to a file.
#[derive(Debug, Default)]
pub(super) struct ExistingNames {
    /// What the last call that was seen said of a path.
    known: HashMap<String, bool>,
    listed: HashMap<String, Listing>,
}

/// The names in a directory.
#[derive(Debug)]
struct Listing {
    /// When it was made.
    ns: u64,
    /// None: they are too many, or cannot be read.
    names: Option<HashSet<OsString>>,
}

impl ExistingNames {
    /// What is in a directory, unless that was asked before.
    pub fn list(&mut self, directory: &Path) {
        let path = directory.to_string_lossy();
        if self.listed.len() < DIRECTORIES_MOST && !self.listed.contains_key(&*path) {
            let ns = now_ns();
            self.listed.insert(path.into_owned(), Listing { ns, names: names(directory) });
        }
    }

    /// Learns from a call that was followed; it ended at `ns`. What a rename did is told.
    pub fn learn(
        &mut self,
        (table, files): (&mut FdTable, &mut OpenFileTable),
        call: &RawCall,
        pid: u32,
        ns: u64,
    ) -> Option<Rename> {
        use Op::*;
        let done = call.result >= 0;
        match call.op {
            op if op.opens() && (done || call.result == -i64::from(libc::ENOENT)) => {
                let opened = table.get(&(call.result as i32)).filter(|_| done);
                let path = opened.map(|opened| files.all[opened.file as usize].path.clone());
                let path = path.or_else(|| path_of(table, files, call, pid, 0))?;
                if done && files.told_by_kernel && creates(call) {
                    Path::new(&path).parent().into_iter().for_each(|directory| self.list(directory));
                }
                self.know(path, done);
            }
            Unlink | Unlinkat if done => self.know(path_of(table, files, call, pid, 0)?, false),
            Link | Linkat if done => self.know(path_of(table, files, call, pid, 1)?, true),
            Rename | Renameat | Renameat2 if done => {
                let from = path_of(table, files, call, pid, 0)?;
                let to = path_of(table, files, call, pid, 1)?;
                return Some(self.rename(from, to, call, ns));
            }
            _ => {}
        }
        None
    }

    fn know(&mut self, path: String, exists: bool) {
        if self.known.len() < KNOWN_MOST || self.known.contains_key(&path) {
            self.known.insert(path, exists);
        }
    }

    fn rename(&mut self, from: String, to: String, call: &RawCall, ns: u64) -> Rename {
        let flags = if call.op == Op::Renameat2 { call.args[4] } else { 0 };
        let replaced = match flags {
            flags if flags & (NO_REPLACE | EXCHANGE) != 0 => Some(false),
            _ => call.replaced.or_else(|| self.existed(&to, ns)),
        };
        self.know(from.clone(), flags & EXCHANGE != 0);
        self.know(to.clone(), true);
        Rename { directory: inode(Path::new(&to).parent()), from, to, replaced }
    }

    /// Whether there was such a file before `ns`.
    fn existed(&self, path: &str, ns: u64) -> Option<bool> {
        let listed = || {
            let path = Path::new(path);
            let listing = self.listed.get(&*path.parent()?.to_string_lossy())?;
            let names = listing.names.as_ref().filter(|_| listing.ns < ns)?;
            Some(names.contains(path.file_name()?))
        };
        self.known.get(path).copied().or_else(listed)
    }
}

/// Whether an open file may have been made by its opening.
fn creates(call: &RawCall) -> bool {
    let flags = match call.op {
        Op::Open => call.args[1],
        Op::Openat => call.args[2],
        _ => libc::O_CREAT as u64, // creat(2); of openat2(2) nobody knows
    };
    flags as i32 & libc::O_CREAT != 0
}

fn names(directory: &Path) -> Option<HashSet<OsString>> {
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(directory).ok()? {
        if names.len() >= NAMES_MOST {
            return None;
        }
        names.insert(entry.ok()?.file_name());
    }
    Some(names)
}

fn inode(directory: Option<&Path>) -> Option<u64> {
    let directory = directory.filter(|path| path.as_os_str().as_bytes().starts_with(b"/"))?;
    rustix::fs::stat(directory).ok().map(|status| status.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_trace_api::RawCall;

    const NOBODY: u32 = 4_194_305;

    fn call(op: Op, args: [u64; 6], result: i64, paths: &[&str]) -> RawCall {
        RawCall {
            paths: paths.iter().map(|path| path.to_string()).collect(),
            ..RawCall::new(op, args, result)
        }
    }

    /// Learns from calls that end at the second given; what a rename of `new` to `name` then replaced.
    fn replaced(directory: &Path, calls: &[RawCall], ns: u64, name: &str) -> Option<bool> {
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(true));
        let mut existing = ExistingNames::default();
        existing.list(directory);
        let at = |name: &str| directory.join(name).to_string_lossy().into_owned();
        for call in calls {
            let paths = call.paths.iter().map(|path| at(path)).collect();
            let call = RawCall { paths, ..call.clone() };
            existing.learn((&mut table, &mut files), &call, NOBODY, ns);
        }
        let rename = call(Op::Rename, [0; 6], 0, &[&at("new"), &at(name)]);
        existing.learn((&mut table, &mut files), &rename, NOBODY, ns).expect("a rename").replaced
    }

    #[test]
    fn a_name_that_was_in_the_directory_before_is_replaced() {
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
        let late = |calls: &[RawCall]| replaced(directory.path(), calls, 1, "name");
        assert_eq!(late(&[open(libc::O_RDONLY, gone)]), Some(false));
        assert_eq!(late(&[open(libc::O_RDONLY, 3)]), Some(true));
        assert_eq!(late(&[open(libc::O_RDONLY, -i64::from(libc::EACCES))]), None);
        let link = call(Op::Link, [0; 6], 0, &["other", "name"]);
        assert_eq!(late(&[open(libc::O_RDONLY, gone), link]), Some(true));
        let saved = call(Op::Rename, [0; 6], 0, &["first", "name"]);
        assert_eq!(late(std::slice::from_ref(&saved)), Some(true), "it is replaced again");
        let away = call(Op::Rename, [0; 6], 0, &["name", "backup"]);
        assert_eq!(late(&[saved, away]), Some(false), "it was moved out of the way");
    }

    #[test]
    fn names_that_change_places_replace_nothing() {
        let (mut table, mut files) = (FdTable::default(), OpenFileTable::new(true));
        let mut existing = ExistingNames::default();
        let mut exchange = call(Op::Renameat2, [0, 0, 0, 0, EXCHANGE, 0], 0, &["/gone/a", "/gone/b"]);
        let known = existing.learn((&mut table, &mut files), &exchange, NOBODY, 1).unwrap();
        assert_eq!((known.replaced, known.directory), (Some(false), None));
        exchange.args[4] = 0;
        let known = existing.learn((&mut table, &mut files), &exchange, NOBODY, 1).unwrap();
        assert_eq!((known.replaced, known.to.as_str()), (Some(true), "/gone/b"));
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
