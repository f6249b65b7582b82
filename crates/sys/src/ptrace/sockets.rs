//! Predicts the effect of a stop on a call on another process's socket. With a timeout, a blocked call fails with EINTR
//! (signal(7)), and a large send into a stream may be partly done. The tracer asks the socket itself, of which it gets a
//! copy by pidfd_getfd(2) (Linux 5.6).

use rustix::net::sockopt::{Timeout, socket_domain, socket_protocol, socket_timeout, socket_type};
use rustix::net::{AddressFamily, SocketType, ipproto};

use crate::foreign_descriptors::duplicate;

/// The size up to which a send on a UNIX stream is atomic: half of the smallest send buffer (SOCK_MIN_SNDBUF of the kernel's
/// include/net/sock.h), minus its overhead.
const ATOMIC_SEND_BYTES: u64 = 2048;

/// The blocking behaviour of another process's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    restarts_receive: bool,
    restarts_send: bool,
    /// The size up to which a send is atomic.
    atomic_bytes: u64,
}

impl Socket {
    /// Queries a descriptor. Returns None if it is no socket, of an unsupported family, or may not be copied.
    pub fn of(pid: u32, fd: u64) -> Option<Self> {
        let socket = duplicate(pid, i32::try_from(fd).ok()?).ok()?;
        let kind = socket_type(&socket).ok()?;
        let protocol = || socket_protocol(&socket).ok()?;
        let atomic_bytes = match socket_domain(&socket).ok()? {
            AddressFamily::UNIX if kind == SocketType::STREAM => ATOMIC_SEND_BYTES,
            AddressFamily::UNIX => u64::MAX,
            // TCP accepts any number of bytes.
            AddressFamily::INET | AddressFamily::INET6 if protocol() == Some(ipproto::TCP) => 1,
            // With UDP_CORK (udp(7)), an interrupted send discards the collected bytes.
            AddressFamily::INET | AddressFamily::INET6 if protocol() == Some(ipproto::UDP) => 0,
            _ => return None,
        };
        let has_no_timeout = |direction| socket_timeout(&socket, direction) == Ok(None);
        let (restarts_receive, restarts_send) =
            (has_no_timeout(Timeout::Recv), has_no_timeout(Timeout::Send));
        Some(Self { restarts_receive, restarts_send, atomic_bytes })
    }

    /// Returns whether the kernel restarts a blocked receive or accept after a stop.
    pub fn restarts_receive(&self) -> bool {
        self.restarts_receive
    }

    /// Returns whether a send of this size is atomic, and the kernel restarts it after a stop.
    pub fn sends_atomically(&self, bytes: u64) -> bool {
        self.restarts_send && bytes <= self.atomic_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::time::Duration;

    fn of(socket: &impl AsRawFd) -> Option<Socket> {
        Socket::of(std::process::id(), socket.as_raw_fd() as u64)
    }

    #[test]
    fn small_stream_sends_and_all_datagrams_are_atomic() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let datagrams = UnixDatagram::unbound().unwrap();
        let (stream, datagrams) = (of(&stream).unwrap(), of(&datagrams).unwrap());
        assert!(stream.restarts_receive() && stream.sends_atomically(1) && stream.sends_atomically(2048));
        assert!(!stream.sends_atomically(2049) && datagrams.sends_atomically(100_000));
        let far = of(&TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        assert!(far.restarts_receive() && far.sends_atomically(1) && !far.sends_atomically(2));
        let udp = of(&UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        assert!(udp.restarts_receive() && !udp.sends_atomically(1));
    }

    #[test]
    fn a_timeout_forbids_stops_in_that_direction() {
        let (stream, _other) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let socket = of(&stream).unwrap();
        assert!(!socket.restarts_receive() && socket.sends_atomically(1));
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        assert!(!of(&stream).unwrap().sends_atomically(1));
    }

    #[test]
    fn other_descriptors_are_no_sockets() {
        assert_eq!(of(&std::fs::File::open("/dev/null").unwrap()), None);
        assert_eq!(Socket::of(std::process::id(), 99_999), None);
        assert_eq!(Socket::of(u32::MAX >> 1, 0), None);
    }
}
