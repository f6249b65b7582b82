//! The files that a process has mapped, and the walkers that fit them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::SourceLanguage;
use weir_sys::living_thread;
use weir_sys::maps::{MappedRegion, MappingKind, regions};
use weir_sys::memory::ProcessMemory;

use crate::elf_image::{self, ElfImage};
use crate::runtime_entry::{RuntimeEntry, runtimes};
use crate::runtimes::cpython;
use crate::{Walker, c_library};

/// Returns the walkers that fit the process; none if its memory is unknown or cannot be read.
pub fn walkers(pid: u32) -> Vec<Box<dyn Walker>> {
    ProcessImages::read(pid).map(|process| process.detect().into_walkers()).unwrap_or_default()
}

/// Returns a sentence for each runtime in the process whose buffers cannot be read.
pub fn walkers_missing(pid: u32) -> Vec<String> {
    let buffers = unreadable(pid).unwrap_or_default().into_iter();
    buffers.map(|buffers| format!("{buffers} (pid {pid}) cannot be read")).collect()
}

/// Returns the buffers of the process that no walker reads, each as the subject of a sentence: "Java's own buffers".
/// Returns None if the process is gone or its mappings cannot be read.
pub fn unreadable(pid: u32) -> Option<Vec<String>> {
    let process = ProcessImages::read(pid).filter(|process| !process.regions.is_empty())?;
    let mut found = process.detect();
    if process.executable.as_ref().is_some_and(|executable| !executable.foreign) {
        process.add_unreadable(&mut found);
    }
    Some(found.into_unreadable())
}

/// As [`unreadable`], for a process that has executed this file and is gone. Libraries that it loaded do not count.
pub fn unreadable_of_file(executable: &Path) -> Vec<String> {
    let Some(image) = elf_image::image(executable) else { return Vec::new() };
    let name = executable.file_name().unwrap_or_default().to_string_lossy();
    let is_named = |runtime: &&&RuntimeEntry| {
        runtime.unreadable_entry().is_some_and(|entry| entry.names(&name))
            && image.confirms_runtime(executable, runtime.facts.id)
    };
    let is_linked = |runtime: &&&RuntimeEntry| image.links_runtime(executable, runtime.facts.id);
    let mut runtimes_of_file: Vec<_> = runtimes().iter().filter(is_named).collect();
    if runtimes_of_file.is_empty() {
        runtimes_of_file = runtimes().iter().filter(is_linked).collect();
    }
    let found = runtimes_of_file.into_iter().filter_map(|runtime| runtime.unreadable_entry());
    let mut buffers: Vec<String> = found.map(|entry| entry.buffers.to_string()).collect();
    if image.foreign {
        buffers.push(FOREIGN.into());
    }
    buffers.extend(image.hidden_writers(executable).map(str::to_owned));
    buffers.extend(cpython::unread_buffers(executable));
    buffers
}

/// Returns the language of the runtime that has these buffers, as [`unreadable`] names them; None if they are no runtime's.
pub fn language_of_unreadable(buffers: &str) -> Option<SourceLanguage> {
    let names =
        |runtime: &&&RuntimeEntry| runtime.unreadable_entry().is_some_and(|entry| entry.buffers == buffers);
    runtimes().iter().find(names).map(|runtime| runtime.facts.language)
}

/// The buffers of a program for another architecture.
const FOREIGN: &str = "the buffers of a program of 32 bits";

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

/// Returns whether a mapped file can be code that uses a runtime: an executable or a library, and not the C++ library
/// itself, which contains every name that a program can use.
pub(crate) fn is_program_code(region: &MappedRegion) -> bool {
    let name = region.name();
    let is_file = matches!(region.kind, MappingKind::File(_));
    is_file
        && !name.starts_with("libstdc++.")
        && !name.starts_with("libc++.")
        && !c_library::is_c_library(name)
}

/// The mappings of a process and the facts of the files behind them.
pub(crate) struct ProcessImages {
    pub pid: u32,
    /// A thread that has not ended, by which /proc shows the files.
    thread: u32,
    pub regions: Vec<MappedRegion>,
    pub memory: ProcessMemory,
    /// Path of the executable as the process sees it.
    pub path: PathBuf,
    /// None if the executable is no ELF file or cannot be read.
    pub executable: Option<Arc<ElfImage>>,
}

impl ProcessImages {
    fn read(pid: u32) -> Option<ProcessImages> {
        let link = weir_sys::executable::link(pid);
        let path = std::fs::read_link(&link).ok()?;
        let executable = elf_image::image(&link);
        let thread = living_thread::of(pid);
        Some(ProcessImages {
            pid,
            thread,
            regions: regions(pid),
            memory: ProcessMemory { pid },
            path,
            executable,
        })
    }

    fn detect(&self) -> Detected {
        let mut found = Detected::default();
        match &self.executable {
            None => {}
            Some(executable) if executable.foreign => found.add_unreadable_buffers(0, FOREIGN),
            Some(_) => {
                let walkers = runtimes().iter().filter_map(|runtime| runtime.walker_entry());
                walkers.for_each(|walker| (walker.detect)(self, &mut found));
            }
        }
        found
    }

    /// Adds the runtimes without a walker: those with a file of their own, else those that are linked into the program. An
    /// interpreter may be written in C++, but its programs use its own buffers.
    fn add_unreadable(&self, found: &mut Detected) {
        let entries = || runtimes().iter().filter_map(|runtime| Some((runtime, runtime.unreadable_entry()?)));
        let mut is_named = false;
        for (runtime, entry) in entries() {
            // A library's name is its own; a program can have any name.
            let is_confirmed = |region: &&MappedRegion| {
                let confirms =
                    |(path, image): (PathBuf, Arc<ElfImage>)| image.confirms_runtime(&path, runtime.facts.id);
                region.name().starts_with("lib") || self.image_file(region).is_some_and(confirms)
            };
            let mut named = self.starts().filter(|region| entry.names(region.name()));
            if let Some(region) = named.find(is_confirmed) {
                found.add_unreadable_buffers(region.start, entry.buffers);
                is_named = true;
            }
        }
        if is_named {
            return;
        }
        // Each file is opened once: a program maps dozens, and there are dozens of runtimes.
        let code: Vec<_> =
            self.code_starts().filter_map(|region| Some((region, self.image_file(region)?))).collect();
        for (runtime, entry) in entries() {
            let is_linked = |(_, (path, image)): &&(&MappedRegion, (PathBuf, Arc<ElfImage>))| {
                image.links_runtime(path, runtime.facts.id)
            };
            if let Some((region, _)) = code.iter().find(is_linked) {
                found.drop_unknown_static();
                found.add_unreadable_buffers(region.start, entry.buffers);
            }
        }
    }

    /// Returns the first mapping of each file that has code of the program, without data files and the C library.
    fn code_starts(&self) -> impl Iterator<Item = &MappedRegion> {
        let code: HashSet<&MappingKind> =
            self.regions.iter().filter(|region| region.executable).map(|region| &region.kind).collect();
        self.starts().filter(move |region| is_program_code(region) && code.contains(&region.kind))
    }

    /// Returns the first mapping of each mapped file, in the order of addresses.
    pub fn starts(&self) -> impl Iterator<Item = &MappedRegion> {
        self.regions.iter().filter(|region| region.offset == 0)
    }

    /// Returns the first mapping of the executable.
    pub fn executable_start(&self) -> Option<&MappedRegion> {
        self.starts().find(|region| self.is_executable(region))
    }

    /// Returns whether a region maps the executable.
    pub fn is_executable(&self, region: &MappedRegion) -> bool {
        matches!(&region.kind, MappingKind::File(path) if *path == self.path)
    }

    /// Returns the facts of a mapped file. In a container the path leads there from the process's root, else from
    /// ours. A deleted file is opened through its mapping, which needs privilege.
    pub fn image(&self, region: &MappedRegion) -> Option<Arc<ElfImage>> {
        self.image_file(region).map(|(_, image)| image)
    }

    /// As [`Self::image`], with the path by which the file can be opened now.
    pub fn image_file(&self, region: &MappedRegion) -> Option<(PathBuf, Arc<ElfImage>)> {
        let MappingKind::File(path) = &region.kind else { return None };
        let process = PathBuf::from(format!("/proc/{}", self.thread));
        let inside = process.join("root").join(path.strip_prefix("/").ok()?);
        let mapping = process.join(format!("map_files/{:x}-{:x}", region.start, region.end));
        let by_path = |path: &Path| Some((path.to_owned(), elf_image::image_of(path, region.inode)?));
        let by_mapping = || elf_image::image(&mapping).map(|image| (mapping.clone(), image));
        by_path(&inside).or_else(|| by_path(path)).or_else(by_mapping)
    }

    /// Returns whether the process still has this mapping. It may have ended, or executed another program, since its mappings
    /// were read; a read of its memory then fails although its buffers can be read.
    pub fn is_mapped(&self, region: &MappedRegion) -> bool {
        let mut now = regions(self.pid).into_iter();
        now.any(|one| one.start == region.start && one.kind == region.kind)
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

/// The walkers of a process, and the buffers that none reads. Both are in the order of the images' addresses.
#[derive(Default)]
pub(crate) struct Detected {
    walkers: Vec<(u64, Box<dyn Walker>)>,
    unreadable: Vec<(u64, String)>,
}

impl Detected {
    /// Adds the walker of a runtime whose image begins at `start`.
    pub fn add(&mut self, start: u64, walker: Box<dyn Walker>) {
        self.walkers.push((start, walker));
    }

    /// Notes that the buffers of a program or runtime in the image that begins at `start` cannot be read.
    pub fn add_unreadable(&mut self, start: u64, owner: &str) {
        self.add_unreadable_buffers(start, &format!("the buffers of {owner}"));
    }

    /// Notes buffers in the image that begins at `start`, as the subject of a sentence.
    pub fn add_unreadable_buffers(&mut self, start: u64, buffers: &str) {
        self.unreadable.push((start, buffers.to_string()));
    }

    /// Removes the note of a static program without known streams: its runtime is known, and has no others.
    fn drop_unknown_static(&mut self) {
        self.unreadable.retain(|(start, _)| *start != c_library::STATIC_LIBRARY);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_runtime_replaces_only_the_note_of_a_static_program_without_streams() {
        let mut found = Detected::default();
        found.add_unreadable(c_library::STATIC_LIBRARY, "a static program");
        found.add_unreadable(u64::MAX, "libc++");
        found.drop_unknown_static();
        assert_eq!(found.into_unreadable(), ["the buffers of libc++"]);
    }
}
