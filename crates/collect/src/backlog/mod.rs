//! Queues bytes of a source that the log does not accept yet (`--overflow spill`): first in memory, then in a file, in their
//! order.

mod spill_file;

use std::io;
use std::path::PathBuf;

pub(crate) use spill_file::SpillFile;

use crate::sink::LogProgress;

/// Parses the first line of a spill file, and checks that its position of READ is within it.
pub(crate) fn fuzz_header(start: &[u8]) {
    spill_file::check_header(start);
}

/// Options of the files for bytes of sources that do not fit in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// The directory of the files. It should not be on the file system of the log, which may be full.
    pub directory: PathBuf,
    /// The most bytes of one source in a file; a source with more waits.
    pub limit: u64,
    /// The absolute path of the log, by which its next collector finds the files.
    pub log: Option<PathBuf>,
}

/// The form of the bytes in a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BacklogForm {
    /// As the source sent them.
    #[default]
    Stream,
    /// Messages, each behind its length and its sender.
    Messages,
    /// The same, of syslog.
    Syslog,
    /// A stream of syslog messages, each with a newline.
    SyslogStream,
    /// Records in the form of the log, which precede all others.
    Log,
}

impl BacklogForm {
    fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Messages => "messages",
            Self::Syslog => "syslog",
            Self::SyslogStream => "syslog-stream",
            Self::Log => "log",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        [Self::Stream, Self::Messages, Self::Syslog, Self::SyslogStream, Self::Log]
            .into_iter()
            .find(|form| form.name() == name)
    }

    /// Returns whether the bytes are those of a stream, which the splitter divides.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::SyslogStream)
    }
}

/// A queue of bytes. Bytes leave it in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    memory: Vec<u8>,
    file: Option<SpillFile>,
    /// Bytes behind those of the file, which could not be written to it. The source is not read while there are some.
    rest: Vec<u8>,
    /// The file may have no room for the next bytes.
    full: bool,
}

/// A source's share in a push: the backlog may write its held bytes, which precede the others, to the file.
#[derive(Debug)]
pub(crate) struct Pushed<'a> {
    pub(crate) held: &'a mut Vec<u8>,
    pub(crate) bytes: &'a [u8],
    pub(crate) form: BacklogForm,
    /// The most bytes of the next push.
    pub(crate) next: usize,
    pub(crate) source: &'a str,
}

/// The result of [`Backlog::save`].
#[derive(Debug)]
pub(crate) struct Saved {
    /// The file with the bytes.
    pub(crate) path: Option<PathBuf>,
    /// Bytes that are in no file, and the reason.
    pub(crate) lost: u64,
    pub(crate) error: Option<io::Error>,
}

/// A backlog that an earlier collector of the log left, and the name of its source.
#[derive(Debug)]
pub(crate) struct LeftBacklog {
    pub(crate) backlog: Backlog,
    pub(crate) form: BacklogForm,
    pub(crate) source: String,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        let in_file = self.file.as_ref().map_or(0, SpillFile::waiting);
        (self.memory.len() + self.rest.len()) as u64 + in_file
    }

    /// Returns whether the queue accepts no more bytes, so that its source must not be read.
    pub(crate) fn is_full(&self) -> bool {
        self.full || !self.rest.is_empty()
    }

    /// Appends bytes, in memory up to `memory` bytes, then in a file. A file that cannot be written makes the queue full.
    ///
    /// # Errors
    /// The queue is full from now on. It has the bytes nevertheless.
    pub(crate) fn push(
        &mut self,
        pushed: Pushed<'_>,
        memory: usize,
        options: &SpillOptions,
    ) -> io::Result<()> {
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(pushed.bytes);
            return Ok(());
        }
        if self.file.is_none() && self.memory.len() + pushed.bytes.len() <= memory {
            self.memory.extend_from_slice(pushed.bytes);
            return Ok(());
        }
        let (bytes, was_full) = (pushed.bytes, self.full);
        let spilled = self.spill(pushed, options);
        if let Err(NotSpilled { error, lacks_bytes }) = spilled {
            if lacks_bytes {
                self.rest.extend_from_slice(bytes);
            }
            self.full = true;
            return if was_full { Ok(()) } else { Err(error) };
        }
        Ok(())
    }

    fn spill(&mut self, pushed: Pushed<'_>, options: &SpillOptions) -> Result<(), NotSpilled> {
        let lacking = |error| NotSpilled { error, lacks_bytes: true };
        let file = match &mut self.file {
            Some(file) => file,
            // The file begins with all bytes before these: none stay in memory, where a kill would lose them.
            none => {
                let mut file = SpillFile::create(options, pushed.form, pushed.source).map_err(lacking)?;
                let first = [pushed.held.as_slice(), &self.memory].concat();
                file.reserve((first.len() + pushed.bytes.len() + pushed.next) as u64).map_err(lacking)?;
                file.append(&first).map_err(lacking)?;
                pushed.held.clear();
                self.memory = Vec::new();
                none.insert(file)
            }
        };
        if file.waiting() + pushed.bytes.len() as u64 > options.limit {
            return Err(lacking(io::Error::from(io::ErrorKind::QuotaExceeded)));
        }
        file.append(pushed.bytes).map_err(lacking)?;
        file.reserve(pushed.next as u64).map_err(|error| NotSpilled { error, lacks_bytes: false })
    }

    /// Removes and returns the next bytes, at most about `most`. The caller has appended all bytes before them to the log,
    /// except the last `held`.
    ///
    /// # Errors
    /// The file cannot be read; its bytes stay.
    pub(crate) fn take(&mut self, most: usize, held: usize, log: LogProgress) -> io::Result<Vec<u8>> {
        if let Some(file) = self.file.as_mut().filter(|file| file.waiting() > 0) {
            return file.next(most, held, log);
        }
        if !self.memory.is_empty() {
            return Ok(std::mem::take(&mut self.memory));
        }
        self.full = false;
        Ok(std::mem::take(&mut self.rest))
    }

    /// Returns the file if all its bytes were taken. It stays until the caller removes it.
    pub(crate) fn take_spent_file(&mut self) -> Option<SpillFile> {
        if !self.is_empty() {
            return None;
        }
        self.full = false;
        let mut file = self.file.take()?;
        file.keep();
        Some(file)
    }

    /// Leaves the bytes, which the log did not accept, in a file, `held` before the others. `is_rest_in_log`: the log or another
    /// file has all bytes before them.
    pub(crate) fn save(
        mut self,
        held: &[u8],
        form: BacklogForm,
        options: &SpillOptions,
        source: &str,
        is_rest_in_log: bool,
    ) -> Saved {
        let Some(mut file) = self.file.take() else {
            return leave_new(&[held, &self.memory, &self.rest], form, options, source);
        };
        let mut saved = Saved { path: None, lost: 0, error: None };
        // The held bytes were taken from the file, and have their room there. A record of several lines may be longer.
        let before = match file.put_back(held) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                file.prepend(held, options, form, source)
            }
            result => result,
        };
        if let Err(error) = before {
            (saved.lost, saved.error) = (held.len() as u64, Some(error));
        }
        if let Err(error) = file.append(&self.rest) {
            saved.lost += self.rest.len() as u64;
            saved.error = Some(error);
        }
        if file.waiting() > 0 {
            saved.error = file.leave(is_rest_in_log).err().or(saved.error);
            saved.path = Some(file.path.clone());
        }
        saved
    }

    /// Returns the backlogs that earlier collectors of the log left, the oldest first.
    pub(crate) fn find_left(options: &SpillOptions) -> Vec<LeftBacklog> {
        let left = spill_file::find_left(options).into_iter();
        left.map(|left| LeftBacklog {
            form: left.form,
            source: left.source,
            backlog: Self { file: Some(left.file), ..Self::default() },
        })
        .collect()
    }
}

fn leave_new(parts: &[&[u8]], form: BacklogForm, options: &SpillOptions, source: &str) -> Saved {
    let bytes = parts.concat();
    let left = SpillFile::create(options, form, source).and_then(|mut file| {
        file.append(&bytes)?;
        Ok((file.path.clone(), file.leave(true).err()))
    });
    match left {
        Ok((path, error)) => Saved { path: Some(path), lost: 0, error },
        Err(error) => Saved { path: None, lost: bytes.len() as u64, error: Some(error) },
    }
}

/// Why bytes are not in the file, or why it may not take the next ones.
struct NotSpilled {
    error: io::Error,
    lacks_bytes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(directory: &std::path::Path, limit: u64) -> SpillOptions {
        SpillOptions { directory: directory.into(), limit, log: Some("/a log".into()) }
    }

    fn push(
        backlog: &mut Backlog,
        held: &mut Vec<u8>,
        bytes: &[u8],
        memory: usize,
        options: &SpillOptions,
    ) -> io::Result<()> {
        let pushed = Pushed { held, bytes, form: BacklogForm::Stream, next: 100, source: "a/b" };
        backlog.push(pushed, memory, options)
    }

    fn count(directory: &std::path::Path) -> usize {
        directory.read_dir().expect("a directory").count()
    }

    /// Pushes numbered bytes, takes some now and then, and checks that they come out as they went in.
    #[test]
    fn bytes_keep_their_order_and_the_file_goes() {
        let dir = tempfile::tempdir().expect("a directory");
        for limit in [u64::MAX, 3000, 0] {
            let options = options(dir.path(), limit);
            let (mut backlog, mut pushed, mut taken) = (Backlog::default(), Vec::new(), Vec::new());
            for round in 0..200u32 {
                if !backlog.is_full() {
                    let bytes = round.to_be_bytes().repeat(20);
                    let _ = push(&mut backlog, &mut Vec::new(), &bytes, 500, &options);
                    pushed.extend(bytes);
                }
                if round % 7 == 0 {
                    taken.extend(backlog.take(300, 0, LogProgress::default()).expect("read"));
                }
                assert_eq!(backlog.bytes() as usize, pushed.len() - taken.len());
            }
            while !backlog.is_empty() {
                taken.extend(backlog.take(1000, 0, LogProgress::default()).expect("read"));
            }
            assert!(taken == pushed && pushed.len() > 2000, "limit {limit}");
            if let Some(file) = backlog.take_spent_file() {
                file.remove();
            }
            assert_eq!(count(dir.path()), 0, "removed");
        }
    }

    #[test]
    fn a_directory_that_is_missing_loses_nothing() {
        let options = options("/nonexistent".as_ref(), u64::MAX);
        let (mut backlog, mut held) = (Backlog::default(), b"zero".to_vec());
        assert!(push(&mut backlog, &mut held, b"one", 3, &options).is_ok());
        assert!(push(&mut backlog, &mut held, b"two", 3, &options).is_err() && backlog.is_full());
        assert_eq!(held, b"zero");
        let taken = [
            backlog.take(9, 0, LogProgress::default()).expect("memory"),
            backlog.take(9, 0, LogProgress::default()).expect("the rest"),
        ]
        .concat();
        assert!(taken == b"onetwo" && backlog.is_empty());
        push(&mut backlog, &mut held, b"one", 3, &options).expect("memory");
        let saved = backlog.save(&held, BacklogForm::Stream, &options, "s", true);
        assert!(saved.path.is_none() && saved.lost == 7 && saved.error.is_some(), "{saved:?}");
    }

    /// Takes all bytes of the backlog that an earlier collector left.
    fn take_left(options: &SpillOptions) -> Vec<u8> {
        let [left] = Backlog::find_left(options).try_into().expect("one file");
        let LeftBacklog { mut backlog, source, form, .. } = left;
        assert!(source == "a/b" && form == BacklogForm::Stream, "{source}");
        let mut taken = Vec::new();
        while !backlog.is_empty() {
            taken.extend(backlog.take(3, 0, LogProgress::default()).expect("read"));
        }
        taken
    }

    #[test]
    fn the_next_collector_finds_what_the_log_did_not_take() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options(dir.path(), 3);
        let mut backlog = Backlog::default();
        let mut held = b"a".to_vec();
        for part in ["b", "c", "d", "e"] {
            let _ = push(&mut backlog, &mut held, part.as_bytes(), 1, &options);
        }
        assert!(
            held.is_empty() && backlog.is_full(),
            "the file takes the held bytes, and three are its limit"
        );
        assert!(Backlog::find_left(&options).is_empty(), "the file is in use");
        held.extend(backlog.take(2, 0, LogProgress::default()).expect("taken"));
        let saved = backlog.save(&held, BacklogForm::Stream, &options, "a/b", true);
        assert!(saved.path.is_some_and(|path| path.exists()) && saved.lost == 0 && saved.error.is_none());
        let other = SpillOptions { log: Some("/another log".into()), ..options.clone() };
        assert!(Backlog::find_left(&other).is_empty(), "of another log");
        assert_eq!(take_left(&options), b"abcde");
        assert_eq!(count(dir.path()), 0, "removed when all was taken");
    }

    /// A record of several lines is held beside the bytes that were taken last, so its bytes have no room in the file.
    #[test]
    fn bytes_without_room_before_the_others_move_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options(dir.path(), u64::MAX);
        let mut backlog = Backlog::default();
        push(&mut backlog, &mut Vec::new(), b"123", 0, &options).expect("spilled");
        let saved = backlog.save(b"abc", BacklogForm::Stream, &options, "a/b", true);
        assert!(saved.path.is_some_and(|path| path.exists()) && saved.lost == 0 && saved.error.is_none());
        assert_eq!(take_left(&options), b"abc123");
    }

    #[test]
    fn every_form_is_found_by_its_name() {
        use BacklogForm::{Log, Messages, Stream, Syslog, SyslogStream};
        for form in [Stream, Messages, Syslog, SyslogStream, Log] {
            assert_eq!(BacklogForm::of_name(form.name()), Some(form));
            assert_eq!(form.is_stream(), matches!(form, Stream | SyslogStream));
        }
    }
}
