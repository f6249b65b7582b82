//! Tells the kernel where the C libraries of this machine keep their lists of streams, so that it finds them
//! in a process that lives for a millisecond only.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aya::maps::{HashMap, MapData};
use weir_model::trace::RuntimeId;
use weir_sys::maps::{MappingKind, regions};
use weir_walkers::{StreamListHead, is_plain, list_head};

use super::wire::{Library, LibraryKey};

const LIBC: &str = "libc.so.6";
/// Where Linux systems have it.
const FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

const FROM_MAPPING: u32 = 0;
const FROM_CODE: u32 = 1;
const ABSOLUTE: u32 = 2;
const PLAIN: u32 = 3;

/// The libraries that the kernel was told of.
pub(super) struct Libraries {
    map: HashMap<MapData, LibraryKey, Library>,
    asked: HashSet<LibraryKey>,
    /// The system has one.
    has_library: bool,
}

impl PartialEq for LibraryKey {
    fn eq(&self, other: &Self) -> bool {
        (self.ino, self.size) == (other.ino, other.size)
    }
}
impl Eq for LibraryKey {}
impl std::hash::Hash for LibraryKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.ino, self.size).hash(state);
    }
}

impl Libraries {
    /// Begins with those of the system.
    pub fn new(map: HashMap<MapData, LibraryKey, Library>) -> Self {
        let mut libraries = Self { map, asked: HashSet::new(), has_library: false };
        for folder in FOLDERS {
            let path = Path::new(folder).join(LIBC);
            libraries.has_library |= libraries.learn(&path, |path| known_list(path).map(in_library));
        }
        libraries
    }

    /// Tells the kernel of an executable, which may have the library in it, or is one that nothing is to be done for when it
    /// begins: whoever is told of each compiler of a build stands in the compilers' way.
    pub fn learn_program(&mut self, path: &Path) {
        let plain = |path: &Path| is_plain(path).then_some(Library { offset: 0, walker: 0, how: PLAIN });
        self.learn(path, |path| known_list(path).map(in_program).or_else(|| plain(path)));
    }

    /// Whether the kernel will know where a program's streams are as soon as its C library stands: it is one of the system's, as
    /// far as can be told before.
    pub fn sees_begin(&self, executable: &Path) -> bool {
        self.has_library && is_plain(executable)
    }

    /// Each file is looked at once. Whether there is something to be told of it, and it was not told before.
    fn learn(&mut self, path: &Path, what: impl Fn(&Path) -> Option<Library>) -> bool {
        let Ok(status) = fs::metadata(path) else { return false };
        let key = LibraryKey { ino: status.ino(), size: status.size() };
        if !status.is_file() || !self.asked.insert(key) {
            return false;
        }
        // Without it the library's streams are not seen at an exit; nothing else depends on it.
        what(path).is_some_and(|library| self.map.insert(key, library, 0).is_ok())
    }
}

/// The head of the list in a process that runs already, and whose it is; from its mappings.
pub(super) fn list_of(pid: u32) -> Option<(u64, u32)> {
    let mapped = regions(pid).into_iter().find(|one| one.offset == 0 && one.name() == LIBC)?;
    let MappingKind::File(path) = &mapped.kind else { return None };
    let inside = Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").ok()?);
    let head = known_list(&inside)?;
    Some((mapped.start + head.address, number(head)))
}

/// Where the list of streams is in a file, if it is one that the kernel can walk.
fn known_list(path: &Path) -> Option<StreamListHead> {
    list_head(path).filter(is_known)
}

/// The only list that the kernel can walk.
fn is_known(head: &StreamListHead) -> bool {
    head.walker == RuntimeId::GLIBC
}

/// Returns the runtime's number in events.h: 1 for glibc, 2 for a list that the kernel cannot walk.
fn number(head: StreamListHead) -> u32 {
    if is_known(&head) { 1 } else { 2 }
}

fn in_library(head: StreamListHead) -> Library {
    Library { offset: head.address, walker: number(head), how: FROM_MAPPING }
}

/// Of a static program that has its symbols.
fn in_program(head: StreamListHead) -> Library {
    let (offset, how) = match head.relative {
        true => (head.address.wrapping_sub(head.code), FROM_CODE),
        false => (head.address, ABSOLUTE),
    };
    Library { offset, walker: number(head), how }
}
