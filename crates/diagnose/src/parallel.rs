//! Judges a recording and computes its table of streams at the same time.

use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use weir_model::trace::{StreamTable, TraceStream, trace_streams};

use crate::{Diagnosis, IndexedRecording, RunPlanner};

/// Number of stream counts from which a second thread pays: each computation then takes milliseconds, as seen in
/// recordings of software builds.
const PARALLEL_STREAM_COUNTS: usize = 500;

/// Returns the diagnosis of a recording and its streams with mode and cost. A large recording is processed on two
/// threads: the traced program has ended, so a processor is free.
pub fn diagnose_with_streams<'a>(
    streams: &'a StreamTable<'a>,
    planner: &'a dyn RunPlanner,
) -> (Diagnosis, Vec<TraceStream<'a>>) {
    let is_large = streams.recording().counts.len() >= PARALLEL_STREAM_COUNTS;
    let compute_streams = move || trace_streams(streams);
    thread::scope(|scope| {
        let worker =
            is_large.then(|| thread::Builder::new().spawn_scoped(scope, compute_streams).ok()).flatten();
        // Never freed: the program ends soon, and freeing the indexes of a large recording delays that end.
        let indexed = ManuallyDrop::new(IndexedRecording::new(streams, planner));
        let diagnosis = indexed.diagnose();
        let table = match worker.map(ScopedJoinHandle::join) {
            Some(Ok(table)) => table,
            Some(Err(panic)) => resume_unwind(panic),
            None => compute_streams(),
        };
        (diagnosis, table)
    })
}
