//! The options of `weir log`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub use weir_model::log::Overflow;

use crate::backlog::SpillOptions;
use crate::format::{Fields, Format};
use crate::framing::{Framing, Oversize};
use crate::metrics::MetricsTarget;
use crate::sink::{RotationPolicy, TornTail};
use crate::source::GpioSpec;

/// When received records are written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Each record with a write(2) of its own.
    None,
    /// At once, the records that are there with one write(2).
    Line,
    /// When the buffer is full, and at the end.
    Full,
    /// When the oldest record is this old, or the buffer is full.
    Within(Duration),
    /// As often as the device may be written, or when the buffer is full. Each write is followed by a sync.
    Budget(WriteBudget),
}

/// How much may be written to the device in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// The bytes of one interval.
    pub bytes: u64,
    /// The time in which so many bytes may be written.
    pub interval: Duration,
}

/// The unit in which file systems write, and what a write and its sync cost beside its data: a block for the inode and one
/// for the journal.
const BLOCK: u64 = 4096;

impl WriteBudget {
    /// Returns what a write of `bytes` and its sync cost: whole blocks, and two more.
    #[must_use]
    pub fn cost(bytes: u64) -> u64 {
        bytes.div_ceil(BLOCK).saturating_add(2).saturating_mul(BLOCK)
    }

    /// Returns the time between two writes if the first one has `bytes`.
    #[must_use]
    pub fn pause_after(&self, bytes: u64) -> Duration {
        let share = Self::cost(bytes) as f64 / self.bytes.max(1) as f64;
        Duration::try_from_secs_f64(self.interval.as_secs_f64() * share).unwrap_or(Duration::MAX)
    }
}

impl FromStr for WriteBudget {
    type Err = String;

    /// Parses SIZE/s, SIZE/min, SIZE/h or SIZE/d.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no budget: use a size and a time, such as 10MB/h or 1MB/d");
        let (size, unit) = text.split_once('/').ok_or_else(wrong)?;
        let seconds = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let size: weir_model::Size = size.parse().map_err(|_| wrong())?;
        match size.0 {
            0 => Err(wrong()),
            bytes => Ok(Self { bytes, interval: Duration::from_secs(seconds) }),
        }
    }
}

/// When the log is synced, so that records survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Never; the kernel writes within about 30 seconds (vm.dirty_expire_centisecs).
    None,
    /// This long after a record.
    Interval(Duration),
    /// After so many bytes.
    Bytes(u64),
    /// After each record; records that arrive during a sync share the next one.
    Record,
}

/// Where records come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// Standard input, until its end.
    Stdin,
    /// A stream socket: each connection is a source.
    UnixStream(PathBuf),
    /// A datagram socket: each datagram is a record.
    UnixDatagram(PathBuf),
    /// A socket of sequenced packets: each packet is a record.
    UnixSeqpacket(PathBuf),
    /// TCP without encryption: each connection is a source.
    Tcp(SocketAddr),
    /// UDP: each datagram is a record.
    Udp(SocketAddr),
    /// A datagram socket for messages of syslog, such as /dev/log.
    Syslog(PathBuf),
    /// A stream socket for messages of syslog, which end with a NUL or a newline: each connection is a source.
    SyslogStream(PathBuf),
    /// UDP: each datagram is a message of syslog.
    SyslogUdp(SocketAddr),
    /// A FIFO, which is created if it does not exist.
    Fifo(PathBuf),
    /// Files that grow, by name or pattern.
    Follow(String),
    /// Standard output and standard error of a command.
    Command {
        /// The program and its arguments.
        arguments: Vec<std::ffi::OsString>,
        /// The name of the source.
        name: String,
    },
    /// The changes of a GPIO line.
    Gpio(GpioSpec),
    /// The content of a file, at each interval.
    ReadEvery(PathBuf, Duration),
    /// The output of a shell command, at each interval.
    RunEvery(String, Duration),
}

impl SourceSpec {
    /// Returns whether `--ack` sends acknowledgements to the senders of this source.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        matches!(self, Self::UnixStream(_) | Self::UnixSeqpacket(_) | Self::Tcp(_) | Self::SyslogStream(_))
    }
}

impl FromStr for SourceSpec {
    type Err = String;

    /// Parses the address of `--listen`.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = "unix:PATH, unix-dgram:PATH, unix-seqpacket:PATH, tcp:HOST:PORT, udp:HOST:PORT, syslog:PATH, syslog-stream:PATH, syslog-udp:HOST:PORT or fifo:PATH";
        let (kind, value) =
            text.split_once(':').ok_or_else(|| format!("'{text}' is no address: use {known}"))?;
        if value.is_empty() {
            return Err(format!("'{text}' names nothing: use {known}"));
        }
        match kind {
            "unix" => Ok(SourceSpec::UnixStream(value.into())),
            "unix-dgram" => Ok(SourceSpec::UnixDatagram(value.into())),
            "unix-seqpacket" => Ok(SourceSpec::UnixSeqpacket(value.into())),
            "syslog" => Ok(SourceSpec::Syslog(value.into())),
            "syslog-stream" => Ok(SourceSpec::SyslogStream(value.into())),
            "syslog-udp" => parse_address(value).map(SourceSpec::SyslogUdp),
            "fifo" => Ok(SourceSpec::Fifo(value.into())),
            "tcp" => parse_address(value).map(SourceSpec::Tcp),
            "udp" => parse_address(value).map(SourceSpec::Udp),
            _ => Err(format!("'{kind}' is not a kind of socket: use {known}")),
        }
    }
}

/// Parses HOST:PORT, or PORT on the loopback interface.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    use std::net::{Ipv4Addr, ToSocketAddrs};
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let mut addresses =
        text.to_socket_addrs().map_err(|error| format!("'{text}': {error}: use HOST:PORT or PORT"))?;
    addresses.next().ok_or_else(|| format!("'{text}' has no address"))
}

/// Everything that a collector needs to know.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The log; `None` is standard output.
    pub output: Option<PathBuf>,
    /// Where records come from; at least one.
    pub sources: Vec<SourceSpec>,
    /// How streams are divided into records.
    pub framing: Framing,
    /// A line that matches begins a record; other lines continue it.
    pub multiline: Option<regex::bytes::Regex>,
    /// The longest record in bytes.
    pub max_record_bytes: usize,
    /// The treatment of longer records.
    pub oversize: Oversize,
    /// The form of the log.
    pub format: Format,
    /// The fields of a line of the log.
    pub fields: Fields,
    /// When records are written.
    pub flush: Flush,
    /// When the log is synced.
    pub sync: SyncPolicy,
    /// The buffer of the log in bytes.
    pub buffer_bytes: usize,
    /// When the log is rotated.
    pub rotation: RotationPolicy,
    /// The treatment of a torn record at the end of an existing log.
    pub torn: TornTail,
    /// Whether each connection gets the number of its records that are durable, after each sync.
    pub ack: bool,
    /// The treatment of records when the memory is full.
    pub overflow: Overflow,
    /// The memory for each source in bytes, while the log cannot be written.
    pub memory_bytes: usize,
    /// The files of [`Overflow::Spill`].
    pub spill: SpillOptions,
    /// At most one file and one address.
    pub metrics: Vec<MetricsTarget>,
    /// The most connections at a time.
    pub max_connections: usize,
    /// A source that sends nothing for so long gets its unfinished record written.
    pub idle: Option<Duration>,
    /// The mode of sockets and FIFOs.
    pub socket_mode: u32,
    /// How long the end may take: reading what senders have sent, and writing it.
    pub drain: Duration,
    /// Where the positions in followed files are kept.
    pub state: Option<PathBuf>,
}

#[cfg(test)]
impl LogOptions {
    /// Returns the options of a log of lines, which has no sources.
    pub(crate) fn of_lines(log: &std::path::Path) -> Self {
        Self {
            output: Some(log.into()),
            sources: Vec::new(),
            framing: Framing::Delimiter(b'\n'),
            multiline: None,
            max_record_bytes: 1 << 16,
            oversize: Oversize::Split,
            format: Format::Raw,
            fields: Fields::default(),
            flush: Flush::Line,
            sync: SyncPolicy::None,
            buffer_bytes: 4 * crate::intake::CHUNK,
            rotation: RotationPolicy::default(),
            torn: TornTail::Keep,
            ack: false,
            overflow: Overflow::Block,
            memory_bytes: 1 << 20,
            spill: SpillOptions { directory: "/nonexistent".into(), limit: 0, log: None },
            metrics: Vec::new(),
            max_connections: 2,
            idle: None,
            socket_mode: 0o600,
            drain: Duration::ZERO,
            state: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_how_long_writes_wait() {
        let budget: WriteBudget = "10MB/h".parse().expect("a budget");
        assert_eq!(budget.interval, Duration::from_secs(3600));
        // One block of records, and two of the file system.
        let least = budget.pause_after(1).as_secs_f64();
        assert!((least - 12_288.0 / budget.bytes as f64 * 3600.0).abs() < 1e-6, "{least}");
        assert!(budget.pause_after(1 << 20) > budget.pause_after(4096));
        for text in ["", "10MB", "10MB/y", "0/h", "x/h", "/h"] {
            assert!(text.parse::<WriteBudget>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_parsed() {
        assert_eq!("unix:a/b".parse(), Ok(SourceSpec::UnixStream("a/b".into())));
        assert_eq!("fifo:x:y".parse(), Ok(SourceSpec::Fifo("x:y".into())));
        assert_eq!("tcp:514".parse(), Ok(SourceSpec::Tcp("127.0.0.1:514".parse().expect("an address"))));
        assert_eq!("udp:[::1]:514".parse(), Ok(SourceSpec::Udp("[::1]:514".parse().expect("an address"))));
        assert_eq!("syslog-stream:/dev/log".parse(), Ok(SourceSpec::SyslogStream("/dev/log".into())));
        for text in ["", "unix:", "syslog-stream:", "path", "http:80", "tcp:host", "tcp:1.2.3.4:99999"] {
            assert!(text.parse::<SourceSpec>().is_err(), "{text}");
        }
    }
}
