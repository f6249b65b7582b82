//! Labels of processes, streams, counts and evidence.

use weir_model::duration::format_seconds;
use weir_model::number::Certainty;
pub(super) use weir_model::number::{counted, thousands};
use weir_model::trace::{ObservedMode, Recording};
use weir_model::{Direction, Mode, Size, StreamKind, Untrusted};

use crate::number::{bytes_like, count, percent};

/// Stands in a label for a process whose name is unknown.
pub(super) static NAMELESS: Untrusted = Untrusted::placeholder("process");

/// Returns name and PID of a process: `tr2u 4711`.
pub(super) fn process_label(comm: &Untrusted, pid: u32) -> String {
    format!("{comm} {pid}")
}

/// Returns the sign of a direction: `<` for input, `>` for output.
pub(super) fn direction_sign(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "<",
        Direction::Out => ">",
        Direction::Both => "<>",
    }
}

/// The label of calls whose stream is unknown: short enough for every terminal.
pub(super) const UNKNOWN_STREAM: &str = "unknown";

/// Returns the name of a kind of file.
pub(super) fn kind(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::File => "file",
        StreamKind::Pipe => "pipe",
        StreamKind::Socket => "socket",
        StreamKind::Terminal => "terminal",
        StreamKind::Device => "device",
        StreamKind::Other => "other",
    }
}

/// Returns mode and buffer size: `full 64 KiB`, `line`, `none`.
pub(super) fn mode(mode: Mode, buffer_bytes: Option<u64>) -> String {
    match buffer_bytes.filter(|_| mode != Mode::None) {
        Some(bytes) => format!("{} {}", mode.name(), Size(bytes)),
        None => mode.name().into(),
    }
}

/// Returns mode and buffer size with the mark of a deduced mode; a dash if unknown.
pub(super) fn mode_with_mark(observed: Option<ObservedMode>) -> (String, &'static str) {
    match observed {
        Some(observed) => {
            (mode(observed.mode, observed.buffer_bytes), if observed.walked { "" } else { "~" })
        }
        None => (crate::number::ABSENT.into(), ""),
    }
}

/// Returns the stream of a finding: `tr2u 4711, fd 1 (out)`, without the parts that the finding lacks. The name of the
/// program is that at `at_s`, because an execve(2) may change it.
pub(super) fn stream_label(
    recording: &Recording,
    pid: u32,
    fd: i32,
    path: &Untrusted,
    at_s: Option<f64>,
) -> String {
    let process = recording.process(pid);
    let then = process.and_then(|process| process.image_at(at_s?));
    let last = process.map_or(&NAMELESS, |process| process.comm());
    let comm = then.map_or(last, |(_, image)| &image.comm);
    let mut text = if pid == 0 { String::new() } else { process_label(comm, pid) };
    let add = |text: &mut String, more: String| {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&more);
    };
    if fd >= 0 {
        add(&mut text, format!("fd {fd}"));
    }
    if !path.is_empty() {
        if fd >= 0 { text.push_str(&format!(" ({path})")) } else { add(&mut text, path.to_string()) }
    }
    text
}

/// Formats a value with its unit.
type Show = fn(f64) -> String;

/// Returns bytes in binary units, so that the cells of a column are comparable: `4.77 MiB`, not `5 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    bytes_like(bytes, 1024)
}

/// Figures that are PIDs.
const PROCESSES: [&str; 6] = ["child", "peer", "next", "other", "reader", "loop_pid"];
/// Figures that are totals of a stream.
const TOTALS: [&str; 2] = ["calls", "bytes"];
/// Figures that count some of the calls of a stream.
const PARTS: [&str; 9] =
    ["cut_calls", "jumps", "lines", "seeks", "short_writes", "syncs", "unaligned", "writes", "zero_reads"];

/// Returns a figure of a finding with the unit that its name ends in: `mean bytes 12 B`, `call 900 ns`. `certainty` is that
/// of the stream's totals, and that of the counts of some of its calls.
pub(super) fn evidence(name: &str, value: f64, certainty: (Certainty, Certainty)) -> String {
    let estimate =
        |certainty: Certainty| (certainty != Certainty::Exact).then(|| certainty.text(value as u64));
    let shown = match name {
        _ if PROCESSES.contains(&name) => Some(format!("{value:.0}")),
        _ if value < 0.0 => None,
        "bytes" => None,
        // Unknown calls of the process are among them, so that they are no lower limit.
        "openings" => estimate(certainty.1.min(Certainty::About)),
        _ if TOTALS.contains(&name) => estimate(certainty.0),
        _ if PARTS.contains(&name) => estimate(certainty.1),
        _ => None,
    };
    match shown {
        Some(shown) => format!("{} {shown}", name.replace('_', " ")),
        None => with_unit(name, value),
    }
}

fn with_unit(name: &str, value: f64) -> String {
    let units: [(&str, Show); 6] = [
        ("_s", format_seconds),
        ("_ms", |v| format_seconds(v / 1e3)),
        ("_us", |v| format_seconds(v / 1e6)),
        ("_ns", |v| format_seconds(v / 1e9)),
        ("bytes", some_bytes),
        ("share", |v| format!("{} %", percent(v))),
    ];
    let unit = units.iter().find(|(end, _)| name.ends_with(end));
    let shown = unit.map_or_else(|| number(value), |(_, show)| show(value));
    let bare =
        unit.map_or(name, |(end, _)| if end.starts_with('_') { name.trim_end_matches(end) } else { name });
    let label = if name == "own_s" { "own CPU time".into() } else { bare.replace(['_', '-'], " ") };
    format!("{label} {shown}")
}

fn some_bytes(value: f64) -> String {
    let whole = value.is_finite() && value >= 10.0 || value.fract() == 0.0 && value >= 0.0;
    if whole { bytes(value.round() as u64) } else { format!("{} B", count(value)) }
}

fn number(value: f64) -> String {
    match value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        true => thousands(value as u64),
        false => count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::number::Certainty::{About, AtLeast, Exact};

    #[test]
    fn evidence_has_the_unit_of_its_name() {
        let shown = [
            ("call_ns", 900.0),
            ("mean_bytes", 1.0),
            ("cost_share", 0.971),
            ("calls", 5e6),
            ("waits_s", 11.5),
        ];
        let expected =
            ["call 900 ns", "mean bytes 1 B", "cost share 97 %", "calls 5,000,000", "waits 11.5 s"];
        assert_eq!(shown.map(|(name, value)| evidence(name, value, (Exact, Exact))), expected);
    }

    #[test]
    fn sampled_figures_get_about_and_pids_are_not_formatted() {
        let shown = |certainty| {
            [("calls", 4_120_345.0), ("seeks", 4_120_345.0)]
                .map(|(name, value)| evidence(name, value, certainty))
        };
        assert_eq!(shown((Exact, Exact)), ["calls 4,120,345", "seeks 4,120,345"]);
        assert_eq!(shown((Exact, About)), ["calls 4,120,345", "seeks about 4,120,000"]);
        assert_eq!(shown((About, About)), ["calls about 4,120,000", "seeks about 4,120,000"]);
        let beside_unknown = ["calls at least about 4,120,000", "seeks at least about 4,120,000"];
        assert_eq!(shown((AtLeast, AtLeast)), beside_unknown);
        assert_eq!(evidence("openings", 3000.0, (AtLeast, AtLeast)), "openings about 3,000");
        assert_eq!(evidence("openings", 3000.0, (Exact, About)), "openings about 3,000");
        assert_eq!(evidence("openings", 3000.0, (Exact, Exact)), "openings 3,000");
        assert_eq!(evidence("loop_pid", 27314.0, (Exact, Exact)), "loop pid 27314");
    }

    #[test]
    fn bytes_of_a_column_are_comparable() {
        assert_eq!(
            [bytes(5_000_000), bytes(832), bytes(4096), bytes(0)],
            ["4.77 MiB", "832 B", "4 KiB", "0 B"]
        );
    }

    #[test]
    fn the_mode_none_has_no_buffer() {
        assert_eq!(mode(Mode::Full, Some(65536)), "full 64 KiB");
        assert_eq!(mode(Mode::None, Some(1)), "none");
        let deduced = ObservedMode { mode: Mode::Line, buffer_bytes: None, walked: false };
        assert_eq!(mode_with_mark(Some(deduced)), ("line".into(), "~"));
        assert_eq!(mode_with_mark(None).0, "–");
    }
}
