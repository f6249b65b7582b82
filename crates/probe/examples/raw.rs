//! Prints what an engine reports of a command, for debugging: `raw [exact|sample|-pPID|-tMS|-q]… COMMAND…`.

use std::ffi::OsString;
use std::time::Duration;

use weir_probe::engine::{Ended, Options, Target};
use weir_probe::raw::RawEvent;
use weir_probe::{ptrace, sample};
use weir_sys::clock::now_ns;
use weir_sys::{Error, launch};

struct Asked {
    options: Options,
    sample: bool,
    quiet: bool,
    pid: Option<u32>,
    command: Vec<OsString>,
}

fn asked() -> Asked {
    let mut asked =
        Asked { options: Options::default(), sample: false, quiet: false, pid: None, command: Vec::new() };
    for argument in std::env::args_os().skip(1) {
        match argument.to_str().filter(|_| asked.command.is_empty()) {
            Some("exact") => asked.options.exact = true,
            Some("sample") => asked.sample = true,
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

fn run(asked: &Asked) -> Result<Ended, Error> {
    let target = match asked.pid {
        Some(pid) => Target::Process(pid),
        None => Target::Command(launch::start(&asked.command)?),
    };
    let (began, quiet) = (now_ns(), asked.quiet);
    let mut sink = |raw: RawEvent| {
        if !quiet {
            let at_us = raw.ns.saturating_sub(began) / 1000;
            eprintln!("{at_us:>9} {} {} {:?}", raw.pid, raw.tid, raw.what);
        }
    };
    if asked.sample {
        sample::run(target, &asked.options, &mut sink, &mut |_, _| Vec::new(), &mut |_, _| {})
    } else {
        ptrace::run(target, &asked.options, &mut sink, &mut |_, _| Vec::new(), &mut |_, _| {})
    }
}

fn main() {
    match run(&asked()) {
        Ok(ended) => eprintln!("{ended:?}"),
        Err(error) => {
            eprintln!("raw: {error}");
            std::process::exit(125);
        }
    }
}
