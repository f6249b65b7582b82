//! Sockets of which each message is a record: datagrams, and connections of sequenced packets.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::ack::AckSender;
use super::listener::base_name;
use super::socket_path::{OwnName, bind_socket};
use super::{Source, SourceProgress};
use crate::backlog::BacklogForm;
use crate::collector::Collector;
use crate::error::{Error, io_error};
use crate::format::Peer;
use crate::framing::{Framing, Mark};
use crate::intake::Intake;
use crate::options::{LogOptions, Overflow};

/// A source of messages.
pub(super) struct PacketSource {
    socket: OwnedFd,
    intake: Intake,
    buffer: Vec<u8>,
    /// A message that the log did not take yet, and its mark.
    held: Option<(Vec<u8>, Option<Mark>, Option<Peer>)>,
    is_connection: bool,
    acks: AckSender,
    ended: bool,
    /// The kernel's count of dropped datagrams at the last message.
    kernel_drops: Option<u32>,
    _name: Option<OwnName>,
}

/// The most messages that one read takes.
const MESSAGES: usize = 256;

/// The receive buffer that a UDP socket asks for; the kernel caps it (net.core.rmem_max).
const UDP_BUFFER: usize = 8 << 20;

pub(super) fn unix(path: &Path, options: &LogOptions, is_syslog: bool) -> Result<Box<dyn Source>, Error> {
    let (socket, name) = bind_socket(path, SocketType::DGRAM, options.socket_mode)?;
    let failed = |errno| {
        Error::call("setsockopt", &crate::error::shown(path), &io_error(errno), "use another kind of socket")
    };
    sockopt::set_socket_passcred(&socket, true).map_err(failed)?;
    let mut source = PacketSource::new(socket, base_name(path), None, Some(name), options);
    source.intake.is_syslog = is_syslog;
    Ok(Box::new(source))
}

pub(super) fn udp(
    address: SocketAddr,
    options: &LogOptions,
    is_syslog: bool,
) -> Result<Box<dyn Source>, Error> {
    let name = format!("udp:{address}");
    let failed = |errno| Error::call("bind", &name, &io_error(errno), "choose another port or address");
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
        .map_err(failed)?;
    let _ = sockopt::set_socket_recv_buffer_size(&socket, UDP_BUFFER);
    weir_sys::datagram::report_drops(socket.as_fd())
        .map_err(|error| Error::call("setsockopt", &name, &error, "use another kind of socket"))?;
    bind(&socket, &address).map_err(failed)?;
    let mut source = PacketSource::new(socket, name, None, None, options);
    source.intake.is_syslog = is_syslog;
    Ok(Box::new(source))
}

impl PacketSource {
    fn new(
        socket: OwnedFd,
        name: String,
        peer: Option<Peer>,
        own_name: Option<OwnName>,
        options: &LogOptions,
    ) -> Self {
        let most = match options.framing {
            Framing::Length(length) => options.max_record_bytes.max(length),
            Framing::Delimiter(_) | Framing::Prefix(_) => options.max_record_bytes,
        };
        Self {
            socket,
            intake: Intake::new(name, peer, options),
            // One byte more than the maximum shows that a message is too long.
            buffer: vec![0; most.min(1 << 20) + 1],
            held: None,
            is_connection: false,
            acks: AckSender::default(),
            ended: false,
            kernel_drops: None,
            _name: own_name,
        }
    }

    /// Returns a connection of sequenced packets.
    pub(super) fn of_connection(
        fd: OwnedFd,
        name: String,
        peer: Option<Peer>,
        options: &LogOptions,
    ) -> Box<dyn Source> {
        let mut source = Self { is_connection: true, ..Self::new(fd, name, peer, None, options) };
        source.intake.acks = options.ack;
        Box::new(source)
    }

    fn receive_one(&mut self, collector: &mut Collector) -> Result<bool, Errno> {
        let received = weir_sys::datagram::receive(self.socket.as_fd(), &mut self.buffer);
        let message =
            received.map_err(|error| Errno::from_raw_os_error(error.raw_os_error().unwrap_or(0)))?;
        if message.bytes == 0 && self.is_connection {
            return Ok(false);
        }
        self.count_kernel_drops(message.dropped, collector);
        let most = self.buffer.len() - 1;
        let mark = (message.truncated || message.bytes > most).then_some(Mark::Cut);
        let mut bytes = &self.buffer[..message.bytes.min(most)];
        if let Framing::Delimiter(delimiter) = collector.options.framing {
            // Senders of lines often add the delimiter, which the log adds too.
            bytes = bytes.strip_suffix(&[delimiter]).unwrap_or(bytes);
        }
        self.intake.counts.bytes += message.bytes as u64;
        let peer = message.credentials.map(|(pid, uid)| Peer { pid, uid });
        if peer.is_some() {
            self.intake.set_peer(peer);
        }
        if collector.put_message(&mut self.intake, bytes, mark).is_err() {
            match collector.options.overflow {
                Overflow::Block | Overflow::Spill => self.held = Some((bytes.to_vec(), mark, peer)),
                // A datagram is small and comes alone: there is no older one in memory to drop instead.
                Overflow::DropOldest | Overflow::DropNewest => self.intake.drop_records(1),
            }
        }
        Ok(true)
    }

    fn count_kernel_drops(&mut self, total: Option<u32>, collector: &mut Collector) {
        let Some(total) = total else { return };
        let lost = total.wrapping_sub(self.kernel_drops.replace(total).unwrap_or(0));
        if lost > 0 {
            self.intake.counts.dropped += u64::from(lost);
            let text = format!("weir: {lost} records of {} dropped by the kernel", self.intake.name);
            collector.put_loss(&text);
            collector.messages.push(text);
        }
    }
}

impl Source for PacketSource {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn wants_poll(&self) -> bool {
        !self.ended && !self.intake.backlog.is_full()
    }

    fn is_connection(&self) -> bool {
        self.is_connection
    }

    fn read(&mut self, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        for _ in 0..MESSAGES {
            if self.held.is_some() || self.intake.backlog.is_full() {
                break;
            }
            match self.receive_one(collector) {
                Ok(true) | Err(Errno::INTR) => {}
                Ok(false) => {
                    self.ended = true;
                    break;
                }
                Err(Errno::AGAIN) => break,
                Err(errno) => {
                    collector
                        .messages
                        .push(format!("recvmsg {}: {errno}: the source ends here", self.intake.name));
                    self.ended = true;
                    break;
                }
            }
        }
        self.resume(collector)
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        if let Some((bytes, mark, peer)) = self.held.take() {
            self.intake.set_peer(peer);
            if collector.put_record(&mut self.intake, &bytes, mark).is_err() {
                self.held = Some((bytes, mark, peer));
            }
        }
        collector.replay_messages(&mut self.intake);
        collector.report_dropped(&mut self.intake);
        let is_over = self.ended
            && self.held.is_none()
            && self.intake.held_bytes() == 0
            && !self.intake.has_unacknowledged();
        if is_over { SourceProgress::Ended } else { SourceProgress::Open }
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.ended = true;
        self.resume(collector)
    }

    fn save_backlog(&mut self, collector: &mut Collector) {
        let form = if self.intake.is_syslog { BacklogForm::Syslog } else { BacklogForm::Messages };
        collector.save_backlog(&mut self.intake, form);
    }

    fn on_synced(&mut self, records: u64) {
        self.acks.send(&self.socket, self.intake.acknowledge(records));
    }

    fn on_sync_failed(&mut self) {
        self.intake.durable.clear();
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{LogSink, SinkOptions};

    #[test]
    fn a_notice_of_drops_never_shifts_records_of_one_length() {
        let dir = tempfile::tempdir().expect("a directory");
        for (framing, notices) in
            [(Framing::Length(8), 0), (Framing::Prefix(2), 0), (Framing::Delimiter(b'\n'), 1)]
        {
            let options =
                LogOptions { framing, ..LogOptions::of_lines(&dir.path().join(format!("{framing:?}"))) };
            let (socket, _peer) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
            let mut source = PacketSource::new(socket.into(), "udp".into(), None, None, &options);
            let sink = LogSink::open(SinkOptions::of(&options)).expect("opened");
            let mut collector = Collector::new(options, sink);
            source.count_kernel_drops(Some(3), &mut collector);
            assert_eq!((collector.sink.counts().records, source.intake.counts.dropped), (notices, 3));
            assert_eq!(collector.messages, ["weir: 3 records of udp dropped by the kernel"]);
        }
    }
}
