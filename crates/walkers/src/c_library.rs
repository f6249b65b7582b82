//! Finds the C library of a process, glibc or musl: a mapped library, or a part of a static executable.

use weir_sys::maps::{MappedRegion, MappingKind};
use weir_sys::memory::Memory;

use crate::Walker;
use crate::elf_image::ElfImage;
use crate::image_memory::ImageMemory;
use crate::process_images::{Detected, ProcessImages};
use crate::runtimes::glibc::{self, GlibcStreams};
use crate::runtimes::musl::{self, MuslStreams, OpenFileList};

/// Adds the walker of the C library.
pub(crate) fn detect(process: &ProcessImages, found: &mut Detected) {
    for region in process.starts().filter(|region| is_c_library(region.name())) {
        match process.image(region) {
            Some(image) => {
                library(process, &image, region).into_iter().for_each(|one| found.add(region.start, one));
            }
            None => {
                found.add_unreadable(region.start, "a C library that was replaced since the program began");
            }
        }
    }
    let has_library = process.regions.iter().any(|region| is_c_library(region.name()));
    match &process.executable {
        Some(image) if !image.interpreted && !image.go && !has_library => {
            detect_static(process, image, found)
        }
        _ => {}
    }
}

/// Returns the streams of glibc in a process; None with another C library, and before it is loaded.
pub(crate) fn glibc_streams(process: &ProcessImages) -> Option<GlibcStreams> {
    let library = process.starts().find(|region| is_c_library(region.name()));
    let (image, region) = match library {
        Some(region) => (process.image(region)?, region),
        None => (process.executable.clone()?, process.executable_start()?),
    };
    match image.symbol_at("_IO_list_all", region.start) {
        Some(head) => Some(GlibcStreams::at(head)),
        None if library.is_some() => None,
        None => {
            let area = ImageMemory::of(&process.regions, &process.path)?;
            glibc::list_search::search(&process.memory, &area)
        }
    }
}

/// Returns whether a file of this name is a C library.
pub(crate) fn is_c_library(name: &str) -> bool {
    let glibc = name.starts_with("libc.so.6") || name.starts_with("libc-2.");
    glibc || name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
}

/// Returns the walker of the C library in an image, found by its symbols.
fn library(process: &ProcessImages, image: &ElfImage, region: &MappedRegion) -> Option<Box<dyn Walker>> {
    match image.symbol_at("_IO_list_all", region.start) {
        Some(head) => Some(Box::new(GlibcStreams::at(head))),
        None => musl(process, image, region).map(|musl| Box::new(musl) as Box<dyn Walker>),
    }
}

/// Order of the walker of a static C library: after those of mapped files, and before that of libc++'s file buffers, which hand their
/// bytes to its streams.
pub(crate) const STATIC_LIBRARY: u64 = u64::MAX - 1;

/// Adds the C library inside a static executable, found by its symbols or else by a search.
fn detect_static(process: &ProcessImages, image: &ElfImage, found: &mut Detected) {
    let Some(region) = process.executable_start() else { return };
    match library(process, image, region).or_else(|| search(process)) {
        Some(walker) => found.add(STATIC_LIBRARY, walker),
        None => found
            .add_unreadable(STATIC_LIBRARY, "a static program in which no streams of a C library were found"),
    }
}

fn search(process: &ProcessImages) -> Option<Box<dyn Walker>> {
    let area = ImageMemory::of(&process.regions, &process.path)?;
    if let Some(glibc) = glibc::list_search::search(&process.memory, &area) {
        return Some(Box::new(glibc));
    }
    let musl = musl::list_search::search(&process.memory, area);
    musl.map(|musl| Box::new(musl) as Box<dyn Walker>)
}

fn musl(process: &ProcessImages, image: &ElfImage, region: &MappedRegion) -> Option<MuslStreams> {
    let pointers = ["stdin", "stdout", "stderr"].map(|name| image.symbol_at(name, region.start));
    let standard: Vec<u64> = pointers.into_iter().flatten().filter_map(|at| process.memory.u64(at)).collect();
    let MappingKind::File(path) = &region.kind else { return None };
    let others = match image.symbol_at("ofl_head", region.start) {
        Some(head) => OpenFileList::Head(head),
        None => OpenFileList::Search(musl::list_search::MuslListSearch {
            area: ImageMemory::of(&process.regions, path)?,
        }),
    };
    let known = !standard.is_empty() || matches!(others, OpenFileList::Head(_));
    known.then_some(MuslStreams { standard, others })
}
