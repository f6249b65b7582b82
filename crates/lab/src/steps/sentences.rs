//! The sentences of the steps.

use weir_model::lab::step::StepFile;
use weir_model::trace::{Call, Exit, OpenFile};
use weir_model::{Mode, StreamKind, errno};

use super::streams::BufferChange;

/// Flags of open(2), the same on all machines that weir runs on.
pub(super) const O_TRUNC: i32 = 0o1000;
pub(super) const O_APPEND: i32 = 0o2000;

/// A path without its directory, with the words behind it.
pub(super) fn base(command: &str) -> &str {
    let end = command.find(' ').unwrap_or(command.len());
    command[..end].rfind('/').map_or(command, |slash| &command[slash + 1..])
}

/// What a reader calls it.
pub(super) fn name(file: &OpenFile) -> String {
    match file.kind {
        StreamKind::Pipe => "the pipe".into(),
        StreamKind::Socket => "the socket".into(),
        StreamKind::Terminal => "the terminal".into(),
        _ if file.path.starts_with("/dev/") => file.path.clone(),
        _ => base(&file.path).to_string(),
    }
}

/// A descriptor as C names its stream.
fn stream(fd: i32) -> String {
    match fd {
        0 => "stdin".into(),
        1 => "stdout".into(),
        2 => "stderr".into(),
        fd => format!("stream {fd}"),
    }
}

/// `1 byte`, `18 bytes`.
pub(super) fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".into() } else { format!("{count} bytes") }
}

pub(super) fn fd(change: &BufferChange) -> i32 {
    match change {
        BufferChange::Put { fd, .. } | BufferChange::Took { fd, .. } | BufferChange::Left { fd, .. } => *fd,
    }
}

pub(super) fn change(pid: u32, change: &BufferChange) -> String {
    match *change {
        BufferChange::Put { fd, bytes: count, before: 0 } => {
            let (bytes, stream) = (bytes(count), stream(fd));
            format!(
                "{pid} prints {bytes} into the buffer of {stream}. No system call: the kernel knows nothing of them."
            )
        }
        BufferChange::Put { fd, bytes: count, .. } => {
            let more = if count == 1 { "1 more byte".into() } else { format!("{count} more bytes") };
            format!("{pid} prints {more} into the buffer of {}. No system call.", stream(fd))
        }
        BufferChange::Took { fd, bytes: count, left } => {
            format!(
                "{pid} takes {} from the buffer of {}: {left} left. No system call.",
                bytes(count),
                stream(fd)
            )
        }
        BufferChange::Left { fd, bytes: count } => {
            format!("Of what {pid} read, {} stay in the buffer of {}.", bytes(count), stream(fd))
        }
    }
}

/// How long bytes in a buffer wait; the mode is explained where they are the first there.
pub(super) fn waits(mode: Option<(Option<Mode>, u64)>, before: u64, waits_in: &str) -> String {
    let until = match mode {
        Some((Some(Mode::Full), room)) if before == 0 => format!(
            "A file or pipe is fully buffered: they wait in memory until {room} are there, or the process calls fflush or exits."
        ),
        Some((Some(Mode::Full), room)) => {
            format!(
                "They wait behind the {before} there, until {room} are there or the process calls fflush or exits."
            )
        }
        Some((Some(Mode::Line), _)) => {
            "A terminal is line buffered: they wait in memory until a newline comes, or the process calls fflush or exits."
                .into()
        }
        _ => "They wait in the process's memory; nobody else can see them.".into(),
    };
    match waits_in {
        "wait4" | "waitid" => format!("{until} It now stands in {waits_in}, for its child."),
        "clock_nanosleep" | "nanosleep" | "pause" | "poll" | "ppoll" => {
            format!("{until} It now sleeps ({waits_in}).")
        }
        _ => until,
    }
}

/// Why bytes come out that a fork copied.
pub(super) fn inherited(count: u64, of: u64) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!(" {count} of these {} {were} there before the fork.", bytes(of))
}

pub(super) fn forks(pid: u32, child: u32, waiting: u64) -> String {
    match waiting {
        0 => format!("{pid} calls fork: {child} begins as a copy of it. Its buffers are empty."),
        _ => format!("{pid} calls fork: {child} begins as a copy of it, buffer and all."),
    }
}

pub(super) fn copied(waiting: u64) -> String {
    match waiting {
        0 => "Nothing waited, so nothing was copied that could come out twice.".into(),
        count => format!(
            "The {} that waited are in both processes now. No one has written them yet; each of the two will.",
            bytes(count)
        ),
    }
}

pub(super) fn flushes(pid: u32, call: &Call, to: &str) -> String {
    format!(
        "{pid} writes its buffer out: {} to {to}, by {} on descriptor {}.",
        bytes(call.result as u64),
        call.op.name(),
        call.fd
    )
}

pub(super) fn writes(pid: u32, call: &Call, to: &str) -> String {
    format!("{pid} calls {}({}): {} to {to}.", call.op.name(), call.fd, bytes(call.result as u64))
}

pub(super) fn reads(pid: u32, call: &Call, from: &str) -> String {
    let name = call.op.name();
    match call.result {
        0 => format!("{pid} calls {name}({}): {from} is at its end.", call.fd),
        count => format!("{pid} calls {name}({}): {} from {from}.", call.fd, bytes(count as u64)),
    }
}

pub(super) fn failed(pid: u32, call: &Call, on: &str) -> String {
    let number = -call.result as i32;
    let error = errno::name(number).map_or_else(|| format!("errno {number}"), String::from);
    format!("{pid} calls {}({}) on {on}: it fails with {error}.", call.op.name(), call.fd)
}

pub(super) fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(number) => format!("by signal {number}"),
    }
}

pub(super) fn lost_at_end(lost: u64) -> String {
    match lost {
        0 => "Nothing was left in its buffers.".into(),
        count => format!("The {} in its buffer are gone with it: nobody flushed them.", bytes(count)),
    }
}

pub(super) fn lost_at_exec(lost: u64, unread: u64) -> String {
    match (lost, unread) {
        (0, 0) => "Nothing was in its buffers.".into(),
        (0, unread) => format!("The {} that it had read and not used are gone.", bytes(unread)),
        (lost, _) => format!("The {} that waited in its buffer are gone.", bytes(lost)),
    }
}

/// What is in the files at the end, and which lines are there more than once.
pub(super) fn sum(files: &[StepFile], copied: u64) -> String {
    let written = files.iter().filter(|file| file.kind == StreamKind::File && !file.content.is_empty());
    let one = |file: &StepFile| {
        let whole = file.content.iter().copied().collect::<Option<Vec<u8>>>();
        let Some(whole) = whole else { return format!("{} has {}.", file.name, bytes(file.bytes)) };
        let text = String::from_utf8_lossy(&whole);
        let lines: Vec<&str> = text.lines().collect();
        let twice = lines.iter().enumerate().find(|(at, line)| lines[..*at].contains(line)).map(|one| *one.1);
        let why = match twice {
            Some(line) if copied > 0 => {
                format!(
                    " {line:?} is there more than once: fork copied it in the buffer, each process wrote its copy."
                )
            }
            _ => String::new(),
        };
        let s = if lines.len() == 1 { "" } else { "s" };
        format!("{} has {} line{s}, {}.{why}", file.name, lines.len(), bytes(file.bytes))
    };
    written.map(one).collect::<Vec<_>>().join(" ")
}
