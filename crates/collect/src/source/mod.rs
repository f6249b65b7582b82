//! The sources of records. Each kind is one file.

mod ack;
mod child;
mod datagram;
mod fifo;
pub(crate) mod follow;
mod gpio;
mod interval_runs;
mod left_spill;
mod listener;
mod periodic;
mod reader;
mod socket_path;

pub use gpio::GpioSpec;
pub(crate) use left_spill::find as find_left_spills;
pub(crate) use socket_path::{OwnName, bind_socket};

use std::time::Instant;

use rustix::fd::BorrowedFd;

use crate::collector::Collector;
use crate::error::Error;
use crate::intake::Intake;
use crate::options::{LogOptions, SourceSpec};

/// The state of a source after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceProgress {
    /// The source may send more, or holds records that are not in the log yet.
    Open,
    /// The source can be removed.
    Ended,
}

/// A source of records.
pub(crate) trait Source: Send {
    /// Returns the descriptor that becomes readable: the same one as long as the source exists. None if the source reads at
    /// times.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Returns whether to wait for the descriptor now. A descriptor at its end would be readable for ever.
    fn wants_poll(&self) -> bool {
        true
    }

    /// Returns whether the source can be read at any time without waiting.
    fn is_always_ready(&self) -> bool {
        false
    }

    /// Returns whether the collector waits for the source when it is to end: a command that has not ended.
    fn delays_end(&self) -> bool {
        false
    }

    /// Returns whether the source is a connection, of which there is a maximum.
    fn is_connection(&self) -> bool {
        false
    }

    /// Reads once, and adds sources that begin.
    fn read(&mut self, collector: &mut Collector, added: &mut Vec<Box<dyn Source>>) -> SourceProgress;

    /// Appends the held bytes after the log could not be written, and reads on.
    fn resume(&mut self, collector: &mut Collector) -> SourceProgress;

    /// Returns when [`Source::on_time`] has something to do.
    fn deadline(&self, _options: &LogOptions) -> Option<Instant> {
        None
    }

    /// Handles a deadline that has passed; see [`Source::deadline`].
    fn on_time(&mut self, _now: Instant, _collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) {}

    /// Begins the end of the collector: accepts no new connection, and asks commands to end. Bytes that were sent are still read.
    fn begin_end(&mut self) {}

    /// Appends the held bytes as an unfinished record, and ends the source if the log accepted them.
    fn finish(&mut self, collector: &mut Collector) -> SourceProgress;

    /// Saves the bytes that the log did not accept, if the backlog may go to a file. Called at the end of the collector.
    fn save_backlog(&mut self, _collector: &mut Collector) {}

    /// Acknowledges the records of the source among the first `records` of the log, which are durable.
    fn on_synced(&mut self, _records: u64) {}

    /// Forgets the records that wait for an acknowledgement: a sync has failed, so there is none.
    fn on_sync_failed(&mut self) {}

    /// Returns the intake whose counts are left when the source has ended.
    fn intake(&self) -> Option<&Intake>;

    /// Returns all intakes with their counts so far.
    fn intakes(&self) -> Vec<&Intake> {
        self.intake().into_iter().collect()
    }
}

/// Opens the sources of a specification: a command has several.
pub(crate) fn open(spec: &SourceSpec, options: &LogOptions) -> Result<Vec<Box<dyn Source>>, Error> {
    let one = |source: Result<Box<dyn Source>, Error>| source.map(|source| vec![source]);
    match spec {
        SourceSpec::Stdin => one(reader::stdin(options)),
        SourceSpec::UnixStream(path) => one(listener::unix(path, options)),
        SourceSpec::UnixSeqpacket(path) => one(listener::unix_seqpacket(path, options)),
        SourceSpec::Tcp(address) => one(listener::tcp(*address)),
        SourceSpec::UnixDatagram(path) => one(datagram::unix(path, options, false)),
        SourceSpec::Udp(address) => one(datagram::udp(*address, options, false)),
        SourceSpec::Syslog(path) => one(datagram::unix(path, options, true)),
        SourceSpec::SyslogStream(path) => one(listener::unix_syslog(path, options)),
        SourceSpec::SyslogUdp(address) => one(datagram::udp(*address, options, true)),
        SourceSpec::Fifo(path) => one(fifo::open(path, options)),
        SourceSpec::Follow(pattern) => one(follow::open(pattern, options)),
        SourceSpec::Command { arguments, name } => child::start(arguments, name, options),
        SourceSpec::Gpio(spec) => one(gpio::open(spec, options)),
        SourceSpec::ReadEvery(path, interval) => one(periodic::read_file(path, *interval, options)),
        SourceSpec::RunEvery(command, interval) => one(periodic::run_command(command, *interval)),
    }
}
