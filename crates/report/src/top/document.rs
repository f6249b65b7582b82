//! What `weir top --json` writes: schema weir-top/1, described in docs/schemas.

use serde::{Deserialize, Serialize};
use weir_model::survey::{Activity, Rate, Survey, Waiting};

use super::order::Selection;

/// The name of the schema.
pub const SCHEMA: &str = "weir-top/1";

/// One look. Times are seconds, sizes bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// The interval that rates are of.
    pub elapsed_s: f64,
    /// Processor time that weir took in it.
    pub cost_s: f64,
    /// What the processes are sorted by.
    pub sort: String,
    /// What they were filtered by; empty: nothing.
    pub filter: String,
    /// Processes that fit the filter, those that are left out of `processes` as well.
    pub found: usize,
    /// The processes in order.
    pub processes: Vec<Process>,
}

/// One process of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// The name of its program.
    pub comm: String,
    /// Its command line.
    pub command: String,
    /// It is another user's: what is null could be seen as root.
    pub foreign: bool,
    /// Calls that read; None: not to be seen.
    pub reads: Option<Rate>,
    /// Calls that write.
    pub writes: Option<Rate>,
    /// Calls of less than 512 bytes on the average.
    pub tiny_calls_s: f64,
    /// Bytes a call; None: there were none.
    pub bytes_per_call: Option<f64>,
    /// Time in user mode, 1 for one processor all the time.
    pub user_share: Option<f64>,
    /// Time in the kernel.
    pub system_share: Option<f64>,
    /// Bytes in its streams that the kernel has not got; None: it was not looked at, or runs.
    pub pending_bytes: Option<u64>,
    /// For how long weir has seen the oldest of them wait.
    pub waits_s: Option<f64>,
    /// The streams that hold them.
    pub waiting: Option<Vec<Waiting>>,
}

/// The document of a look, with at most `rows` processes.
pub fn document(survey: &Survey, selection: &Selection, rows: Option<usize>) -> Document {
    let chosen = selection.of(survey);
    Document {
        schema: SCHEMA.into(),
        elapsed_s: survey.elapsed_s,
        cost_s: survey.cost_s,
        sort: selection.sort.name().into(),
        filter: selection.filter.clone(),
        found: chosen.len(),
        processes: chosen.into_iter().take(rows.unwrap_or(usize::MAX)).map(process).collect(),
    }
}

fn process(one: &Activity) -> Process {
    Process {
        pid: one.pid,
        uid: one.uid,
        comm: one.comm.clone(),
        command: one.command.clone(),
        foreign: one.foreign,
        reads: one.reads,
        writes: one.writes,
        tiny_calls_s: one.tiny_calls_s(),
        bytes_per_call: one.calls().and_then(|calls| calls.mean_bytes()),
        user_share: one.user_share,
        system_share: one.system_share,
        pending_bytes: one.waiting.as_ref().map(|_| one.pending_bytes()),
        waits_s: one.oldest().map(|stream| stream.waits_s),
        waiting: one.waiting.clone(),
    }
}
