//! Calls that change names or sync files, in sampling gaps: without them a finding about a rename or a sync can be missing.

use std::collections::HashSet;

use weir_model::Direction;
use weir_model::trace::{EventKind, Process, gaps_hide_calls};
use weir_model::{StreamKind, Untrusted};
use weir_recorder::RecorderOutput;

/// Returns the sentence about the processes that wrote files and were not recorded for a part of their time.
pub(crate) fn unrecorded_calls(output: &RecorderOutput, exact: bool) -> Option<String> {
    let mut gaps: Vec<(u32, f64, f64)> = Vec::new();
    let mut end_s = 0.0_f64;
    for event in &output.events {
        end_s = end_s.max(event.at_s);
        if let EventKind::Gap { until_s } = event.kind {
            gaps.push((event.pid, event.at_s, until_s));
        }
    }
    if gaps.is_empty() {
        return None;
    }
    let is_partly_recorded = |process: &&Process| {
        let until_s = process.ended_s.unwrap_or(end_s);
        let within = |&(pid, from_s, to_s): &(u32, f64, f64)| match pid == 0 || pid == process.pid {
            true => (to_s.min(until_s) - from_s.max(process.started_s)).max(0.0),
            false => 0.0,
        };
        gaps_hide_calls(gaps.iter().map(within).sum(), until_s - process.started_s)
    };
    let outputs = output.streams.iter().filter(|stream| {
        let kind = output.files.get(stream.file as usize).map(|file| file.kind);
        stream.direction == Direction::Out && kind == Some(StreamKind::File)
    });
    let writers: HashSet<u32> = outputs.map(|stream| stream.pid).collect();
    let processes = output.processes.iter();
    let named: Vec<(&Untrusted, u32)> = processes
        .filter(|process| writers.contains(&process.pid))
        .filter(is_partly_recorded)
        .map(|process| (process.comm(), process.pid))
        .collect();
    let of = match named.as_slice() {
        [] => return None,
        [(comm, pid)] => format!("{comm} ({pid})"),
        more => format!("{} processes", more.len()),
    };
    Some(if exact {
        format!(
            "opens, renames and syncs of {of} that weir could not record: findings about them can be missing"
        )
    } else {
        format!(
            "opens, renames and syncs of {of} between samples: findings about them can be missing; --exact records all"
        )
    })
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Event, OpenFile, StreamCounts};
    use weir_sys::open_files::unknown_file;

    use super::*;

    fn sentence(gap_s: f64, kind: StreamKind, exact: bool) -> Option<String> {
        let gap = EventKind::Gap { until_s: 0.5 + gap_s };
        let process = Process { pid: 7, ended_s: Some(2.0), ..Process::default() };
        let output = RecorderOutput {
            processes: vec![process],
            files: vec![OpenFile { path: "/d/out".into(), ..unknown_file(kind) }],
            streams: vec![StreamCounts { calls: 1, ..StreamCounts::new(7, 0, 3, 0, Direction::Out) }],
            events: vec![Event { at_s: 0.5, pid: 0, tid: 0, kind: gap }],
            ..RecorderOutput::default()
        };
        unrecorded_calls(&output, exact)
    }

    #[test]
    fn gaps_of_a_process_that_writes_files_are_named() {
        let said = sentence(1.0, StreamKind::File, false).expect("a sentence");
        assert!(
            said.starts_with("opens, renames and syncs of ") && said.contains("(7) between samples"),
            "{said}"
        );
        assert_eq!(sentence(1.0, StreamKind::Pipe, false), None);
        assert_eq!(sentence(0.009, StreamKind::File, false), None);
        assert!(sentence(0.02, StreamKind::File, false).is_some(), "1 % of the time, with hundreds of calls");
    }

    #[test]
    fn a_gap_of_an_exact_trace_has_no_advice_to_record_exactly() {
        let said = sentence(1.0, StreamKind::File, true).expect("a sentence");
        assert!(said.contains("(7) that weir could not record") && !said.contains("--exact"), "{said}");
    }
}
