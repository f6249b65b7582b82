//! Which walkers fit a process: by the images that it has mapped and the symbols in them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_sys::maps::{MappedRegion, MappingKind, regions};
use weir_sys::memory::{Memory, ProcessMemory};

use super::cpython::{self, Python};
use super::glibc::Glibc;
use super::glibc_search;
use super::go::{Go, Tables};
use super::image::{self, Image};
use super::libweir::Libweir;
use super::musl::{Musl, Others};
use super::musl_search::{self, Ground};
use super::perl::{Layers, Perl};
use super::ruby::Ruby;
use super::rust::{Files, Rust};
use super::search::Area;
use super::tcl::Tcl;
use crate::Walker;

/// The walkers that fit the process; none where nothing is known of its image, or it cannot be looked into.
pub fn walkers(pid: u32) -> Vec<Box<dyn Walker>> {
    Process::of(pid).map(|process| process.find().0).unwrap_or_default()
}

/// What has buffers in the process that cannot be read, a sentence each.
pub fn walkers_missing(pid: u32) -> Vec<String> {
    unreadable(pid).unwrap_or_default()
}

/// The same; None: it is gone, or may not be asked.
pub fn unreadable(pid: u32) -> Option<Vec<String>> {
    let process = Process::of(pid).filter(|process| !process.regions.is_empty())?;
    Some(process.find().1)
}

/// Where functions of the C library are in a process, as far as it has them; None: it has no C library (yet).
pub fn functions<const N: usize>(pid: u32, names: [&str; N]) -> Option<[Option<u64>; N]> {
    let process = Process::of(pid)?;
    let exe = image::image(Path::new(&format!("/proc/{pid}/exe")))?;
    let mut starts = process.regions.iter().filter(|one| one.offset == 0);
    let (image, start) = if exe.interpreted {
        let library = starts.find(|one| is_glibc(one.name()) || is_musl(one.name()))?;
        (process.image(library)?, library.start)
    } else {
        let start = starts.find(|one| process.is_exe(one))?.start;
        (exe, start)
    };
    Some(names.map(|name| image.symbol_at(name, start)))
}

/// Runtimes with buffers of their own that no walker knows: how their library or program is named.
const UNKNOWN: [(&str, &str); 2] = [("libjvm.so", "java"), ("libphp", "php")];

struct Process {
    pid: u32,
    regions: Vec<MappedRegion>,
    exe: PathBuf,
    memory: ProcessMemory,
}

type Found = (Vec<Box<dyn Walker>>, Vec<String>);

impl Process {
    fn of(pid: u32) -> Option<Process> {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        Some(Process { pid, regions: regions(pid), exe, memory: ProcessMemory { pid } })
    }

    fn find(&self) -> Found {
        let mut found = Found::default();
        let Some(exe) = image::image(Path::new(&format!("/proc/{}/exe", self.pid))) else { return found };
        if exe.foreign {
            found.1.push(self.cannot("a program of 32 bits"));
            return found;
        }
        if exe.go {
            match self.go(&exe) {
                Some(go) => found.0.push(Box::new(go)),
                None => found.1.push(self.cannot("a Go program")),
            }
        }
        for region in self.regions.iter().filter(|one| one.offset == 0) {
            self.add_image(region, &exe, &mut found);
        }
        self.add_perl(&exe, &mut found);
        if !exe.interpreted && !exe.go && !self.has_library() {
            self.add_static(&exe, &mut found);
        }
        found
    }

    fn cannot(&self, what: &str) -> String {
        format!("{what} (pid {}): its buffers cannot be read", self.pid)
    }

    fn add_image(&self, region: &MappedRegion, exe: &Image, found: &mut Found) {
        let name = region.name();
        let own = self.is_exe(region);
        if is_glibc(name) || is_musl(name) {
            match self.image(region) {
                Some(image) => found.0.extend(self.library(&image, region)),
                None => found.1.push(self.cannot("a C library that was replaced since the program began")),
            }
        } else if name.starts_with("libpython") {
            self.add_python(self.image(region).as_deref(), region, found);
        } else if own && exe.symbol("_PyRuntime").is_some() {
            self.add_python(Some(exe), region, found);
        }
        if let Some(stdout) = exe.symbol_at(image::RUST_STDOUT, region.start).filter(|_| own) {
            found.0.push(Box::new(Rust { stdout }));
        }
        if own && exe.rust {
            self.add_rust(exe, region, found);
        }
        let has_libweir =
            name.starts_with("libweir") && name.contains(".so") || own && exe.symbol("weir_flush").is_some();
        if has_libweir && !found.0.iter().any(|one| one.walker() == weir_model::trace::RuntimeId::LIBWEIR) {
            found.0.push(Box::new(Libweir { pid: self.pid }));
        }
        if name.starts_with("libruby") {
            self.add_ruby(self.image(region).as_deref(), region, found);
        } else if own && exe.symbol("ruby_version").is_some() {
            self.add_ruby(Some(exe), region, found);
        }
        if name.starts_with("libtcl8.6") {
            found.0.push(Box::new(Tcl::new(self.pid)));
        } else if name.starts_with("libtcl") && name.contains(".so") {
            found.1.push(self.cannot("tcl of an unknown version"));
        }
        if let Some((_, runtime)) = UNKNOWN.iter().find(|(start, _)| name.starts_with(start)) {
            found.1.push(self.cannot(runtime));
        }
    }

    /// The walker of a C library that the process has mapped.
    fn library(&self, image: &Image, region: &MappedRegion) -> Option<Box<dyn Walker>> {
        match image.symbol_at("_IO_list_all", region.start) {
            Some(head) => Some(Box::new(Glibc::at(head))),
            None => self.musl(image, region).map(|musl| Box::new(musl) as Box<dyn Walker>),
        }
    }

    fn add_python(&self, image: Option<&Image>, region: &MappedRegion, found: &mut Found) {
        if region.name().starts_with("libpython2") {
            found.1.push(self.cannot("python 2"));
        }
        let Some(image) = image.filter(|image| image.symbol("_PyRuntime").is_some()) else { return };
        match cpython::version(&self.memory, image, region) {
            Ok(layout) => found.0.extend(image.symbol_at("_PyRuntime", region.start).map(|runtime| {
                Box::new(Python::new(self.pid, runtime, layout, image.evaluator_at(region.start)))
                    as Box<dyn Walker>
            })),
            Err(name) => found.1.push(self.cannot(&name)),
        }
    }

    fn add_rust(&self, exe: &Image, region: &MappedRegion, found: &mut Found) {
        let Some(layouts) = exe.layouts(Path::new(&format!("/proc/{}/exe", self.pid))) else { return };
        let stdout = exe.symbol_at(image::RUST_STDOUT, region.start);
        found.0.push(Box::new(Files { pid: self.pid, layouts, stdout, sought: RefCell::default() }));
    }

    fn go(&self, exe: &Image) -> Option<Go> {
        let start = self.regions.iter().find(|one| one.offset == 0 && self.is_exe(one))?.start;
        let tables = Tables::of(&self.memory, exe.go_parts.as_ref()?, exe.bias(start))?;
        Some(Go::new(self.pid, tables, exe.symbol_at(image::GOROUTINES, start)))
    }

    fn add_ruby(&self, image: Option<&Image>, region: &MappedRegion, found: &mut Found) {
        let unknown = || Err("ruby of an unknown version".to_string());
        match image.map_or_else(unknown, |image| Ruby::of(self.pid, &self.memory, image, region.start)) {
            Ok(ruby) => found.0.push(Box::new(ruby)),
            Err(name) => found.1.push(self.cannot(&name)),
        }
    }

    /// The interpreter is in the program, or in a library of that or of another program.
    fn add_perl(&self, exe: &Image, found: &mut Found) {
        let starts = || self.regions.iter().filter(|one| one.offset == 0);
        let library = starts().find(|one| one.name().starts_with("libperl"));
        let program = starts().find(|one| self.is_exe(one));
        let of_library = library.and_then(|at| Layers::of(self.image(at)?.as_ref(), at.start));
        let layers = of_library.or_else(|| Layers::of(exe, program?.start));
        let is_perl =
            library.or(program).is_some_and(|one| one.name().trim_start_matches("lib").starts_with("perl"));
        match layers.filter(|layers| layers.are_known(&self.memory)) {
            Some(layers) => found.0.push(Box::new(Perl::new(self.pid, layers))),
            None if layers.is_some() || is_perl => found.1.push(self.cannot("perl")),
            None => {}
        }
    }

    /// A program that has its C library in itself.
    fn add_static(&self, exe: &Image, found: &mut Found) {
        let Some(first) = self.regions.iter().find(|one| self.is_exe(one) && one.offset == 0) else { return };
        let known = self.library(exe, first);
        match known.or_else(|| self.searched()) {
            Some(walker) => found.0.push(walker),
            None => {
                found.1.push(self.cannot("a static program in which no streams of a C library were found"))
            }
        }
    }

    fn searched(&self) -> Option<Box<dyn Walker>> {
        let area = Area::of(&self.regions, &self.exe)?;
        if let Some(glibc) = glibc_search::search(&self.memory, &area) {
            return Some(Box::new(glibc));
        }
        musl_search::search(&self.memory, area).map(|musl| Box::new(musl) as Box<dyn Walker>)
    }

    fn musl(&self, image: &Image, region: &MappedRegion) -> Option<Musl> {
        let pointers = ["stdin", "stdout", "stderr"].map(|name| image.symbol_at(name, region.start));
        let standard: Vec<u64> =
            pointers.into_iter().flatten().filter_map(|at| self.memory.u64(at)).collect();
        let MappingKind::File(path) = &region.place else { return None };
        let others = match image.symbol_at("ofl_head", region.start) {
            Some(head) => Others::At(head),
            None => Others::Within(Ground { area: Area::of(&self.regions, path)? }),
        };
        let known = !standard.is_empty() || matches!(others, Others::At(_));
        known.then_some(Musl { standard, others })
    }

    fn has_library(&self) -> bool {
        self.regions.iter().any(|one| is_glibc(one.name()) || is_musl(one.name()))
    }

    fn is_exe(&self, region: &MappedRegion) -> bool {
        matches!(&region.place, MappingKind::File(path) if *path == self.exe)
    }

    /// Of the file that is mapped. Its path is that of a container, which leads there by the process's own root, or
    /// one of ours; a file that was removed since is opened by its mapping, which takes privilege.
    fn image(&self, region: &MappedRegion) -> Option<Arc<Image>> {
        let MappingKind::File(path) = &region.place else { return None };
        let inside = Path::new(&format!("/proc/{}/root", self.pid)).join(path.strip_prefix("/").ok()?);
        let mapping = format!("/proc/{}/map_files/{:x}-{:x}", self.pid, region.start, region.end);
        let named = image::image_of(&inside, region.inode).or_else(|| image::image_of(path, region.inode));
        named.or_else(|| image::image(Path::new(&mapping)))
    }
}

fn is_glibc(name: &str) -> bool {
    name.starts_with("libc.so.6") || name.starts_with("libc-2.")
}

fn is_musl(name: &str) -> bool {
    name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
}
