//! ELF files that a process has mapped: symbols and what shows the runtime.
#![no_main]

use weir_fuzz::sparse_file;
use weir_sys::elf::ElfFile;

weir_fuzz::target!(|input: &[u8]| {
    weir_walkers::fuzzing::elf_image(sparse_file(input));
    let Some(elf) = ElfFile::from_file(sparse_file(input)).filter(|elf| !elf.is_foreign()) else { return };
    let _interpreter = elf.interpreter();
    let _segments = elf.mapped_segments();
    let Ok(sections) = elf.sections() else { return };
    let _needed = sections.needed();
    let _comment = sections.bytes(".comment", 4096);
    let _functions = sections.functions(1 << 16).len();
    let _found = sections.find_exported(0, &["execve", "write"], |_, _, _| {});
});
