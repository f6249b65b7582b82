//! Cells of a process, shared by the live screen and the table.

use weir_model::Size;
use weir_model::Untrusted;
use weir_model::top::{CallRate, PendingStream, ProcessActivity, Survey};

use crate::number::{ABSENT, count, percent};

/// Mark after the PID of a process that weir may not read.
pub(super) const FOREIGN: &str = "!";

/// Returns the calls per second.
pub(super) fn calls(rate: Option<CallRate>) -> String {
    match rate {
        None => ABSENT.into(),
        Some(rate) if rate.calls_s == 0.0 => "0".into(),
        Some(rate) if rate.calls_s < 9.95 => format!("{:.1}", rate.calls_s),
        Some(rate) => count(rate.calls_s.round()),
    }
}

/// Returns the tiny calls per second; a dash if the calls are unknown.
pub(super) fn tiny(one: &ProcessActivity) -> String {
    one.calls().map_or(ABSENT.into(), |_| count(one.tiny_calls_s().round()))
}

/// Returns the mean bytes of a call; empty without calls.
pub(super) fn size(rate: Option<CallRate>) -> String {
    match rate.and_then(|rate| rate.mean_bytes()) {
        None => String::new(),
        Some(bytes) if bytes < 9.95 && bytes.fract() > 0.05 && bytes.fract() < 0.95 => {
            format!("{bytes:.1} B")
        }
        Some(bytes) => Size(bytes.round() as u64).to_string(),
    }
}

/// Returns a share of one CPU in percent.
pub(super) fn share(share: Option<f64>) -> String {
    share.map_or(ABSENT.into(), percent)
}

/// Word in the column of pending bytes for a process whose buffers are not read yet.
pub(super) const UNREAD: &str = "unread";

/// Returns the pending bytes; empty for none, a dash if unknown.
pub(super) fn pending(one: &ProcessActivity) -> String {
    match (one.foreign || one.unanswered, one.pending_bytes()) {
        (true, _) => ABSENT.into(),
        (_, 0) if one.unread => UNREAD.into(),
        (_, 0) => String::new(),
        (_, bytes) => Size(bytes).to_string(),
    }
}

/// Returns the age of the oldest pending bytes.
pub(super) fn age(one: &ProcessActivity) -> String {
    one.oldest().map_or(String::new(), waits)
}

/// Returns the age of a stream's pending bytes: `12 s`, or `>3 m` if they were pending before the first survey.
pub(super) fn waits(stream: &PendingStream) -> String {
    let least = if stream.from_before { ">" } else { "" };
    format!("{least}{}", time(stream.waits_s))
}

/// Returns seconds in one unit, rounded down: `0 s`, `59 s`, `3 m`, `2 h`, `5 d`.
pub(super) fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} m", whole / 60),
        3600..86400 => format!("{} h", whole / 3600),
        _ => format!("{} d", whole / 86400),
    }
}

/// Returns the stream with the oldest pending bytes: `fd 1 pipe`.
pub(super) fn location(one: &ProcessActivity) -> String {
    one.oldest().map_or(String::new(), |stream| format!("fd {} {}", stream.fd, path(&stream.path)))
}

/// Returns a path; for a pipe or socket only its kind, without the inode number.
pub(super) fn path(path: &Untrusted) -> String {
    match path.exact().split_once(":[") {
        Some((kind, _)) if !path.exact().starts_with('/') => Untrusted::from(kind).to_string(),
        _ => path.to_string(),
    }
}

/// Returns the PID and the mark of a process that weir may not read.
pub(super) fn pid(one: &ProcessActivity) -> (String, &'static str) {
    (one.pid.to_string(), if one.foreign { FOREIGN } else { "" })
}

/// Returns a sentence about the processes that are not shown, or whose buffers could not be read in time; None if there are
/// none. At most three are named.
pub(super) fn unread(processes: &[&ProcessActivity], survey: &Survey) -> Option<String> {
    let unanswered: Vec<String> = processes
        .iter()
        .filter(|one| one.unanswered)
        .map(|one| format!("{} {}", one.comm, one.pid))
        .collect();
    let names = unanswered[..unanswered.len().min(3)].join(", ");
    let more = if unanswered.len() > 3 { ", …" } else { "" };
    let mut sentences = Vec::new();
    match unanswered.len() {
        0 => {}
        1 => sentences.push(format!("1 process did not answer, so its buffers are unknown: {names}")),
        number => sentences
            .push(format!("{number} processes did not answer, so their buffers are unknown: {names}{more}")),
    }
    match survey.left_out {
        0 => {}
        number if survey.lacks_threads => sentences.push(format!(
            "{number} processes were not read: no thread could be started; end other processes, or raise 'ulimit -u'"
        )),
        1 => sentences.push("the buffers of 1 process were not read: no time left".into()),
        number => sentences.push(format!("the buffers of {number} processes were not read: no time left")),
    }
    if survey.hides_others {
        sentences.push("processes of other users are hidden (hidepid of /proc)".into());
    }
    (!sentences.is_empty()).then(|| sentences.join(" · "))
}

/// Returns the totals of all processes: `45200 calls/s, 45100 of them tiny · nothing pending`.
pub(super) fn totals(processes: &[&ProcessActivity]) -> String {
    let calls: f64 = processes.iter().filter_map(|one| one.calls()).map(|rate| rate.calls_s).sum();
    let tiny: f64 = processes.iter().map(|one| one.tiny_calls_s()).sum();
    let held: u64 = processes.iter().map(|one| one.pending_bytes()).sum();
    // The sum of no numbers is -0.0.
    let number = |value: f64| count(value.round() + 0.0);
    let holders = processes.iter().filter(|one| one.pending_bytes() > 0).count();
    let held = match holders {
        0 => "nothing pending".to_string(),
        1 => format!("{} pending in 1 process", Size(held)),
        _ => format!("{} pending in {holders} processes", Size(held)),
    };
    let is_unread = |one: &&&ProcessActivity| pending(one) == UNREAD;
    let unread = match processes.iter().filter(is_unread).count() {
        0 => String::new(),
        unread => format!(", {unread} {UNREAD}"),
    };
    format!("{} calls/s, {} of them tiny · {held}{unread}", number(calls), number(tiny))
}

/// As [`totals`], in fewer words.
pub(super) fn short_totals(processes: &[&ProcessActivity]) -> String {
    totals(processes).replace(" of them tiny", " tiny")
}

/// Returns `1 process` or `4 processes`.
pub fn processes(number: usize) -> String {
    if number == 1 { "1 process".into() } else { format!("{number} processes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_makes_no_call() {
        assert_eq!(totals(&[]), "0 calls/s, 0 of them tiny · nothing pending");
        assert_eq!(short_totals(&[]), "0 calls/s, 0 tiny · nothing pending");
    }

    #[test]
    fn a_process_whose_buffers_are_not_read_yet_is_marked() {
        let one = ProcessActivity { unread: true, ..ProcessActivity::default() };
        assert_eq!(pending(&one), "unread");
        assert_eq!(totals(&[&one, &one]), "0 calls/s, 0 of them tiny · nothing pending, 2 unread");
        let foreign = ProcessActivity { foreign: true, ..one };
        assert_eq!(totals(&[&foreign]), "0 calls/s, 0 of them tiny · nothing pending");
    }
}
