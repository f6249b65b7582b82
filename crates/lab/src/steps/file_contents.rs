//! The contents of files and pipes, derived from the calls that write and read them.

use std::collections::HashMap;
use std::ops::Range;

use weir_model::lab::step::StepFile;
use weir_model::trace::{Call, Image, OpenFile, Recording, StreamCounts};
use weir_model::{StreamKind, Untrusted};

use super::sentences;

/// Bytes at the beginning of a file whose values are stored: enough for every experiment.
const CONTENT_BYTES: u64 = 65_536;

/// All files that a recording writes or reads, with the offset of each open file.
#[derive(Debug, Default)]
pub(super) struct FileContents {
    pub all: Vec<StepFile>,
    /// Index in `all` by the id of the open file.
    index: HashMap<u32, usize>,
    offsets: HashMap<u32, u64>,
    appends: HashMap<u32, bool>,
}

impl FileContents {
    /// Returns the files that the recording writes or reads, except libraries and other files of the system.
    pub fn of(recording: &Recording) -> FileContents {
        let mut files = FileContents::default();
        let mut known: HashMap<(u64, u64, &str), usize> = HashMap::new();
        let used = recording.counts.iter().filter(|stream| stream.calls + stream.syncs > 0);
        let used = used.filter(|stream| !of_starter(recording, stream)).map(|stream| stream.file);
        for file in used.filter_map(|id| recording.file(id)).filter(|file| shown(file)) {
            let path = if file.ino == 0 { file.path.exact() } else { "" };
            let at = *known.entry((file.dev, file.ino, path)).or_insert_with(|| {
                files.all.push(new(file));
                files.all.len() - 1
            });
            files.index.insert(file.id, at);
            files.appends.insert(file.id, file.appends());
        }
        files
    }

    /// Returns the index of an open file's file, if it is shown.
    pub fn at(&self, id: Option<u32>) -> Option<usize> {
        self.index.get(&id?).copied()
    }

    /// Forgets which bytes the last step added.
    pub fn clear_added(&mut self) {
        self.all.iter_mut().for_each(|file| file.added = None);
    }

    /// Applies a write. Only the first bytes of `call` are known: `head`.
    pub fn write(&mut self, call: &Call, head: &[u8]) {
        let (Some(at), Some(id)) = (self.at(call.file), call.file) else { return };
        let (bytes, file) = (call.result as u64, &mut self.all[at]);
        let explicit = call.op.offset_argument(&call.args);
        let offset = self.offsets.entry(id).or_default();
        let appends = file.kind != StreamKind::File || self.appends.get(&id) == Some(&true);
        let from = if appends { file.bytes } else { explicit.unwrap_or(*offset) };
        put(file, from..from + bytes, head);
        file.added = Some(from..from + bytes);
        file.written = true;
        file.bytes = file.bytes.max(from + bytes);
        if explicit.is_none() {
            *offset = from + bytes;
        }
    }

    /// Applies a read: it removes the bytes from a pipe, and shows the values of a file's bytes.
    pub fn read(&mut self, call: &Call) {
        let (Some(at), Some(id)) = (self.at(call.file), call.file) else { return };
        let (bytes, file) = (call.result as u64, &mut self.all[at]);
        if file.kind == StreamKind::File {
            let explicit = call.op.offset_argument(&call.args);
            let offset = self.offsets.entry(id).or_default();
            let from = explicit.unwrap_or(*offset);
            put(file, from..from + bytes, &call.head);
            file.bytes = file.bytes.max(from + bytes);
            if explicit.is_none() {
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
            file.written = true;
            file.content.resize(bytes.min(CONTENT_BYTES) as usize, Some(0));
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
    let end = range.end.min(CONTENT_BYTES) as usize;
    if file.content.len() < end {
        // The values between the old end and the new bytes are unknown: a hole, or bytes from before the recording.
        file.content.resize(end, None);
    }
    let head = head.iter().map(|byte| Some(*byte)).chain(std::iter::repeat(None));
    let target = file.content.iter_mut().take(end).skip(range.start as usize);
    target.zip(head).for_each(|(old, byte)| *old = byte);
}

fn new(file: &OpenFile) -> StepFile {
    StepFile {
        name: sentences::name(file),
        kind: file.kind,
        bytes: 0,
        content: Vec::new(),
        added: None,
        written: false,
        synced: None,
    }
}

/// Returns whether an image is the command of the recording.
pub(super) fn is_command(image: &Image, recording: &Recording) -> bool {
    image.argv.iter().map(Untrusted::exact).eq(recording.command.iter().map(String::as_str))
}

/// Returns whether the stream belongs to the shell that only starts the program.
fn of_starter(recording: &Recording, stream: &StreamCounts) -> bool {
    recording.image(stream.pid, stream.image).is_some_and(|image| is_command(image, recording))
}

/// Returns whether a file belongs to the program, not to its loader or runtime.
pub(super) fn shown(file: &OpenFile) -> bool {
    let system = ["/lib", "/usr/", "/etc/", "/proc/", "/sys/", "/opt/"];
    let library = file.path.exact().contains(".so.") || file.path.exact().ends_with(".so");
    !library && !system.iter().any(|start| file.path.exact().starts_with(start))
}
