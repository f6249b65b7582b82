//! Draws the screen.

use weir_model::peek::{Peek, PeekStream, RestartCommand, WriteInProgress};
use weir_model::shell_quoted;

use super::labels;
use crate::style::{Emphasis, Style};
use crate::text::{clean, width, wrap, wrap_command};

const STREAM: usize = 1;
/// The columns that a narrow terminal leaves out, the first one first: `buffer`, `at least`, `would appear`.
const LEFT_OUT: [usize; 3] = [2, 4, 5];
/// Width to which the column `stream` is shortened before another one is left out.
const MIN_TARGET: usize = 12;
const HEAD: [&str; 6] = ["fd", "stream", "buffer", "pending", "at least", "would appear"];
/// Largest width of the column `stream`.
const MAX_TARGET: usize = 30;
const INDENT: &str = "      ";
/// The most lines of a command that is shown whole.
const COMMAND_LINES: usize = 3;

/// Returns the processes as text for a terminal; `full` shows all bytes, over several lines.
pub fn screen(processes: &[Peek], full: bool, style: &Style) -> String {
    let parts: Vec<String> = processes.iter().map(|peek| process(peek, full, style)).collect();
    parts.join("\n")
}

fn process(peek: &Peek, full: bool, style: &Style) -> String {
    let mut text = title(peek, style);
    let shown: Vec<&PeekStream> = peek
        .streams
        .iter()
        .filter(|one| one.fd >= 0 && (one.pending_bytes > 0 || one.unread_bytes > 0))
        .collect();
    text.push('\n');
    if !shown.is_empty() {
        table(&shown, full, style, &mut text);
        text.push('\n');
    }
    let hidden = hidden_writes(peek);
    for writing in &hidden {
        in_progress(peek.pid, writing, style, &mut text);
    }
    let mut shown: Vec<i32> = shown.iter().map(|one| one.fd).collect();
    shown.extend(hidden.iter().map(|writing| writing.fd));
    rest(peek, &shown, style, &mut text);
    commands(peek, style, &mut text);
    text
}

fn title(peek: &Peek, style: &Style) -> String {
    let end = format!(" ({}), {}", peek.pid, labels::state(peek));
    let command = labels::command(peek);
    let room = style.width.saturating_sub(width(&end)).max(20);
    let name = cut(&clean(&command, style), room, style);
    format!("{}{}\n", style.paint(Emphasis::Strong, &name), clean(&end, style))
}

fn table(streams: &[&PeekStream], full: bool, style: &Style, text: &mut String) {
    let mut rows: Vec<[String; 6]> = streams.iter().map(|one| row(one, style)).collect();
    let mut widths = HEAD.map(|word| width(&clean(word, style)));
    for row in &rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(width(cell));
        }
    }
    widths[STREAM] = widths[STREAM].min(MAX_TARGET);
    // The column `stream` becomes narrower by what the line is too long, as far as it can spare it.
    let over = |widths: &[usize; 6]| {
        let shown = widths.iter().filter(|width| **width > 0);
        shown.map(|width| width + 2).sum::<usize>().saturating_sub(style.width)
    };
    let spare = widths[STREAM].saturating_sub(MIN_TARGET);
    for column in LEFT_OUT {
        if over(&widths) > spare {
            widths[column] = 0;
        }
    }
    widths[STREAM] -= over(&widths).min(spare);
    for (row, stream) in rows.iter_mut().zip(streams) {
        let short = if stream.peers.is_empty() { cut_start } else { cut };
        row[STREAM] = short(&row[STREAM], widths[STREAM], style);
    }
    let head = line(&HEAD.map(|word| clean(word, style)), &widths);
    *text += &format!("{}\n", style.paint(Emphasis::Faint, &head));
    for (row, stream) in rows.iter().zip(streams) {
        *text += &format!("{}\n", line(row, &widths));
        preview(stream, full, style, text);
        copied(stream, style, text);
        if stream.unconverted_bytes > 0 {
            let bytes = weir_model::number::thousands(stream.unconverted_bytes);
            let line =
                format!("{INDENT}{bytes} B are not yet converted to the file's encoding: weir leaves them");
            *text += &format!("{}\n", cut(&line, style.width, style));
        }
    }
}

fn row(stream: &PeekStream, style: &Style) -> [String; 6] {
    let rest = [
        labels::target(stream),
        labels::buffer(stream),
        labels::waiting(stream),
        labels::since(stream),
        labels::appears(stream),
    ];
    let [target, buffer, waiting, since, appears] = rest.map(|word| clean(&word, style));
    [stream.fd.to_string(), target, buffer, waiting, since, appears]
}

fn line(cells: &[String; 6], widths: &[usize; 6]) -> String {
    let mut line = format!("  {:>1$}", cells[0], widths[0]);
    for (cell, most) in cells.iter().zip(widths).skip(1).filter(|(_, most)| **most > 0) {
        let space = most.saturating_sub(width(cell));
        line += &format!("  {cell}{}", " ".repeat(space));
    }
    line.trim_end().to_string()
}

fn preview(stream: &PeekStream, full: bool, style: &Style, text: &mut String) {
    let all = if stream.pending_bytes > 0 { stream.pending_bytes } else { stream.unread_bytes };
    let quoted = clean(&format!("\"{}\"", stream.preview), style);
    let room = style.width.saturating_sub(INDENT.len()).max(20);
    if full {
        let letters: Vec<char> = quoted.chars().collect();
        for part in letters.chunks(room) {
            *text += &format!("{INDENT}{}\n", part.iter().collect::<String>());
        }
        if stream.preview_bytes < all {
            *text += &format!("{INDENT}… the first {} of {all} bytes\n", stream.preview_bytes);
        }
        return;
    }
    let shown = cut(&quoted, room, style);
    *text += &format!("{INDENT}{shown}\n");
}

/// Adds which of the bytes another process has too.
fn copied(stream: &PeekStream, style: &Style, text: &mut String) {
    let Some(line) = stream.copy_description() else { return };
    *text +=
        &format!("{INDENT}{}\n", cut(&clean(&line, style), style.width.saturating_sub(INDENT.len()), style));
}

/// Returns the output calls in which threads block. Leaves out those on a descriptor whose stream has pending bytes: the bytes of
/// the call are still among these.
fn hidden_writes(peek: &Peek) -> Vec<&WriteInProgress> {
    let is_buffered = |fd: i32| peek.streams.iter().any(|one| one.fd == fd && one.pending_bytes > 0);
    peek.writing.iter().chain(&peek.other_writes).filter(|writing| !is_buffered(writing.fd)).collect()
}

/// Adds the bytes of an output call that a thread has begun.
fn in_progress(pid: u32, writing: &WriteInProgress, style: &Style, text: &mut String) {
    let bytes = weir_model::number::thousands(writing.bytes);
    let by = if writing.tid == pid { String::new() } else { format!("by thread {}, ", writing.tid) };
    let line = format!(
        "  in progress: a {} of {bytes} B to descriptor {}, {by}in part perhaps done",
        writing.call, writing.fd
    );
    *text += &format!("{}\n", cut(&line, style.width, style));
    let quoted = clean(&format!("\"{}\"", writing.preview), style);
    let room = style.width.saturating_sub(INDENT.len()).max(20);
    *text += &format!("{INDENT}{}\n\n", cut(&quoted, room, style));
}

/// Adds the streams without bytes and the buffers that weir cannot read.
fn rest(peek: &Peek, shown: &[i32], style: &Style, text: &mut String) {
    if peek.streams.is_empty() && peek.unseen.is_empty() {
        *text += "  no streams of a runtime that weir knows\n\n";
    }
    let is_shown = |fd: i32| shown.contains(&fd);
    let mut empty: Vec<i32> =
        peek.streams.iter().map(|one| one.fd).filter(|fd| *fd >= 0 && !is_shown(*fd)).collect();
    empty.sort_unstable();
    empty.dedup();
    if !empty.is_empty() {
        let list: Vec<String> = empty.iter().map(i32::to_string).collect();
        let (noun, list) = (if empty.len() == 1 { "descriptor" } else { "descriptors" }, list.join(", "));
        let named = cut(&format!("{noun} {list}"), style.width - 20, style);
        *text += &format!("  nothing pending in {named}\n\n");
    }
    for one in &peek.unseen {
        *text += &format!("{}\n\n", wrap(&clean(one, style), style.width, "  ", "  ").join("\n"));
    }
}

/// Adds the commands that write the pending bytes, on one line if there is room.
fn commands(peek: &Peek, style: &Style, text: &mut String) {
    if !peek.streams.iter().any(labels::can_be_written) {
        return;
    }
    let now = labels::flush_command(peek).map(|flush| format!("write it out now:  {flush}"));
    let (directory, words, reason) = match &peek.restart {
        Some(RestartCommand::Known { words, directory }) => (directory.as_deref(), words.as_slice(), None),
        Some(RestartCommand::Unknown(reason)) => (None, &[][..], Some(reason)),
        None => (None, &[][..], None),
    };
    let words: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
    let words = if words.is_empty() { "COMMAND".into() } else { words.join(" ") };
    let command = format!("weir run --max-delay 100ms -- {}", clean(&words, style));
    let next = format!("next time:  {command}");
    match now {
        Some(now) if directory.is_none() && 2 + width(&now) + 6 + width(&next) <= style.width => {
            *text += &format!("  {now}      {next}\n");
        }
        now => {
            let now = now.map(|now| format!("  {now}")).into_iter();
            now.chain(next_lines(directory, &command, style)).for_each(|line| *text += &(line + "\n"));
        }
    }
    if let Some(reason) = reason {
        let reason = format!("(type its own command: {reason})");
        *text += &format!("    {}\n", cut(&clean(&reason, style), style.width.saturating_sub(4), style));
    }
}

/// Returns the lines of a command for the next time, with its directory on a line of its own.
fn next_lines(directory: Option<&str>, command: &str, style: &Style) -> Vec<String> {
    const FIRST: &str = "  next time:  ";
    let change =
        directory.map(|directory| format!("{FIRST}cd {} &&", clean(&shell_quoted(directory), style)));
    let (first, rest) = if change.is_some() { ("    ", "      ") } else { (FIRST, "    ") };
    let mut lines = wrap_command(command, style.width, first, rest);
    if lines.len() > COMMAND_LINES || lines.iter().any(|line| width(line) > style.width) {
        lines = vec![cut(&format!("{first}{command}"), style.width, style)];
    }
    lines.splice(..0, change.map(|line| cut(&line, style.width, style)));
    lines
}

/// Returns the beginning of a text that is too long.
fn cut(text: &str, most: usize, style: &Style) -> String {
    if width(text) <= most {
        return text.into();
    }
    let dots = clean("…", style);
    let mut short = String::new();
    for letter in text.chars() {
        if width(&short) + width(&letter.to_string()) + width(&dots) > most {
            break;
        }
        short.push(letter);
    }
    short + &dots
}

/// Returns the end of a text that is too long, for paths.
fn cut_start(text: &str, most: usize, style: &Style) -> String {
    if width(text) <= most {
        return text.into();
    }
    let reversed: String = text.chars().rev().collect();
    let dots = clean("…", style);
    let kept = most.saturating_sub(width(&dots));
    let mut short = String::new();
    for letter in reversed.chars() {
        if width(&short) + width(&letter.to_string()) > kept {
            break;
        }
        short.insert(0, letter);
    }
    dots + &short
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::peek::{MainThreadState, PipePeer};
    use weir_model::trace::RuntimeId;
    use weir_model::{Mode, StreamKind, Untrusted};

    use super::*;

    pub fn peek() -> Peek {
        let stream = PeekStream {
            walker: RuntimeId::CPYTHON,
            fd: 1,
            kind: StreamKind::Pipe,
            path: "pipe:[4711]".into(),
            peers: vec![PipePeer { pid: 4712, comm: "tee".into() }],
            peers_complete: true,
            mode: Some(Mode::Full),
            buffer_bytes: 8192,
            pending_bytes: 41,
            unconverted_bytes: 0,
            since_s: Some(718.0),
            unread_bytes: 0,
            locked: None,
            can_be_flushed: true,
            found_by_search: false,
            preview: "ready: listening on port 8080\\nconnected\\n".into(),
            preview_bytes: 41,
            copy_of: None,
            copy_of_comm: Untrusted::default(),
            copied_bytes: 0,
            is_copy_cut: false,
            address: 0,
        };
        let quiet = PeekStream {
            fd: 2,
            pending_bytes: 0,
            preview: String::new(),
            preview_bytes: 0,
            ..stream.clone()
        };
        Peek {
            pid: 4711,
            comm: "python3".into(),
            command: vec!["python3".into(), "worker.py".into()],
            threads: 1,
            state: MainThreadState::Asleep { call: "poll".into(), fd: None },
            idle_s: Some(723.0),
            streams: vec![stream, quiet],
            writing: None,
            other_writes: Vec::new(),
            unseen: Vec::new(),
            restart: known(&["python3", "worker.py"], None),
        }
    }

    fn known(words: &[&str], directory: Option<&str>) -> Option<RestartCommand> {
        let words = words.iter().map(|word| (*word).into()).collect();
        Some(RestartCommand::Known { words, directory: directory.map(Into::into) })
    }

    #[test]
    fn a_process_with_pending_bytes() {
        let expected = "\
python3 worker.py (4711), asleep in poll for 12 m 03 s

  fd  stream           buffer      pending  at least   would appear
   1  pipe → tee 4712  full 8 KiB  41 B     11 m 58 s  in 8,151 B, or at exit
      \"ready: listening on port 8080\\nconnected\\n\"

  nothing pending in descriptor 2

  write it out now:  weir flush 4711
  next time:  weir run --max-delay 100ms -- python3 worker.py
";
        assert_eq!(screen(&[peek()], false, &Style { width: 90, ..Style::default() }), expected);
    }

    #[test]
    fn eighty_columns_are_kept() {
        let mut long = peek();
        long.streams[0].kind = StreamKind::File;
        long.streams[0].path = "/var/lib/a-very-long-directory/with/many/parts/and-a-name.log".into();
        long.streams[0].peers.clear();
        long.streams[0].preview = "Q".repeat(256);
        long.command.push("y".repeat(100).into());
        long.unseen.push("a sentence ".repeat(20));
        for style in [Style::default(), Style { unicode: false, ..Style::default() }] {
            for line in screen(&[long.clone()], false, &style).lines() {
                assert!(width(line) <= 80, "{line}");
            }
        }
        long.command = ["python3", &"a".repeat(50), &"b".repeat(50)].map(|word| word.into()).to_vec();
        let (a, b) = ("a".repeat(50), "b".repeat(50));
        long.restart = known(&["python3", &a, &b], None);
        let shown = screen(&[long.clone()], false, &Style::default());
        let command =
            format!("  next time:  weir run --max-delay 100ms -- python3 \\\n    {a} \\\n    {b}\n");
        assert!(shown.ends_with(&command), "the command can be typed: {shown}");
        let full = screen(&[long], true, &Style::default());
        assert_eq!(full.matches('Q').count(), 256, "all of them");
        assert!(full.lines().all(|line| width(line) <= 80));
    }

    #[test]
    fn the_next_command_has_its_directory_or_the_reason_why_it_is_not_known() {
        let of = |restart| screen(&[Peek { restart, ..peek() }], false, &Style::default());
        let text = of(known(&["./x"], Some("/srv/a b")));
        let expected = "  next time:  cd '/srv/a b' &&\n    weir run --max-delay 100ms -- ./x\n";
        assert!(text.ends_with(expected), "{text}");
        let text = of(Some(RestartCommand::Unknown("it has no words")));
        assert!(text.contains("weir run --max-delay 100ms -- COMMAND\n"), "{text}");
        assert!(text.ends_with("    (type its own command: it has no words)\n"), "{text}");
    }

    #[test]
    fn a_process_without_pending_bytes() {
        let mut idle = peek();
        idle.streams.remove(0);
        idle.state = MainThreadState::Running;
        let text = screen(&[idle], false, &Style::default());
        assert!(text.starts_with("python3 worker.py (4711), running\n"), "{text}");
        assert!(text.contains("nothing pending in descriptor 2") && !text.contains("weir flush"));
    }

    #[test]
    fn unflushable_bytes_have_no_command() {
        let mut go = peek();
        (go.streams[0].walker, go.streams[0].can_be_flushed) = (RuntimeId::GO, false);
        go.streams[0].found_by_search = true;
        let text = screen(&[go], false, &Style::default());
        assert!(text.contains("41 B") && !text.contains("weir "), "{text}");
    }
}
