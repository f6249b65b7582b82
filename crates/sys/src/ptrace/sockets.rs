//! What a stop would do to a call on a socket of another process. Timeouts make a wait end with EINTR, and a large send
//! into a stream may have given away a part of it by then. The socket itself says which of that it can be: a tracer may
//! have it for a moment (pidfd_getfd(2), Linux 5.6).

use rustix::net::sockopt::{Timeout, socket_domain, socket_protocol, socket_timeout, socket_type};
use rustix::net::{AddressFamily, SocketType, ipproto};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// The least that any stream between two processes of one machine takes in one piece, or not at all: half of the
/// smallest send buffer that the kernel allows, less what it needs itself.
const PIECE: u64 = 2048;

/// A socket of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    receives: bool,
    sends: bool,
    /// What is sent at once if it is no longer than this.
    piece: u64,
}

impl Socket {
    /// None: it is none, of a kind that is not known well enough, or it cannot be asked.
    pub fn of(pid: u32, fd: u64) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
        let socket = pidfd_getfd(process, i32::try_from(fd).ok()?, PidfdGetfdFlags::empty()).ok()?;
        let kind = socket_type(&socket).ok()?;
        let protocol = || socket_protocol(&socket).ok()?;
        let piece = match socket_domain(&socket).ok()? {
            AddressFamily::UNIX if kind == SocketType::STREAM => PIECE,
            AddressFamily::UNIX => u64::MAX,
            // A segment may end behind any byte.
            AddressFamily::INET | AddressFamily::INET6 if protocol() == Some(ipproto::TCP) => 1,
            // One that gathers a datagram (UDP_CORK) throws away what it has when it is broken off.
            AddressFamily::INET | AddressFamily::INET6 if protocol() == Some(ipproto::UDP) => 0,
            _ => return None,
        };
        let patient = |of| socket_timeout(&socket, of) == Ok(None);
        Some(Self { receives: patient(Timeout::Recv), sends: patient(Timeout::Send), piece })
    }

    /// Whether a wait for bytes or connections goes on behind a stop.
    pub fn waits_to_receive(&self) -> bool {
        self.receives
    }

    /// Whether so many bytes are sent all at once, and a wait for that goes on behind a stop.
    pub fn sends_whole(&self, bytes: u64) -> bool {
        self.sends && bytes <= self.piece
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
    fn streams_take_small_pieces_whole_and_datagrams_all() {
        let (stream, _other) = UnixStream::pair().unwrap();
        let datagrams = UnixDatagram::unbound().unwrap();
        let (stream, datagrams) = (of(&stream).unwrap(), of(&datagrams).unwrap());
        assert!(stream.waits_to_receive() && stream.sends_whole(1) && stream.sends_whole(2048));
        assert!(!stream.sends_whole(2049) && datagrams.sends_whole(100_000));
        let far = of(&TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        assert!(far.waits_to_receive() && far.sends_whole(1) && !far.sends_whole(2));
        let udp = of(&UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        assert!(udp.waits_to_receive() && !udp.sends_whole(1));
    }

    #[test]
    fn one_with_a_timeout_is_not_to_be_stopped_in_that_direction() {
        let (stream, _other) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let seen = of(&stream).unwrap();
        assert!(!seen.waits_to_receive() && seen.sends_whole(1));
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        assert!(!of(&stream).unwrap().sends_whole(1));
    }

    #[test]
    fn what_is_no_socket_is_none() {
        assert_eq!(of(&std::fs::File::open("/dev/null").unwrap()), None);
        assert_eq!(Socket::of(std::process::id(), 99_999), None);
        assert_eq!(Socket::of(u32::MAX >> 1, 0), None);
    }
}
