//! A file with the bytes of a source that the log does not accept. It outlives weir: the next collector of the log finds it.
//!
//! One line of text precedes the bytes: `weir-spill/1 KIND READ ORDER LOG SOURCE`. READ is the number of bytes that are in the
//! log, with 20 digits, so that it is replaced in place. LOG and SOURCE are escaped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{BacklogForm, SpillOptions};
use crate::sink::{LogPosition, LogProgress};

const SCHEMA: &str = "weir-spill/1";
const PREFIX: &str = "weir-spill.";
/// u64::MAX has 20 digits.
const DIGITS: usize = 20;
/// A path and a source name, each byte escaped, are shorter.
const LONGEST_HEADER: u64 = 64 << 10;

/// The bytes that one step of a copy moves.
const COPY: usize = 1 << 20;

/// A file with a name, so that a kill of weir does not remove its bytes.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    pub(crate) path: PathBuf,
    /// The number of bytes that an earlier collector left in the file and that are not in the log.
    pub(crate) left: Option<u64>,
    /// The length of the line before the bytes, and where READ is in it.
    header: u64,
    read_at: u64,
    /// Positions in the file: the bytes from `read` to `written` are still to be appended to the log.
    pub(super) read: u64,
    pub(super) written: u64,
    /// The present value of READ in the file.
    said: u64,
    /// Values for READ, each with the position up to which the log must be written before.
    marks: VecDeque<(LogPosition, u64)>,
    allocated: u64,
    /// Dropping the value leaves the file.
    stays: bool,
}

/// The first line of a spill file.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    form: BacklogForm,
    read: u64,
    order: u128,
    log: String,
    source: String,
}

/// A spill file of a collector that has ended.
#[derive(Debug)]
pub(super) struct LeftFile {
    pub(super) file: SpillFile,
    pub(super) form: BacklogForm,
    pub(super) source: String,
    order: u128,
}

impl SpillFile {
    pub(super) fn create(options: &SpillOptions, form: BacklogForm, source: &str) -> io::Result<Self> {
        let (file, path) = create_named(&options.directory, source)?;
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let order = if form == BacklogForm::Log { 0 } else { since.as_nanos() };
        let log = options.log.as_deref().unwrap_or(Path::new(""));
        let header =
            Header { form, read: 0, order, log: escape(log.as_os_str().as_bytes()), source: source.into() };
        let line = header.line();
        let mut spill = Self::of(file, path, &header, line.len() as u64);
        rustix::fs::flock(&spill.file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        spill.file.write_all_at(line.as_bytes(), 0)?;
        spill.allocated = spill.header;
        Ok(spill)
    }

    fn of(file: File, path: PathBuf, header: &Header, length: u64) -> Self {
        Self {
            file,
            path,
            left: None,
            header: length,
            read_at: header.read_at() as u64,
            read: header.read,
            written: header.read,
            said: header.read,
            marks: VecDeque::new(),
            allocated: 0,
            stays: false,
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.written - self.read
    }

    /// Appends all bytes or none: a part that was written is overwritten by the next attempt.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.header + self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Makes sure that `bytes` more can be appended, on file systems that can tell.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.header + self.written + bytes;
        if end <= self.allocated {
            return Ok(());
        }
        let from = self.allocated;
        match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::KEEP_SIZE, from, end - from) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                self.allocated = end;
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns the next bytes. The log has accepted those before them, except the last `held`.
    pub(super) fn next(&mut self, most: usize, held: usize, log: LogProgress) -> io::Result<Vec<u8>> {
        self.marks.push_back((log.accepted, self.read.saturating_sub(held as u64)));
        let mut safe = self.said;
        while let Some((_, read)) = self.marks.pop_front_if(|(position, _)| log.is_safe(*position)) {
            safe = safe.max(read);
        }
        self.say_read(safe);
        let length = self.waiting().min(most as u64);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(most)];
        self.file.read_exact_at(&mut bytes, self.header + self.read)?;
        self.read += length;
        Ok(bytes)
    }

    /// Replaces READ by the number of bytes that are in the log. If the write fails, the next collector appends some bytes a second
    /// time, and none is lost.
    fn say_read(&mut self, read: u64) {
        if read != self.said && self.file.write_all_at(digits(read).as_bytes(), self.read_at).is_ok() {
            self.said = read;
        }
    }

    /// Puts bytes back that were taken last. They need no room.
    pub(super) fn put_back(&mut self, bytes: &[u8]) -> io::Result<()> {
        let from = self.read.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        self.file.write_all_at(bytes, self.header + from)?;
        self.read = from;
        Ok(())
    }

    /// Moves the waiting bytes to a new file, behind `bytes`.
    ///
    /// # Errors
    /// The new file cannot be written; this one stays as it is.
    pub(super) fn prepend(
        &mut self,
        bytes: &[u8],
        options: &SpillOptions,
        form: BacklogForm,
        source: &str,
    ) -> io::Result<()> {
        let mut new = Self::create(options, form, source)?;
        let copied = new.append(bytes).and_then(|()| {
            for from in (self.read..self.written).step_by(COPY) {
                let length = COPY.min((self.written - from) as usize);
                let mut piece = vec![0; length];
                self.file.read_exact_at(&mut piece, self.header + from)?;
                new.append(&piece)?;
            }
            Ok(())
        });
        if copied.is_ok() {
            new.file.sync_all()?;
            std::mem::swap(self, &mut new);
        }
        new.read = new.written; // dropping it removes the file
        copied
    }

    /// Makes the file durable and leaves it where it is. Sets READ only if all bytes before it are in the log.
    pub(super) fn leave(&mut self, is_in_log: bool) -> io::Result<()> {
        self.stays = true;
        if is_in_log {
            self.say_read(self.read);
        }
        self.file.sync_all()?;
        File::open(
            self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )?
        .sync_all()
    }

    /// Makes dropping the value leave the file, although all its bytes were taken.
    pub(super) fn keep(&mut self) {
        self.stays = true;
    }

    /// Removes the file: all its bytes are in the log.
    pub(crate) fn remove(mut self) {
        (self.read, self.stays) = (self.written, false);
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if !self.stays && self.waiting() == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn create_named(directory: &Path, source: &str) -> io::Result<(File, PathBuf)> {
    let name: String = source
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .take(40)
        .collect();
    for number in 0..10_000u32 {
        let path = directory.join(format!("{PREFIX}{}.{name}.{number}", std::process::id()));
        let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(flags);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?, path)),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Returns the spill files of the log that no living collector uses, the oldest first.
pub(super) fn find_left(options: &SpillOptions) -> Vec<LeftFile> {
    let Some(log) = &options.log else { return Vec::new() };
    let log = escape(log.as_os_str().as_bytes());
    let Ok(entries) = std::fs::read_dir(&options.directory) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()));
    let mut left: Vec<LeftFile> = named.filter_map(|entry| open_left(entry.path(), &log)).collect();
    left.sort_by_key(|file| file.order);
    left
}

/// Opens a spill file of the log. Other users may have put files into the directory: those are no spill files.
fn open_left(path: PathBuf, log: &str) -> Option<LeftFile> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).write(true).custom_flags(flags).open(&path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    rustix::fs::flock(file.as_fd(), rustix::fs::FlockOperation::NonBlockingLockExclusive).ok()?;
    // Its collector may have removed it between the two calls.
    let same = std::fs::symlink_metadata(&path)
        .is_ok_and(|now| now.ino() == about.ino() && now.dev() == about.dev());
    let mut start = Vec::new();
    (&file).take(LONGEST_HEADER).read_to_end(&mut start).ok()?;
    let (header, length) = Header::parse(&start)?;
    if !same || header.log != log {
        return None;
    }
    let written = about.len().checked_sub(length)?;
    let mut spill = SpillFile::of(file, path, &header, length);
    (spill.read, spill.written) = (header.read.min(written), written);
    spill.left = Some(spill.waiting());
    Some(LeftFile { file: spill, form: header.form, source: header.source, order: header.order })
}

impl Header {
    fn line(&self) -> String {
        let (form, read) = (self.form.name(), digits(self.read));
        let source = escape(self.source.as_bytes());
        format!("{SCHEMA} {form} {read} {} {} {source}\n", self.order, self.log)
    }

    /// Returns the position of READ in the line.
    fn read_at(&self) -> usize {
        SCHEMA.len() + 1 + self.form.name().len() + 1
    }

    /// Returns the header at the start of a file, and its length.
    fn parse(start: &[u8]) -> Option<(Self, u64)> {
        let end = start.iter().position(|&byte| byte == b'\n')?;
        let line = std::str::from_utf8(&start[..end]).ok()?;
        let mut words = line.split(' ');
        if words.next()? != SCHEMA {
            return None;
        }
        let form = BacklogForm::of_name(words.next()?)?;
        let read = words
            .next()
            .filter(|word| word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_digit()))?
            .parse()
            .ok()?;
        let order = words.next()?.parse().ok()?;
        let log = words.next()?.to_owned();
        let source = unescape(words.next()?)?;
        let header = Self { form, read, order, log, source };
        words.next().is_none().then_some((header, end as u64 + 1))
    }
}

/// For fuzz/: a header that is parsed has its fields where they are replaced in place.
pub(super) fn check_header(start: &[u8]) {
    if let Some((header, length)) = Header::parse(start) {
        let at = header.read_at();
        assert!((at + DIGITS) as u64 <= length && start.len() as u64 >= length);
        assert_eq!(start[at..at + DIGITS], *digits(header.read).as_bytes());
    }
}

fn digits(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

/// Returns the bytes in printable ASCII without spaces. Different bytes have different texts.
fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace(' ', "\\x20")
}

/// Returns the text that [`escape`] made from UTF-8.
fn unescape(text: &str) -> Option<String> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, others @ ..] = rest {
        rest = others;
        let byte = match (*first, others) {
            (b'\\', [b'x', hex @ ..]) if hex.len() >= 2 => {
                rest = &hex[2..];
                u8::from_str_radix(std::str::from_utf8(&hex[..2]).ok()?, 16).ok()?
            }
            (b'\\', [letter, ..]) => {
                rest = &others[1..];
                match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                }
            }
            (b'\\', []) => return None,
            (byte, _) => byte,
        };
        out.push(byte);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for source in ["stdin", "a b\\c\n\"'\u{e9}\u{7f}", ""] {
            let log = escape(b"/tmp/l og\xff");
            let header = Header { form: BacklogForm::Syslog, read: 7, order: 9, log, source: source.into() };
            let line = header.line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(&line[header.read_at()..][..DIGITS], "00000000000000000007");
            let text = format!("{line}bytes\n");
            assert_eq!(Header::parse(text.as_bytes()), Some((header, line.len() as u64)), "{line}");
        }
        for text in [
            "",
            "weir-spill/1",
            "weir-spill/2 stream 00000000000000000007 9 l s\n",
            "weir-spill/1 stream 7 9 l s\n",
        ] {
            assert_eq!(Header::parse(text.as_bytes()), None, "{text}");
        }
    }
}
