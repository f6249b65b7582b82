//! The work of `weir trace` on a recording, also one from a file.

use weir_diagnose::{PlannedRun, RunPlanner, RunProposal};
use weir_model::trace::{BackendKind, Exit, Overhead, Prices, Recording, TraceDocument, TraceResult};
use weir_recorder::RecorderOutput;
use weir_report::Style;

/// Makes a recording of what a recorder has recorded, as the engine does.
pub fn recording(output: RecorderOutput) -> Recording {
    Recording {
        environment: Default::default(),
        memory_devices: Vec::new(),
        command: vec!["./program".into()],
        root: output.processes.first().map_or(0, |process| process.pid),
        backend: BackendKind::Ebpf,
        backend_reason: String::new(),
        exact: !output.submits,
        elapsed_s: 3.0,
        exit: Some(Exit::Code(0)),
        overhead: Overhead::default(),
        blind: output.untracked_transfers,
        incomplete: false,
        unreadable: Vec::new(),
        prices: Prices::default(),
        processes: output.processes,
        files: output.files,
        counts: output.streams,
        events: output.events,
        write_sites: Vec::new(),
        other_calls: output.other_calls,
        sampled_calls: Vec::new(),
    }
}

/// Judges a recording, and makes its screen and its document.
pub fn show(recording: &Recording) {
    let judgement = weir_diagnose::diagnose(recording, &EveryRun);
    let trace =
        TraceResult::new(recording, &judgement.findings, judgement.verdict.to_string(), &judgement.pipelines);
    let screen = weir_report::trace::screen(&trace, true, &Style::default());
    assert!(!screen.contains(['\x1b', '\x07']), "a screen obeys the recording");
    let text = serde_json::to_string(&TraceDocument::new(&trace)).expect("a document");
    let _timeline = weir_report::trace::timeline(recording);
    assert!(text.starts_with('{'));
}

/// The planner for which each option has its effect, so that all commands are shown.
struct EveryRun;

impl RunPlanner for EveryRun {
    fn plan(&self, proposal: &RunProposal) -> Option<PlannedRun> {
        Some(PlannedRun { command: proposal.command.to_vec(), directory: None })
    }
}
