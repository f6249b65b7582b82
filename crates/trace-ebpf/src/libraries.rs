//! Gives the kernel the location of the stream list in each C library and executable, so that the BPF programs find the
//! list even in a process that lives for only a millisecond.

use std::collections::HashSet;
use std::path::Path;

use aya::maps::{HashMap, MapData};
use weir_model::trace::RuntimeId;
use weir_sys::file_system::status;
use weir_sys::maps::{MappingKind, regions};
use weir_walkers::{StreamListHead, is_plain, list_head};

use super::shared_types::{self, Library, LibraryKey};

const LIBC: &str = "libc.so.6";
/// The directories of libc.so.6 in the distributions (Debian, Fedora, Arch).
const DIRECTORIES: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// `walker` of events.h for glibc's list, the only one that the BPF programs walk.
const GLIBC: u32 = 1;

/// The files that the kernel knows, in the map `libraries`.
pub(super) struct Libraries {
    map: HashMap<MapData, LibraryKey, Library>,
    checked: HashSet<LibraryKey>,
    /// A C library of the system has a known stream list.
    has_libc: bool,
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
    /// Adds the system's C libraries.
    pub fn new(map: HashMap<MapData, LibraryKey, Library>) -> Self {
        let mut libraries = Self { map, checked: HashSet::new(), has_libc: false };
        for directory in DIRECTORIES {
            let path = Path::new(directory).join(LIBC);
            libraries.has_libc |= libraries.add(&path, |path| glibc_list(path).map(library));
        }
        libraries
    }

    /// Adds an executable: one that contains the library, or a plain one, for whose execve(2) the kernel then does not
    /// wake weir. (A build starts thousands of compilers; each wakeup delays one.)
    pub fn add_executable(&mut self, path: &Path) {
        let plain = |path: &Path| {
            is_plain(path).then_some(Library { offset: 0, walker: 0, base: shared_types::LIST_IN_LIBRARY })
        };
        self.add(path, |path| glibc_list(path).map(static_executable).or_else(|| plain(path)));
    }

    /// Returns whether the BPF programs will find the streams of this executable as soon as its C library is mapped.
    pub fn will_find_streams(&self, executable: &Path) -> bool {
        self.has_libc && is_plain(executable)
    }

    /// Adds a file, once. Returns whether `locate` has found something and the map had room for it.
    fn add(&mut self, path: &Path, locate: impl Fn(&Path) -> Option<Library>) -> bool {
        let Ok(status) = status(path) else { return false };
        let key = LibraryKey { ino: status.ino, size: status.size };
        if !status.is_file() || !self.checked.insert(key) {
            return false;
        }
        // Without the entry the BPF programs take no buffer snapshots of this library; the rest works.
        locate(path).is_some_and(|library| self.map.insert(key, library, 0).is_ok())
    }
}

/// Returns the address of the list head in a running process and its walker, or zeros if the process has no known list.
pub(super) fn list_of(pid: u32) -> (u64, u32) {
    let list = || {
        let mapping = regions(pid).into_iter().find(|region| region.offset == 0 && region.name() == LIBC)?;
        let MappingKind::File(path) = &mapping.kind else { return None };
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        let head = glibc_list(&root.join(path.strip_prefix("/").ok()?))?;
        Some((mapping.start + head.address, GLIBC))
    };
    list().unwrap_or((0, 0))
}

fn glibc_list(path: &Path) -> Option<StreamListHead> {
    list_head(path).filter(|head| head.walker == RuntimeId::GLIBC)
}

fn library(head: StreamListHead) -> Library {
    Library { offset: head.address, walker: GLIBC, base: shared_types::LIST_IN_MAPPING }
}

fn static_executable(head: StreamListHead) -> Library {
    let (offset, base) = match head.relative {
        true => (head.address.wrapping_sub(head.code), shared_types::LIST_IN_CODE),
        false => (head.address, shared_types::LIST_ABSOLUTE),
    };
    Library { offset, walker: GLIBC, base }
}
