//! Sentences about a flushed process, for `weir flush`.

use weir_model::Size;
use weir_model::flush::{FlushedProcess, FlushedStream};

/// Returns one line for each stream that weir wrote.
pub fn written_lines(process: &FlushedProcess) -> Vec<String> {
    let written = process.streams.iter().filter(|stream| stream.written_bytes > 0);
    written.map(|stream| line(process, stream.written_bytes, "written to", stream)).collect()
}

/// Returns one line for each stream with bytes that are still pending.
pub fn pending_lines(process: &FlushedProcess) -> Vec<String> {
    let pending = process.streams.iter().filter(|stream| stream.left_bytes > 0);
    let pending_line = |stream: &FlushedStream| {
        let why = stream.why.as_deref().unwrap_or("the program added new bytes");
        let be = if stream.left_bytes == 1 { "is" } else { "are" };
        format!("{} {be} still pending: {why}", line(process, stream.left_bytes, "for", stream))
    };
    pending.map(pending_line).collect()
}

/// Returns the line for a process without pending bytes.
pub fn nothing_pending_line(process: &FlushedProcess) -> String {
    let limit = if process.unseen.is_empty() { "" } else { " in the buffers that weir can read" };
    format!("{} ({}): nothing is pending{limit}", process.comm, process.pid)
}

fn line(process: &FlushedProcess, bytes: u64, verb: &str, stream: &FlushedStream) -> String {
    let FlushedProcess { pid, comm, .. } = process;
    let target = if stream.path.is_empty() { String::new() } else { format!(" ({})", stream.path) };
    format!("{comm} ({pid}): {} {verb} descriptor {}{target}", Size(bytes), stream.fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::trace::RuntimeId;

    #[test]
    fn written_and_pending_bytes_are_named_with_their_stream() {
        let stream = |fd, written_bytes, left_bytes| FlushedStream {
            fd,
            path: "/tmp/out".into(),
            walker: RuntimeId::GLIBC,
            written_bytes,
            left_bytes,
            why: (left_bytes == 7).then(|| "the pipe is full".into()),
            copy_of: None,
            address: 0,
            refused: false,
        };
        let streams = vec![stream(1, 40, 0), stream(2, 0, 1), stream(3, 1, 7)];
        let mut process =
            FlushedProcess { pid: 7, comm: "sed".into(), streams, unseen: Vec::new(), error: None };
        assert_eq!(
            written_lines(&process),
            [
                "sed (7): 40 B written to descriptor 1 (/tmp/out)",
                "sed (7): 1 B written to descriptor 3 (/tmp/out)"
            ]
        );
        assert_eq!(
            pending_lines(&process),
            [
                "sed (7): 1 B for descriptor 2 (/tmp/out) is still pending: the program added new bytes",
                "sed (7): 7 B for descriptor 3 (/tmp/out) are still pending: the pipe is full"
            ]
        );
        process.streams[1].path = "".into();
        let closed = &pending_lines(&process)[0];
        assert!(closed.starts_with("sed (7): 1 B for descriptor 2 is still pending"), "{closed}");
        assert_eq!(nothing_pending_line(&process), "sed (7): nothing is pending");
        process.unseen.push("Java".into());
        assert_eq!(
            nothing_pending_line(&process),
            "sed (7): nothing is pending in the buffers that weir can read"
        );
    }
}
