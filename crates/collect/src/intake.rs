//! The bytes of one source that are no record in the log yet, and its counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::backlog::Backlog;
use crate::format::Peer;
use crate::framing::Splitter;
use crate::multiline::Joiner;
use crate::options::LogOptions;
use crate::sink::LastGroup;

/// The most bytes that one read takes, so that sources take turns.
pub(crate) const CHUNK: usize = 128 << 10;

/// How long a record of several lines waits for its next line.
const JOIN: Duration = Duration::from_secs(1);

/// The counts of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntakeCounts {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Records that were dropped because the memory was full.
    pub(crate) dropped: u64,
    /// Records that were longer than the maximum, or do not fit the records of the log, and were refused.
    pub(crate) refused: u64,
    /// Records in the log with a mark.
    pub(crate) unfinished: u64,
    pub(crate) split: u64,
    pub(crate) cut: u64,
}

/// The bytes of a source that are no record in the log yet, and its counts.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) name: String,
    pub(crate) peer: Option<Peer>,
    pub(crate) splitter: Splitter,
    pub(crate) joiner: Option<Joiner>,
    pub(crate) held: Vec<u8>,
    /// Bytes behind the held ones, with `--overflow spill`.
    pub(crate) backlog: Backlog,
    /// Bytes that were left in a file at the end, or lost.
    pub(crate) saved: u64,
    /// Of the held bytes: so many are whole records that wait for the sink ([`Overflow`] other than block).
    pub(crate) kept: usize,
    /// The bytes behind the kept ones are the rest of a dropped record, which this splitter skips.
    pub(crate) dropped_rest: Option<Splitter>,
    /// Dropped records that the log does not mention yet.
    pub(crate) unreported: u64,
    /// The number of the first record.
    pub(crate) first_sequence: u64,
    /// The source has ended: no bytes come after the held ones.
    pub(crate) ended: bool,
    pub(crate) counts: IntakeCounts,
    pub(crate) last_input: Instant,
    /// The records are messages of syslog.
    pub(crate) is_syslog: bool,
    /// The source gets acknowledgements.
    pub(crate) acks: bool,
    /// For `--ack`: the last group of records that has some of this source.
    pub(crate) last_group: LastGroup,
    /// For `--ack`: the number of records of this source at a number of records of the log.
    pub(crate) durable: VecDeque<(u64, u64)>,
}

impl Intake {
    pub(crate) fn new(name: String, peer: Option<Peer>, options: &LogOptions) -> Self {
        Self {
            name,
            peer,
            splitter: Splitter::new(options.framing, options.max_record_bytes, options.oversize),
            joiner: options.multiline.clone().map(|start| Joiner::new(start, options.max_record_bytes)),
            held: Vec::new(),
            backlog: Backlog::default(),
            saved: 0,
            kept: 0,
            dropped_rest: None,
            unreported: 0,
            first_sequence: 1,
            ended: false,
            counts: IntakeCounts::default(),
            last_input: Instant::now(),
            is_syslog: false,
            acks: false,
            last_group: LastGroup::default(),
            durable: VecDeque::new(),
        }
    }

    /// Returns the intake of a stream of syslog messages, which end with newlines whatever the records of the log end with.
    pub(crate) fn of_syslog_stream(name: String, peer: Option<Peer>, options: &LogOptions) -> Self {
        let splitter = Splitter::of_syslog(options.max_record_bytes, options.oversize);
        Self { splitter, is_syslog: true, ..Self::new(name, peer, options) }
    }

    /// Replaces the held bytes by these. Returns memory that is no longer needed.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.held.clear();
        self.held.extend_from_slice(bytes);
        if self.held.capacity() > 2 * CHUNK && self.held.len() < CHUNK / 2 {
            self.held.shrink_to_fit();
        }
    }

    /// Numbers the records on from those of another intake of the same source.
    pub(crate) fn continue_after(&mut self, before: &Self) {
        self.first_sequence = before.first_sequence + before.counts.records;
    }

    /// Sets the sender of the next record.
    pub(crate) fn set_peer(&mut self, peer: Option<Peer>) {
        self.peer = peer;
    }

    /// Returns whether bytes of the source, or a notice of a loss, are not in the log yet.
    pub(crate) fn has_held(&self) -> bool {
        self.held_bytes() > 0 || self.joiner.as_ref().is_some_and(Joiner::has_record) || self.unreported > 0
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.len() + usize::try_from(self.backlog.bytes()).unwrap_or(usize::MAX)
    }

    /// Returns how many bytes of the source are in lines that may get further ones.
    pub(crate) fn joined_bytes(&self) -> usize {
        self.joiner.as_ref().map_or(0, Joiner::input_bytes)
    }

    /// Returns how many of the last bytes of the source are in no record that the log has accepted.
    pub(crate) fn unaccepted_bytes(&self) -> usize {
        self.held_bytes().saturating_add(self.joined_bytes())
    }

    /// Notes bytes of the source that were divided.
    pub(crate) fn note_input(&mut self, bytes: usize) {
        if let Some(joiner) = &mut self.joiner {
            joiner.note_input(bytes);
        }
    }

    /// Returns when the record that the source has begun is written, unless bytes follow: after --idle, or lines that were joined
    /// after [`JOIN`].
    pub(crate) fn idle_deadline(&self, options: &LogOptions) -> Option<Instant> {
        let wait = match (options.idle, &options.multiline) {
            (Some(idle), _) => idle,
            (None, Some(_)) => JOIN,
            (None, None) => return None,
        };
        self.has_held().then(|| self.last_input + wait)
    }

    /// Returns how many records of this source are durable when the first `records` of the log are.
    pub(crate) fn acknowledge(&mut self, records: u64) -> Option<u64> {
        let mut durable = None;
        while let Some((_, own)) = self.durable.pop_front_if(|(log, _)| *log <= records) {
            durable = Some(own);
        }
        durable
    }

    /// Returns whether records are not acknowledged yet.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        !self.durable.is_empty()
    }

    /// Removes the rest of a dropped record from the first `length` bytes of `data`, which begin with the [`Intake::kept`] ones.
    /// Returns their new length.
    pub(crate) fn remove_dropped_rest(&mut self, data: &mut Vec<u8>, length: usize) -> usize {
        let Some(splitter) = &mut self.dropped_rest else { return length };
        let Some(rest) = splitter.first_record(&data[self.kept..length]) else { return length };
        data.drain(self.kept..self.kept + rest.bytes);
        self.dropped_rest.take_if(|_| rest.is_whole);
        length - rest.bytes
    }

    /// Notes that some of the kept records are in the log: only these bytes are held. A dropped record can have been behind them.
    pub(crate) fn note_held(&mut self) {
        self.kept = if self.dropped_rest.is_some() { self.held.len() } else { 0 };
        if self.kept == 0
            && let Some(rest) = self.dropped_rest.take()
        {
            self.splitter = rest;
        }
    }

    pub(crate) fn drop_records(&mut self, records: u64) {
        self.counts.dropped += records;
        self.unreported += records;
    }
}

impl IntakeCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.refused += other.refused;
        self.unfinished += other.unfinished;
        self.split += other.split;
        self.cut += other.cut;
    }
}
