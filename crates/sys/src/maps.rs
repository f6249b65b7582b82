//! The memory mappings of a process, from /proc/PID/maps (proc_pid_maps(5)).

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use crate::{living_thread, process_status};

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
    /// Major and minor number of the device of the file.
    pub device: (u32, u32),
    pub inode: u64,
    pub kind: MappingKind,
}

/// The backing of a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Returns the text of /proc/PID/maps; empty if it cannot be read, also in execve(2). Parsing it takes twice as long as reading it, so
/// callers can defer [`parse_regions`].
pub fn text(pid: u32) -> Vec<u8> {
    let of_thread = |tid: u32| {
        if process_status::is_executing(tid) {
            return None;
        }
        let mut text = Vec::with_capacity(USUAL_BYTES);
        // If the process ends meanwhile, the part that was read is still correct.
        let _ = File::open(format!("/proc/{tid}/maps")).and_then(|mut maps| maps.read_to_end(&mut text));
        Some(text).filter(|text| !text.is_empty())
    };
    living_thread::or_by_other(pid, of_thread).unwrap_or_default()
}

/// Parses the text of /proc/PID/maps. Returns the mappings in order of address. A line that is no mapping hides no other:
/// in a namespace of its own any user can give a file any name.
pub fn parse_regions(text: &[u8]) -> Vec<MappedRegion> {
    String::from_utf8_lossy(text).lines().filter_map(region).collect()
}

/// Parses a line: addresses, permissions, offset, device, inode and name.
fn region(line: &str) -> Option<MappedRegion> {
    let mut fields = line.splitn(6, ' ');
    let mut next = || fields.next();
    let (start, end) = next()?.split_once('-')?;
    let permissions = next()?.as_bytes();
    let offset = u64::from_str_radix(next()?, 16).ok()?;
    let device = next()?.split_once(':')?;
    let device = (u32::from_str_radix(device.0, 16).ok()?, u32::from_str_radix(device.1, 16).ok()?);
    let inode = next()?.parse().ok()?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let has = |at: usize, letter: u8| permissions.get(at) == Some(&letter);
    (start < end).then(|| MappedRegion {
        start,
        end,
        writable: has(1, b'w'),
        executable: has(2, b'x'),
        private: has(3, b'p'),
        offset,
        device,
        inode,
        // The kernel aligns the name with blanks.
        kind: kind(next().unwrap_or_default().trim_start()),
    })
}

fn kind(name: &str) -> MappingKind {
    match name {
        "" => MappingKind::Anonymous,
        "[heap]" => MappingKind::Heap,
        "[stack]" => MappingKind::Stack,
        // Anonymous memory that the program named with PR_SET_VMA_ANON_NAME (prctl(2)).
        _ if name.starts_with("[anon:") => MappingKind::Anonymous,
        _ if name.starts_with('/') => MappingKind::File(name.into()),
        _ => MappingKind::Other,
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

    /// procfs took such names for shared memory and stacks: it panicked, or returned no mapping at all.
    #[test]
    fn a_name_like_that_of_other_memory_hides_no_mapping() {
        for name in [
            "/SYSVa",
            "/SYSV\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
            "/SYSVnumber!",
            "[stack:x]",
            "[stack:",
            "[",
            "Size: 1",
        ] {
            let text = format!(
                "1000-2000 rw-s 00000000 00:01 7    {name}\n2000-3000 rw-p 00000000 00:00 0 [heap]\n"
            );
            let regions = parse_regions(text.as_bytes());
            assert_eq!(regions.last().map(|region| region.kind.clone()), Some(MappingKind::Heap), "{name}");
            assert!(!regions[0].private || regions.len() == 1, "{name}");
        }
    }

    #[test]
    fn damaged_lines_are_left_out() {
        let text =
            b"x\n1000-2000 rw-p 0\n3000-2000 rw-p 0 0:0 0\n-1 r\n\n1000-2000 r-xp 00001000 fe:00 77 /a b \n";
        let [region] = &parse_regions(text)[..] else { panic!("one mapping") };
        assert_eq!((region.start, region.end, region.offset, region.inode), (0x1000, 0x2000, 0x1000, 77));
        assert!(region.executable && region.private && !region.writable);
        assert_eq!((region.kind.clone(), region.name()), (MappingKind::File("/a b ".into()), "a b "));
    }

    #[test]
    fn the_mappings_of_this_process_are_all_there() {
        let own = text(std::process::id());
        let regions = parse_regions(&own);
        assert_eq!(regions.len(), own.iter().filter(|byte| **byte == b'\n').count());
        assert!(regions.iter().any(|region| region.kind == MappingKind::Stack));
    }
}
