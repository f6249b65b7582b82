//! The memory mappings of a process, from /proc/PID/maps (proc_pid_maps(5)).

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use procfs::FromBufRead;
use procfs::process::{MMPermissions, MMapPath, MemoryMaps};

/// The initial buffer size: the maps of a program with ten libraries fit.
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
    /// The offset in the file that is mapped at `start`.
    pub offset: u64,
    pub inode: u64,
    pub kind: MappingKind,
}

/// The backing of a mapping.
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
    /// Returns whether the mapping holds heap, stack or other anonymous memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, MappingKind::Anonymous | MappingKind::Heap | MappingKind::Stack)
    }
}

impl MappedRegion {
    /// Returns the name of the mapped file without its directories; empty for other mappings.
    pub fn name(&self) -> &str {
        match &self.kind {
            MappingKind::File(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or(""),
            _ => "",
        }
    }
}

/// Returns the mappings in order of address; none if they cannot be read.
pub fn regions(pid: u32) -> Vec<MappedRegion> {
    parse_regions(&text(pid))
}

/// Returns the text of /proc/PID/maps; empty if it cannot be read. Parsing it takes twice as long as reading it, so
/// callers can defer [`parse_regions`].
pub fn text(pid: u32) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    // If the process ends meanwhile, the part that was read is still correct.
    let _ = File::open(format!("/proc/{pid}/maps")).and_then(|mut maps| maps.read_to_end(&mut text));
    text
}

/// Parses the text of /proc/PID/maps. Returns the mappings in order of address.
pub fn parse_regions(text: &[u8]) -> Vec<MappedRegion> {
    // One file name that is no UTF-8 must not hide the other mappings.
    let text = String::from_utf8_lossy(text);
    MemoryMaps::from_buf_read(text.as_bytes()).into_iter().flatten().map(region).collect()
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
        kind: match map.pathname {
            MMapPath::Path(path) => MappingKind::File(path),
            MMapPath::Anonymous => MappingKind::Anonymous,
            // Anonymous memory that the program named with PR_SET_VMA_ANON_NAME (prctl(2)).
            MMapPath::Other(name) if name.starts_with("anon:") => MappingKind::Anonymous,
            MMapPath::Heap => MappingKind::Heap,
            MMapPath::Stack => MappingKind::Stack,
            _ => MappingKind::Other,
        },
    }
}

/// Returns the writable ranges (start, end) of an image: its file's private writable mappings and the anonymous mapping
/// that directly follows them (.bss). Adjacent ranges are joined.
pub fn writable_ranges(regions: &[MappedRegion], path: &std::path::Path) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut end_of_image = 0;
    for region in regions {
        let mapped = region.kind == MappingKind::File(path.to_path_buf());
        let is_bss = region.kind == MappingKind::Anonymous && region.start == end_of_image;
        if !mapped && !is_bss {
            continue;
        }
        end_of_image = if mapped { region.end } else { 0 };
        if region.writable && region.private {
            match found.last_mut() {
                Some(last) if last.1 == region.start => last.1 = region.end,
                _ => found.push((region.start, region.end)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_hides_no_mapping() {
        let text = b"1000-2000 r-xp 00000000 00:20 7 /tmp/\xff\xfe\n2000-3000 rw-p 00000000 00:00 0 [heap]\n";
        let kinds: Vec<_> = parse_regions(text).into_iter().map(|region| region.kind).collect();
        assert_eq!(kinds, [MappingKind::File("/tmp/\u{fffd}\u{fffd}".into()), MappingKind::Heap]);
    }
}
