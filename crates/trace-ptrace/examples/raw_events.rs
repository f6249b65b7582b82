//! Prints the backend's events of a command, for debugging: `raw_events [exact|-pPID|-tMS|-q]… COMMAND…`.

use std::ffi::OsString;
use std::time::Duration;

use weir_sys::clock::now_ns;
use weir_sys::{Error, launch};
use weir_trace_api::{BackendReport, RawEvent, TraceBackend, TraceHooks, TraceOptions, TraceRoot};
use weir_trace_ptrace::PtraceBackend;

struct Asked {
    options: TraceOptions,
    quiet: bool,
    pid: Option<u32>,
    command: Vec<OsString>,
}

fn asked() -> Asked {
    let mut asked = Asked { options: TraceOptions::default(), quiet: false, pid: None, command: Vec::new() };
    for argument in std::env::args_os().skip(1) {
        match argument.to_str().filter(|_| asked.command.is_empty()) {
            Some("exact") => asked.options.exact = true,
            Some("-q") => asked.quiet = true,
            Some(text) if text.starts_with("-p") => asked.pid = text[2..].parse().ok(),
            Some(text) if text.starts_with("-t") => {
                asked.options.limit = text[2..].parse().ok().map(Duration::from_millis);
            }
            _ => asked.command.push(argument),
        }
    }
    asked
}

fn run(asked: &Asked) -> Result<BackendReport, Error> {
    let target = match asked.pid {
        Some(pid) => TraceRoot::Process(pid),
        None => TraceRoot::Command(launch::start(&asked.command)?),
    };
    let (began, quiet) = (now_ns(), asked.quiet);
    let mut sink = |raw: RawEvent| {
        if !quiet {
            let at_us = raw.ns.saturating_sub(began) / 1000;
            eprintln!("{at_us:>9} {} {} {:?}", raw.pid, raw.tid, raw.kind);
        }
    };
    let mut backend = PtraceBackend::probe(&asked.options)?;
    backend.attach(target)?;
    let hooks = TraceHooks { sink: &mut sink, snapshots: &mut |_, _| Vec::new(), tick: &mut |_, _| {} };
    let report = backend.run(&asked.options, hooks)?;
    drop(Box::new(backend).detach());
    Ok(report)
}

fn main() {
    match run(&asked()) {
        Ok(ended) => eprintln!("{ended:?}"),
        Err(error) => {
            eprintln!("raw_events: {error}");
            std::process::exit(125);
        }
    }
}
