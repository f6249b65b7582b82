//! Recognises the logging libraries of C++ in an executable.

use std::path::Path;

use weir_model::Logger;
use weir_sys::elf::ElfFile;

use crate::runtime_entry::section_contains;

/// The mangled name of a class or namespace of each logger: in the type information of a program that contains the logger, or among
/// the functions that it imports.
const MARKS: [(Logger, &[u8]); 2] = [(Logger::Spdlog, b"N6spdlog"), (Logger::Glog, b"N6google10LogMessage")];

/// Returns the logger that an executable contains or imports; None if it has none, or if the file cannot be read.
pub fn logger_of(executable: &Path) -> Option<Logger> {
    let elf = ElfFile::open(executable)?;
    let sections = elf.sections().ok()?;
    let names = [".dynstr", ".rodata", ".strtab"];
    let has = |mark: &[u8]| names.iter().any(|name| section_contains(&sections, name, mark));
    MARKS.iter().find(|(_, mark)| has(mark)).map(|(logger, _)| *logger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_is_recognised_by_its_symbols() {
        let dir = tempfile::tempdir().unwrap();
        let logger = |name: &str, code: &str, strip: &str| {
            let (source, program) = (dir.path().join("main.cc"), dir.path().join(name));
            std::fs::write(&source, code).unwrap();
            let compiler = std::process::Command::new("c++")
                .args(["-O1", strip, "-o"])
                .args([&program, &source])
                .status();
            assert!(compiler.expect("a compiler").success());
            logger_of(&program)
        };
        let spdlog = "namespace spdlog { struct sink { virtual ~sink() {} virtual void log() {} }; }\n\
            spdlog::sink *made = new spdlog::sink; int main() { made->log(); }\n";
        assert_eq!(logger("log", spdlog, "-g"), Some(Logger::Spdlog));
        assert_eq!(logger("stripped", spdlog, "-s"), Some(Logger::Spdlog));
        let glog = "namespace google { struct LogMessage { __attribute__((noinline)) LogMessage() { asm(\"\"); } }; }\n\
            int main() { google::LogMessage message; }\n";
        assert_eq!(logger("glog", glog, "-g"), Some(Logger::Glog));
        assert_eq!(logger("none", "int main() {}\n", "-g"), None);
        assert_eq!(logger_of(Path::new("/etc/passwd")), None);
    }
}
