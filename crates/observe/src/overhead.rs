//! The cost of an observation.

use weir_model::trace::{BackendKind, Overhead};
use weir_trace_api::BackendReport;

/// Returns the approximate time that observing one call costs the program, in nanoseconds. Measured with `make bench-trace`.
fn observed_call_ns(backend: BackendKind) -> f64 {
    match backend {
        BackendKind::Ebpf => 300.0,
        BackendKind::Ptrace => 12_000.0,
        BackendKind::Sample => 0.0,
    }
}

/// Returns what the observation cost, without the time to start.
pub(crate) fn overhead(backend: BackendKind, report: &BackendReport) -> Overhead {
    Overhead {
        startup_s: 0.0,
        observed_s: seconds(report.observed_ns),
        gap_s: seconds(report.gap_ns),
        seen_calls: report.observed_calls,
        lost_events: report.lost_events,
        uncounted_calls: report.uncounted_calls,
        cost_s: report.observed_calls as f64 * observed_call_ns(backend) / 1e9,
        stopped_s: seconds(report.stopped_ns),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
