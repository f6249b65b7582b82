//! The image files of a process for unwinding and symbol names: their mappings, sections and unwind tables.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use weir_sys::elf::{ElfFile, ElfSections, MAX_SECTION_BYTES, MappedSegment};
use weir_sys::file_system::open_with_status;
use weir_sys::maps::{MappedRegion, MappingKind};

use super::symbols::Symbols;

/// A loaded section: its range in the image's own addresses, and its bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct ImageSection {
    pub range: Range<u64>,
    pub bytes: Vec<u8>,
}

/// An ELF file that has code.
pub(super) struct CodeImage {
    pub path: PathBuf,
    segments: Vec<MappedSegment>,
    pub text: Range<u64>,
    pub eh_frame: Option<ImageSection>,
    pub eh_frame_hdr: Option<ImageSection>,
    /// Compiled by Go, which keeps frame pointers.
    pub go: bool,
    /// Source of the symbols, which are read on first use.
    elf: ElfFile,
    symbols: OnceCell<Symbols>,
}

/// An image that is mapped into a process.
#[derive(Clone)]
pub(super) struct LoadedImage {
    pub image: Rc<CodeImage>,
    /// The mapping of its code.
    pub range: Range<u64>,
    /// Difference between an address in memory and in the image.
    pub bias: u64,
}

/// The images that were read, by path and inode; None if unreadable.
#[derive(Default)]
pub(super) struct ImageCache {
    known: HashMap<(PathBuf, u64), Option<Rc<CodeImage>>>,
}

impl ImageCache {
    /// Returns the images of these code mappings, without those that cannot be read any more.
    pub fn loaded(&mut self, pid: u32, mappings: &[MappedRegion]) -> Vec<LoadedImage> {
        mappings.iter().filter_map(|one| self.at(pid, one)).collect()
    }

    fn at(&mut self, pid: u32, mapping: &MappedRegion) -> Option<LoadedImage> {
        let MappingKind::File(path) = &mapping.kind else { return None };
        let key = (path.clone(), mapping.inode);
        let read =
            || open(pid, path, mapping.inode).and_then(|file| CodeImage::read(path, file)).map(Rc::new);
        let image = self.known.entry(key).or_insert_with(read).clone()?;
        let bias = image.bias(mapping)?;
        Some(LoadedImage { image, range: mapping.start..mapping.end, bias })
    }
}

/// Opens the mapped file. The path may be valid only in the container of the process, so /proc/PID/root is
/// tried too.
fn open(pid: u32, path: &Path, inode: u64) -> Option<File> {
    let inside = path.strip_prefix("/").map(|path| Path::new(&format!("/proc/{pid}/root")).join(path));
    let paths = [Some(path.to_path_buf()), inside.ok()];
    let opened = paths.into_iter().flatten().filter_map(|path| open_with_status(&path).ok());
    opened.into_iter().find(|(_, status)| status.ino == inode).map(|(file, _)| file)
}

impl CodeImage {
    /// Reads an image. Returns none if the file is no valid ELF file of this machine.
    pub fn read(path: &Path, file: File) -> Option<CodeImage> {
        let elf = ElfFile::from_file(file).filter(|elf| !elf.is_foreign())?;
        let segments = elf.mapped_segments().ok()?;
        let sections = elf.sections().ok()?;
        let go = sections.has(".gopclntab") || sections.has(".data.rel.ro.gopclntab");
        let text = section_range(&sections, ".text").unwrap_or(0..0);
        let [eh_frame, eh_frame_hdr] =
            [".eh_frame", ".eh_frame_hdr"].map(|name| loaded_section(&sections, name));
        let (path, symbols) = (path.to_path_buf(), OnceCell::new());
        Some(CodeImage { path, segments, text, eh_frame, eh_frame_hdr, go, elf, symbols })
    }

    /// Returns whether the unwind tables contain the function at this address of the image.
    pub fn has_unwind_table(&self, address: u64) -> bool {
        let Some(frames) = &self.eh_frame else { return false };
        let bases = BaseAddresses::default().set_eh_frame(frames.range.start).set_text(self.text.start);
        let tables = EhFrame::new(&frames.bytes, LittleEndian);
        let Some(index) = &self.eh_frame_hdr else {
            return tables.fde_for_address(&bases, address, EhFrame::cie_from_offset).is_ok();
        };
        let bases = bases.set_eh_frame_hdr(index.range.start);
        let index = EhFrameHdr::new(&index.bytes, LittleEndian).parse(&bases, 8);
        let found = index.ok().and_then(|index| {
            index.table()?.fde_for_address(&tables, &bases, address, EhFrame::cie_from_offset).ok()
        });
        found.is_some()
    }

    /// Returns the symbols of the image.
    pub fn symbols(&self) -> &Symbols {
        let read =
            || self.elf.sections().map_or_else(|_| Symbols::default(), |sections| Symbols::of(&sections));
        self.symbols.get_or_init(read)
    }

    /// Returns the load bias. A mapping begins with the page of its segment's start, and the previous segment
    /// may end in that page.
    fn bias(&self, mapping: &MappedRegion) -> Option<u64> {
        let page = rustix::param::page_size() as u64;
        let begins = |file: &Range<u64>| file.start - file.start % page <= mapping.offset;
        let own = self.segments.iter().rfind(|one| begins(&one.file) && mapping.offset < one.file.end)?;
        Some(
            mapping.start.wrapping_sub(mapping.offset).wrapping_add(own.file.start).wrapping_sub(own.address),
        )
    }
}

fn section_range(sections: &ElfSections, name: &str) -> Option<Range<u64>> {
    let (address, bytes) = sections.address_and_size(name)?;
    Some(address..address.checked_add(bytes)?)
}

fn loaded_section(sections: &ElfSections, name: &str) -> Option<ImageSection> {
    let range = section_range(sections, name)?;
    Some(ImageSection { range, bytes: sections.bytes(name, MAX_SECTION_BYTES)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sys::maps::regions;

    #[test]
    fn an_image_is_found_where_its_functions_are() {
        let own = std::process::id();
        let code: Vec<MappedRegion> = regions(own).into_iter().filter(|one| one.executable).collect();
        let loaded = ImageCache::default().loaded(own, &code);
        let here = an_image_is_found_where_its_functions_are as *const () as u64;
        let image = loaded.iter().find(|one| one.range.contains(&here)).expect("this program");
        assert!(image.image.text.contains(&here.wrapping_sub(image.bias)));
        assert!(image.image.eh_frame.is_some());
        assert!(loaded.len() > 1, "libc too");
    }

    #[test]
    fn another_file_with_the_same_path_is_rejected() {
        let mut code: Vec<MappedRegion> = regions(std::process::id()).into_iter().collect();
        code.iter_mut().for_each(|one| one.inode += 1_000_000_007);
        assert!(ImageCache::default().loaded(std::process::id(), &code).is_empty());
    }
}
