//! Reads the version of Ruby from its executable, which shows before a program starts whether its buffers can be read.

use std::path::Path;

use weir_sys::elf::{ElfFile, ElfSections, MAX_SECTION_BYTES};

use super::layout::{KNOWN_VERSIONS, RubyLayout};
use crate::elf_image;

/// Returns a clause about the bytes that are pending when a program of Ruby with this executable ends.
pub fn rescued_at_end(executable: Option<&Path>) -> String {
    clause(executable.and_then(version_of).as_deref())
}

fn clause(version: Option<&str>) -> String {
    let end = "the bytes pending at the end are";
    match version {
        Some(version) if RubyLayout::of(version).is_some() => format!("{end} rescued"),
        Some(version) => format!("{end} lost: Ruby {version} is not known to weir; {KNOWN_VERSIONS} are"),
        None => format!(
            "{end} rescued in Ruby {KNOWN_VERSIONS}, and lost in other versions, whose buffers weir cannot read"
        ),
    }
}

/// Returns the version of the Ruby that an executable loads or contains; None if it is not found.
fn version_of(executable: &Path) -> Option<String> {
    let elf = ElfFile::open(executable)?;
    let sections = elf.sections().ok()?;
    let needed = sections.needed().unwrap_or_default().into_iter();
    needed.filter_map(version_of_library).next().or_else(|| version_inside(executable, &sections))
}

/// Returns the version in the name of a library of Ruby: `libruby-3.1.so.3.1`, `libruby.so.3.4`.
fn version_of_library(name: &[u8]) -> Option<String> {
    let rest = std::str::from_utf8(name).ok()?.strip_prefix("libruby")?;
    let numbers = rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut versions = numbers.map(|part| part.trim_matches('.')).filter(|part| part.contains('.'));
    versions.next().map(str::to_owned)
}

/// Returns the text of `ruby_version` in an executable that contains Ruby.
fn version_inside(executable: &Path, sections: &ElfSections) -> Option<String> {
    let address = elf_image::image(executable)?.symbol("ruby_version")?;
    let (start, _) = sections.address_and_size(".rodata")?;
    let constants = sections.bytes(".rodata", MAX_SECTION_BYTES)?;
    let text = constants.get(usize::try_from(address.checked_sub(start)?).ok()?..)?;
    let text = text.split(|byte| *byte == 0).next()?;
    let is_version = |text: &&str| text.len() < 16 && text.starts_with(|first: char| first.is_ascii_digit());
    std::str::from_utf8(text).ok().filter(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_at_hand_is_named() {
        for (library, version) in
            [("libruby-3.1.so.3.1", "3.1"), ("libruby.so.3.4", "3.4"), ("libruby-2.7.so.2.7", "2.7")]
        {
            assert_eq!(version_of_library(library.as_bytes()).as_deref(), Some(version));
        }
        assert_eq!(version_of_library(b"libruby.so"), None);
        assert_eq!(version_of_library(b"libc.so.6"), None);
        assert_eq!(clause(Some("3.1")), "the bytes pending at the end are rescued");
        assert_eq!(
            clause(Some("3.5")),
            "the bytes pending at the end are lost: Ruby 3.5 is not known to weir; 2.7 to 3.4 are"
        );
        assert!(clause(None).contains("in Ruby 2.7 to 3.4"));
    }

    #[test]
    fn the_version_of_an_executable_is_that_which_it_prints() {
        let ruby = Path::new("/usr/bin/ruby");
        let Ok(printed) = std::process::Command::new(ruby).args(["-e", "print RUBY_VERSION"]).output() else {
            return;
        };
        let version = version_of(ruby).expect("a version");
        assert!(String::from_utf8_lossy(&printed.stdout).starts_with(&version), "{version}");
    }
}
