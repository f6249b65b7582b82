//! The memory of a static program, as its file has it.

use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{LittleEndian, elf};

use super::{ElfSections, Header, MAX_SECTION_BYTES};

/// A segment of a static program that the kernel maps (PT_LOAD), without its memory that begins as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StaticSegment<'data> {
    pub writable: bool,
    pub executable: bool,
    pub bytes: &'data [u8],
}

impl<'data> ElfSections<'data> {
    /// Returns the segments of a static program for x86-64, PIE or not, whose code is not changed while it runs.
    ///
    /// Returns None for other files, among them dynamic loaders, which have no interpreter either; for files without
    /// sections, which a packer may have made; and if a segment cannot be read or is too large.
    pub fn static_segments(&self) -> Option<Vec<StaticSegment<'data>>> {
        let header = Header::parse(self.data).ok()?;
        if header.e_machine(LittleEndian) != elf::EM_X86_64 || self.table.is_empty() {
            return None;
        }
        let headers = header.program_headers(LittleEndian, self.data).ok()?;
        let is_program = match header.e_type(LittleEndian) {
            elf::ET_EXEC => true,
            elf::ET_DYN => self.is_marked_as_program(),
            _ => false,
        };
        let is_dynamic = || self.needed().is_some_and(|libraries| !libraries.is_empty());
        let has_loader = || headers.iter().any(|one| one.p_type(LittleEndian) == elf::PT_INTERP);
        if !is_program || has_loader() || is_dynamic() {
            return None;
        }
        let mapped = headers.iter().filter(|one| one.p_type(LittleEndian) == elf::PT_LOAD);
        let segments: Option<Vec<_>> = mapped.map(|one| self.static_segment(one)).collect();
        segments.filter(|all| {
            let changes_code = |one: &StaticSegment| one.executable && one.writable;
            all.iter().any(|one| one.executable) && !all.iter().any(changes_code)
        })
    }

    fn static_segment(&self, header: &elf::ProgramHeader64<LittleEndian>) -> Option<StaticSegment<'data>> {
        let flags = header.p_flags(LittleEndian).0;
        let bytes = (header.p_filesz(LittleEndian) <= MAX_SECTION_BYTES)
            .then(|| header.data(LittleEndian, self.data).ok())??;
        let (writable, executable) = (flags & elf::PF_W.0 != 0, flags & elf::PF_X.0 != 0);
        Some(StaticSegment { writable, executable, bytes })
    }

    /// Returns whether the linker has marked a position-independent file as a program (DF_1_PIE). Loaders have no such mark.
    fn is_marked_as_program(&self) -> bool {
        let Ok(Some((entries, _))) = self.table.dynamic(LittleEndian, self.data) else { return false };
        let flags = entries.iter().find(|entry| entry.tag(LittleEndian) == elf::DT_FLAGS_1);
        flags.is_some_and(|flags| flags.d_val(LittleEndian) & elf::DF_1_PIE.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::ElfFile;

    fn is_static(path: &Path) -> bool {
        ElfFile::open(path).unwrap().sections().unwrap().static_segments().is_some()
    }

    #[test]
    fn dynamic_programs_libraries_and_loaders_are_not_static() {
        assert!(!is_static(&std::env::current_exe().unwrap()), "it has an interpreter");
        let own = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = own.lines().filter_map(|line| line.split_whitespace().nth(5));
        let mut libraries: Vec<&str> = mapped.filter(|path| path.contains(".so")).collect();
        libraries.dedup();
        assert!(libraries.iter().any(|path| path.contains("/ld-")), "{libraries:?}");
        for path in libraries {
            assert!(!is_static(Path::new(path)), "{path}");
        }
    }
}
