//! Sockets that accept connections; each connection is a source.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, getpeername, listen, socket_with, sockopt,
};

use super::datagram::PacketSource;
use super::reader::Reader;
use super::socket_path::{BACKLOG, OwnName, bind_socket};
use super::{Source, SourceProgress};
use crate::collector::Collector;
use crate::error::{Error, io_error, shown};
use crate::format::Peer;
use crate::intake::Intake;
use crate::options::LogOptions;

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unix,
    UnixPackets,
    UnixSyslog,
    Tcp,
}

/// A socket that accepts connections, and its pause after errors.
struct Listener {
    socket: OwnedFd,
    kind: Kind,
    base_name: String,
    /// The address in messages.
    address: String,
    accepted: u64,
    name: Option<OwnName>,
    /// After an error of accept(2): when to try again.
    pause: Option<Instant>,
    /// The last error of accept(2), which the user knows, and its time.
    reported: Option<(Errno, Instant)>,
}

/// The most connections that one read accepts, so that other sources get their turn.
const ACCEPTS: usize = 256;

/// An error is reported again after so long without it. At the limit of open files accept(2) fails and works in turns.
const FORGET: Duration = Duration::from_secs(60);

/// How long accept(2) rests after an error such as EMFILE.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) fn unix(path: &Path, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let (socket, name) = bind_socket(path, SocketType::STREAM, options.socket_mode)?;
    Ok(listening(socket, Kind::Unix, base_name(path), shown(path), Some(name)))
}

pub(super) fn unix_seqpacket(path: &Path, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let (socket, name) = bind_socket(path, SocketType::SEQPACKET, options.socket_mode)?;
    Ok(listening(socket, Kind::UnixPackets, base_name(path), shown(path), Some(name)))
}

pub(super) fn unix_syslog(path: &Path, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let (socket, name) = bind_socket(path, SocketType::STREAM, options.socket_mode)?;
    Ok(listening(socket, Kind::UnixSyslog, base_name(path), shown(path), Some(name)))
}

pub(super) fn tcp(address: SocketAddr) -> Result<Box<dyn Source>, Error> {
    let name = format!("tcp:{address}");
    let failed = |errno| Error::call("bind", &name, &io_error(errno), "choose another port or address");
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
        .map_err(failed)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    listen(&socket, BACKLOG)
        .map_err(|errno| Error::call("listen", &name, &io_error(errno), "choose another address"))?;
    Ok(listening(socket, Kind::Tcp, "tcp".into(), name, None))
}

fn listening(
    socket: OwnedFd,
    kind: Kind,
    base_name: String,
    address: String,
    name: Option<OwnName>,
) -> Box<dyn Source> {
    Box::new(Listener { socket, kind, base_name, address, accepted: 0, name, pause: None, reported: None })
}

/// Returns the name of the sources of a socket: its file name without a suffix.
pub(super) fn base_name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Listener {
    fn source_of(&mut self, connection: OwnedFd, options: &LogOptions) -> Box<dyn Source> {
        self.accepted += 1;
        let peer = sockopt::socket_peercred(&connection).ok().filter(|_| self.kind != Kind::Tcp);
        let peer = peer.map(|peer| Peer { pid: peer.pid.as_raw_nonzero().get(), uid: peer.uid.as_raw() });
        let name = match self.kind {
            Kind::Tcp => match getpeername(&connection)
                .ok()
                .flatten()
                .and_then(|address| SocketAddr::try_from(address).ok())
            {
                Some(address) => format!("tcp:{address}"),
                None => format!("tcp#{}", self.accepted),
            },
            Kind::Unix | Kind::UnixPackets | Kind::UnixSyslog => {
                format!("{}#{}", self.base_name, self.accepted)
            }
        };
        match self.kind {
            Kind::UnixPackets => PacketSource::of_connection(connection, name, peer, options),
            Kind::UnixSyslog => Reader::of_syslog(connection, name, peer, options),
            Kind::Unix | Kind::Tcp => Reader::of_connection(connection, name, peer, options),
        }
    }

    fn rest(&mut self, errno: Errno, collector: &mut Collector) {
        let now = Instant::now();
        self.pause = Some(now + PAUSE);
        let before = self.reported.replace((errno, now));
        if before.is_none_or(|(reported, at)| reported != errno || now - at > FORGET) {
            let advice = match errno {
                Errno::MFILE | Errno::NFILE => {
                    "raise the limit of open files (ulimit -n); senders wait meanwhile"
                }
                _ => "senders wait, and weir tries again",
            };
            let text = Error::call("accept", &self.address, &io_error(errno), advice).to_string();
            collector.messages.push(text);
        }
    }
}

impl Source for Listener {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn wants_poll(&self) -> bool {
        self.pause.is_none()
    }

    fn read(&mut self, collector: &mut Collector, added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        for _ in 0..ACCEPTS {
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(connection) => {
                    let source = self.source_of(connection, &collector.options);
                    added.push(source);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    self.rest(errno, collector);
                    break;
                }
            }
        }
        SourceProgress::Open
    }

    fn resume(&mut self, _collector: &mut Collector) -> SourceProgress {
        SourceProgress::Open
    }

    fn deadline(&self, _options: &LogOptions) -> Option<Instant> {
        self.pause
    }

    fn on_time(&mut self, now: Instant, _collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) {
        if self.pause.is_some_and(|at| at <= now) {
            self.pause = None;
        }
    }

    fn begin_end(&mut self) {
        self.name = None;
    }

    fn finish(&mut self, _collector: &mut Collector) -> SourceProgress {
        SourceProgress::Ended
    }

    fn intake(&self) -> Option<&Intake> {
        None
    }
}
