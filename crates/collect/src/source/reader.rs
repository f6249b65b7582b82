//! A stream of bytes: standard input, a pipe of a command, a connection.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, ReadWriteFlags};

use super::ack::AckSender;
use super::interval_runs::IntervalRuns;
use super::{Source, SourceProgress};
use crate::backlog::BacklogForm;
use crate::collector::{Collector, Received};
use crate::error::{Error, io_error};
use crate::format::Peer;
use crate::intake::Intake;
use crate::options::LogOptions;

/// How a descriptor is read without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadCall {
    /// read(2): the open file is weir's own and has O_NONBLOCK, or is a regular file.
    Plain,
    /// preadv2(2) with RWF_NOWAIT: the open file is shared with other processes, so that O_NONBLOCK would change them.
    NoWait,
}

/// A source of bytes.
pub(super) struct Reader {
    fd: OwnedFd,
    call: ReadCall,
    always_ready: bool,
    /// The open file has O_NONBLOCK, because no other process has it.
    own_open_file: bool,
    is_connection: bool,
    intake: Intake,
    acks: AckSender,
    ended: bool,
    /// Says that a run at an interval has not ended, as long as its outputs are open.
    _runs: Option<IntervalRuns>,
}

/// The most reads of one turn, so that sources take turns. Only a read that fills its buffer is followed by another one.
const READS: usize = 4;

/// Returns standard input as a source.
pub(super) fn stdin(options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let failed =
        |errno| Error::call("open", "standard input", &io_error(errno), "give the records on descriptor 0");
    if weir_sys::inherited::was_closed(0) {
        return Err(failed(Errno::BADF));
    }
    let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(failed)?;
    let stat = rustix::fs::fstat(&fd).map_err(failed)?;
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    if kind.is_dir() {
        return Err(failed(Errno::ISDIR));
    }
    if kind.is_fifo() {
        // A larger pipe means fewer switches between the writer and weir; a still larger one leaves the cache.
        let _ = rustix::pipe::fcntl_setpipe_size(&fd, 256 << 10);
    }
    let mut reader = Reader::new(fd, Intake::new("stdin".into(), None, options));
    reader.own_open_file = false;
    reader.always_ready = !can_be_polled(&reader.fd);
    reader.call = if reader.always_ready { ReadCall::Plain } else { ReadCall::NoWait };
    Ok(Box::new(reader))
}

impl Reader {
    fn new(fd: OwnedFd, intake: Intake) -> Self {
        Self {
            fd,
            call: ReadCall::Plain,
            always_ready: false,
            own_open_file: true,
            is_connection: false,
            intake,
            acks: AckSender::default(),
            ended: false,
            _runs: None,
        }
    }

    /// Returns a source that reads a descriptor with O_NONBLOCK.
    pub(super) fn of_pipe(fd: OwnedFd, name: String, options: &LogOptions) -> Box<dyn Source> {
        Box::new(Self::new(fd, Intake::new(name, None, options)))
    }

    /// Returns an output of a command, which may be a run at an interval.
    pub(super) fn of_command(
        fd: OwnedFd,
        name: String,
        options: &LogOptions,
        runs: Option<IntervalRuns>,
    ) -> Box<dyn Source> {
        Box::new(Self { _runs: runs, ..Self::new(fd, Intake::new(name, None, options)) })
    }

    /// Returns a connection, whose socket has O_NONBLOCK.
    pub(super) fn of_connection(
        fd: OwnedFd,
        name: String,
        peer: Option<Peer>,
        options: &LogOptions,
    ) -> Box<dyn Source> {
        Self::connected(fd, Intake::new(name, peer, options), options)
    }

    /// Returns a connection whose records are messages of syslog.
    pub(super) fn of_syslog(
        fd: OwnedFd,
        name: String,
        peer: Option<Peer>,
        options: &LogOptions,
    ) -> Box<dyn Source> {
        Self::connected(fd, Intake::of_syslog_stream(name, peer, options), options)
    }

    fn connected(fd: OwnedFd, intake: Intake, options: &LogOptions) -> Box<dyn Source> {
        let mut reader = Self::new(fd, intake);
        reader.is_connection = true;
        reader.intake.acks = options.ack;
        Box::new(reader)
    }

    /// Returns whether a read without a poll before it cannot wait.
    fn reads_on(&self) -> bool {
        self.call == ReadCall::NoWait || self.own_open_file
    }

    fn end(&mut self, collector: &mut Collector) -> SourceProgress {
        self.ended = true;
        if !collector.end(&mut self.intake) || self.intake.has_unacknowledged() {
            return SourceProgress::Open;
        }
        SourceProgress::Ended
    }
}

impl Source for Reader {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn wants_poll(&self) -> bool {
        !self.always_ready && !self.ended && !self.intake.backlog.is_full()
    }

    fn is_always_ready(&self) -> bool {
        self.always_ready && !self.ended && !self.intake.backlog.is_full()
    }

    fn is_connection(&self) -> bool {
        self.is_connection
    }

    fn read(&mut self, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        if self.ended {
            return self.end(collector);
        }
        for _ in 0..READS {
            let (fd, call, is_syslog) = (&self.fd, &mut self.call, self.intake.is_syslog);
            let read = |buffer: &mut [u8]| {
                let count = read_available(fd, call, buffer)?;
                if is_syslog {
                    nuls_to_newlines(&mut buffer[..count]);
                }
                Ok(count)
            };
            match collector.receive(&mut self.intake, read) {
                Received::End => return self.end(collector),
                // A plain read may wait where no poll precedes it.
                Received::Full if self.reads_on() && !collector.sink.is_stalled() => {}
                Received::Full | Received::Bytes | Received::Nothing => break,
            }
        }
        SourceProgress::Open
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        let done = collector.resume(&mut self.intake);
        match (self.ended, done) {
            (false, _) => SourceProgress::Open,
            (true, true) if !self.intake.has_unacknowledged() => SourceProgress::Ended,
            (true, _) => SourceProgress::Open,
        }
    }

    fn deadline(&self, options: &LogOptions) -> Option<Instant> {
        self.intake.idle_deadline(options)
    }

    fn on_time(&mut self, now: Instant, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) {
        collector.end_idle(&mut self.intake, now);
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.end(collector)
    }

    fn save_backlog(&mut self, collector: &mut Collector) {
        let form = if self.intake.is_syslog { BacklogForm::SyslogStream } else { BacklogForm::Stream };
        collector.save_backlog(&mut self.intake, form);
    }

    fn on_synced(&mut self, records: u64) {
        self.acks.send(&self.fd, self.intake.acknowledge(records));
    }

    fn on_sync_failed(&mut self) {
        self.intake.durable.clear();
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

/// syslog(3) ends a message on a stream with a NUL, other clients with a newline, as syslogd accepts both. One of them is left
/// before the bytes are kept anywhere.
fn nuls_to_newlines(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte == 0) {
        *byte = b'\n';
    }
}

/// Returns whether epoll(7) takes a descriptor. Regular files, /dev/null and the like can be read at any time.
fn can_be_polled(fd: &OwnedFd) -> bool {
    use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create};
    let added =
        create(CreateFlags::CLOEXEC).and_then(|set| add(&set, fd, EventData::new_u64(0), EventFlags::IN));
    added != Err(Errno::PERM)
}

/// Reads the bytes that are available, without waiting. A kernel or file without RWF_NOWAIT gets a plain read after a poll.
fn read_available(fd: &OwnedFd, call: &mut ReadCall, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    if *call == ReadCall::NoWait {
        let mut parts = [std::io::IoSliceMut::new(buffer)];
        match rustix::io::preadv2(fd, &mut parts, u64::MAX, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => *call = ReadCall::Plain,
            result => return result,
        }
    }
    rustix::io::read(fd, buffer)
}
