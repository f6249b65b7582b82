//! Prints the ptrace backend's events, for debugging: `raw_events [exact|-pPID|-tMS|-q]… COMMAND…`.

use std::ffi::OsString;
use std::time::Duration;

use weir_sys::clock::now_ns;
use weir_sys::{Error, launch};
use weir_trace_api::{BackendReport, RawEvent, TraceBackend, TraceHooks, TraceOptions, TraceRoot};
use weir_trace_ptrace::PtraceBackend;

struct Arguments {
    options: TraceOptions,
    quiet: bool,
    pid: Option<u32>,
    command: Vec<OsString>,
}

fn arguments() -> Arguments {
    let mut parsed =
        Arguments { options: TraceOptions::default(), quiet: false, pid: None, command: Vec::new() };
    for argument in std::env::args_os().skip(1) {
        match argument.to_str().filter(|_| parsed.command.is_empty()) {
            Some("exact") => parsed.options.exact = true,
            Some("-q") => parsed.quiet = true,
            Some(text) if text.starts_with("-p") => parsed.pid = text[2..].parse().ok(),
            Some(text) if text.starts_with("-t") => {
                parsed.options.limit = text[2..].parse().ok().map(Duration::from_millis);
            }
            _ => parsed.command.push(argument),
        }
    }
    parsed
}

fn run(arguments: &Arguments) -> Result<BackendReport, Error> {
    let root = match arguments.pid {
        Some(pid) => TraceRoot::Process(weir_sys::process_identity::ProcessIdentity::of(pid)),
        None => TraceRoot::Command(launch::start(&arguments.command)?),
    };
    let (began, quiet) = (now_ns(), arguments.quiet);
    let mut sink = |event: RawEvent| {
        if !quiet {
            let at_us = event.ns.saturating_sub(began) / 1000;
            eprintln!("{at_us:>9} {} {} {:?}", event.pid, event.tid, event.kind);
        }
    };
    let mut backend = PtraceBackend::probe(&arguments.options)?;
    backend.attach(root)?;
    let hooks = TraceHooks { sink: &mut sink, snapshots: &mut |_, _| Vec::new(), tick: &mut |_, _| {} };
    let report = backend.run(&arguments.options, hooks)?;
    drop(Box::new(backend).detach());
    Ok(report)
}

fn main() {
    match run(&arguments()) {
        Ok(report) => eprintln!("{report:?}"),
        Err(error) => {
            eprintln!("raw_events: {error}");
            std::process::exit(125);
        }
    }
}
