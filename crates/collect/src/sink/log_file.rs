//! One open file of the log, as a stream of libweir.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat, open};
use rustix::io::Errno;

use super::{SinkOptions, tail};
use crate::error::{Error, io_error};
use crate::framing::Framing;

/// A file that is being written. The stream is fully buffered; the sink decides when it writes, so that each write ends with
/// a whole record.
#[derive(Debug)]
pub(super) struct LogFile {
    stream: libweir::Stream,
    capacity: usize,
    pending: usize,
    /// Of a regular file: another descriptor of the open file, for syncs in other threads.
    fd: Option<Arc<OwnedFd>>,
    path: Option<PathBuf>,
    name: String,
    identity: (u64, u64),
    is_terminal: bool,
    bytes: u64,
    since: Instant,
}

impl LogFile {
    /// Opens or creates the log, locks it and repairs its end. Returns also whether its last record has no delimiter.
    ///
    /// # Errors
    /// The log cannot be opened, is no regular file, or another `weir log` writes it.
    pub(super) fn open(options: &SinkOptions, messages: &mut Vec<String>) -> Result<(Self, bool), Error> {
        let Some(path) = &options.path else {
            return Self::standard_output(options).map(|file| (file, false));
        };
        let name = crate::error::shown(path);
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK;
        let fd = open(path, flags, Mode::from_raw_mode(0o666)).map_err(|errno| open_error(&name, errno))?;
        lock(&fd, &name)?;
        let open_record = tail::repair(&fd, path, options, messages)?;
        Self::from_fd(fd, Some(path.clone()), name, options).map(|file| (file, open_record))
    }

    fn standard_output(options: &SinkOptions) -> Result<Self, Error> {
        let name = "standard output".to_string();
        let failed = |call: &str, errno| {
            Error::call(call, &name, &io_error(errno), "open descriptor 1, such as with >FILE")
        };
        if weir_sys::inherited::was_closed(1) {
            return Err(failed("write", Errno::BADF));
        }
        let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)
            .map_err(|errno| failed("dup", errno))?;
        Self::from_fd(fd, None, name, options)
    }

    /// Makes a stream of an open file.
    pub(super) fn from_fd(
        fd: OwnedFd,
        path: Option<PathBuf>,
        name: String,
        options: &SinkOptions,
    ) -> Result<Self, Error> {
        let failed = |error: &io::Error| Error::call("open", &name, error, "choose another file");
        let stat = fstat(&fd).map_err(|errno| failed(&io_error(errno)))?;
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let is_terminal = weir_sys::file_system::is_terminal(&fd);
        let fd = Arc::new(fd);
        let sync_fd = is_file.then(|| Arc::clone(&fd));
        let own = fd.try_clone().map_err(|error| failed(&error))?;
        let stream = libweir::Options::new()
            .mode(libweir::StreamMode::Full)
            .buffer_bytes(options.buffer_bytes)
            .from_fd(own)
            .map_err(|error| failed(&error))?;
        Ok(Self {
            stream,
            capacity: options.buffer_bytes,
            pending: 0,
            fd: sync_fd,
            path,
            name,
            identity: (stat.st_dev, stat.st_ino),
            is_terminal,
            bytes: if is_file { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 },
            since: Instant::now(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns how many bytes the buffer takes. More bytes are written at once, behind the pending ones.
    pub(super) fn room(&self) -> usize {
        match self.pending {
            0 => usize::MAX,
            pending => self.capacity - pending.min(self.capacity),
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Returns the length of the file with the pending bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Returns the descriptor to sync; none if the log is a pipe, a terminal or a socket.
    pub(super) fn sync_fd(&self) -> Option<Arc<OwnedFd>> {
        self.fd.clone()
    }

    /// Writes or buffers bytes. Returns how many it accepted, and the error that made it stop.
    pub(super) fn write(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut accepted = 0;
        let result = loop {
            match self.stream.write(&bytes[accepted..]) {
                Ok(0) if accepted < bytes.len() => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(count) => accepted += count,
                Err(error) => break Err(error),
            }
            if accepted == bytes.len() {
                break Ok(());
            }
        };
        self.bytes += accepted as u64;
        self.pending = self.stream.stats().pending_bytes as usize;
        (accepted, result)
    }

    /// Lets `fill` append bytes in the buffer, in a room of at least `bytes` bytes.
    ///
    /// # Errors
    /// No room can be had. Nothing was appended then.
    pub(super) fn append_with(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        let appended = self.stream.append_with(bytes, fill)?;
        self.bytes += appended as u64;
        self.pending = self.stream.stats().pending_bytes as usize;
        Ok(())
    }

    /// Writes the pending bytes. Tries again after an earlier error.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.stream.clear();
        let result = self.stream.flush();
        self.pending = self.stream.stats().pending_bytes as usize;
        result
    }

    /// Takes the pending bytes out of the stream, and returns them behind the begin of their first record, which the file
    /// has, and the offset of that begin. The file takes no bytes from then on.
    pub(super) fn take_unwritten(&mut self, framing: Framing) -> io::Result<(u64, Vec<u8>)> {
        let memory = File::from(rustix::fs::memfd_create("weir-log", rustix::fs::MemfdFlags::CLOEXEC)?);
        self.stream.write_pending_to(&memory)?;
        self.pending = 0;
        let mut bytes = Vec::new();
        let mut begin = 0;
        if let Some(fd) = self.fd.as_ref().filter(|_| self.path.is_some()) {
            let file = File::from(fd.try_clone()?);
            let length = file.metadata()?.len();
            begin = tail::after_last_record(&file, length, framing)?;
            bytes.resize((length - begin) as usize, 0);
            file.read_exact_at(&mut bytes, begin)?;
        }
        let unwritten = bytes.len();
        bytes.resize(unwritten + memory.metadata()?.len() as usize, 0);
        memory.read_exact_at(&mut bytes[unwritten..], 0)?;
        Ok((begin, bytes))
    }

    /// Shortens the file by the begin of a record whose bytes are elsewhere now.
    pub(super) fn cut(&self, length: u64) -> io::Result<()> {
        let Some(fd) = self.fd.as_ref().filter(|_| self.path.is_some()) else { return Ok(()) };
        Ok(rustix::fs::ftruncate(fd, length)?)
    }

    /// Makes the written bytes and the directory entry durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let Some(fd) = &self.fd else { return Ok(()) };
        let advice = "the device may have lost records; check it (dmesg)";
        rustix::fs::fsync(fd).map_err(|errno| Error::call("fsync", &self.name, &io_error(errno), advice))?;
        self.path.as_deref().map_or(Ok(()), sync_directory)
    }

    /// Returns whether the path of the log leads to this file.
    pub(super) fn is_at_path(&self) -> bool {
        let Some(path) = &self.path else { return true };
        lstat(path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Returns the descriptor, to read properties of the file.
    pub(super) fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn open_error(name: &str, errno: Errno) -> Error {
    let advice = match errno {
        Errno::LOOP => "weir log follows no symbolic link to its log: name the file itself",
        Errno::NOENT => "create the directory",
        Errno::ISDIR => "name a file in it",
        Errno::NXIO => "it is a FIFO without a reader: start the reader, or use -o - | …",
        _ => "choose another file, or change the permissions",
    };
    Error::call("open", name, &io_error(errno), advice)
}

/// Takes the lock that keeps two collectors from writing one log. File systems without locks get none.
fn lock(fd: &OwnedFd, name: &str) -> Result<(), Error> {
    match flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::text(format!(
            "flock {name}: another weir log writes this file; send the records to its socket"
        ))),
        _ => Ok(()),
    }
}

/// Makes the entry of a file in its directory durable.
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = directory_of(path);
    let name = crate::error::shown(directory);
    let failed = |errno| Error::call("fsync", &name, &io_error(errno), "check the device (dmesg)");
    let fd = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed)?;
    match rustix::fs::fsync(&fd) {
        // A file system that cannot sync directories has nothing to lose there.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// Returns the directory that contains `path`.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
