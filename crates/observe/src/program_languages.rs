//! Finds the language of each executed program: while it runs, because its file may be gone later (`go run`), else from
//! its file at the end.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use weir_model::trace::{Event, EventKind, Image, Process};
use weir_model::{Logger, SourceLanguage, Untrusted};
use weir_sys::elf::{ElfFile, ElfSections};
use weir_sys::file_system::{canonicalize, open_regular};
use weir_sys::process_status;
use weir_walkers::{ProgramNames, detect_runtime, logger_of, runtime_by_id, runtime_of};

/// Programs that are read per tick. The others wait for the next tick, or for the end of the recording.
const READ_PER_TICK: usize = 4;
/// Programs that wait to be read. A build starts more in a tick.
const MAX_UNREAD: usize = 64;
/// The most interpreters that are followed from a script to its program: the kernel's limit (exec_binprm in fs/exec.c).
const INTERPRETERS_DEEP: usize = 5;
/// The kernel reads no more of a script's first line.
const MAX_FIRST_LINE: u64 = 256;

/// The languages found so far, by the path and the name of the program.
#[derive(Debug, Default)]
pub(crate) struct ProgramLanguages {
    known: HashMap<(Untrusted, Untrusted), SourceLanguage>,
    /// The loggers of programs of C++, by path.
    loggers: HashMap<Untrusted, Logger>,
    unread: Vec<(u32, Untrusted, Untrusted)>,
}

impl ProgramLanguages {
    /// Adds a program that a process has just executed.
    pub fn begin(&mut self, pid: u32, exe: &Untrusted, comm: &Untrusted) {
        let is_queued = |(_, queued, name): &(u32, Untrusted, Untrusted)| queued == exe && name == comm;
        let known = self.known.contains_key(&(exe.into(), comm.into()));
        if !known && self.unread.len() < MAX_UNREAD && !self.unread.iter().any(is_queued) {
            self.unread.push((pid, exe.into(), comm.into()));
        }
    }

    /// Reads some of the programs that still run.
    pub fn check(&mut self) {
        self.check_unless(process_status::is_executing);
    }

    /// As [`ProgramLanguages::check`]; a program whose process is in execve(2) is read later, because its files may not answer.
    fn check_unless(&mut self, is_executing: impl Fn(u32) -> bool) {
        let first = self.unread.len().saturating_sub(READ_PER_TICK);
        for (pid, exe, comm) in self.unread.split_off(first) {
            if is_executing(pid) {
                self.unread.insert(0, (pid, exe, comm));
                continue;
            }
            let file = PathBuf::from(format!("/proc/{pid}/exe"));
            // The process may have executed another program meanwhile.
            let path = fs::read_link(&file).map(Untrusted::of_os).ok();
            if let Some(path) = path.filter(|path| exe == *path || !exe.exact().starts_with('/')) {
                self.read(&file, path, comm);
            }
        }
    }

    fn read(&mut self, file: &Path, exe: Untrusted, comm: Untrusted) -> Option<SourceLanguage> {
        let language = language_of(file, exe.exact(), comm.exact())?;
        if language == SourceLanguage::Cpp {
            self.loggers.extend(logger_of(file).map(|logger| (exe.clone(), logger)));
        }
        self.known.insert((exe, comm), language);
        Some(language)
    }

    /// Sets the language of every image. A program of C in which a walker found the buffers of another language has that
    /// one's.
    pub fn finish(mut self, processes: &mut [Process], events: &[Event]) {
        let embedded = embedded_languages(events);
        let mut missing = HashSet::new();
        for process in processes {
            let pid = process.pid;
            for (number, image) in process.images.iter_mut().enumerate() {
                image.language = self.language(image, &mut missing);
                image.logger = self.loggers.get(&image.exe).copied();
                if image.language.is_none_or(|language| language == SourceLanguage::C) {
                    image.language = embedded.get(&(pid, number as u32)).copied().or(image.language);
                }
            }
        }
    }

    fn language(&mut self, image: &Image, missing: &mut HashSet<Untrusted>) -> Option<SourceLanguage> {
        let key = (image.exe.clone(), called_name(image));
        if let Some(&language) = self.known.get(&key) {
            return Some(language);
        }
        if missing.contains(&image.exe) {
            return None;
        }
        let found = self.read(&image.exe.to_path(), key.0, key.1);
        if found.is_none() {
            missing.insert(image.exe.clone());
        }
        found
    }
}

/// Returns the name under which a program was called: `sh` for `busybox sh`.
fn called_name(image: &Image) -> Untrusted {
    let is_box = |word: &Untrusted| matches!(word.exact().rsplit('/').next(), Some("busybox" | "toybox"));
    match image.argv.as_slice() {
        [first, applet, ..] if is_box(first) => applet.clone(),
        _ => image.comm.clone(),
    }
}

/// Returns the language of the buffers of each image of a process, if it is not C. A child that executes another program had its
/// parent's buffers until then.
fn embedded_languages(events: &[Event]) -> HashMap<(u32, u32), SourceLanguage> {
    let (mut languages, mut images) = (HashMap::new(), HashMap::new());
    for event in events {
        let buffers = match &event.kind {
            EventKind::Exec { image } => {
                images.insert(event.pid, *image);
                continue;
            }
            EventKind::Buffers { buffers, .. } => buffers,
            _ => continue,
        };
        let image = images.get(&event.pid).copied().unwrap_or_default();
        for buffer in buffers {
            if let Some(entry) =
                runtime_by_id(buffer.walker).filter(|entry| entry.facts.language != SourceLanguage::C)
            {
                languages.insert((event.pid, image), entry.facts.language);
            }
        }
    }
    languages
}

/// Returns the language of a program; None if its file cannot be read. A script has that of its interpreter.
fn language_of(file: &Path, exe: &str, comm: &str) -> Option<SourceLanguage> {
    let mut path = canonicalize(file).unwrap_or_else(|_| PathBuf::from(exe));
    let mut opened = open_regular(file).ok()?;
    for _ in 0..INTERPRETERS_DEEP {
        let Some(interpreter) = interpreter(&mut opened) else { break };
        // The name is enough for env(1), which looks the interpreter up in PATH.
        path = canonicalize(Path::new(&interpreter)).unwrap_or_else(|_| PathBuf::from(&interpreter));
        match open_regular(&path) {
            Ok(next) => opened = next,
            Err(_) => return Some(language_by_name(&interpreter)),
        }
    }
    let elf = ElfFile::from_file(opened);
    let sections = elf.as_ref().and_then(|elf| elf.sections().ok());
    if sections.as_ref().is_some_and(is_of_other_language) {
        return Some(SourceLanguage::Other);
    }
    let called = Path::new(exe).file_name().map_or(comm.into(), |name| name.to_string_lossy().into_owned());
    let by_path = &runtime_of(&path.to_string_lossy(), &called, sections.as_ref()).facts;
    match by_path.language {
        SourceLanguage::C => Some(runtime_of(&called, comm, sections.as_ref()).facts.language),
        language => Some(language),
    }
}

/// Returns the language of an interpreter that a script names and that cannot be read.
fn language_by_name(interpreter: &str) -> SourceLanguage {
    let name = interpreter.rsplit('/').next().unwrap_or_default().to_owned();
    detect_runtime(ProgramNames { scripts: &[name], ..ProgramNames::default() }, None).facts.language
}

/// Libraries, or the beginnings of their names, of languages whose programs do not call C's stdio themselves: COBOL, Octave, Raku
/// and Prolog.
const OTHER_LANGUAGES: &[&[u8]] = &[b"libcob.so", b"liboctinterp.so", b"libmoar.so", b"libswipl.so"];

/// Returns whether an executable needs the library of such a language.
fn is_of_other_language(sections: &ElfSections) -> bool {
    let needed = sections.needed().unwrap_or_default();
    needed.iter().any(|name| OTHER_LANGUAGES.iter().any(|library| name.starts_with(library)))
}

/// Returns the interpreter of a script; the name after env(1) if that starts it.
fn interpreter(file: &mut File) -> Option<String> {
    let mut line = Vec::new();
    file.take(MAX_FIRST_LINE).read_to_end(&mut line).ok()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    let mut words = line.lines().next()?.split_whitespace();
    let first = words.next()?;
    let by_env =
        first.ends_with("/env").then(|| words.find(|word| !word.starts_with('-') && !word.contains('=')));
    Some(by_env.flatten().unwrap_or(first).to_owned())
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{RuntimeId, SnapshotMoment};

    use super::*;

    fn language(exe: &str) -> Option<SourceLanguage> {
        language_of(Path::new(exe), exe, "")
    }

    #[test]
    fn a_program_of_busybox_is_called_by_its_own_name() {
        let called = |words: &[&str]| {
            let argv = words.iter().map(|word| (*word).into()).collect();
            called_name(&Image { comm: "busybox".into(), argv, ..Image::default() })
        };
        assert_eq!(called(&["/bin/busybox", "sh", "x.sh"]), *"sh");
        assert_eq!(called(&["busybox"]), *"busybox");
        assert_eq!(called(&["sh", "x.sh"]), *"busybox");
    }

    #[test]
    fn interpreters_and_their_scripts_have_a_language() {
        assert_eq!(language("/bin/sh"), Some(SourceLanguage::Shell));
        assert_eq!(language(&std::env::current_exe().unwrap().to_string_lossy()), Some(SourceLanguage::Rust));
        assert_eq!(language("/nowhere/prog"), None);
        let dir = tempfile::tempdir().unwrap();
        for (first_line, expected) in [
            ("#!/usr/bin/env -S python3 -u", SourceLanguage::Python),
            ("#! /bin/sh -e", SourceLanguage::Shell),
            ("#!/nowhere/perl -w", SourceLanguage::Perl),
        ] {
            let script = dir.path().join("sed");
            fs::write(&script, format!("{first_line}\n")).unwrap();
            assert_eq!(language(&script.to_string_lossy()), Some(expected), "{first_line}");
        }
    }

    #[test]
    fn a_program_does_not_have_the_language_of_its_parents_buffers() {
        let buffer = |walker| weir_model::trace::Buffer::empty(walker, 1, 1);
        let event = |kind| Event { at_s: 1.0, pid: 7, tid: 7, kind };
        let snapshot = |moment, walker| {
            event(EventKind::Buffers {
                moment,
                buffers: vec![buffer(walker)],
                waits_in: None,
                waits_in_name: String::new(),
                files: Vec::new(),
                read_until_s: None,
            })
        };
        let events = [
            snapshot(SnapshotMoment::Exec, RuntimeId::CPYTHON),
            event(EventKind::Exec { image: 1 }),
            snapshot(SnapshotMoment::Exit, RuntimeId::GLIBC),
        ];
        assert_eq!(embedded_languages(&events), HashMap::from([((7, 0), SourceLanguage::Python)]));
    }

    #[test]
    fn an_executable_has_no_language_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["java", "node", "php", "python3"] {
            let path = dir.path().join(name);
            fs::copy("/bin/sleep", &path).unwrap();
            assert_eq!(language(&path.to_string_lossy()), Some(SourceLanguage::C), "{name}");
        }
    }

    #[test]
    fn a_program_of_another_language_is_none_of_c() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        let compile = |arguments: &[&str]| {
            let status = std::process::Command::new("cc").args(arguments).status().unwrap();
            assert!(status.success());
        };
        fs::write(at("run.c"), "int run(void) { return 0; }").unwrap();
        fs::write(at("main.c"), "int run(void); int main(void) { return run(); }").unwrap();
        for (library, expected) in
            [("libcob.so.4", SourceLanguage::Other), ("libcobra.so", SourceLanguage::C)]
        {
            let soname = format!("-Wl,-soname,{library}");
            compile(&["-shared", "-fPIC", &soname, "-o", &at(library), &at("run.c")]);
            compile(&["-o", &at("main"), &at("main.c"), &at(library)]);
            assert_eq!(language(&at("main")), Some(expected), "{library}");
        }
    }

    #[test]
    fn a_program_that_is_gone_keeps_the_language_that_was_read_before() {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("main").to_string_lossy().into_owned();
        fs::copy("/bin/sleep", &exe).unwrap();
        let mut child = std::process::Command::new(&exe).arg("60").spawn().unwrap();
        let mut languages = ProgramLanguages::default();
        languages.begin(child.id(), &exe.as_str().into(), &"main".into());
        while fs::read_link(format!("/proc/{}/exe", child.id())).is_ok_and(|path| path != Path::new(&exe)) {
            std::thread::yield_now(); // the child has not called execve(2) yet
        }
        languages.check_unless(|_| true);
        assert!(languages.known.is_empty());
        languages.check_unless(|_| false);
        fs::remove_file(&exe).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let image = |exe: &str| Image { exe: exe.into(), comm: "main".into(), ..Image::default() };
        let mut processes = [Process { images: vec![image(&exe), image("/gone")], ..Process::default() }];
        languages.finish(&mut processes, &[]);
        let found: Vec<_> = processes[0].images.iter().map(|image| image.language).collect();
        assert_eq!(found, [Some(SourceLanguage::C), None]);
    }
}
