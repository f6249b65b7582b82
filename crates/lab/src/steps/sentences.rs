//! The sentences of the steps.

use weir_model::lab::step::StepFile;
use weir_model::trace::{Call, Exit, OpenFile};
use weir_model::{Mode, StreamKind, errno};

use super::streams::BufferChange;

/// The flag of open(2), the same on x86-64 and aarch64.
pub(super) const O_TRUNC: i32 = 0o1000;

/// Returns a command without the directory of its path; the arguments stay.
pub(super) fn base(command: &str) -> &str {
    let end = command.find(' ').unwrap_or(command.len());
    command[..end].rfind('/').map_or(command, |slash| &command[slash + 1..])
}

/// Returns the name of a file for the reader.
pub(super) fn name(file: &OpenFile) -> String {
    match file.kind {
        StreamKind::Pipe => "the pipe".into(),
        StreamKind::Socket => "the socket".into(),
        StreamKind::Terminal => "the terminal".into(),
        _ if file.path.exact().starts_with("/dev/") => file.path.to_string(),
        _ => base(&file.path.to_string()).to_string(),
    }
}

/// Returns whether a file is open for reading only.
pub(super) fn is_read_only(file: &OpenFile) -> bool {
    const O_ACCMODE: i32 = 0o3;
    file.kind == StreamKind::File && file.opened_by.is_some() && file.flags & O_ACCMODE == 0
}

/// Returns the sentence about the box of a process that begins.
pub(super) fn box_of(has_buffers: bool) -> &'static str {
    match has_buffers {
        true => {
            "The box is its buffer: memory in which its C library or runtime collects the bytes that it prints or reads; still empty."
        }
        false => {
            "weir finds no buffer in use in it, so its box stays empty: the steps show its system calls."
        }
    }
}

/// Returns the name of a descriptor's stream in C.
fn stream(fd: i32) -> String {
    match fd {
        0 => "stdin".into(),
        1 => "stdout".into(),
        2 => "stderr".into(),
        fd => format!("stream {fd}"),
    }
}

/// Returns a number of bytes as text: `1 byte`, `18 bytes`.
pub(super) fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".into() } else { format!("{count} bytes") }
}

pub(super) fn fd(change: &BufferChange) -> i32 {
    match change {
        BufferChange::Put { fd, .. } | BufferChange::Used { fd, .. } | BufferChange::ReadAhead { fd, .. } => {
            *fd
        }
    }
}

pub(super) fn change(pid: u32, change: &BufferChange) -> String {
    match *change {
        BufferChange::Put { fd, bytes: count, before: 0 } => {
            let (bytes, stream) = (bytes(count), stream(fd));
            format!(
                "{pid} prints {bytes} into the buffer of {stream}. No system call: the kernel does not have them yet."
            )
        }
        BufferChange::Put { fd, bytes: count, .. } => {
            let more = if count == 1 { "1 more byte".into() } else { format!("{count} more bytes") };
            format!("{pid} prints {more} into the buffer of {}. No system call.", stream(fd))
        }
        BufferChange::Used { fd, bytes: count, left } => {
            format!(
                "{pid} reads {} from the buffer of {}: {left} left. No system call.",
                bytes(count),
                stream(fd)
            )
        }
        BufferChange::ReadAhead { fd, bytes: count } => {
            format!("{pid} has {} of read-ahead in the buffer of {}.", bytes(count), stream(fd))
        }
    }
}

/// Returns when new pending bytes will be written. The first bytes in a buffer come with an explanation of its mode.
pub(super) fn pending(mode: Option<(Option<Mode>, u64)>, before: u64, waits_in: &str) -> String {
    let until = match mode {
        Some((Some(Mode::Full), size)) if before == 0 => format!(
            "A file or pipe is fully buffered: they stay in memory until the buffer has {size} bytes, or the process \
             calls fflush or exits."
        ),
        Some((Some(Mode::Full), size)) => {
            format!(
                "With the {before} before them they stay there until the buffer has {size} bytes, or the process \
                 calls fflush or exits."
            )
        }
        Some((Some(Mode::Line), _)) => {
            "A terminal is line buffered: they stay in memory until a newline, or until the process calls fflush or \
             exits."
                .into()
        }
        _ => "They are in the memory of the process; no other process can read them.".into(),
    };
    match waits_in {
        "wait4" | "waitid" => format!("{until} The process now waits in {waits_in} for its child."),
        "clock_nanosleep" | "nanosleep" | "pause" | "poll" | "ppoll" => {
            format!("{until} The process now sleeps ({waits_in}).")
        }
        _ => until,
    }
}

/// Returns how many of the written bytes a fork had copied.
pub(super) fn inherited(count: u64, of: u64) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!(" {count} of these {} {were} pending before the fork.", bytes(of))
}

pub(super) fn forks(pid: u32, child: u32, pending: u64) -> String {
    match pending {
        0 => format!("{pid} calls fork: {child} begins as a copy of it. Its buffers are empty."),
        _ => format!("{pid} calls fork: {child} begins as a copy of it, with a copy of its buffer."),
    }
}

pub(super) fn copied(pending: u64) -> String {
    match pending {
        0 => "No bytes were pending, so none can be written twice.".into(),
        1 => "The pending byte is in both processes now, and each of the two will write it.".into(),
        count => format!(
            "The {count} pending bytes are in both processes now, and each of the two will write them."
        ),
    }
}

pub(super) fn flushes(pid: u32, call: &Call, to: &str) -> String {
    format!(
        "{pid} writes its buffer: {} to {to}, with {} on descriptor {}.",
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
        0 => format!("{pid} calls {name}({}): end of {from}.", call.fd),
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
        0 => "Its buffers were empty.".into(),
        1 => "The byte in its buffer is lost: it was not flushed.".into(),
        count => format!("The {count} bytes in its buffer are lost: they were not flushed."),
    }
}

pub(super) fn lost_at_exec(lost: u64, unread: u64) -> String {
    match (lost, unread) {
        (0, 0) => "Its buffers were empty.".into(),
        (0, unread) => format!("Its read-ahead is lost: {}.", bytes(unread)),
        (lost, _) => format!("The pending bytes of its buffer are lost: {}.", bytes(lost)),
    }
}

/// Returns the contents of the files at the end, with a line that occurs more than once.
pub(super) fn summary(files: &[StepFile], copied: u64) -> String {
    let written = files.iter().filter(|file| file.kind == StreamKind::File && !file.content.is_empty());
    let one = |file: &StepFile| {
        let whole = file.content.iter().copied().collect::<Option<Vec<u8>>>();
        let Some(whole) = whole else { return format!("{} has {}.", file.name, bytes(file.bytes)) };
        let text = String::from_utf8_lossy(&whole);
        let lines: Vec<&str> = text.lines().collect();
        let twice = lines.iter().enumerate().find(|(at, line)| lines[..*at].contains(line)).map(|one| *one.1);
        let repeated = match twice {
            Some(line) if copied > 0 => {
                format!(
                    " {line:?} is there more than once: fork copied it in the buffer, and each process wrote its copy."
                )
            }
            _ => String::new(),
        };
        let s = if lines.len() == 1 { "" } else { "s" };
        format!("{} has {} line{s}, {}.{repeated}", file.name, lines.len(), bytes(file.bytes))
    };
    written.map(one).collect::<Vec<_>>().join(" ")
}
