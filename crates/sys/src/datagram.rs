//! Receives datagrams with the process ID of the sender and the number of datagrams that the kernel has dropped before.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// A datagram that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// The length in the buffer, in bytes.
    pub bytes: usize,
    /// The datagram was longer than the buffer.
    pub truncated: bool,
    /// PID and UID of the sender, if the socket has SO_PASSCRED.
    pub credentials: Option<(i32, u32)>,
    /// Datagrams that the kernel dropped since the socket exists (SO_RXQ_OVFL, socket(7)); the count wraps.
    pub dropped: Option<u32>,
}

/// Makes the kernel report dropped datagrams with each received one.
///
/// # Errors
/// As setsockopt(2).
pub fn report_drops(fd: BorrowedFd) -> io::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: the value is an int, and its size is given.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RXQ_OVFL,
            (&raw const one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The space for the control messages of one datagram: credentials and the count of drops.
#[repr(C, align(8))]
struct ControlBuffer([u8; 128]);

/// Receives one datagram without waiting. Closes descriptors that its sender has attached (SCM_RIGHTS, unix(7)).
///
/// # Errors
/// As recvmsg(2): EAGAIN if there is none.
pub fn receive(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<Datagram> {
    let mut control = ControlBuffer([0; 128]);
    let mut segment = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: zeroed is a valid msghdr; its pointers lead to memory that is alive during the call and of the given sizes.
    let (count, message) = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut segment;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let count =
            libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
        (count, message)
    };
    let bytes = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let mut datagram =
        Datagram { bytes, truncated: message.msg_flags & libc::MSG_TRUNC != 0, ..Datagram::default() };
    // SAFETY: the kernel has filled `control`, which is aligned, with msg_controllen bytes of control messages; the macros
    // stay within them, and each type is read from a message that says that it has it. Received descriptors have no other owner.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    let credentials: libc::ucred = data.cast::<libc::ucred>().read_unaligned();
                    datagram.credentials = Some((credentials.pid, credentials.uid));
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    datagram.dropped = Some(data.cast::<u32>().read_unaligned());
                }
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    // The length includes the header. With MSG_CTRUNC it covers only the descriptors that were installed.
                    let length: usize = (*header).cmsg_len as _;
                    for index in 0..(length - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>() {
                        let fd = data.cast::<RawFd>().add(index).read_unaligned();
                        drop(OwnedFd::from_raw_fd(fd));
                    }
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(datagram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_datagram_has_its_length_and_its_sender() {
        let (a, b) = UnixDatagram::pair().expect("a pair");
        rustix::net::sockopt::set_socket_passcred(&b, true).expect("credentials");
        a.send(b"hello").expect("sent");
        a.send(b"").expect("sent");
        let mut buffer = [0; 3];
        let first = receive(b.as_fd(), &mut buffer).expect("received");
        assert_eq!((first.bytes, first.truncated, &buffer), (3, true, b"hel"));
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(first.credentials, Some((std::process::id() as i32, uid)));
        assert_eq!(receive(b.as_fd(), &mut buffer).expect("received").bytes, 0);
        assert_eq!(receive(b.as_fd(), &mut buffer).expect_err("empty").kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn attached_descriptors_are_closed() {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        use std::io::{IoSlice, Read};
        use std::mem::MaybeUninit;
        use std::os::unix::net::UnixStream;
        use std::time::Duration;
        let (a, b) = UnixDatagram::pair().expect("a pair");
        rustix::net::sockopt::set_socket_passcred(&b, true).expect("credentials");
        // More than the control buffer has room for, and fewer.
        for count in [1, 3, 100] {
            let (sent, mut end) = UnixStream::pair().expect("a pair");
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let descriptors = vec![sent.as_fd(); count];
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
            sendmsg(&a, &[IoSlice::new(b"hello")], &mut control, SendFlags::empty()).expect("sent");
            drop(sent);
            let received = receive(b.as_fd(), &mut [0; 10]).expect("received");
            assert!(received.bytes == 5 && received.credentials.is_some(), "{count}: {received:?}");
            end.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
            assert_eq!(end.read(&mut [0]).expect("the end"), 0, "{count}: the last copy is closed");
        }
    }

    #[test]
    fn the_kernel_counts_its_drops() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
        rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 4096).expect("a small buffer");
        report_drops(receiver.as_fd()).expect("reported");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let address = receiver.local_addr().expect("an address");
        for _ in 0..200 {
            sender.send_to(&[7; 1000], address).expect("sent");
        }
        let mut buffer = [0; 2000];
        let mut received = 0;
        while receive(receiver.as_fd(), &mut buffer).is_ok() {
            received += 1;
        }
        sender.send_to(b"last", address).expect("sent");
        let last = receive(receiver.as_fd(), &mut buffer).expect("received");
        assert_eq!((last.bytes, last.dropped), (4, Some(200 - received)));
        assert!(received < 200, "{received}");
    }
}
