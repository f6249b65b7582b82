//! Tells the kernel where the C libraries of this machine keep their lists of streams, so that it finds them
//! in a process that lives for a millisecond only.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aya::maps::{HashMap, MapData};
use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol};
use weir_model::trace::Walker;

use super::wire::{Library, LibraryKey};

/// Where Linux systems have their C library.
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

/// The libraries that the kernel was told of.
pub(super) struct Libraries {
    map: HashMap<MapData, LibraryKey, Library>,
    asked: HashSet<LibraryKey>,
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
        let mut libraries = Self { map, asked: HashSet::new() };
        for folder in FOLDERS {
            libraries.learn(&Path::new(folder).join("libc.so.6"));
        }
        libraries
    }

    /// Tells the kernel of one more file, a library or an executable with the library in it. Each is looked
    /// at once.
    pub fn learn(&mut self, path: &Path) {
        let Ok(status) = fs::metadata(path) else { return };
        let key = LibraryKey { ino: status.ino(), size: status.size() };
        if !status.is_file() || !self.asked.insert(key) {
            return;
        }
        if let Some(library) = find(path) {
            // Without it the library's streams are not seen at an exit; nothing else depends on it.
            let _ = self.map.insert(key, library, 0);
        }
    }
}

/// The head of the list in a process that runs already, and whose it is; from its mappings.
pub(super) fn list_of(pid: u32) -> Option<(u64, u32)> {
    let maps = procfs::process::Process::new(pid as i32).ok()?.maps().ok()?;
    for map in maps {
        let procfs::process::MMapPath::Path(path) = &map.pathname else { continue };
        if map.offset == 0 && path.file_name().is_some_and(|name| name == "libc.so.6") {
            let library = find(
                &Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").ok()?),
            )?;
            return Some((map.address.0 + library.offset, library.walker));
        }
    }
    None
}

/// The head of glibc's list: a dynamic symbol of libc.so.6, a plain one in a static executable.
fn find(path: &Path) -> Option<Library> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let is_head =
        |symbol: &object::Symbol<'_, '_, _>| symbol.is_definition() && symbol.name() == Ok("_IO_list_all");
    let dynamic = elf.dynamic_symbols().find(is_head).map(|symbol| symbol.address());
    let is_library = elf.kind() == object::ObjectKind::Dynamic && elf.entry() != 0 && dynamic.is_some();
    let walker = Walker::Glibc as u32 + 1;
    if let (Some(address), true) = (dynamic, is_library) {
        return Some(Library { offset: address, walker, how: FROM_MAPPING });
    }
    let address = elf.symbols().find(is_head)?.address();
    if elf.kind() == object::ObjectKind::Executable {
        return Some(Library { offset: address, walker, how: ABSOLUTE });
    }
    let code = elf.segments().find(|segment| is_code(segment.flags()))?.address();
    Some(Library { offset: address.wrapping_sub(code), walker, how: FROM_CODE })
}

fn is_code(flags: object::SegmentFlags) -> bool {
    matches!(flags, object::SegmentFlags::Elf { p_flags, .. } if p_flags.0 & object::elf::PF_X.0 != 0)
}
