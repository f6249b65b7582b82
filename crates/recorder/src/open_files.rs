//! The open files of all processes: what each is, by what the kernel, /proc or the program's own call says of it.

use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet, HashSetExt};
use weir_model::StreamKind;
use weir_model::trace::{OpenFile, StreamCounts};
use weir_sys::open_files::{file_at, kind_at, kind_of, open_file, same_file, unknown_file};
use weir_trace_api::{RawFile, WorkingDirectory};

use crate::file_aliases::FileAliases;
use crate::paths::WorkingDirectories;

/// In so many directories a name is looked for.
const PLACES_MOST: usize = 32;

/// All open files that were ever seen.
#[derive(Debug, Default)]
pub(super) struct OpenFileTable {
    pub all: Vec<OpenFile>,
    by_key: HashMap<u64, u32>,
    keyed: HashSet<u32>,
    names: FileAliases,
    pub directories: WorkingDirectories,
    unknown_stream: Option<u32>,
    /// The engine says what is behind each descriptor: /proc need not be asked.
    pub told_by_kernel: bool,
}

impl OpenFileTable {
    pub fn new(told_by_kernel: bool) -> Self {
        Self { told_by_kernel, ..Self::default() }
    }

    pub fn add(&mut self, file: OpenFile) -> u32 {
        let id = self.all.len() as u32;
        self.all.push(OpenFile { id, ..file });
        self.recognise(id);
        id
    }

    /// Is it one that was opened by another name before?
    fn recognise(&mut self, id: u32) {
        if let Some(first) = self.names.first_of(id, &self.all) {
            self.all[id as usize].same_as = Some(first);
        }
    }

    pub fn is_regular(&self, id: u32) -> bool {
        self.all.get(id as usize).is_some_and(|file| file.kind == StreamKind::File)
    }

    pub fn is_socket(&self, id: u32) -> bool {
        self.all.get(id as usize).is_some_and(|file| file.kind == StreamKind::Socket)
    }

    /// The kernel says what is behind a descriptor. `known`: what was believed to be there. A key may be
    /// that of a file which is closed by now, so it is no proof against an open(2) that was seen.
    pub fn seen(&mut self, known: Option<u32>, (raw, name): (&RawFile, &str), pid: u32, fd: i32) -> u32 {
        let fits = |file: &OpenFile| file.ino == 0 || (file.ino == raw.ino && file.dev == raw.dev);
        let fresh = known.filter(|id| !self.keyed.contains(id) && fits(&self.all[*id as usize]));
        let by_key = self.by_key.get(&raw.key).copied().filter(|id| fits(&self.all[*id as usize]));
        let opened = fresh.filter(|id| self.all[*id as usize].opened_by.is_some());
        let id = opened.or(by_key).or(fresh).unwrap_or_else(|| {
            let path = self.path_of(pid, fd, raw, name);
            self.add(OpenFile { path, ..unknown_file(kind_of(raw.mode)) })
        });
        self.by_key.insert(raw.key, id);
        self.keyed.insert(id);
        self.renew(id, raw);
        id
    }

    /// The number may be another file's already, or the process gone: then the file has the name by which it is known, or
    /// none.
    fn path_of(&self, pid: u32, fd: i32, raw: &RawFile, name: &str) -> String {
        let kind = kind_of(raw.mode);
        let now = open_file(pid, fd).filter(|now| now.kind == kind || now.kind == StreamKind::Terminal);
        let same = now.filter(|now| kind != StreamKind::File || now.ino == raw.ino);
        let known =
            || self.all.iter().rfind(|file| file.ino != 0 && (file.dev, file.ino) == (raw.dev, raw.ino));
        let path = same.map(|now| now.path).or_else(|| Some(known()?.path.clone()));
        path.or_else(|| self.named(raw, name)).unwrap_or_else(|| unnamed(raw))
    }

    /// By its name, in the directories of files that are known and in that of weir; or that name alone.
    fn named(&self, raw: &RawFile, name: &str) -> Option<String> {
        if kind_of(raw.mode) != StreamKind::File || name.is_empty() {
            return None;
        }
        let own = std::env::current_dir().ok();
        let of = |file: &OpenFile| Some(Path::new(&file.path).parent()?.to_path_buf());
        let absolute = self.all.iter().rev().filter(|file| file.path.starts_with('/'));
        let mut tried = HashSet::new();
        let places =
            own.into_iter().chain(absolute.filter_map(of)).filter(|place| tried.insert(place.clone()));
        let is = |path: &PathBuf| {
            rustix::fs::stat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (raw.dev, raw.ino))
        };
        let found = places.take(PLACES_MOST).map(|place| place.join(name)).find(is);
        Some(found.map_or_else(|| format!("…/{name}"), |path| path.to_string_lossy().into_owned()))
    }

    fn renew(&mut self, id: u32, raw: &RawFile) {
        let file = &mut self.all[id as usize];
        if let "pipe" | "socket" = file.path.as_str() {
            file.path = unnamed(raw);
        }
        // The kernel forgets what only mattered for the opening; a rule asks whether the file was there before.
        let opening = file.flags & (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        (file.dev, file.ino, file.flags) = (raw.dev, raw.ino, raw.flags | opening);
        if file.kind == StreamKind::File || file.kind == StreamKind::Other {
            file.kind = kind_at(&file.path, raw.mode);
        }
        file.block_bytes = raw.block_bytes;
        file.pipe_bytes = raw.pipe_bytes.or(file.pipe_bytes);
        if file.kind == StreamKind::File {
            file.size_bytes = Some(raw.size_bytes);
        }
        self.recognise(id);
    }

    /// A call used a descriptor that nothing was known of.
    pub fn unknown(&mut self, pid: u32, fd: i32) -> u32 {
        match open_file(pid, fd) {
            Some(file) => self.add(file),
            None => {
                self.add(OpenFile { path: format!("descriptor {fd}"), ..unknown_file(StreamKind::Other) })
            }
        }
    }

    /// What stands for streams of which it is not known which they are.
    pub fn unknown_stream(&mut self) -> u32 {
        if let Some(known) = self.unknown_stream {
            return known;
        }
        let path = StreamCounts::UNKNOWN_PATH.to_string();
        let new = self.add(OpenFile { path, ..unknown_file(StreamKind::Other) });
        *self.unknown_stream.insert(new)
    }

    /// open(2) and its relatives: a new open file, by the name that the program gave.
    pub fn opened(
        &mut self,
        pid: u32,
        fd: i32,
        name: &str,
        stands: Option<WorkingDirectory>,
        flags: i32,
    ) -> u32 {
        let given = self.directories.absolute(pid, name, stands);
        if self.told_by_kernel {
            let path = given.unwrap_or_else(|| name.to_string());
            return self.add(OpenFile {
                path,
                flags,
                opened_by: Some(pid),
                ..unknown_file(StreamKind::Other)
            });
        }
        let file = match open_file(pid, fd) {
            Some(file) if Some(&file.path) == given.as_ref() || same_file(&file, given.as_deref()) => file,
            _ => file_at(given.as_deref().unwrap_or(name)),
        };
        let path =
            given.unwrap_or_else(|| if name.is_empty() { file.path.clone() } else { name.to_string() });
        self.add(OpenFile { path, flags, opened_by: Some(pid), ..file })
    }

    /// A new open file that has no name: `what` it is, if nothing better is known.
    pub fn made(&mut self, pid: u32, fd: i32, kind: StreamKind, what: &str) -> u32 {
        let seen = if self.told_by_kernel { None } else { open_file(pid, fd) };
        let file = seen.filter(|file| file.kind == kind);
        let file = file.unwrap_or_else(|| OpenFile { path: what.to_string(), ..unknown_file(kind) });
        self.add(OpenFile { opened_by: Some(pid), ..file })
    }
}

fn unnamed(raw: &RawFile) -> String {
    match kind_of(raw.mode) {
        StreamKind::Pipe => format!("pipe:[{}]", raw.ino),
        StreamKind::Socket => format!("socket:[{}]", raw.ino),
        _ => format!("inode {}", raw.ino),
    }
}
