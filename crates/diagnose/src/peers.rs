//! Who reads at the other end what a process writes. A writer of single bytes makes its reader take single bytes and
//! wakes it for each of them: the reader's time is wasted as well, and it can do nothing about it.

use weir_model::duration::format_seconds;
use weir_model::trace::StreamCounts;
use weir_model::{Direction, StreamKind};

use crate::call_patterns::TINY;
use crate::context::Context;
use crate::cost::BUFFER;

/// Of bytes that are the same at both ends, this many tell whose they are.
const ALIKE: usize = 4;

/// What the other end's reads of small messages cost.
pub(crate) struct Peer {
    pub pid: u32,
    /// Processor seconds that large messages would spare it.
    pub saved_s: f64,
}

impl Peer {
    /// What follows the sentence about the writer.
    pub fn in_words(&self, context: &Context) -> String {
        let (name, saved) = (context.name(self.pid), format_seconds(self.saved_s));
        format!(
            ", and {name} at the other end, which gets little at a time, spends {saved} of a processor on it"
        )
    }
}

impl<'a> Context<'a> {
    /// The reader at the other end whose reads are small because the writes are, and not because it asks for little.
    pub fn small_reader(&self, writer: &StreamCounts) -> Option<Peer> {
        if writer.direction == Direction::In {
            return None;
        }
        let readers = self.readers(writer).into_iter().filter(|reader| {
            let asks_much = reader.asked.below(TINY) * 2 < reader.asked.total();
            asks_much && reader.mean_bytes() < TINY as f64
        });
        let reader = readers.max_by_key(|reader| reader.calls)?;
        let calls = reader.bytes.div_ceil(BUFFER) + 1;
        let prices = &self.recording.prices;
        let large_s = prices.transfer_s(self.kind(reader.file), false, calls, reader.bytes);
        let saved_s = (self.whole_s(reader) - large_s).max(0.0);
        Some(Peer { pid: reader.pid, saved_s })
    }

    /// Whether it is known who reads this pipe, and that they take more than a line at a time. Who reads a file, or a
    /// pipe outside of the recording, is not known.
    pub fn taken_in_blocks(&self, writer: &StreamCounts) -> bool {
        let readers =
            if self.kind(writer.file) == StreamKind::Pipe { self.readers(writer) } else { Vec::new() };
        let blocks = |reader: &&StreamCounts| {
            let several = reader.mean_bytes() >= writer.mean_bytes() * 2.0;
            several && reader.asked.total() > 0 && reader.asked.below(TINY) * 2 < reader.asked.total()
        };
        !readers.is_empty() && readers.iter().all(blocks)
    }

    /// The flows of other processes in which these bytes come out.
    fn readers(&self, writer: &StreamCounts) -> Vec<&'a StreamCounts> {
        let kind = self.kind(writer.file);
        let others =
            self.toward(Direction::In).filter(|flow| flow.pid != writer.pid && self.kind(flow.file) == kind);
        match kind {
            StreamKind::Pipe => {
                let target = self.target(writer.file);
                others.filter(|reader| self.target(reader.file) == target).collect()
            }
            StreamKind::Socket => others.filter(|reader| self.comes_out(writer, reader)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether what one socket takes is what another gives. They have no name in common: it is told by how many bytes
    /// there were, when, and how they began.
    fn comes_out(&self, writer: &StreamCounts, reader: &StreamCounts) -> bool {
        let together = reader.first_s <= writer.last_s && writer.first_s <= reader.last_s;
        let about = reader.bytes.abs_diff(writer.bytes) <= writer.bytes / 5;
        if !together || !about || writer.file == reader.file {
            return false;
        }
        let (given, taken) = (self.beginning(writer), self.beginning(reader));
        let common = given.len().min(taken.len());
        common >= ALIKE && given[..common] == taken[..common]
    }

    /// The first bytes of a flow, as far as they were seen without a gap.
    fn beginning(&self, flow: &StreamCounts) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, head) in self.heads(flow) {
            if at != bytes.len() as u64 {
                break;
            }
            bytes.extend_from_slice(head);
        }
        bytes
    }
}
