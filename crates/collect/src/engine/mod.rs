//! The event loop: waits for sources, signals and syncs, and ends in order.

mod ending;
mod metrics;
mod sources;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use slab::Slab;
use weir_sys::signals::is_ignored;

use crate::collector::Collector;
use crate::error::{Error, io_error};
use crate::intake::IntakeCounts;
use crate::metrics::{MetricsFile, MetricsServer};
use crate::notify::Watchdog;
use crate::options::{Flush, LogOptions, Overflow};
use crate::sink::{LogSink, SinkOptions};
use crate::source::{self, Source, SourceProgress};
use crate::stamp::Receipt;
use crate::status::ControlSocket;
use crate::summary::LogSummary;

/// The numbers of events that are no source. The numbers of sources follow.
const SIGNALS: u64 = 0;
const SYNCED: u64 = 1;
const CONTROL: u64 = 2;
const METRICS: u64 = 3;
const SOURCES: u64 = 4;

/// The most events that one wait returns.
const EVENTS: usize = 512;

/// A source in the loop.
struct Entry {
    source: Box<dyn Source>,
    /// The source's descriptor is in the set.
    polled: bool,
}

/// The collector while it runs.
pub struct Engine {
    collector: Collector,
    sources: Slab<Entry>,
    /// The sources that are no connections.
    others: Vec<usize>,
    /// Signals, syncs, the control socket: all that is polled while the log cannot be written.
    urgent: OwnedFd,
    /// The same and the descriptors of the sources. One set costs one call a turn; a set within a set costs two.
    all: OwnedFd,
    /// The numbers of the events of a turn, kept for its memory.
    events: Vec<u64>,
    signals: Vec<(i32, UnixStream)>,
    control: Option<ControlSocket>,
    watchdog: Option<Watchdog>,
    metrics_file: Option<MetricsFile>,
    metrics_server: Option<MetricsServer>,
    connections: usize,
    started: Instant,
    ending: Option<Instant>,
}

impl Engine {
    /// Opens the log and all sources.
    ///
    /// # Errors
    /// Something cannot be opened: the sentence names it and says what to do.
    pub fn open(options: LogOptions) -> Result<Self, Error> {
        // Each connection needs an open file.
        weir_sys::limits::raise_open_files();
        let sink = LogSink::open(SinkOptions::of(&options))?;
        let epoll = || epoll::create(CreateFlags::CLOEXEC).map_err(|errno| epoll_error("create", errno));
        let (urgent, all) = (epoll()?, epoll()?);
        // A shell without job control starts background jobs with SIGINT ignored: a Ctrl-C is meant for another job.
        let handled = [SIGHUP, SIGTERM].into_iter().chain((!is_ignored(SIGINT)).then_some(SIGINT));
        let signals = handled.map(signal_pipe).collect::<Result<Vec<_>, _>>()?;
        let specs = options.sources.clone();
        let control = options.output.as_deref().and_then(ControlSocket::open);
        let collector = Collector::new(options, sink);
        let mut engine = Self {
            collector,
            sources: Slab::new(),
            others: Vec::new(),
            urgent,
            all,
            events: Vec::with_capacity(EVENTS),
            signals,
            control,
            watchdog: Watchdog::from_environment(),
            metrics_file: None,
            metrics_server: None,
            connections: 0,
            started: Instant::now(),
            ending: None,
        };
        engine.open_metrics()?;
        engine.watch_urgent()?;
        engine.take_left_spills()?;
        for spec in &specs {
            for source in source::open(spec, &engine.collector.options)? {
                engine.add(source)?;
            }
        }
        Ok(engine)
    }

    fn watch_urgent(&self) -> Result<(), Error> {
        let add = |fd: rustix::fd::BorrowedFd, number| {
            [&self.urgent, &self.all].into_iter().try_for_each(|set| {
                epoll::add(set, fd, EventData::new_u64(number), EventFlags::IN)
                    .map_err(|errno| epoll_error("add to", errno))
            })
        };
        for (_, pipe) in &self.signals {
            add(pipe.as_fd(), SIGNALS)?;
        }
        if let Some(control) = &self.control {
            add(control.as_fd(), CONTROL)?;
        }
        if let Some(server) = &self.metrics_server {
            add(server.as_fd(), METRICS)?;
        }
        add(self.collector.sink.sync_event().as_fd(), SYNCED)
    }

    /// Returns the messages for the user so far.
    pub fn take_messages(&mut self) -> Vec<String> {
        let mut messages = self.collector.sink.take_messages();
        messages.append(&mut self.collector.messages);
        messages
    }

    /// Runs until all sources have ended, or a signal ends it. `report` gets sentences for the user.
    ///
    /// # Errors
    /// The log could not be written at the end, or a sync failed.
    pub fn run(mut self, report: &mut dyn FnMut(&str)) -> (LogSummary, Result<(), Error>) {
        crate::notify::ready();
        crate::resident::release_code();
        let result = loop {
            for message in self.take_messages() {
                report(&message);
            }
            if self.is_over() {
                break Ok(());
            }
            if let Err(error) = self.turn() {
                break Err(error);
            }
        };
        self.close(report, result)
    }

    fn is_over(&self) -> bool {
        let ended = self.sources.is_empty() || self.collector.sink.is_closed();
        ended || self.ending.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// One turn of the loop: waits, reads each ready source once, and ends the batch.
    fn turn(&mut self) -> Result<(), Error> {
        let mut events = self.wait()?;
        let stalled = self.collector.sink.is_stalled();
        self.collector.time = Receipt::now();
        for event in &events {
            match *event {
                SIGNALS => self.on_signals(),
                SYNCED => self.on_synced(),
                CONTROL => self.on_control(),
                METRICS => self.on_metrics(),
                _ => {}
            }
        }
        let quiet = events.is_empty();
        self.collector.sink.set_ready(events.iter().filter(|&&event| event >= SOURCES).count());
        for number in events.drain(..).filter(|&event| event >= SOURCES) {
            self.read((number - SOURCES) as usize)?;
        }
        self.events = events;
        self.read_always_ready()?;
        let now = Instant::now();
        self.on_time(now)?;
        self.collector.sink.end_batch(now);
        if stalled && !self.collector.sink.is_stalled() {
            self.resume_all()?;
            self.collector.sink.end_batch(now);
        }
        self.collector.remove_spent_files();
        let waits = self.others.iter().any(|&number| self.sources[number].source.delays_end());
        if self.ending.is_some() && quiet && !waits {
            self.finish_all();
        }
        Ok(())
    }

    /// Waits for events, and returns their numbers.
    fn wait(&mut self) -> Result<Vec<u64>, Error> {
        let set = if self.polls_sources() { &self.all } else { &self.urgent };
        let mut buffer = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let mut numbers = std::mem::take(&mut self.events);
        match epoll::wait(set, &mut buffer, self.timeout().as_ref()) {
            Ok((events, _)) => numbers.extend(events.iter().map(|event| event.data.u64())),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(epoll_error("wait for", errno)),
        }
        Ok(numbers)
    }

    /// While the log cannot be written, sources are not read, unless their records may be dropped.
    fn reads_sources(&self) -> bool {
        !self.collector.sink.is_stalled() || self.collector.options.overflow != Overflow::Block
    }

    /// During a short sync the records of a group gather in the sockets, so that each of them does not wake the collector.
    fn polls_sources(&self) -> bool {
        self.reads_sources() && (self.ending.is_some() || !self.collector.sink.is_in_short_sync())
    }

    fn timeout(&self) -> Option<Timespec> {
        let always_ready = self.reads_sources()
            && self.others.iter().any(|&number| self.sources[number].source.is_always_ready());
        let wait = if always_ready {
            Some(Duration::ZERO)
        } else {
            let now = Instant::now();
            let options = &self.collector.options;
            let timed = self.timed().filter(|_| self.reads_sources());
            let deadlines = timed.filter_map(|number| self.sources[number].source.deadline(options));
            let deadlines = deadlines.chain(self.collector.sink.deadline());
            let ending = self.ending.map(|end| end.min(now + QUIET));
            let watchdog = self.watchdog.as_ref().map(Watchdog::deadline);
            let metrics = self.metrics_file.as_ref().map(MetricsFile::deadline);
            deadlines
                .chain(ending)
                .chain(watchdog)
                .chain(metrics)
                .min()
                .map(|at| at.saturating_duration_since(now))
        };
        wait.map(|wait| Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        })
    }

    fn on_time(&mut self, now: Instant) -> Result<(), Error> {
        self.collector.sink.on_time(now);
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.on_time(now);
        }
        if self.metrics_file.as_ref().is_some_and(|file| file.deadline() <= now) {
            self.write_metrics(now);
        }
        if !self.reads_sources() {
            return Ok(());
        }
        let options = &self.collector.options;
        let is_due =
            |&number: &usize| self.sources[number].source.deadline(options).is_some_and(|at| at <= now);
        let due: Vec<usize> = self.timed().filter(is_due).collect();
        for number in due {
            let mut added = Vec::new();
            self.sources[number].source.on_time(now, &mut self.collector, &mut added);
            self.after(number, SourceProgress::Open)?;
            self.add_all(added)?;
        }
        Ok(())
    }

    fn on_synced(&mut self) {
        let Some(done) = self.collector.sink.sync_done(Instant::now()) else { return };
        if done.result.is_ok() {
            for &number in &self.others {
                self.sources[number].source.on_synced(done.records);
            }
        }
        self.acknowledge(done.result.ok().map(|()| done.records));
    }

    /// Acknowledges the first `durable` records of the log, and removes the connections that have waited for this. None after a
    /// sync that failed: nothing is acknowledged any more, and no connection waits.
    fn acknowledge(&mut self, durable: Option<u64>) {
        if !self.collector.options.ack {
            return;
        }
        let connections = self.sources.iter().filter(|(_, entry)| entry.source.is_connection());
        let numbers: Vec<usize> = connections.map(|(number, _)| number).collect();
        for number in numbers {
            let source = &mut self.sources[number].source;
            match durable {
                Some(records) => source.on_synced(records),
                None => source.on_sync_failed(),
            }
            let finished = source.resume(&mut self.collector);
            if finished == SourceProgress::Ended {
                self.remove(number);
            }
        }
    }

    fn on_control(&mut self) {
        let Some(control) = &self.control else { return };
        control.answer(&self.status_input(), self.intakes());
    }

    fn on_signals(&mut self) {
        for index in 0..self.signals.len() {
            let (signal, pipe) = &mut self.signals[index];
            let signal = *signal;
            let mut bytes = [0; 64];
            let received = std::io::Read::read(pipe, &mut bytes).is_ok_and(|count| count > 0);
            match (received, signal) {
                (false, _) => {}
                (true, SIGHUP) => self.collector.sink.on_hangup(),
                (true, _) => self.begin_end(),
            }
        }
    }
}

/// The most bytes that one write gathers from several sources, if records are written at once.
/// The kernel needs half the time for one write of this size as for writes of 48 KiB. A larger one leaves the processor's cache
/// between the read and the write.
const GATHER: usize = 512 << 10;

/// The length of the pause after which the senders have sent everything, while the collector ends.
const QUIET: Duration = Duration::from_millis(50);

impl SinkOptions {
    pub(crate) fn of(options: &LogOptions) -> Self {
        Self {
            path: options.output.clone(),
            flush: options.flush,
            sync: options.sync,
            // Records that do not wait need no large buffer: the stream writes larger pieces without a copy.
            buffer_bytes: match options.flush {
                Flush::None | Flush::Line => options.buffer_bytes.min(GATHER),
                Flush::Full | Flush::Within(_) | Flush::Budget(_) => options.buffer_bytes,
            },
            rotation: options.rotation,
            framing: crate::format::Formatter::new(options.format, options.framing, options.fields)
                .log_framing(),
            torn: options.torn,
            ack: options.ack,
            drops: matches!(options.overflow, Overflow::DropOldest | Overflow::DropNewest),
        }
    }
}

fn epoll_error(action: &str, errno: Errno) -> Error {
    Error::call("epoll", action, &io_error(errno), "raise the limit of open files (ulimit -n)")
}

/// Returns a pipe that gets a byte at each signal.
fn signal_pipe(signal: i32) -> Result<(i32, UnixStream), Error> {
    let failed = |error: std::io::Error| {
        Error::call("sigaction", "a signal handler", &error, "raise the limit of open files")
    };
    let (read, write) = UnixStream::pair().map_err(failed)?;
    read.set_nonblocking(true).map_err(failed)?;
    write.set_nonblocking(true).map_err(failed)?;
    signal_hook::low_level::pipe::register(signal, write).map_err(failed)?;
    Ok((signal, read))
}

impl From<IntakeCounts> for weir_model::log::LogCounts {
    fn from(counts: IntakeCounts) -> Self {
        Self {
            records: counts.records,
            bytes: counts.bytes,
            dropped: counts.dropped,
            refused: counts.refused,
            unfinished: counts.unfinished,
            split: counts.split,
            cut: counts.cut,
        }
    }
}
