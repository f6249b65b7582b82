//! A command: its standard output and standard error are two sources, its end is a third one.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use rustix::fd::BorrowedFd;
use rustix::process::{Pid, Signal, kill_process};

use weir_model::pipe::MAX_PIPE_BYTES;
use weir_sys::limits;
use weir_sys::pidfd::open_process;

use super::interval_runs::IntervalRuns;
use super::reader::Reader;
use super::{Source, SourceProgress};
use crate::collector::Collector;
use crate::error::{Error, io_error};
use crate::intake::Intake;
use crate::options::LogOptions;

/// A command that was started, until its end.
struct RunningCommand {
    child: Child,
    program: String,
    end: OwnedFd,
    purpose: CommandPurpose,
    /// The collector has asked the command to end.
    stopped: bool,
}

/// The use of a command's status.
pub(super) enum CommandPurpose {
    /// It becomes the status of the collector.
    Status,
    /// It is counted among the runs at an interval.
    Interval(IntervalRuns),
}

/// The status of the collector if a command has not ended within `--drain`: its own status is unknown.
const UNENDED: i32 = 1;

/// The standard input of commands.
const NULL: &str = "/dev/null";

/// Starts a command, whose status becomes that of the collector; of several commands, that of the first one that failed.
pub(super) fn start(
    arguments: &[OsString],
    name: &str,
    options: &LogOptions,
) -> Result<Vec<Box<dyn Source>>, Error> {
    let mut command = Command::new(arguments.first().ok_or_else(|| Error::text("the command has no name"))?);
    command.args(&arguments[1..]);
    spawn(command, name, options, CommandPurpose::Status)
}

/// Starts a command with both outputs in pipes.
pub(super) fn spawn(
    mut command: Command,
    name: &str,
    options: &LogOptions,
    purpose: CommandPurpose,
) -> Result<Vec<Box<dyn Source>>, Error> {
    let program = crate::error::shown(command.get_program());
    let failed = |error: &std::io::Error| {
        let limit = limits::advice_alone(error);
        Error::call(
            "exec",
            &program,
            error,
            limit.unwrap_or("check the name and the permissions of the command"),
        )
    };
    let null = File::open(NULL).map_err(|error| {
        let advice = limits::advice_alone(&error)
            .unwrap_or("commands read it as standard input: create it: mknod -m 666 /dev/null c 1 3");
        Error::call("open", NULL, &error, advice)
    })?;
    limits::restore_open_files(&mut command);
    let mut child =
        command.stdin(null).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| {
            // At a limit the command might be executed later.
            let is_its_fault =
                matches!(purpose, CommandPurpose::Status) && limits::advice_alone(&error).is_none();
            if is_its_fault { failed(&error).of_start(&error) } else { failed(&error) }
        })?;
    let end = open_process(child.id()).map_err(|error| failed(&error))?;
    let pipes: [Option<OwnedFd>; 2] =
        [child.stdout.take().map(Into::into), child.stderr.take().map(Into::into)];
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for (pipe, suffix) in pipes.into_iter().flatten().zip(["", ".err"]) {
        // weir's end of the pipe is an open file of its own, so the command does not see O_NONBLOCK.
        rustix::io::ioctl_fionbio(&pipe, true).map_err(|errno| failed(&io_error(errno)))?;
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, MAX_PIPE_BYTES as usize);
        let runs = match &purpose {
            CommandPurpose::Interval(runs) => Some(runs.clone()),
            CommandPurpose::Status => None,
        };
        sources.push(Reader::of_command(pipe, format!("{name}{suffix}"), options, runs));
    }
    sources.push(Box::new(RunningCommand { child, program, end, purpose, stopped: false }));
    Ok(sources)
}

impl Source for RunningCommand {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.end.as_fd())
    }

    fn read(&mut self, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        match self.child.try_wait() {
            Ok(None) => SourceProgress::Open,
            Ok(Some(status)) => {
                match &self.purpose {
                    CommandPurpose::Status => {
                        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
                        // Of several commands, the first one that failed.
                        collector.command_status =
                            collector.command_status.filter(|&status| status != 0).or(Some(code));
                    }
                    CommandPurpose::Interval(runs) if !self.stopped => {
                        collector.messages.extend(runs.end_run(status));
                    }
                    CommandPurpose::Interval(_) => {}
                }
                SourceProgress::Ended
            }
            Err(_) => SourceProgress::Ended,
        }
    }

    fn resume(&mut self, _collector: &mut Collector) -> SourceProgress {
        SourceProgress::Open
    }

    fn delays_end(&self) -> bool {
        true
    }

    fn begin_end(&mut self) {
        self.stopped = true;
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        let progress = self.read(collector, &mut Vec::new());
        if progress == SourceProgress::Open && self.stopped {
            let drain = weir_model::duration::format_seconds(collector.options.drain.as_secs_f64());
            collector.messages.push(format!(
                "{} ({}) did not end within {drain} (--drain); its further output is lost",
                self.program,
                self.child.id()
            ));
            if matches!(self.purpose, CommandPurpose::Status) {
                collector.command_status =
                    collector.command_status.filter(|&status| status != 0).or(Some(UNENDED));
            }
        }
        progress
    }

    fn intake(&self) -> Option<&Intake> {
        None
    }
}
