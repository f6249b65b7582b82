//! A process that has ended cannot be traced.

use std::process::Command;

use weir_observe::record;
use weir_trace_api::{BackendChoice, TraceOptions, TraceTarget};

#[test]
fn attaching_to_a_zombie_reports_that_it_has_ended() {
    let mut child = Command::new("true").spawn().unwrap();
    let zombie = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") Z ")
    };
    while !zombie() {
        std::thread::yield_now();
    }
    let target = TraceTarget::Process(weir_sys::process_identity::ProcessIdentity::of(child.id()));
    let options = TraceOptions { target, backend: BackendChoice::Ptrace, ..TraceOptions::default() };
    let error = record(&options).unwrap_err().to_string();
    assert!(error.contains("is a zombie: it has ended"), "{error}");
    child.wait().unwrap();
}
