//! Prints the recording of a command, to show what an engine records: `record [--exact] COMMAND…`.

use std::ffi::OsString;

use weir_observe::record;
use weir_trace_api::{TraceOptions, TraceTarget};

fn main() {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let exact = words.first().is_some_and(|word| word == "--exact");
    if exact {
        words.remove(0);
    }
    let options = TraceOptions { target: TraceTarget::Command(words), exact, ..TraceOptions::default() };
    match record(&options) {
        Ok((recording, _rest)) => {
            for process in &recording.processes {
                eprintln!("{process:?}");
            }
            for flow in &recording.counts {
                let file = &recording.files[flow.file as usize];
                eprintln!(
                    "{} {} fd {} {:?} {} calls {} bytes {} errors {} zeros {} exact {} sizes {:?}",
                    flow.pid,
                    flow.image,
                    flow.fd,
                    flow.direction,
                    file.path,
                    flow.calls,
                    flow.bytes,
                    flow.errors,
                    flow.zeros,
                    flow.exact,
                    flow.sizes.0
                );
            }
            if std::env::var_os("EVENTS").is_some() {
                for event in &recording.events {
                    eprintln!("{event:?}");
                }
            }
            eprintln!(
                "{:?} {:?} exact {} {:?}",
                recording.overhead, recording.exit, recording.exact, recording.blind
            );
        }
        Err(error) => eprintln!("{error}"),
    }
}
