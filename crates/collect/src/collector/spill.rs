//! `--overflow spill`: while the log cannot be written, a source's bytes go to its backlog, and into the log afterwards.

use super::Collector;
use super::spent::held_bytes;
use crate::backlog::{Backlog, BacklogForm, Pushed};
use crate::error::{bytes_are, shown};
use crate::format::Peer;
use crate::framing::{Framing, Mark};
use crate::intake::{CHUNK, Intake};
use crate::multiline::Joiner;
use crate::options::Overflow;
use crate::sink::Stalled;

/// Before each message in a backlog: its length, its mark, and the sender's PID and UID. A PID of 0 is no sender.
const HEADER: usize = 13;

/// The longest message: see the buffer of a packet source.
const MESSAGE: usize = 1 << 20;

/// The future of saved records.
pub(super) const NEXT: &str = "the next 'weir log' of this log with --overflow spill appends them";

impl Collector {
    /// Returns whether new bytes of the source go to its backlog.
    pub(super) fn spills(&self, intake: &Intake) -> bool {
        self.options.overflow == Overflow::Spill && (self.sink.is_stalled() || !intake.backlog.is_empty())
    }

    /// Appends bytes to the backlog of the source.
    pub(super) fn spill(&mut self, intake: &mut Intake, bytes: &[u8], form: BacklogForm) {
        let (memory, options) = (self.options.memory_bytes, &self.options.spill);
        let next = if form.is_stream() { CHUNK } else { HEADER + MESSAGE };
        let pushed = Pushed { held: &mut intake.held, bytes, form, next, source: &intake.name };
        if let Err(error) = intake.backlog.push(pushed, memory, options) {
            let directory = shown(&options.directory);
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
            match intake.backlog.take(CHUNK, held_bytes(intake), self.sink.progress()) {
                Ok(bytes) => intake.held.extend(bytes),
                Err(error) => return self.report_unreadable(intake, &error),
            }
            self.divide_held(intake);
        }
        self.take_spent_file(intake);
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
        let form = if intake.is_syslog { BacklogForm::Syslog } else { BacklogForm::Messages };
        self.spill(intake, &message, form);
        Ok(())
    }

    /// Appends the messages of the backlog to the log, until it is empty or the sink stalls.
    pub(crate) fn replay_messages(&mut self, intake: &mut Intake) {
        while !self.sink.is_stalled() {
            if self.put_held_messages(intake).is_err() || intake.backlog.is_empty() {
                break;
            }
            match intake.backlog.take(CHUNK, held_bytes(intake), self.sink.progress()) {
                Ok(bytes) => intake.held.extend(bytes),
                Err(error) => return self.report_unreadable(intake, &error),
            }
        }
        self.take_spent_file(intake);
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

    /// Appends records that an earlier collector saved in the form of the log. Returns whether nothing is left.
    pub(crate) fn replay_unwritten(&mut self, intake: &mut Intake) -> bool {
        while !intake.backlog.is_empty() {
            match intake.backlog.take(usize::MAX, held_bytes(intake), self.sink.progress()) {
                Ok(bytes) => intake.held.extend(bytes),
                Err(error) => {
                    self.report_unreadable(intake, &error);
                    return false;
                }
            }
        }
        if !intake.held.is_empty() && self.sink.append_saved(&intake.held) {
            intake.held.clear();
        }
        intake.ended = true;
        self.take_spent_file(intake);
        intake.held.is_empty()
    }

    /// Leaves the bytes that the sink accepted and cannot write in a file, and reports its path. Returns their number; 0 without
    /// `--overflow spill`.
    pub(crate) fn save_unwritten(&mut self) -> u64 {
        let bytes = self.sink.pending_bytes();
        if self.options.overflow != Overflow::Spill || self.options.spill.log.is_none() || bytes == 0 {
            return 0;
        }
        let spill = &self.options.spill;
        let mut place = None;
        let saved = self.sink.save_unwritten(|bytes| {
            let saved = Backlog::default().save(bytes, BacklogForm::Log, spill, "log", true);
            place = saved.path;
            saved.error.map_or(Ok(()), Err)
        });
        self.has_saved_unwritten = saved.is_ok();
        let error = saved.as_ref().err().map(weir_sys::errno_text).unwrap_or_default();
        self.messages.push(match place {
            Some(path) => format!("the log: its last {} in {}; {NEXT}", bytes_are(bytes), shown(&path)),
            None => format!("spill the log: {error}: its last {} lost: no file takes them", bytes_are(bytes)),
        });
        bytes
    }

    fn report_unreadable(&mut self, intake: &Intake, error: &std::io::Error) {
        let bytes = bytes_are(intake.backlog.bytes());
        let text = weir_sys::errno_text(error);
        self.messages.push(format!("spill {}: {text}: {bytes} not in the log", intake.name));
    }

    /// Leaves the bytes of a source that the log did not accept in a file, and reports its path. Called at the end of the collector.
    pub(crate) fn save_backlog(&mut self, intake: &mut Intake, form: BacklogForm) {
        if self.options.overflow != Overflow::Spill || !intake.has_held() {
            return;
        }
        let mut held = std::mem::take(&mut intake.held);
        if let Some(mut record) = intake.joiner.as_mut().and_then(Joiner::take) {
            if let Framing::Delimiter(delimiter) = self.options.framing {
                record.push(delimiter);
            }
            held.splice(0..0, record);
        }
        let backlog = std::mem::take(&mut intake.backlog);
        let (name, bytes) = (&intake.name, held.len() as u64 + backlog.bytes());
        let is_rest_in_log = self.has_saved_unwritten || self.sink.pending_bytes() == 0;
        let saved = backlog.save(&held, form, &self.options.spill, name, is_rest_in_log);
        let error = saved.error.as_ref().map(weir_sys::errno_text).unwrap_or_default();
        if let Some(path) = &saved.path {
            let (saved_bytes, path) = (bytes - saved.lost, shown(path));
            let (saved_are, they_are) =
                (bytes_are(saved_bytes), if saved_bytes == 1 { "it is" } else { "they are" });
            let next = match self.options.spill.log {
                Some(_) => NEXT,
                None => "its first line is of weir",
            };
            self.messages.push(format!("{name}: {saved_are} not in the log; {they_are} in {path}; {next}"));
        }
        match (saved.lost, saved.error) {
            (0, None) => {}
            (0, Some(_)) => {
                self.messages.push(format!("spill {name}: sync: {error}: a power cut may lose the file"))
            }
            (lost, _) => {
                self.messages
                    .push(format!("spill {name}: {error}: {} lost: no file takes them", bytes_are(lost)));
            }
        }
        intake.saved = bytes;
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
