//! Own, foreign, broken and crafted ELF files.

use super::*;

fn c_library() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.find(|path| path.contains("/libc.so")).expect("these tests have a C library").to_owned()
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    /// Overwritten tables cause no panic, no endless loop and no false result.
    #[test]
    fn broken_tables_find_no_missing_name(
        at in 0usize..4096, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..64),
    ) {
        use std::os::unix::fs::FileExt;
        let text = std::fs::read(c_library()).unwrap();
        let copy = tempfile::tempfile().unwrap();
        copy.write_all_at(&text, 0).unwrap();
        let whole = ElfFile::from_file(copy.try_clone().unwrap()).unwrap();
        let section = |kind| {
            let table = whole.header().unwrap().sections(LittleEndian, &whole.data).unwrap();
            table.iter().find(|one| one.sh_type(LittleEndian) == kind).unwrap().sh_offset(LittleEndian)
        };
        let header = 0x28; // e_shoff: the offset of the section headers
        let headers = u64::from_le_bytes(text[header..header + 8].try_into().unwrap());
        for begin in [section(elf::SHT_GNU_HASH), section(elf::SHT_DYNSYM), headers] {
            copy.write_all_at(&text, 0).unwrap();
            copy.write_all_at(&bytes, begin + at as u64).unwrap();
            let Some(broken) = ElfFile::from_file(copy.try_clone().unwrap()) else { continue };
            let Ok(sections) = broken.sections() else { continue };
            let names = ["execve", "no_such_name"];
            let _ = sections.find_exported(1, &names, |name, _, _| assert_eq!(name, "execve"));
        }
    }
}

/// A sparse file of 1 TiB costs its owner nothing. Its names would fill the memory.
#[test]
fn tables_of_any_size_are_not_read() {
    use std::os::unix::fs::FileExt;
    let copy = tempfile::tempfile().unwrap();
    copy.write_all_at(&std::fs::read(c_library()).unwrap(), 0).unwrap();
    let whole = ElfFile::from_file(copy.try_clone().unwrap()).unwrap();
    let header_at = whole.header().unwrap().e_shoff(LittleEndian);
    let sections = whole.sections().unwrap();
    let links =
        [elf::SHT_DYNSYM, elf::SHT_DYNAMIC].map(|kind| sections.first(kind).unwrap().sh_link(LittleEndian));
    copy.set_len(1 << 40).unwrap();
    for claimed in [1u64 << 39, 64 << 20] {
        for link in links {
            let size_at = header_at + u64::from(link) * 64 + 32;
            copy.write_all_at(&claimed.to_le_bytes(), size_at).unwrap();
        }
        let sparse = ElfFile::from_file(copy.try_clone().unwrap()).unwrap();
        let sections = sparse.sections().unwrap();
        assert!(sections.symbols(u64::MAX, u64::MAX, |_, _, _| panic!("the names are too large")).is_err());
        assert_eq!(sections.functions(usize::MAX), []);
        assert_eq!(sections.any_symbol(true, |_| true), None);
    }
}

/// Each search of a name would read all sections. The count may be in the first section, where it has 64 bits.
#[test]
fn thousands_of_sections_count_as_none() {
    use std::os::unix::fs::FileExt;
    let copy = tempfile::tempfile().unwrap();
    copy.write_all_at(&std::fs::read(c_library()).unwrap(), 0).unwrap();
    copy.set_len(1 << 40).unwrap();
    let of_count = |count: u16| {
        copy.write_all_at(&count.to_le_bytes(), 0x3c).unwrap(); // e_shnum
        let elf = ElfFile::from_file(copy.try_clone().unwrap()).unwrap();
        elf.sections().unwrap().table.len()
    };
    assert_eq!((of_count(4096), of_count(4097)), (4096, 0));
    let header_at =
        ElfFile::from_file(copy.try_clone().unwrap()).unwrap().header().unwrap().e_shoff(LittleEndian);
    copy.write_all_at(&(1u64 << 16).to_le_bytes(), header_at + 32).unwrap();
    assert_eq!(of_count(0), 0);
}

#[test]
fn names_found_by_hash_are_among_all_symbols() {
    let elf = ElfFile::open(Path::new(&c_library())).unwrap();
    let sections = elf.sections().unwrap();
    const NAMES: [&str; 7] = ["_IO_list_all", "stdin", "stdout", "execve", "write", "no_such_name", "fopen"];
    let mut found = Vec::new();
    assert!(sections.find_exported(1, &NAMES, |name, at, bytes| found.push((name, at, bytes))).is_some());
    assert_eq!(found.iter().map(|one| one.0).filter(|name| *name == "no_such_name").count(), 0);
    assert!(found.iter().any(|one| one.0 == "_IO_list_all") && found.len() >= 5, "{found:?}");
    let mut all = Vec::new();
    let show = |name: &[u8], at: u64, bytes: u64| {
        let end = name.iter().position(|&byte| byte == 0).unwrap();
        all.push((String::from_utf8_lossy(&name[..end]).into_owned(), at, bytes));
    };
    sections.symbols(u64::MAX, 0, show).unwrap();
    for (name, at, bytes) in found {
        assert!(all.contains(&(name.to_string(), at, bytes)), "{name}");
    }
    assert!(sections.find_exported(u64::MAX, &NAMES, |_, _, _| panic!("it is small")).is_none());
}

#[test]
fn this_test_is_a_native_dynamic_file() {
    let own = ElfFile::open(&std::env::current_exe().unwrap()).unwrap();
    assert!(own.is_native().unwrap() && !own.is_foreign());
    let interpreter = own.interpreter().unwrap().unwrap();
    assert!(interpreter.starts_with(b"/") && own.segments().unwrap().len() > 2);
    let sections = own.sections().unwrap();
    assert!(sections.has(".text") && !sections.has(".no-such-section"));
    assert!(sections.needed().unwrap().iter().any(|name| name.starts_with(b"libc.so")));
    assert!(sections.bytes(".comment", 1 << 20).unwrap().windows(5).any(|part| part == b"rustc"));
    assert_eq!(sections.bytes(".comment", 4), None, "it has more than that");
}

#[test]
fn symbols_have_names_and_addresses() {
    let own = ElfFile::open(&std::env::current_exe().unwrap()).unwrap();
    let (mut main, mut undefined) = (0, 0);
    let show = |name: &[u8], at: u64, _bytes: u64| {
        main += u32::from(name.starts_with(b"main\0"));
        undefined += u32::from(at == 0);
    };
    own.sections().unwrap().symbols(u64::MAX, u64::MAX, show).unwrap();
    assert!(main > 0 && undefined == 0, "{main} {undefined}");
}

#[test]
fn foreign_broken_and_other_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let file = |bytes: &[u8]| {
        let path = dir.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        ElfFile::open(&path)
    };
    assert!(file(b"\x7fELF\x01\x01\x01").is_some_and(|elf| elf.is_foreign()));
    assert!(file(b"\x7fELF\x02\x02\x01").is_some_and(|elf| elf.is_foreign()));
    let short = file(b"\x7fELF\x02\x01\x01").unwrap();
    assert!(!short.is_foreign() && short.is_native().is_err() && short.sections().is_err());
    assert!(file(b"#!/bin/sh\n").is_none() && file(b"\x7fELF").is_none());
    assert!(ElfFile::open(Path::new("/no/such/file")).is_none());
}
