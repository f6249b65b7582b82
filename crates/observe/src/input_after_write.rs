//! Whether a process took input after its last write to one file: a server keeps the lines of its log in memory of its own, and
//! answers each request meanwhile.

use weir_model::trace::{OpenFile, Process, StreamCounts};
use weir_model::{Direction, StreamKind, Untrusted};
use weir_recorder::RecorderOutput;

use crate::work_at_kill::TICK_S;

/// Returns whether a process read sockets or pipes after its last write to a file, or without any. False if that is not certain.
pub(crate) fn input_after_write(output: &RecorderOutput, process: &Process, path: &Untrusted) -> bool {
    let streams = || output.streams.iter().filter(|stream| stream.pid == process.pid);
    let writes = || streams().filter(|stream| stream.direction == Direction::Out && stream.bytes > 0);
    // A sample may have missed the last write.
    if writes().any(|stream| !stream.is_known()) {
        return false;
    }
    let writes_to = |path: &Untrusted| writes().any(|stream| is_at(output, stream, path));
    let to_file = writes().filter(|stream| is_at(output, stream, path));
    let last_write_s = to_file.map(|stream| stream.last_s).max_by(f64::total_cmp);
    let image = process.images.len().saturating_sub(1) as u32;
    streams().filter(|stream| stream.direction == Direction::In && stream.image == image).any(|input| {
        let file = output.files.get(input.file as usize);
        // A thread wakes another one by a pipe of the process's own.
        let is_input = |file: &OpenFile| match file.kind {
            StreamKind::Socket => true,
            StreamKind::Pipe => !writes_to(&file.path),
            _ => false,
        };
        let follows = last_write_s.is_none_or(|last_s| last_data_s(input) > last_s + TICK_S);
        input.is_known() && input.bytes > 0 && file.is_some_and(is_input) && follows
    })
}

fn is_at(output: &RecorderOutput, stream: &StreamCounts, path: &Untrusted) -> bool {
    output.files.get(stream.file as usize).is_some_and(|file| file.path == *path)
}

/// Returns a time at which a stream brought bytes, the last one that is certain. The last call may have met the end of the input.
fn last_data_s(input: &StreamCounts) -> f64 {
    if input.zeros == 0 { input.last_s } else { input.first_s }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Image;
    use weir_sys::open_files::unknown_file;

    use super::*;

    /// Returns whether process 7 took input after its last write to /d/log, which was at 1 s. It read a socket from `first_s` to
    /// `last_s`.
    fn took(first_s: f64, last_s: f64, change: impl Fn(&mut RecorderOutput)) -> bool {
        let stream = |direction, file: u32, first_s, last_s| StreamCounts {
            first_s,
            last_s,
            calls: 3,
            bytes: 30,
            ..StreamCounts::new(7, 0, file as i32 + 3, file, direction)
        };
        let file = |id, path: &str, kind| OpenFile { id, path: path.into(), flags: 1, ..unknown_file(kind) };
        let mut output = RecorderOutput {
            streams: vec![
                stream(Direction::Out, 0, 0.5, 1.0),
                stream(Direction::In, 1, first_s, last_s),
                // The answers, one for each request.
                stream(Direction::Out, 1, first_s, last_s + 0.001),
            ],
            files: vec![
                file(0, "/d/log", StreamKind::File),
                file(1, "socket:[1]", StreamKind::Socket),
                file(2, "pipe:[2]", StreamKind::Pipe),
            ],
            ..RecorderOutput::default()
        };
        change(&mut output);
        let process = Process { pid: 7, images: vec![Image::default()], ..Process::default() };
        input_after_write(&output, &process, &"/d/log".into())
    }

    #[test]
    fn requests_after_the_last_write_of_the_log() {
        assert!(took(0.5, 3.0, |_| {}), "each request was answered, but not logged");
        assert!(took(0.5, 0.6, |output| drop(output.streams.remove(0))), "nothing was logged");
        assert!(!took(0.5, 0.999, |_| {}), "each request was logged");
        assert!(!took(0.5, 1.005, |_| {}), "within a tick");
    }

    #[test]
    fn the_end_of_a_connection_is_no_input() {
        let ended = |output: &mut RecorderOutput| output.streams[1].zeros = 1;
        assert!(!took(0.5, 3.0, ended), "its last call may have met the end");
        assert!(took(2.5, 3.0, ended), "a later connection");
    }

    #[test]
    fn a_pipe_to_itself_brings_no_input() {
        let to_pipe = |output: &mut RecorderOutput| {
            (output.streams[1].file, output.streams[2].file) = (2, 2);
        };
        assert!(!took(0.5, 3.0, to_pipe));
        assert!(took(0.5, 3.0, |output| output.streams[1].file = 2), "another program writes this pipe");
        let unknown = StreamCounts::new(7, 0, StreamCounts::UNKNOWN, 0, Direction::Out);
        let sampled = |output: &mut RecorderOutput| {
            output.streams.push(StreamCounts { bytes: 9, ..unknown.clone() });
        };
        assert!(!took(0.5, 3.0, sampled), "a write was not seen");
    }
}
