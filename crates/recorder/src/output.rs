//! What comes of all reports.

use weir_model::trace::{Event, OpenFile, OtherCalls, Process};

/// What was assembled.
#[derive(Debug, Default)]
pub struct RecorderOutput {
    /// In order of their beginning.
    pub processes: Vec<Process>,
    /// By id.
    pub files: Vec<OpenFile>,
    /// Counters.
    pub flows: Vec<weir_model::trace::StreamCounts>,
    /// Calls that move no bytes.
    pub others: Vec<OtherCalls>,
    /// In order of time.
    pub events: Vec<Event>,
    /// Events that were too many.
    pub left_out: u64,
    /// The directory where nearly all of the files lie that were seen open between two bursts.
    pub glanced_below: Option<String>,
    /// Operations on files were handed to the kernel, and are in no stream.
    pub submits: bool,
    /// What moved bytes beside the calls of streams, in sentences.
    pub beside: Vec<String>,
}
