//! A recording in Chrome's trace event format, for Perfetto and chrome://tracing.
//!
//! A recorded call has a time but no duration, so it is a slice of zero length. Images, streams and gaps have a start
//! and an end.

use serde_json::{Value, json};
use weir_model::trace::{Buffer, Call, Event, EventKind, Exit, Recording, StreamTable, trace_streams};

use super::labels::{direction_sign, kind};

/// Returns the events of `recording` as one JSON object. Times are in microseconds.
pub fn timeline(recording: &Recording) -> Value {
    let mut events = names(recording);
    events.extend(images(recording));
    events.extend(spans(recording));
    events.extend(recording.events.iter().flat_map(|event| of_event(recording, event)));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

fn micros(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}

/// Returns the names of processes and threads.
fn names(recording: &Recording) -> Vec<Value> {
    let mut threads: Vec<(u32, u32)> = recording.events.iter().map(|event| (event.pid, event.tid)).collect();
    threads.sort_unstable();
    threads.dedup();
    let name = |what: &str, pid: u32, tid: u32, name: String| json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } });
    let of_processes = recording
        .processes
        .iter()
        .map(|process| name("process_name", process.pid, process.pid, process.comm().to_string()));
    let of_threads =
        threads.into_iter().map(|(pid, tid)| name("thread_name", pid, tid, format!("thread {tid}")));
    of_processes.chain(of_threads).collect()
}

/// Returns the images of each process as consecutive slices.
fn images(recording: &Recording) -> Vec<Value> {
    let of_process = recording.processes.iter().flat_map(|process| {
        let end = process.ended_s.unwrap_or(recording.elapsed_s);
        process.images.iter().enumerate().map(move |(number, image)| {
            let until = process.images.get(number + 1).map_or(end, |next| next.started_s);
            json!({
                "ph": "X", "cat": "image", "name": image.comm, "pid": process.pid, "tid": process.pid,
                "ts": micros(image.started_s), "dur": micros((until - image.started_s).max(0.0)),
                "args": { "exe": image.exe, "argv": image.argv }
            })
        })
    });
    of_process.collect()
}

/// Returns each stream from its first call to its last on a separate track.
fn spans(recording: &Recording) -> Vec<Value> {
    let mut events = Vec::new();
    for (id, stream) in trace_streams(&StreamTable::of(recording)).iter().enumerate() {
        let counts = &stream.counts;
        let name = format!("fd {} {} {}", counts.fd, direction_sign(counts.direction), stream.path);
        let end = |ph: &str, at_s: f64, args: Value| {
            json!({
                "ph": ph, "cat": "stream", "name": name, "id": id, "pid": counts.pid, "tid": counts.pid,
                "ts": micros(at_s), "args": args
            })
        };
        let args = json!({ "calls": counts.calls, "bytes": counts.bytes, "kind": kind(stream.kind) });
        events.push(end("b", counts.first_s, args));
        events.push(end("e", counts.last_s.max(counts.first_s), json!({})));
    }
    events
}

fn of_event(recording: &Recording, event: &Event) -> Vec<Value> {
    let instant = |name: String, args: Value| {
        json!({
            "ph": "i", "s": "p", "cat": "process", "name": name, "pid": event.pid, "tid": event.tid,
            "ts": micros(event.at_s), "args": args
        })
    };
    match &event.kind {
        EventKind::Call(call) => vec![of_call(recording, event, call)],
        EventKind::Fork { child } => vec![instant(format!("fork {child}"), json!({ "child": child }))],
        EventKind::Exec { image } => {
            let exe = recording.image(event.pid, *image).map(|image| image.exe.clone()).unwrap_or_default();
            vec![instant(format!("exec {exe}"), json!({ "exe": exe }))]
        }
        EventKind::Exit(Exit::Code(code)) => vec![instant(format!("exit {code}"), json!({ "code": code }))],
        EventKind::Exit(Exit::Signal(number)) => {
            vec![instant(format!("ended by signal {number}"), json!({ "signal": number }))]
        }
        EventKind::Signal { number } => {
            vec![instant(format!("signal {number}"), json!({ "signal": number }))]
        }
        EventKind::Buffers { moment, buffers, waits_in_name, .. } => {
            let args = json!({ "moment": moment, "waits_in": waits_in_name, "buffers": buffers.len() });
            let snapshot = instant("buffers".into(), args);
            [snapshot].into_iter().chain(buffers.iter().map(|buffer| pending(event, buffer))).collect()
        }
        EventKind::Gap { until_s } => vec![json!({
            "ph": "X", "cat": "weir", "name": "totals only", "pid": event.pid, "tid": event.tid,
            "ts": micros(event.at_s), "dur": micros((until_s - event.at_s).max(0.0)), "args": {}
        })],
    }
}

fn of_call(recording: &Recording, event: &Event, call: &Call) -> Value {
    let path = call.file.and_then(|id| recording.file(id)).map_or("", |file| file.path.exact());
    json!({
        "ph": "X", "cat": "call", "name": call.op.name(), "pid": event.pid, "tid": event.tid,
        "ts": micros(event.at_s), "dur": 0,
        "args": {
            "fd": call.fd, "path": path, "asked": call.requested_bytes, "result": call.result, "paths": call.paths,
            "position": call.position
        }
    })
}

/// Returns a point of the curve of a stream's pending bytes.
fn pending(event: &Event, buffer: &Buffer) -> Value {
    json!({
        "ph": "C", "cat": "buffer", "name": format!("pending fd {}", buffer.fd), "id": format!("{:#x}", buffer.address),
        "pid": event.pid, "ts": micros(event.at_s), "args": { "bytes": buffer.pending_bytes }
    })
}
