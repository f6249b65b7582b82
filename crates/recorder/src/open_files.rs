//! The open files of all processes, which become the recording's files: each described by the backend's event,
//! by /proc, or by the arguments of the call that opened it, in this order of preference.

use std::path::PathBuf;

use foldhash::{HashMap, HashSet, HashSetExt};
use weir_model::StreamKind;
use weir_model::Untrusted;
use weir_model::trace::{OpenFile, StreamCounts};
use weir_sys::file_system::last_status;
use weir_sys::open_files::{file_at, kind_at, kind_of, open_file, same_file, unknown_file};
use weir_trace_api::RawFile;

use crate::file_aliases::FileAliases;
use crate::paths::WorkingDirectories;

/// Number of directories that are searched for a file name: each costs one stat(2).
const MAX_SEARCHED_DIRECTORIES: usize = 32;

/// All open files of the recording, by id.
#[derive(Debug, Default)]
pub(super) struct OpenFileTable {
    pub all: Vec<OpenFile>,
    by_key: HashMap<u64, u32>,
    /// The key of each file that has one.
    keys: HashMap<u32, u64>,
    names: FileAliases,
    pub directories: WorkingDirectories,
    unknown_stream: Option<u32>,
    /// The backend reports the open file of each descriptor, so /proc is not read.
    pub kernel_reports_files: bool,
}

impl OpenFileTable {
    pub fn new(kernel_reports_files: bool) -> Self {
        Self { kernel_reports_files, ..Self::default() }
    }

    pub fn add(&mut self, file: OpenFile) -> u32 {
        let id = self.all.len() as u32;
        self.all.push(OpenFile { id, ..file });
        self.set_alias(id);
        id
    }

    /// Sets `same_as` if the file was opened before under another name.
    fn set_alias(&mut self, id: u32) {
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

    /// Returns the id of a file that the kernel reports for a descriptor; `known` is the id in the descriptor
    /// table. The kernel's key may be reused after a close, so an observed open(2) takes precedence.
    pub fn enter_reported(
        &mut self,
        known: Option<u32>,
        (raw, name): (&RawFile, &Untrusted),
        pid: u32,
        fd: i32,
    ) -> u32 {
        let fits = |file: &OpenFile| file.ino == 0 || (file.ino == raw.ino && file.dev == raw.dev);
        let fresh = known.filter(|id| !self.keys.contains_key(id) && fits(&self.all[*id as usize]));
        let by_key = self.by_key.get(&raw.key).copied().filter(|id| fits(&self.all[*id as usize]));
        let opened = fresh.filter(|id| self.all[*id as usize].opened_by.is_some());
        let id = opened.or(by_key).or(fresh).unwrap_or_else(|| {
            let path = self.path_of_reported(pid, fd, raw, name);
            self.add(OpenFile { path, ..unknown_file(kind_of(raw.mode)) })
        });
        self.by_key.insert(raw.key, id);
        self.keys.insert(id, raw.key);
        self.update(id, raw);
        id
    }

    /// Returns whether the kernel reported a file with a key that still identifies it.
    pub fn has_key(&self, id: u32) -> bool {
        self.keys.get(&id).is_some_and(|key| self.by_key.get(key) == Some(&id))
    }

    /// Forgets the key of a file that no process has open any more: the kernel gives it to the next one.
    pub fn forget_key(&mut self, id: u32) {
        if self.has_key(id) {
            self.by_key.remove(&self.keys[&id]);
        }
    }

    /// Returns the path of a reported file. The descriptor may be reused, or the process gone: then the path is
    /// that of a known file with this inode, or the file's name.
    fn path_of_reported(&self, pid: u32, fd: i32, raw: &RawFile, name: &Untrusted) -> Untrusted {
        let kind = kind_of(raw.mode);
        let now = open_file(pid, fd).filter(|now| now.kind == kind || now.kind == StreamKind::Terminal);
        let same = now.filter(|now| kind != StreamKind::File || now.ino == raw.ino);
        let known =
            || self.all.iter().rfind(|file| file.ino != 0 && (file.dev, file.ino) == (raw.dev, raw.ino));
        let path = same.map(|now| now.path).or_else(|| Some(known()?.path.clone()));
        path.or_else(|| self.search_by_name(raw, name)).unwrap_or_else(|| inode_path(raw).into())
    }

    /// Finds a file by its name in the directories of known files and in the current one. Returns `…/name` if
    /// it is in none of them.
    fn search_by_name(&self, raw: &RawFile, name: &Untrusted) -> Option<Untrusted> {
        if kind_of(raw.mode) != StreamKind::File || name.is_empty() {
            return None;
        }
        let own = std::env::current_dir().ok();
        let parent = |file: &OpenFile| Some(file.path.to_path().parent()?.to_path_buf());
        let absolute = self.all.iter().rev().filter(|file| file.path.exact().starts_with('/'));
        let mut tried = HashSet::new();
        let directories = own
            .into_iter()
            .chain(absolute.filter_map(parent))
            .filter(|directory| tried.insert(directory.clone()));
        let is_same =
            |path: &PathBuf| last_status(path).is_ok_and(|now| (now.dev, now.ino) == (raw.dev, raw.ino));
        let found = directories
            .take(MAX_SEARCHED_DIRECTORIES)
            .map(|directory| directory.join(name.to_path()))
            .find(is_same);
        Some(found.map_or_else(|| format!("…/{}", name.exact()).into(), Untrusted::of_os))
    }

    fn update(&mut self, id: u32, raw: &RawFile) {
        let file = &mut self.all[id as usize];
        if let "pipe" | "socket" = file.path.exact() {
            file.path = inode_path(raw).into();
        }
        // The kernel drops O_CREAT, O_EXCL and O_TRUNC after the open; findings need them.
        let opening = file.flags & (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        (file.dev, file.ino, file.flags) = (raw.dev, raw.ino, raw.flags | opening);
        if file.kind == StreamKind::File || file.kind == StreamKind::Other {
            file.kind = kind_at(file.path.exact(), raw.mode);
        }
        file.block_bytes = raw.block_bytes;
        file.pipe_bytes = raw.pipe_bytes.or(file.pipe_bytes);
        if file.kind == StreamKind::File {
            file.size_bytes = Some(raw.size_bytes);
        }
        self.set_alias(id);
    }

    /// Adds the file of a descriptor that is in no table.
    pub fn add_unknown(&mut self, pid: u32, fd: i32) -> u32 {
        match open_file(pid, fd) {
            Some(file) => self.add(file),
            None => self
                .add(OpenFile { path: format!("descriptor {fd}").into(), ..unknown_file(StreamKind::Other) }),
        }
    }

    /// Returns the file that represents unknown streams. Adds it at the first call.
    pub fn unknown_stream(&mut self) -> u32 {
        if let Some(known) = self.unknown_stream {
            return known;
        }
        let path = StreamCounts::UNKNOWN_PATH.to_string();
        let new = self.add(OpenFile { path: path.into(), ..unknown_file(StreamKind::Other) });
        *self.unknown_stream.insert(new)
    }

    /// Adds a file that open(2), creat(2) or openat(2) opened under this name.
    pub fn add_opened(&mut self, pid: u32, fd: i32, name: &str, flags: i32) -> u32 {
        let given = self.directories.absolute(pid, name);
        if self.kernel_reports_files {
            return self.add(OpenFile {
                path: given.unwrap_or_else(|| name.into()),
                flags,
                opened_by: Some(pid),
                ..unknown_file(StreamKind::Other)
            });
        }
        let is_given = |file: &OpenFile| {
            let path = given.as_ref().map(Untrusted::exact);
            given.as_ref() == Some(&file.path) || same_file(file, path)
        };
        let file = open_file(pid, fd).filter(is_given);
        let file = file.unwrap_or_else(|| file_at(given.as_ref().map_or(name, Untrusted::exact)));
        let path = given.unwrap_or_else(|| if name.is_empty() { file.path.clone() } else { name.into() });
        self.add(OpenFile { path, flags, opened_by: Some(pid), ..file })
    }

    /// Adds a file without a name, such as a pipe. `fallback` is its path if /proc has none.
    pub fn add_made(&mut self, pid: u32, fd: i32, kind: StreamKind, fallback: &str) -> u32 {
        let found = if self.kernel_reports_files { None } else { open_file(pid, fd) };
        let file = found.filter(|file| file.kind == kind);
        let file =
            file.unwrap_or_else(|| OpenFile { path: fallback.to_string().into(), ..unknown_file(kind) });
        self.add(OpenFile { opened_by: Some(pid), ..file })
    }
}

fn inode_path(raw: &RawFile) -> String {
    match kind_of(raw.mode) {
        StreamKind::Pipe => format!("pipe:[{}]", raw.ino),
        StreamKind::Socket => format!("socket:[{}]", raw.ino),
        _ => format!("inode {}", raw.ino),
    }
}
