//! The readers of what a process writes. A writer of single bytes makes its reader take single bytes and wakes it for each of
//! them, so the reader's CPU time is wasted as well.

use foldhash::HashMap;
use weir_model::duration::format_seconds;
use weir_model::trace::StreamCounts;
use weir_model::{Direction, StreamKind};

use crate::call_patterns::TINY;
use crate::context::RuleContext;
use crate::cost::BUFFER;

/// The number of equal first bytes from which two sockets count as connected.
const MIN_COMMON_BYTES: usize = 4;

/// The inputs that can be those of a writer, so that the search for its readers does not compare all streams.
#[derive(Default)]
pub(crate) struct PeerIndex<'a> {
    /// Inputs from pipes, by [`RuleContext::target_key`].
    pipes: HashMap<String, Vec<&'a StreamCounts>>,
    /// Inputs from sockets, by their first bytes.
    sockets: HashMap<[u8; MIN_COMMON_BYTES], Vec<&'a StreamCounts>>,
}

impl<'a> PeerIndex<'a> {
    /// Indexes the inputs of a recording. `context` has the indexes of its calls and files.
    pub fn of(context: &RuleContext<'a>) -> Self {
        let mut index = PeerIndex::default();
        for stream in context.streams(Direction::In) {
            match context.kind(stream.file) {
                StreamKind::Pipe => {
                    index.pipes.entry(context.target_key(stream.file)).or_default().push(stream);
                }
                StreamKind::Socket => {
                    if let Some(&start) = context.first_bytes(stream).first_chunk() {
                        index.sockets.entry(start).or_default().push(stream);
                    }
                }
                _ => {}
            }
        }
        index
    }
}

/// A reader that gets little at a time because of its writer.
pub(crate) struct SlowedPeer {
    pub pid: u32,
    /// CPU seconds that larger writes would save the reader.
    pub saved_s: f64,
}

impl SlowedPeer {
    /// Returns the clause that follows the sentence about the writer.
    pub fn clause(&self, context: &RuleContext) -> String {
        let (name, saved) = (context.name(self.pid), format_seconds(self.saved_s));
        format!("; its reader {name} gets few bytes at a time and wastes {saved} of CPU time")
    }
}

impl<'a> RuleContext<'a> {
    /// Returns the reader of a stream whose reads are small because the writes are, not because it asks for few bytes.
    pub fn slowed_peer(&self, writer: &StreamCounts) -> Option<SlowedPeer> {
        if writer.direction == Direction::In {
            return None;
        }
        let readers = self.readers(writer).into_iter().filter(|reader| {
            let asks_much = reader.requested_sizes.below(TINY) * 2 < reader.requested_sizes.total();
            asks_much && reader.mean_bytes() < TINY as f64
        });
        let reader = readers.max_by_key(|reader| reader.calls)?;
        let calls = reader.bytes.div_ceil(BUFFER) + 1;
        let prices = &self.recording.prices;
        let large_s = prices.transfer_s(self.kind(reader.file), false, calls, reader.bytes);
        let saved_s = (self.total_s(reader) - large_s).max(0.0);
        Some(SlowedPeer { pid: reader.pid, saved_s })
    }

    /// Returns whether all readers of a pipe are recorded and take more than one line at a time. The readers of a file, and of
    /// a pipe that leaves the recording, are unknown.
    pub fn peers_read_blocks(&self, writer: &StreamCounts) -> bool {
        let readers =
            if self.kind(writer.file) == StreamKind::Pipe { self.readers(writer) } else { Vec::new() };
        let reads_blocks = |reader: &&StreamCounts| {
            let several_lines = reader.mean_bytes() >= writer.mean_bytes() * 2.0;
            let asks_much = reader.requested_sizes.below(TINY) * 2 < reader.requested_sizes.total();
            several_lines && reader.requested_sizes.total() > 0 && asks_much
        };
        !readers.is_empty() && readers.iter().all(reads_blocks)
    }

    /// Returns the streams of other processes that read what a stream writes.
    pub fn readers(&self, writer: &StreamCounts) -> Vec<&'a StreamCounts> {
        let index = self.peers();
        let is_other = |reader: &&StreamCounts| reader.pid != writer.pid;
        match self.kind(writer.file) {
            StreamKind::Pipe => {
                let readers = index.pipes.get(&self.target_key(writer.file)).into_iter().flatten();
                readers.copied().filter(is_other).collect()
            }
            StreamKind::Socket => {
                let start = self.first_bytes(writer);
                let alike = start.first_chunk().and_then(|start| index.sockets.get(start));
                let readers = alike.into_iter().flatten().copied().filter(is_other);
                readers.filter(|reader| self.are_connected(writer, reader)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether two sockets are probably connected. They have no name in common, so their number of bytes, their times
    /// and their first bytes are compared.
    fn are_connected(&self, writer: &StreamCounts, reader: &StreamCounts) -> bool {
        let overlap = reader.first_s <= writer.last_s && writer.first_s <= reader.last_s;
        let similar = reader.bytes.abs_diff(writer.bytes) <= writer.bytes / 5;
        if !overlap || !similar || writer.file == reader.file {
            return false;
        }
        let (written, read) = (self.first_bytes(writer), self.first_bytes(reader));
        let common = written.len().min(read.len());
        common >= MIN_COMMON_BYTES && written[..common] == read[..common]
    }

    /// Returns the first bytes of a stream up to the first one that is not recorded.
    fn first_bytes(&self, stream: &StreamCounts) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (position, head) in self.call_heads(stream) {
            if position != bytes.len() as u64 {
                break;
            }
            bytes.extend_from_slice(head);
        }
        bytes
    }
}
