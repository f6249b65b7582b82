//! Prints the recording of a command, for a look at what an engine sees: `record [--exact] COMMAND…`.

use std::ffi::OsString;
use std::sync::Arc;

use weir_model::trace::Prices;
use weir_probe::trace::{EngineChoice, Options, Target, record};
use weir_sys::inherited::InheritedFds;

fn main() {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let exact = words.first().is_some_and(|word| word == "--exact");
    if exact {
        words.remove(0);
    }
    let options = Options {
        target: Target::Command(words),
        engine: EngineChoice::Auto,
        exact,
        every_call: false,
        seccomp: false,
        keep: InheritedFds::All,
        limit: None,
        stop: Arc::default(),
        prices: Prices::default(),
    };
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
