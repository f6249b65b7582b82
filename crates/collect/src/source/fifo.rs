//! A FIFO with any number of writers, one after the other or at the same time.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkfifoat, open as open_file};
use rustix::io::Errno;
use weir_model::pipe::MAX_PIPE_BYTES;

use super::listener::base_name;
use super::reader::Reader;
use super::socket_path::OwnName;
use super::{Source, SourceProgress};
use crate::collector::Collector;
use crate::error::{Error, io_error};
use crate::intake::Intake;
use crate::options::LogOptions;

/// A FIFO. weir holds its write end too, so that a writer that closes it causes no end of file.
struct Fifo {
    reader: Box<dyn Source>,
    write_end: Option<OwnedFd>,
    _name: Option<OwnName>,
}

pub(super) fn open(path: &Path, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let name = crate::error::shown(path);
    let failed = |call: &str, errno| {
        Error::call(call, &name, &io_error(errno), "choose another path, or change the permissions")
    };
    let own = match mkfifoat(CWD, path, Mode::from_raw_mode(options.socket_mode)) {
        Ok(()) => OwnName::of_new(path),
        Err(Errno::EXIST) => None,
        Err(errno) => return Err(failed("mkfifo", errno)),
    };
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let fd = open_file(path, OFlags::RDONLY | flags, Mode::empty()).map_err(|errno| failed("open", errno))?;
    let stat = fstat(&fd).map_err(|errno| failed("fstat", errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return Err(Error::text(format!("{name} is no FIFO: use --follow for a file, unix: for a socket")));
    }
    if own.is_some() {
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(options.socket_mode))
            .map_err(|errno| failed("chmod", errno))?;
    }
    let write_end =
        open_file(path, OFlags::WRONLY | flags, Mode::empty()).map_err(|errno| failed("open", errno))?;
    let _ = rustix::pipe::fcntl_setpipe_size(&fd, MAX_PIPE_BYTES as usize);
    let reader = Reader::of_pipe(fd, base_name(path), options);
    Ok(Box::new(Fifo { reader, write_end: Some(write_end), _name: own }))
}

impl Source for Fifo {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.poll_fd()
    }

    fn wants_poll(&self) -> bool {
        self.reader.wants_poll()
    }

    fn read(&mut self, collector: &mut Collector, added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        self.reader.read(collector, added)
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        self.reader.resume(collector)
    }

    fn deadline(&self, options: &LogOptions) -> Option<std::time::Instant> {
        self.reader.deadline(options)
    }

    fn on_time(
        &mut self,
        now: std::time::Instant,
        collector: &mut Collector,
        added: &mut Vec<Box<dyn Source>>,
    ) {
        self.reader.on_time(now, collector, added);
    }

    fn begin_end(&mut self) {
        self.write_end = None;
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.reader.finish(collector)
    }

    fn save_backlog(&mut self, collector: &mut Collector) {
        self.reader.save_backlog(collector);
    }

    fn intake(&self) -> Option<&Intake> {
        self.reader.intake()
    }
}
