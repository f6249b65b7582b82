//! Labels of streams, times and states.

use weir_model::duration::format_seconds;
use weir_model::flush::DEFAULT_LIMIT;
use weir_model::peek::{MainThreadState, Peek, PeekStream};
use weir_model::trace::RuntimeId;
use weir_model::{Mode, Size, StreamKind};

/// Returns the bytes of a stream: `41 B`, `17 B unread`.
pub(super) fn waiting(stream: &PeekStream) -> String {
    match (stream.pending_bytes, stream.unread_bytes) {
        (0, unread) => format!("{} unread", Size(unread)),
        (pending, _) => Size(pending).to_string(),
    }
}

/// Returns the target of a stream: `pipe → tee 4712`, `/tmp/out`.
pub(super) fn target(stream: &PeekStream) -> String {
    let name = match stream.kind {
        StreamKind::Pipe if is_unnamed_pipe(stream) => "pipe".into(),
        StreamKind::Socket => "socket".into(),
        _ => stream.path.to_string(),
    };
    let sign = if stream.pending_bytes > 0 { '→' } else { '←' };
    match stream.peers.as_slice() {
        [] if stream.kind == StreamKind::Pipe && stream.pending_bytes > 0 => match stream.peers_complete {
            true => format!("{name} → no reader"),
            false => format!("{name} → no reader seen"),
        },
        [] if is_closed(stream) => "closed".into(),
        [] => name,
        [one] => format!("{name} {sign} {} {}", one.comm, one.pid),
        [one, rest @ ..] => format!("{name} {sign} {} {} +{}", one.comm, one.pid, rest.len()),
    }
}

fn is_unnamed_pipe(stream: &PeekStream) -> bool {
    stream.path.exact().starts_with("pipe:")
}

/// Returns whether pending bytes are for a pipe that no process has open for reading: a write to it fails.
fn lacks_reader(stream: &PeekStream) -> bool {
    stream.kind == StreamKind::Pipe
        && stream.pending_bytes > 0
        && stream.peers.is_empty()
        && stream.peers_complete
}

/// Returns whether the program has closed the descriptor of a stream: a write to it fails.
fn is_closed(stream: &PeekStream) -> bool {
    stream.fd >= 0 && stream.path.is_empty()
}

/// Returns whether `weir flush`, or `weir run` the next time, can write the pending bytes of a stream.
pub(super) fn can_be_written(stream: &PeekStream) -> bool {
    let in_reach = stream.can_be_flushed || !stream.found_by_search && stream.unconverted_bytes == 0;
    stream.pending_bytes > 0 && stream.fd >= 0 && in_reach && !lacks_reader(stream) && !is_closed(stream)
}

/// Returns the command that writes the pending bytes now; None if weir flush can write none of them.
pub(super) fn flush_command(peek: &Peek) -> Option<String> {
    // weir flush leaves a stream that begins with a copy of another process's bytes.
    let is_flushed =
        |stream: &PeekStream| stream.can_be_flushed && stream.copy_of.is_none() && can_be_written(stream);
    if !peek.streams.iter().any(is_flushed) {
        return None;
    }
    let all = peek.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.pending_bytes));
    Some(match all.div_ceil(1 << 20) {
        mebibytes if all > DEFAULT_LIMIT => format!("weir flush --limit {mebibytes}M {}", peek.pid),
        _ => format!("weir flush {}", peek.pid),
    })
}

/// Returns mode and buffer of a stream: `full 8 KiB`.
pub(super) fn buffer(stream: &PeekStream) -> String {
    match (stream.mode, stream.buffer_bytes) {
        (None, _) => "undecided".into(),
        (Some(mode), 0) => mode.name().into(),
        (Some(mode), bytes) => format!("{} {}", mode.name(), Size(bytes)),
    }
}

/// Returns the known age of the pending bytes.
pub(super) fn since(stream: &PeekStream) -> String {
    stream.since_s.filter(|_| stream.pending_bytes > 0).map_or("–".into(), time)
}

/// Returns seconds in one or two units: `12 m 03 s`.
pub(super) fn time(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 if seconds < 10.0 => format_seconds((seconds * 10.0).round() / 10.0).replace(".00", ""),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} m {:02} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {:02} m", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {:02} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// Returns when the bytes would reach the target without weir.
pub(super) fn appears(stream: &PeekStream) -> String {
    let room = stream.buffer_bytes.saturating_sub(stream.pending_bytes);
    let end = at_end(stream);
    match stream.mode {
        _ if stream.pending_bytes == 0 => "when it reads on".into(),
        _ if is_closed(stream) => "EBADF until it is open".into(),
        _ if lacks_reader(stream) && is_unnamed_pipe(stream) => "never: SIGPIPE or EPIPE".into(),
        _ if lacks_reader(stream) => "EPIPE until it has a reader".into(),
        Some(Mode::Line) => format!("at newline, {end}"),
        Some(Mode::Full | Mode::Record) if room > 0 => format!("in {}, {end}", bytes(room)),
        _ => format!("at next write, {end}"),
    }
}

/// Returns how the runtime writes the bytes at the end of the program. Go never flushes a bufio.Writer; Rust flushes a BufWriter, and
/// C++ a file stream, when the object ends, which exit and process::exit do not wait for.
fn at_end(stream: &PeekStream) -> &'static str {
    match stream.walker {
        RuntimeId::GO => "not at exit",
        RuntimeId::RUST if stream.found_by_search => "or if dropped",
        RuntimeId::CPP if stream.fd > 2 => "or if closed",
        _ => "or at exit",
    }
}

/// Returns a number of bytes without rounding: `8,151 B`.
fn bytes(number: u64) -> String {
    format!("{} B", weir_model::number::thousands(number))
}

/// Returns the state of the main thread: `asleep in poll for 12 m 03 s`.
pub(super) fn state(peek: &Peek) -> String {
    let threads = if peek.threads > 1 { format!(", {} threads", peek.threads) } else { String::new() };
    let for_time =
        peek.idle_s.filter(|idle| *idle >= 0.1).map_or(String::new(), |idle| format!(" for {}", time(idle)));
    let state = match &peek.state {
        MainThreadState::Running => "running".to_string(),
        MainThreadState::Stopped => format!("stopped{for_time}; continue it with: kill -CONT {}", peek.pid),
        MainThreadState::StoppedByTracer { tracer, comm } => {
            format!("stopped{for_time} by its tracer, {comm} {tracer}")
        }
        MainThreadState::Asleep { call, .. } if call.is_empty() => format!("asleep{for_time}"),
        MainThreadState::Asleep { call, fd: Some(fd) } => {
            format!("asleep in {call} of descriptor {fd}{for_time}")
        }
        MainThreadState::Asleep { call, fd: None } => format!("asleep in {call}{for_time}"),
    };
    state + &threads
}

/// Returns the title that the program has given itself in place of its command, such as `nginx: worker process`; None if it
/// has not. The rest of the arguments' memory is filled with NULs.
fn own_title(peek: &Peek) -> Option<String> {
    let (title, rest) = peek.command.split_first()?;
    let title = title.to_string();
    let is_padded = rest.len() > 1 || title.contains(' ') && !title.starts_with(['/', '.']);
    let is_title = !rest.is_empty() && is_padded && rest.iter().all(|word| word.is_empty());
    is_title.then_some(title)
}

/// Returns the command with shell quotes, or the program's own title.
pub(super) fn command(peek: &Peek) -> String {
    if let Some(title) = own_title(peek) {
        return title;
    }
    let words: Vec<String> = peek.command.iter().map(|word| quoted(&word.to_string())).collect();
    if words.is_empty() { peek.comm.to_string() } else { words.join(" ") }
}

fn quoted(word: &str) -> String {
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter) || !letter.is_ascii();
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_or_two_units() {
        let texts = [0.2, 1.96, 12.7, 723.0, 7384.0, 200_000.0].map(time);
        assert_eq!(texts, ["200 ms", "2 s", "12 s", "12 m 03 s", "2 h 03 m", "2 d 07 h"]);
    }

    #[test]
    fn only_runtimes_that_flush_at_exit_are_said_to_do_so() {
        let of = |walker, fd, found_by_search| {
            let stream = crate::peek::screen::tests::peek().streams.remove(0);
            appears(&PeekStream { walker, fd, found_by_search, ..stream })
        };
        assert_eq!(of(RuntimeId::CPYTHON, 1, false), "in 8,151 B, or at exit");
        assert_eq!(of(RuntimeId::GO, 1, true), "in 8,151 B, not at exit");
        assert_eq!(of(RuntimeId::RUST, 1, false), "in 8,151 B, or at exit", "Rust flushes its stdout");
        assert_eq!(of(RuntimeId::RUST, 3, true), "in 8,151 B, or if dropped");
        assert_eq!(
            [of(RuntimeId::CPP, 1, true), of(RuntimeId::CPP, 3, true)],
            ["in 8,151 B, or at exit", "in 8,151 B, or if closed"]
        );
    }

    #[test]
    fn bytes_for_a_pipe_without_a_reader_never_appear() {
        let of = |path: &str, peers_complete| {
            let stream = crate::peek::screen::tests::peek().streams.remove(0);
            let (kind, path, peers) = (StreamKind::Pipe, path.into(), Vec::new());
            let stream = PeekStream { kind, path, peers, peers_complete, ..stream };
            (appears(&stream), can_be_written(&stream))
        };
        assert_eq!(of("pipe:[7]", true), ("never: SIGPIPE or EPIPE".into(), false));
        assert_eq!(of("/tmp/fifo", true), ("EPIPE until it has a reader".into(), false));
        assert_eq!(of("pipe:[7]", false), ("in 8,151 B, or at exit".into(), true));
    }

    #[test]
    fn bytes_for_a_closed_descriptor_cannot_be_written() {
        let mut peek = crate::peek::screen::tests::peek();
        peek.streams.truncate(1);
        assert_eq!(flush_command(&peek), Some("weir flush 4711".into()));
        peek.streams[0].pending_bytes = DEFAULT_LIMIT + 1;
        assert_eq!(flush_command(&peek), Some("weir flush --limit 49M 4711".into()));
        peek.streams[0].copy_of = Some(4700);
        assert_eq!(flush_command(&peek), None, "a copy that weir flush leaves");
        peek.streams[0].copy_of = None;
        let stream = PeekStream {
            path: "".into(),
            peers: Vec::new(),
            kind: StreamKind::Other,
            ..peek.streams[0].clone()
        };
        assert_eq!((target(&stream), appears(&stream)), ("closed".into(), "EBADF until it is open".into()));
        peek.streams[0] = stream;
        assert_eq!(flush_command(&peek), None);
    }

    #[test]
    fn a_title_is_no_command() {
        let of = |words: &[&str]| {
            let command = words.iter().map(|word| (*word).into()).collect();
            let peek = Peek { command, ..crate::peek::screen::tests::peek() };
            (super::command(&peek), own_title(&peek).is_some())
        };
        assert_eq!(of(&["nginx: worker process", "", "", ""]), ("nginx: worker process".into(), true));
        assert_eq!(of(&["sshd: root", ""]), ("sshd: root".into(), true));
        assert_eq!(of(&["cat", ""]), ("cat ''".into(), false));
        assert_eq!(of(&["cat", "", "x"]), ("cat '' x".into(), false));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!([quoted("a.py"), quoted("it's"), quoted("")], ["a.py", r"'it'\''s'", "''"]);
    }
}
