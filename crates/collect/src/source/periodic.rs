//! Sources that are read at intervals: a file such as a sensor's, or the output of a shell command.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::child::{self, CommandPurpose};
use super::interval_runs::IntervalRuns;
use super::listener::base_name;
use super::{Source, SourceProgress};
use crate::backlog::BacklogForm;
use crate::collector::Collector;
use crate::error::{Error, io_error};
use crate::framing::Framing;
use crate::intake::Intake;
use crate::options::LogOptions;

/// Ticks at whole multiples of an interval. Missed ticks are left out, and clock steps do not matter.
#[derive(Debug)]
struct Ticker {
    next: Instant,
    interval: Duration,
}

impl Ticker {
    fn new(interval: Duration) -> Self {
        Self { next: Instant::now(), interval }
    }

    /// Returns whether a tick is due, and moves to the next one.
    fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let late = now - self.next;
        let missed = u32::try_from(late.as_nanos() / self.interval.as_nanos().max(1)).unwrap_or(u32::MAX);
        self.next += self.interval * missed.saturating_add(1);
        true
    }
}

/// A source that does its task at each tick.
struct PeriodicSource {
    ticker: Ticker,
    task: Task,
    ended: bool,
}

/// The task of a tick.
enum Task {
    /// Reads a file. Each content is a record; several lines are several records.
    Read(Box<FileReader>),
    /// Runs a shell command, whose output lines are records.
    Run(PeriodicCommand),
}

/// A file that is read, such as a sensor's.
struct FileReader {
    path: PathBuf,
    intake: Intake,
    failing: bool,
}

/// A shell command that is run, one run at a time.
struct PeriodicCommand {
    command: String,
    runs: IntervalRuns,
    failing: bool,
}

/// The most that one read of a file takes.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read_file(
    path: &Path,
    interval: Duration,
    options: &LogOptions,
) -> Result<Box<dyn Source>, Error> {
    let intake = Intake::new(base_name(path), None, options);
    let reader = FileReader { path: path.into(), intake, failing: false };
    Ok(PeriodicSource::boxed(interval, Task::Read(Box::new(reader))))
}

pub(super) fn run_command(command: &str, interval: Duration) -> Result<Box<dyn Source>, Error> {
    Ok(PeriodicSource::boxed(
        interval,
        Task::Run(PeriodicCommand {
            command: command.into(),
            runs: IntervalRuns::new(command),
            failing: false,
        }),
    ))
}

impl PeriodicSource {
    fn boxed(interval: Duration, task: Task) -> Box<dyn Source> {
        Box::new(Self { ticker: Ticker::new(interval), task, ended: false })
    }
}

impl FileReader {
    fn read_once(&mut self, collector: &mut Collector) {
        let content = match available_content(&self.path) {
            Ok(content) => content,
            Err(error) => {
                // A sensor may be away for a while: it is reported once, until it is back.
                if !std::mem::replace(&mut self.failing, true) {
                    collector.messages.push(error.to_string());
                }
                return;
            }
        };
        self.failing = false;
        let Some(content) = content else { return };
        let delimiter =
            if let Framing::Delimiter(delimiter) = collector.options.framing { delimiter } else { b'\n' };
        let content = content.strip_suffix(&[delimiter]).unwrap_or(&content);
        for record in content.split(|&byte| byte == delimiter) {
            let is_full = self.intake.backlog.is_full();
            if is_full || collector.put_message(&mut self.intake, record, None).is_err() {
                self.intake.counts.dropped += 1;
            }
        }
    }
}

/// Returns what can be read from a file without waiting for a device, at most [`MAX_BYTES`]; None if a device has nothing now.
///
/// # Errors
/// The file cannot be read, or has no content at a time, because it is a FIFO or a terminal.
fn available_content(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let name = crate::error::shown(path);
    let failed =
        |error: &std::io::Error| Error::call("read", &name, error, "weir tries again at each interval");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty()).map_err(|errno| failed(&io_error(errno)))?;
    let stat = fstat(&fd).map_err(|errno| failed(&io_error(errno)))?;
    if FileType::from_raw_mode(stat.st_mode).is_fifo() {
        return Err(Error::text(format!("read {name}: it is a FIFO: use --listen fifo:{name}")));
    }
    if weir_sys::file_system::is_terminal(&fd) {
        return Err(Error::text(format!("read {name}: it is a terminal: use --stdin <{name}")));
    }
    let mut content = Vec::new();
    match File::from(fd).take(MAX_BYTES).read_to_end(&mut content) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && content.is_empty() => Ok(None),
        Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => Err(failed(&error)),
        _ => Ok(Some(content)),
    }
}

impl PeriodicCommand {
    /// Starts the command, whose outputs are sources until it ends, unless the run before has not ended: as a timer of systemd,
    /// which does not start a unit that still runs.
    fn start(&mut self, collector: &mut Collector, added: &mut Vec<Box<dyn Source>>) {
        collector.messages.extend(self.runs.decide());
        if self.runs.is_running() {
            return collector.messages.extend(self.runs.leave_out());
        }
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.command);
        let name = base_name(Path::new(self.command.split_whitespace().next().unwrap_or("sh")));
        let purpose = CommandPurpose::Interval(self.runs.clone());
        match child::spawn(shell, &name, &collector.options, purpose) {
            Ok(sources) => {
                self.failing = false;
                added.extend(sources);
            }
            Err(error) if !std::mem::replace(&mut self.failing, true) => {
                collector.messages.push(format!("{error}; weir tries again at each interval"));
            }
            Err(_) => {}
        }
    }
}

impl Source for PeriodicSource {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn read(&mut self, _collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        SourceProgress::Open
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        if let Task::Read(reader) = &mut self.task {
            collector.replay_messages(&mut reader.intake);
        }
        if self.ended { SourceProgress::Ended } else { SourceProgress::Open }
    }

    fn deadline(&self, _options: &LogOptions) -> Option<Instant> {
        (!self.ended).then_some(self.ticker.next)
    }

    fn on_time(&mut self, now: Instant, collector: &mut Collector, added: &mut Vec<Box<dyn Source>>) {
        if self.ended || !self.ticker.is_due(now) {
            return;
        }
        match &mut self.task {
            Task::Read(reader) => reader.read_once(collector),
            Task::Run(command) => command.start(collector, added),
        }
    }

    fn begin_end(&mut self) {
        self.ended = true;
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.ended = true;
        if let Task::Run(command) = &self.task {
            collector.messages.extend(command.runs.summary());
        }
        if let Task::Read(reader) = &mut self.task
            && reader.intake.held_bytes() > 0
        {
            collector.replay_messages(&mut reader.intake);
            if reader.intake.held_bytes() > 0 {
                return SourceProgress::Open;
            }
        }
        SourceProgress::Ended
    }

    fn save_backlog(&mut self, collector: &mut Collector) {
        if let Task::Read(reader) = &mut self.task {
            collector.save_backlog(&mut reader.intake, BacklogForm::Messages);
        }
    }

    fn intake(&self) -> Option<&Intake> {
        match &self.task {
            Task::Read(reader) => Some(&reader.intake),
            Task::Run(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_left_out() {
        let mut ticker = Ticker::new(Duration::from_secs(10));
        let start = ticker.next;
        assert!(ticker.is_due(start));
        assert!(!ticker.is_due(start + Duration::from_secs(9)));
        assert!(ticker.is_due(start + Duration::from_secs(35)));
        assert_eq!(ticker.next, start + Duration::from_secs(40));
    }

    #[test]
    fn what_would_wait_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("sensor");
        std::fs::write(&path, "21.5\n").expect("written");
        assert_eq!(available_content(&path).expect("read").as_deref(), Some(&b"21.5\n"[..]));
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).expect("a FIFO");
        let error = available_content(&fifo).expect_err("no content").to_string();
        assert!(error.contains("it is a FIFO: use --listen fifo:"), "{error}");
        let pty = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY);
        let pty = pty.expect("a terminal");
        rustix::pty::unlockpt(&pty).expect("unlocked");
        let name = rustix::pty::ptsname(&pty, Vec::new()).expect("its name").into_string().expect("a path");
        let error = available_content(Path::new(&name)).expect_err("no content").to_string();
        assert!(error.contains("it is a terminal: use --stdin <"), "{error}");
    }
}
