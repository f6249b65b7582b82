//! Acknowledgements of `--ack`: after a sync a connection gets the number of its records that are durable, and a newline.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Sends acknowledgements to one connection. A packet of a seqpacket socket is one acknowledgement.
#[derive(Debug, Default)]
pub(super) struct AckSender {
    unsent: Option<u64>,
}

impl AckSender {
    /// Sends the newest count, if there is one. A peer that does not read gets the next one instead.
    pub(super) fn send(&mut self, socket: &OwnedFd, count: Option<u64>) {
        let Some(count) = count.or(self.unsent) else { return };
        let text = format!("{count}\n");
        self.unsent = match send(socket, text.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => Some(count),
            _ => None,
        };
    }
}
