//! `--overflow spill`: while the log cannot be written, a source's bytes go to its backlog, and into the log afterwards.

use super::Collector;
use crate::format::Peer;
use crate::framing::Mark;
use crate::intake::{CHUNK, Intake};
use crate::options::Overflow;
use crate::sink::Stalled;

/// Before each message in a backlog: its length, its mark, and the sender's PID and UID. A PID of 0 is no sender.
const HEADER: usize = 13;

impl Collector {
    /// Returns whether new bytes of the source go to its backlog.
    pub(super) fn spills(&self, intake: &Intake) -> bool {
        self.options.overflow == Overflow::Spill && (self.sink.is_stalled() || !intake.backlog.is_empty())
    }

    /// Appends bytes to the backlog of the source.
    pub(super) fn spill(&mut self, intake: &mut Intake, bytes: &[u8]) {
        let (memory, options) = (self.options.memory_bytes, &self.options.spill);
        if let Err(error) = intake.backlog.push(bytes, memory, options, &intake.name) {
            let directory = options.directory.display();
            self.messages.push(format!(
                "spill {}: {directory}: {}: the source waits; nothing is lost",
                intake.name,
                weir_sys::errno_text(&error)
            ));
        }
    }

    /// Appends the bytes of the backlog to the log, until it is empty or the sink stalls.
    pub(super) fn replay(&mut self, intake: &mut Intake) {
        while !self.sink.is_stalled() && !intake.backlog.is_empty() {
            match intake.backlog.take(CHUNK) {
                Ok(bytes) => intake.held.extend(bytes),
                Err(error) => return self.report_unreadable(intake, &error),
            }
            self.divide_held(intake);
        }
    }

    /// Appends a message, or keeps it in the backlog.
    ///
    /// # Errors
    /// The sink has stalled, and there is no backlog.
    pub(crate) fn put_message(
        &mut self,
        intake: &mut Intake,
        bytes: &[u8],
        mark: Option<Mark>,
    ) -> Result<(), Stalled> {
        if !self.spills(intake) && intake.held.is_empty() {
            match self.put_record(intake, bytes, mark) {
                Err(Stalled) if self.options.overflow == Overflow::Spill => {}
                result => return result,
            }
        }
        let message = encode(bytes, mark, intake.peer);
        self.spill(intake, &message);
        Ok(())
    }

    /// Appends the messages of the backlog to the log, until it is empty or the sink stalls.
    pub(crate) fn replay_messages(&mut self, intake: &mut Intake) {
        while !self.sink.is_stalled() {
            if self.put_held_messages(intake).is_err() || intake.backlog.is_empty() {
                break;
            }
            match intake.backlog.take(CHUNK) {
                Ok(bytes) => intake.held.extend(bytes),
                Err(error) => return self.report_unreadable(intake, &error),
            }
        }
    }

    /// Appends the whole messages of the held bytes, with their senders.
    ///
    /// # Errors
    /// The sink has stalled; the rest stays.
    fn put_held_messages(&mut self, intake: &mut Intake) -> Result<(), Stalled> {
        let (mut held, peer) = (std::mem::take(&mut intake.held), intake.peer);
        let (mut at, mut result) = (0, Ok(()));
        while let Some((message, consumed)) = decode(&held[at..]) {
            intake.peer = message.peer;
            result = self.put_record(intake, message.bytes, message.mark);
            if result.is_err() {
                break;
            }
            at += consumed;
        }
        held.drain(..at);
        (intake.held, intake.peer) = (held, peer);
        result
    }

    fn report_unreadable(&mut self, intake: &Intake, error: &std::io::Error) {
        let bytes = intake.backlog.bytes();
        let text = weir_sys::errno_text(error);
        self.messages.push(format!("spill {}: {text}: {bytes} bytes are not in the log", intake.name));
    }

    /// At the end: saves what the log did not take in a file, and says where. `messages` are written as lines.
    pub(crate) fn save_backlog(&mut self, intake: &mut Intake, messages: bool) {
        if self.options.overflow != Overflow::Spill || intake.held_bytes() == 0 {
            return;
        }
        let (bytes, held) = (intake.held_bytes(), intake.held.clone());
        let backlog = std::mem::take(&mut intake.backlog);
        let convert: fn(&mut Vec<u8>) -> Vec<u8> = if messages { lines } else { std::mem::take };
        let text = match backlog.save(held, &self.options.spill, &intake.name, convert) {
            Ok(path) => {
                intake.held.clear();
                format!("{}: {bytes} bytes are not in the log; they are in {}", intake.name, path.display())
            }
            Err(error) => format!("spill {}: {}", intake.name, weir_sys::errno_text(&error)),
        };
        self.messages.push(text);
    }
}

/// A message in a backlog.
struct Message<'a> {
    bytes: &'a [u8],
    mark: Option<Mark>,
    peer: Option<Peer>,
}

fn encode(bytes: &[u8], mark: Option<Mark>, peer: Option<Peer>) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + bytes.len());
    message.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_ne_bytes());
    message.push(match mark {
        None => 0,
        Some(Mark::Unfinished) => 1,
        Some(Mark::Split) => 2,
        Some(Mark::Cut) => 3,
    });
    message.extend(peer.map_or(0, |peer| peer.pid).to_ne_bytes());
    message.extend(peer.map_or(0, |peer| peer.uid).to_ne_bytes());
    message.extend(bytes);
    message
}

/// Returns the first message and its length with the header, if it is there.
fn decode(data: &[u8]) -> Option<(Message<'_>, usize)> {
    let header = data.get(..HEADER)?;
    let number = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let end = HEADER + number(0) as usize;
    let mark = [None, Some(Mark::Unfinished), Some(Mark::Split), Some(Mark::Cut)];
    let pid = number(5).cast_signed();
    let message = Message {
        bytes: data.get(HEADER..end)?,
        mark: mark.get(usize::from(header[4])).copied().flatten(),
        peer: (pid != 0).then(|| Peer { pid, uid: number(9) }),
    };
    Some((message, end))
}

/// Removes the whole messages, and returns their bytes as lines.
fn lines(data: &mut Vec<u8>) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some((message, consumed)) = decode(&data[at..]) {
        out.extend(message.bytes);
        out.push(b'\n');
        at += consumed;
    }
    data.drain(..at);
    out
}
