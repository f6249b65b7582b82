//! One process in the words of the columns.

use weir_model::Size;
use weir_model::top::{CallRate, PendingStream, ProcessActivity};

use crate::number::{ABSENT, count, percent};

/// Stands behind the number of a process that is another user's.
pub(super) const FOREIGN: &str = "!";

/// Calls a second.
pub(super) fn calls(rate: Option<CallRate>) -> String {
    match rate {
        None => ABSENT.into(),
        Some(rate) if rate.calls_s == 0.0 => "0".into(),
        Some(rate) if rate.calls_s < 9.95 => format!("{:.1}", rate.calls_s),
        Some(rate) => count(rate.calls_s.round()),
    }
}

/// Bytes a call; nothing where there are no calls.
pub(super) fn size(rate: Option<CallRate>) -> String {
    match rate.and_then(|rate| rate.mean_bytes()) {
        None => String::new(),
        Some(bytes) if bytes < 9.95 && bytes.fract() > 0.05 && bytes.fract() < 0.95 => {
            format!("{bytes:.1} B")
        }
        Some(bytes) => Size(bytes.round() as u64).to_string(),
    }
}

/// A share of one processor in percent.
pub(super) fn share(share: Option<f64>) -> String {
    share.map_or(ABSENT.into(), percent)
}

/// Bytes that wait; nothing where none do, a dash where nobody knows.
pub(super) fn pending(one: &ProcessActivity) -> String {
    match (one.foreign, one.pending_bytes()) {
        (true, _) => ABSENT.into(),
        (_, 0) => String::new(),
        (_, bytes) => Size(bytes).to_string(),
    }
}

/// How long the oldest of them have waited, at least.
pub(super) fn age(one: &ProcessActivity) -> String {
    one.oldest().map_or(String::new(), waits)
}

/// How long a stream has waited: `12 s`, `>3 m` where it did before weir looked.
pub(super) fn waits(stream: &PendingStream) -> String {
    let least = if stream.from_before { ">" } else { "" };
    format!("{least}{}", time(stream.waits_s))
}

/// `0 s`, `59 s`, `3 m`, `2 h`, `5 d`: in one unit, rounded down.
pub(super) fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} m", whole / 60),
        3600..86400 => format!("{} h", whole / 3600),
        _ => format!("{} d", whole / 86400),
    }
}

/// Where the oldest bytes wait: `fd 1 pipe`.
pub(super) fn place(one: &ProcessActivity) -> String {
    one.oldest().map_or(String::new(), |stream| format!("fd {} {}", stream.fd, path(&stream.path)))
}

/// A path as it is, a pipe or socket without the number that nobody can use.
pub(super) fn path(path: &str) -> &str {
    match path.split_once(":[") {
        Some((kind, _)) if !path.starts_with('/') => kind,
        _ => path,
    }
}

/// Its number, marked where it is another user's.
pub(super) fn pid(one: &ProcessActivity) -> (String, &'static str) {
    (one.pid.to_string(), if one.foreign { FOREIGN } else { "" })
}

/// What all of them do, in a sentence without a verb: `45200 calls/s, 45100 of them tiny`.
pub(super) fn totals(processes: &[&ProcessActivity]) -> String {
    let calls: f64 = processes.iter().filter_map(|one| one.calls()).map(|rate| rate.calls_s).sum();
    let tiny: f64 = processes.iter().map(|one| one.tiny_calls_s()).sum();
    let held: u64 = processes.iter().map(|one| one.pending_bytes()).sum();
    let number = |value: f64| count(value.round());
    let holders = processes.iter().filter(|one| one.pending_bytes() > 0).count();
    let held = match holders {
        0 => "nothing waits".to_string(),
        1 => format!("{} wait in 1 process", Size(held)),
        _ => format!("{} wait in {holders} processes", Size(held)),
    };
    format!("{} calls/s, {} of them tiny · {held}", number(calls), number(tiny))
}
