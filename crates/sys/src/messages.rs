//! Messages between weir and a child that it can abandon.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use crate::expendable::NoAnswer;

/// The largest answer. A damaged length must not make the parent allocate more.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// Sends a message: its length in 8 bytes, then its bytes.
pub(crate) fn send(socket: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(&[&(bytes.len() as u64).to_le_bytes(), bytes].concat())
}

/// Receives a message; None at the end of the stream.
pub(crate) fn receive(socket: &mut UnixStream) -> Option<Vec<u8>> {
    let mut length = [0; 8];
    socket.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; usize::try_from(u64::from_le_bytes(length)).ok()?];
    socket.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// Appends bytes that have arrived to a message whose length is `wanted`, once that is known.
pub(crate) fn receive_part(
    socket: &mut UnixStream,
    message: &mut Vec<u8>,
    wanted: &mut Option<usize>,
) -> Result<(), NoAnswer> {
    let mut part = [0; 16 << 10];
    match socket.read(&mut part) {
        Ok(0) => return Err(NoAnswer::Ended),
        Ok(length) => message.extend(&part[..length]),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(_) => return Err(NoAnswer::Ended),
    }
    if wanted.is_none() && message.len() >= 8 {
        let length = message.drain(..8).collect::<Vec<u8>>();
        let length = length.first_chunk().map_or(u64::MAX, |length| u64::from_le_bytes(*length));
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_ANSWER_BYTES);
        *wanted = Some(length.ok_or(NoAnswer::Ended)?);
    }
    Ok(())
}
