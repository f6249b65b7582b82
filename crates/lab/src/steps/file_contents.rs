//! The contents of files and pipes, derived from the calls that write and read them.

use std::collections::HashMap;
use std::ops::Range;

use weir_model::StreamKind;
use weir_model::lab::step::StepFile;
use weir_model::trace::{Call, OpenFile, Recording, StreamCounts};

use super::sentences;

/// The most bytes of a file whose values are kept.
const KEPT: u64 = 65_536;

/// All files that a recording writes or reads, with the offset of each open file.
#[derive(Debug, Default)]
pub(super) struct FileContents {
    pub all: Vec<StepFile>,
    /// By the id of the opening.
    index: HashMap<u32, usize>,
    offsets: HashMap<u32, u64>,
    appends: HashMap<u32, bool>,
}

impl FileContents {
    /// Makes the files that the recording writes or reads, without those that a program reads to start.
    pub fn of(recording: &Recording) -> FileContents {
        let mut files = FileContents::default();
        let mut known: HashMap<(u64, u64, &str), usize> = HashMap::new();
        let used = recording.counts.iter().filter(|flow| flow.calls + flow.syncs > 0);
        let used = used.filter(|flow| !of_starter(recording, flow)).map(|flow| flow.file);
        for file in used.filter_map(|id| recording.file(id)).filter(|file| shown(file)) {
            let path = if file.ino == 0 { file.path.as_str() } else { "" };
            let at = *known.entry((file.dev, file.ino, path)).or_insert_with(|| {
                files.all.push(new(file));
                files.all.len() - 1
            });
            files.index.insert(file.id, at);
            files.appends.insert(file.id, file.flags & sentences::O_APPEND != 0);
        }
        files
    }

    /// Returns the index of an open file's file, if it is shown.
    pub fn at(&self, id: Option<u32>) -> Option<usize> {
        self.index.get(&id?).copied()
    }

    /// Marks the start of a new step.
    pub fn settle(&mut self) {
        self.all.iter_mut().for_each(|file| file.added = None);
    }

    /// Applies a write. Only the first bytes of `call` are known: `head`.
    pub fn write(&mut self, call: &Call, head: &[u8]) {
        let (Some(at), Some(id)) = (self.at(call.file), call.file) else { return };
        let (bytes, file) = (call.result as u64, &mut self.all[at]);
        let own = call.op.positioned().then(|| call.args[3]);
        let offset = self.offsets.entry(id).or_default();
        let whole = file.kind != StreamKind::File || self.appends.get(&id) == Some(&true);
        let from = if whole { file.bytes } else { own.unwrap_or(*offset) };
        put(file, from..from + bytes, head);
        file.added = Some(from..from + bytes);
        file.bytes = file.bytes.max(from + bytes);
        if own.is_none() {
            *offset = from + bytes;
        }
    }

    /// Applies a read. It removes the bytes from a pipe; those of a file become known.
    pub fn read(&mut self, call: &Call) {
        let (Some(at), Some(id)) = (self.at(call.file), call.file) else { return };
        let (bytes, file) = (call.result as u64, &mut self.all[at]);
        if file.kind == StreamKind::File {
            let own = call.op.positioned().then(|| call.args[3]);
            let offset = self.offsets.entry(id).or_default();
            let from = own.unwrap_or(*offset);
            put(file, from..from + bytes, &call.head);
            file.bytes = file.bytes.max(from + bytes);
            if own.is_none() {
                *offset = from + bytes;
            }
        } else {
            file.content.drain(..file.content.len().min(bytes as usize));
            file.bytes = file.bytes.saturating_sub(bytes);
        }
    }

    /// Applies an lseek(2).
    pub fn seek(&mut self, call: &Call) {
        if let Some(id) = call.file {
            self.offsets.insert(id, call.result as u64);
        }
    }

    /// Applies a truncation by open(2) or ftruncate(2).
    pub fn truncate(&mut self, id: Option<u32>, bytes: u64) {
        if let Some(file) = self.at(id).map(|at| &mut self.all[at]) {
            file.bytes = bytes;
            file.content.resize(bytes.min(KEPT) as usize, Some(0));
        }
    }

    /// Applies an fsync(2): all bytes of the file are on the device.
    pub fn sync(&mut self, id: Option<u32>) {
        if let Some(file) = self.at(id).map(|at| &mut self.all[at]) {
            file.synced = Some(file.bytes);
        }
    }
}

fn put(file: &mut StepFile, range: Range<u64>, head: &[u8]) {
    let end = range.end.min(KEPT) as usize;
    if file.content.len() < end {
        // What was between the old end and the new bytes is a hole if the file's length is known, and unknown else.
        file.content.resize(end, None);
    }
    let head = head.iter().map(|byte| Some(*byte)).chain(std::iter::repeat(None));
    let places = file.content.iter_mut().take(end).skip(range.start as usize);
    places.zip(head).for_each(|(place, byte)| *place = byte.or(None));
}

fn new(file: &OpenFile) -> StepFile {
    StepFile {
        name: sentences::name(file),
        kind: file.kind,
        bytes: 0,
        content: Vec::new(),
        added: None,
        synced: None,
    }
}

/// Returns whether the stream belongs to the shell that only starts the program.
fn of_starter(recording: &Recording, flow: &StreamCounts) -> bool {
    recording.image(flow.pid, flow.image).is_some_and(|image| image.argv == recording.command)
}

/// Returns whether a file is the program's own, not one of its loader or runtime.
pub(super) fn shown(file: &OpenFile) -> bool {
    let system = ["/lib", "/usr/", "/etc/", "/proc/", "/sys/", "/opt/"];
    let library = file.path.contains(".so.") || file.path.ends_with(".so");
    !library && !system.iter().any(|start| file.path.starts_with(start))
}
