//! The files that a process has mapped, and the walkers that fit them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::RuntimeId;
use weir_sys::maps::{MappedRegion, MappingKind, regions};
use weir_sys::memory::ProcessMemory;

use crate::elf_image::{self, ElfImage};
use crate::runtime_entry::{BufferAccess, runtimes};
use crate::{Walker, c_library};

/// Returns the walkers that fit the process; none if its memory is unknown or cannot be read.
pub fn walkers(pid: u32) -> Vec<Box<dyn Walker>> {
    ProcessImages::read(pid).map(|process| process.detect().into_walkers()).unwrap_or_default()
}

/// Returns a sentence for each runtime in the process whose buffers cannot be read.
pub fn walkers_missing(pid: u32) -> Vec<String> {
    unreadable(pid).unwrap_or_default()
}

/// As [`walkers_missing`]; None if the process is gone or its mappings cannot be read.
pub fn unreadable(pid: u32) -> Option<Vec<String>> {
    let process = ProcessImages::read(pid).filter(|process| !process.regions.is_empty())?;
    Some(process.detect().into_unreadable())
}

/// Returns the addresses of functions of the C library in a process; None if it has no C library yet.
pub fn functions<const N: usize>(pid: u32, names: [&str; N]) -> Option<[Option<u64>; N]> {
    let process = ProcessImages::read(pid)?;
    let (image, start) = if process.executable.as_ref()?.interpreted {
        let library = process.starts().find(|region| c_library::is_c_library(region.name()))?;
        (process.image(library)?, library.start)
    } else {
        (process.executable.clone()?, process.executable_start()?.start)
    };
    Some(names.map(|name| image.symbol_at(name, start)))
}

/// The mappings of a process and the facts of the files behind them.
pub(crate) struct ProcessImages {
    pub pid: u32,
    pub regions: Vec<MappedRegion>,
    pub memory: ProcessMemory,
    /// Path of the executable as the process sees it.
    pub path: PathBuf,
    /// None if the executable is no ELF file or cannot be read.
    pub executable: Option<Arc<ElfImage>>,
}

impl ProcessImages {
    fn read(pid: u32) -> Option<ProcessImages> {
        let link = PathBuf::from(format!("/proc/{pid}/exe"));
        let path = std::fs::read_link(&link).ok()?;
        let executable = elf_image::image(&link);
        Some(ProcessImages { pid, regions: regions(pid), memory: ProcessMemory { pid }, path, executable })
    }

    fn detect(&self) -> Detected {
        let mut found = Detected { pid: self.pid, walkers: Vec::new(), unreadable: Vec::new() };
        match &self.executable {
            None => {}
            Some(executable) if executable.foreign => found.add_unreadable(0, "a program of 32 bits"),
            Some(_) => runtimes().iter().for_each(|runtime| match &runtime.buffers {
                BufferAccess::Readable(walker) => (walker.detect)(self, &mut found),
                BufferAccess::Unreadable { libraries } => {
                    self.add_unreadable(runtime.facts.id, libraries, &mut found);
                }
                BufferAccess::NotOwn => {}
            }),
        }
        found
    }

    fn add_unreadable(&self, runtime: RuntimeId, libraries: &[&str], found: &mut Detected) {
        let is_known =
            |region: &&MappedRegion| libraries.iter().any(|start| region.name().starts_with(start));
        for region in self.starts().filter(is_known) {
            found.add_unreadable(region.start, runtime.as_str());
        }
    }

    /// Returns the first mapping of each mapped file, in the order of addresses.
    pub fn starts(&self) -> impl Iterator<Item = &MappedRegion> {
        self.regions.iter().filter(|region| region.offset == 0)
    }

    /// Returns the first mapping of the executable.
    pub fn executable_start(&self) -> Option<&MappedRegion> {
        self.starts().find(|region| self.is_executable(region))
    }

    /// Tells whether a region maps the executable.
    pub fn is_executable(&self, region: &MappedRegion) -> bool {
        matches!(&region.kind, MappingKind::File(path) if *path == self.path)
    }

    /// Returns the facts of a mapped file. In a container the path leads there from the process's root, else from
    /// ours. A deleted file is opened through its mapping, which needs privilege.
    pub fn image(&self, region: &MappedRegion) -> Option<Arc<ElfImage>> {
        let MappingKind::File(path) = &region.kind else { return None };
        let inside = Path::new(&format!("/proc/{}/root", self.pid)).join(path.strip_prefix("/").ok()?);
        let mapping = format!("/proc/{}/map_files/{:x}-{:x}", self.pid, region.start, region.end);
        let by_path = elf_image::image_of(&inside, region.inode);
        let by_path = by_path.or_else(|| elf_image::image_of(path, region.inode));
        by_path.or_else(|| elf_image::image(Path::new(&mapping)))
    }

    /// Returns the executable, or the library whose name begins so, in which a runtime with this symbol is.
    pub fn images_with<'a>(
        &'a self,
        library: &'a str,
        symbol: &'a str,
    ) -> impl Iterator<Item = (&'a MappedRegion, Option<Arc<ElfImage>>)> {
        self.starts().filter_map(move |region| {
            let own = self.executable.as_ref().filter(|image| image.symbol(symbol).is_some());
            if region.name().starts_with(library) {
                Some((region, self.image(region)))
            } else {
                own.filter(|_| self.is_executable(region)).map(|image| (region, Some(Arc::clone(image))))
            }
        })
    }
}

/// The walkers of a process, and what is missing. Both are in the order of the images' addresses.
pub(crate) struct Detected {
    pid: u32,
    walkers: Vec<(u64, Box<dyn Walker>)>,
    unreadable: Vec<(u64, String)>,
}

impl Detected {
    /// Adds the walker of a runtime whose image begins at `start`.
    pub fn add(&mut self, start: u64, walker: Box<dyn Walker>) {
        self.walkers.push((start, walker));
    }

    /// Adds a sentence about something in the image that begins at `start`.
    pub fn add_unreadable(&mut self, start: u64, what: &str) {
        self.unreadable.push((start, format!("{what} (pid {}): its buffers cannot be read", self.pid)));
    }

    fn into_walkers(mut self) -> Vec<Box<dyn Walker>> {
        self.walkers.sort_by_key(|(start, _)| *start);
        self.walkers.into_iter().map(|(_, walker)| walker).collect()
    }

    fn into_unreadable(mut self) -> Vec<String> {
        self.unreadable.sort_by_key(|(start, _)| *start);
        self.unreadable.into_iter().map(|(_, text)| text).collect()
    }
}
