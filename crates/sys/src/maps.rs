//! The mappings of a process, as a walker needs them: where its images lie and what is writable.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use procfs::FromBufRead;
use procfs::process::{MMPermissions, MMapPath, MemoryMaps};

/// Of a program with ten libraries.
const USUAL_BYTES: usize = 8 << 10;

/// One line of /proc/PID/maps.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct MappedRegion {
    pub start: u64,
    pub end: u64,
    pub writable: bool,
    pub executable: bool,
    pub private: bool,
    /// Of the file, where `start` is.
    pub offset: u64,
    pub inode: u64,
    pub place: MappingKind,
}

/// What lies behind a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MappingKind {
    File(PathBuf),
    Anonymous,
    Heap,
    Stack,
    Other,
}

impl MappingKind {
    /// Is it what a program allocates, or a stack?
    pub fn is_memory(&self) -> bool {
        matches!(self, MappingKind::Anonymous | MappingKind::Heap | MappingKind::Stack)
    }
}

impl MappedRegion {
    /// The file's name without its directories; empty for what is no file.
    pub fn name(&self) -> &str {
        match &self.place {
            MappingKind::File(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or(""),
            _ => "",
        }
    }
}

/// The mappings, by address; none where they cannot be read.
pub fn regions(pid: u32) -> Vec<MappedRegion> {
    regions_of(&text(pid))
}

/// What /proc/PID/maps says now, which is read in half the time that it takes to understand it; nothing where that cannot be.
pub fn text(pid: u32) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    // What was read of a process that ends meanwhile is true.
    let _ = File::open(format!("/proc/{pid}/maps")).and_then(|mut maps| maps.read_to_end(&mut text));
    text
}

/// The mappings that were told of so.
pub fn regions_of(text: &[u8]) -> Vec<MappedRegion> {
    MemoryMaps::from_buf_read(text).into_iter().flatten().map(region).collect()
}

fn region(map: procfs::process::MemoryMap) -> MappedRegion {
    MappedRegion {
        start: map.address.0,
        end: map.address.1,
        writable: map.perms.contains(MMPermissions::WRITE),
        executable: map.perms.contains(MMPermissions::EXECUTE),
        private: map.perms.contains(MMPermissions::PRIVATE),
        offset: map.offset,
        inode: map.inode,
        place: match map.pathname {
            MMapPath::Path(path) => MappingKind::File(path),
            MMapPath::Anonymous => MappingKind::Anonymous,
            // The kernel shows the names that programs give to their memory.
            MMapPath::Other(name) if name.starts_with("anon:") => MappingKind::Anonymous,
            MMapPath::Heap => MappingKind::Heap,
            MMapPath::Stack => MappingKind::Stack,
            _ => MappingKind::Other,
        },
    }
}

/// The writable memory of an image: its file's writable mappings and the zeroed memory right behind (.bss).
pub fn writable_of(regions: &[MappedRegion], path: &std::path::Path) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut end_of_image = 0;
    for region in regions {
        let own = region.place == MappingKind::File(path.to_path_buf());
        let behind = region.place == MappingKind::Anonymous && region.start == end_of_image;
        if !own && !behind {
            continue;
        }
        end_of_image = if own { region.end } else { 0 };
        if region.writable && region.private {
            match found.last_mut() {
                Some(last) if last.1 == region.start => last.1 = region.end,
                _ => found.push((region.start, region.end)),
            }
        }
    }
    found
}
