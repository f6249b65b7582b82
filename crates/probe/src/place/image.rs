//! The image files of a process, as unwinding and naming need them: where each lies in its memory, and its parts.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::read::{Object, ObjectSection, ObjectSegment, ReadCache};

use super::symbols::Symbols;
use crate::walk::maps::{Place, Region};

/// No unwind table is larger; a file that says so is broken.
const TABLE_MOST: u64 = 64 << 20;

/// A section that is in memory: its place in the image's own addresses, and its bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub range: Range<u64>,
    pub bytes: Vec<u8>,
}

/// One ELF file.
pub(super) struct Image {
    pub path: PathBuf,
    /// What is loaded: of the file, and where in the image's own addresses.
    segments: Vec<(Range<u64>, u64)>,
    pub text: Range<u64>,
    pub eh_frame: Option<Section>,
    pub eh_frame_hdr: Option<Section>,
    pub symbols: Symbols,
}

/// An image in a process.
#[derive(Clone)]
pub(super) struct Loaded {
    pub image: Rc<Image>,
    /// Of its code.
    pub range: Range<u64>,
    /// What is added to the image's own addresses.
    pub bias: u64,
}

/// The files that were read, each once.
#[derive(Default)]
pub(super) struct Images {
    known: HashMap<(PathBuf, u64), Option<Rc<Image>>>,
}

impl Images {
    /// The images whose code these mappings are; those that are not there any more are left out.
    pub fn loaded(&mut self, pid: u32, mappings: &[Region]) -> Vec<Loaded> {
        mappings.iter().filter_map(|one| self.at(pid, one)).collect()
    }

    fn at(&mut self, pid: u32, mapping: &Region) -> Option<Loaded> {
        let Place::File(path) = &mapping.place else { return None };
        let key = (path.clone(), mapping.inode);
        let read = || open(pid, path, mapping.inode).and_then(|file| Image::read(path, file)).map(Rc::new);
        let image = self.known.entry(key).or_insert_with(read).clone()?;
        let bias = image.bias(mapping)?;
        Some(Loaded { image, range: mapping.start..mapping.end, bias })
    }
}

/// The file that was mapped. Its path may be that of a container, which the process's root leads to while it lives.
fn open(pid: u32, path: &Path, inode: u64) -> Option<File> {
    let inside = path.strip_prefix("/").map(|path| Path::new(&format!("/proc/{pid}/root")).join(path));
    let paths = [Some(path.to_path_buf()), inside.ok()];
    let same = |file: &File| file.metadata().is_ok_and(|about| about.is_file() && about.ino() == inode);
    paths.into_iter().flatten().filter_map(|path| File::open(path).ok()).find(same)
}

impl Image {
    /// None where it is no ELF file that can be read.
    pub fn read(path: &Path, file: File) -> Option<Image> {
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        let section = |name: &str| {
            let section = elf.section_by_name(name).filter(|section| section.size() <= TABLE_MOST)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            Some((range, section))
        };
        let with_bytes = |name: &str| {
            let (range, section) = section(name)?;
            Some(Section { range, bytes: section.data().ok()?.to_vec() })
        };
        let segments = elf.segments().filter_map(|segment| {
            let (offset, bytes) = segment.file_range();
            Some((offset..offset.checked_add(bytes)?, segment.address()))
        });
        Some(Image {
            path: path.to_path_buf(),
            segments: segments.collect(),
            text: elf
                .section_by_name(".text")
                .map_or(0..0, |text| text.address()..text.address().saturating_add(text.size())),
            eh_frame: with_bytes(".eh_frame"),
            eh_frame_hdr: with_bytes(".eh_frame_hdr"),
            symbols: Symbols::of(&elf),
        })
    }

    /// A segment's mapping begins with the page in which the segment begins.
    fn bias(&self, mapping: &Region) -> Option<u64> {
        let end = mapping.offset.checked_add(mapping.end.checked_sub(mapping.start)?)?;
        let within = |file: &Range<u64>| file.start < end && mapping.offset < file.end;
        let (file, address) = self.segments.iter().find(|(file, _)| within(file))?;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(file.start).wrapping_sub(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::maps::regions;

    #[test]
    fn an_image_is_found_where_its_functions_are() {
        let own = std::process::id();
        let code: Vec<Region> = regions(own).into_iter().filter(|one| one.executable).collect();
        let loaded = Images::default().loaded(own, &code);
        let here = an_image_is_found_where_its_functions_are as *const () as u64;
        let image = loaded.iter().find(|one| one.range.contains(&here)).expect("this program");
        assert!(image.image.text.contains(&here.wrapping_sub(image.bias)));
        assert!(image.image.eh_frame.is_some());
        assert!(loaded.len() > 1, "libc too");
    }

    #[test]
    fn another_file_of_the_same_name_is_not_believed() {
        let mut code: Vec<Region> = regions(std::process::id()).into_iter().collect();
        code.iter_mut().for_each(|one| one.inode += 1_000_000_007);
        assert!(Images::default().loaded(std::process::id(), &code).is_empty());
    }
}
