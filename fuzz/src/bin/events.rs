//! Events of the ring buffer, and the recording, findings and screen that result from them.
#![no_main]

use weir_recorder::Recorder;
use weir_trace_api::RawEvent;

weir_fuzz::target!(|input: &[u8]| {
    let mut raw: Vec<RawEvent> = Vec::new();
    weir_trace_ebpf::fuzzing::events(input, &mut |event| raw.push(event));
    let mut recorder = Recorder::new(0, true);
    raw.into_iter().for_each(|event| recorder.record(event));
    weir_fuzz::show(&weir_fuzz::recording(recorder.finish()));
});
