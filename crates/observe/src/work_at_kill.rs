//! Whether a killed process can have had output that it had not written: it took input, or computed, after its last write.

use weir_model::trace::{OpenFile, Process, StreamCounts};
use weir_model::{Direction, StreamKind};
use weir_recorder::RecorderOutput;

/// The seconds by which a read must follow the last write. The backends round the time of a busy stream's last call to a tick of
/// the kernel, which is at most this long.
pub(crate) const TICK_S: f64 = 0.01;

/// Seconds in which a program starts: it reads its configuration and the files of its libraries.
const START_S: f64 = 0.1;

/// Seconds of CPU time after the last write that show work. The end of a process takes less.
const WORK_S: f64 = 0.1;

/// Directories of files that a program reads at its start, and not as its input.
const STARTUP_DIRECTORIES: [&str; 3] = ["/etc/", "/usr/lib/locale/", "/usr/share/locale/"];

/// Returns the streams by which the last image of a process passes bytes to others, without standard error.
pub(crate) fn outputs_of<'a>(
    output: &'a RecorderOutput,
    process: &'a Process,
) -> impl Iterator<Item = &'a StreamCounts> {
    streams_of(output, process, Direction::Out).filter(|stream| {
        let file = output.files.get(stream.file as usize);
        stream.fd != 2 && stream.bytes > 0 && file.is_some_and(|file| has_readers(output, process, file))
    })
}

/// Returns whether a file, pipe, socket or terminal can have another reader than the process: a program wakes its own threads by a
/// pipe of its own, or by an eventfd.
fn has_readers(output: &RecorderOutput, process: &Process, file: &OpenFile) -> bool {
    use StreamKind::{File, Pipe, Socket, Terminal};
    let open = output.open_at_kill.get(&process.pid).into_iter().flatten();
    let mut open = open.filter_map(|(_, other)| output.files.get(*other as usize));
    let is_own = file.kind == Pipe
        && open.any(|other| other.path == file.path && other.flags & libc::O_ACCMODE == libc::O_RDONLY);
    matches!(file.kind, File | Pipe | Socket | Terminal) && !is_own
}

fn streams_of<'a>(
    output: &'a RecorderOutput,
    process: &'a Process,
    direction: Direction,
) -> impl Iterator<Item = &'a StreamCounts> {
    let (pid, image) = (process.pid, process.images.len().saturating_sub(1) as u32);
    let streams = output.streams.iter();
    streams.filter(move |stream| (stream.pid, stream.image, stream.direction) == (pid, image, direction))
}

/// Returns whether a process took input or used CPU time after its last write. False if that is not certain.
pub(crate) fn worked_after_last_write(output: &RecorderOutput, process: &Process) -> bool {
    // A sample may have missed the last write.
    if streams_of(output, process, Direction::Out).any(|stream| !stream.is_known() && stream.bytes > 0) {
        return false;
    }
    let last_write_s = outputs_of(output, process).map(|stream| stream.last_s).max_by(f64::total_cmp);
    let writes: u64 = outputs_of(output, process).map(StreamCounts::moving_calls).sum();
    let written_bytes: u64 = outputs_of(output, process).map(|stream| stream.bytes).sum();
    let took_input = |input: &StreamCounts| {
        let Some(file) = output.files.get(input.file as usize) else { return false };
        let started_s = process.images.last().map_or(0.0, |image| image.started_s);
        is_input(file, input, started_s) && reads_on(input, last_write_s, writes, written_bytes)
    };
    streams_of(output, process, Direction::In).filter(|input| input.is_known()).any(took_input)
        || computed(process, last_write_s)
}

/// Returns whether a stream brings the program data: bytes that arrive, a standard input, or a file that it reads for longer than a
/// start takes.
fn is_input(file: &OpenFile, input: &StreamCounts, started_s: f64) -> bool {
    let path = file.path.exact();
    let is_of_start =
        path.contains(".so") || STARTUP_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
    input.bytes > 0
        && match file.kind {
            StreamKind::Pipe | StreamKind::Socket | StreamKind::Terminal => true,
            StreamKind::File if input.fd == 0 => true,
            StreamKind::File => !is_of_start && input.last_s >= started_s + START_S,
            _ => false,
        }
}

/// Returns whether bytes were read after the last write of any output, or in many calls for each of few writes until the end.
fn reads_on(input: &StreamCounts, last_write_s: Option<f64>, writes: u64, written_bytes: u64) -> bool {
    let Some(last_write_s) = last_write_s else { return true };
    let follows = input.last_s > last_write_s + TICK_S;
    let outnumbers = input.moving_calls() >= writes.saturating_mul(2) && input.last_s >= last_write_s;
    // The last read may be the one that met the end of the input: it brought nothing if as much was written as read.
    let may_be_end = input.zeros > 0 && input.bytes <= written_bytes;
    !may_be_end && (follows || outnumbers)
}

/// Returns whether a process used more CPU time than its threads can have used until its last write.
fn computed(process: &Process, last_write_s: Option<f64>) -> bool {
    let until_s = last_write_s.map_or(0.0, |last_s| (last_s - process.started_s).max(0.0));
    let most_s = until_s * f64::from(process.threads.max(1));
    process.user_s + process.system_s >= most_s + WORK_S
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_model::trace::Image;
    use weir_sys::open_files::unknown_file;

    use super::*;

    /// Returns the run of process 7, which a signal ends at 4 s. It reads a pipe as descriptor 0 and writes one as descriptor 1.
    fn run(reads: &[(u64, f64)], writes: &[(u64, f64)]) -> (RecorderOutput, Process) {
        let stream = |direction, fd: i32, &(calls, last_s): &(u64, f64)| StreamCounts {
            last_s,
            calls,
            bytes: calls * 10,
            ..StreamCounts::new(7, 0, fd, fd as u32, direction)
        };
        let file = |id: u32, path: &str, flags: i32| OpenFile {
            id,
            path: path.into(),
            flags,
            ..unknown_file(StreamKind::Pipe)
        };
        let inputs = reads.iter().map(|one| stream(Direction::In, 0, one));
        let outputs = writes.iter().map(|one| stream(Direction::Out, 1, one));
        let process = Process { pid: 7, images: vec![Image::default()], ..Process::default() };
        let output = RecorderOutput {
            streams: inputs.chain(outputs).collect(),
            files: vec![file(0, "pipe:[1]", libc::O_RDONLY), file(1, "pipe:[2]", libc::O_WRONLY)],
            open_at_kill: BTreeMap::from([(7, vec![(0, 0), (1, 1)])]),
            ..RecorderOutput::default()
        };
        (output, process)
    }

    fn worked((output, process): (RecorderOutput, Process)) -> bool {
        worked_after_last_write(&output, &process)
    }

    #[test]
    fn input_after_the_last_write_is_work() {
        assert!(worked(run(&[(50, 3.9)], &[])), "nothing was written");
        assert!(worked(run(&[(50, 3.9)], &[(1, 0.1)])));
        assert!(worked(run(&[(500, 3.999)], &[(10, 3.999)])), "many reads for each write, until the end");
        assert!(!worked(run(&[(50, 3.9)], &[(50, 3.9)])), "each piece was passed on");
        assert!(!worked(run(&[], &[(50, 3.9)])));
        let (mut ended, process) = run(&[(50, 3.9)], &[(50, 3.1)]);
        ended.streams[0].zeros = 1;
        assert!(!worked((ended, process)), "the last read met the end of the input");
        let (mut ended, process) = run(&[(41, 3.9)], &[(1, 3.899)]);
        ended.streams[0].zeros = 1;
        assert!(worked((ended, process)), "much more was read than written");
        let (mut sampled, process) = run(&[(50, 3.9)], &[(1, 0.1)]);
        let unknown = StreamCounts::new(7, 0, StreamCounts::UNKNOWN, 0, Direction::Out);
        sampled.streams.push(StreamCounts { bytes: 9, ..unknown });
        assert!(!worked((sampled, process)), "a write was not seen");
    }

    #[test]
    fn files_of_the_start_are_no_input() {
        let of_input = |fd: i32, path: &str, last_s: f64| {
            let (mut output, process) = run(&[(3, last_s)], &[]);
            output.streams[0].fd = fd;
            (output.files[0].path, output.files[0].kind) = (path.into(), StreamKind::File);
            worked((output, process))
        };
        let of_file = |path: &str, last_s: f64| of_input(3, path, last_s);
        assert!(of_file("/data/large", 3.9));
        assert!(of_input(0, "/data/short", 0.05), "the standard input");
        assert!(!of_file("/data/settings", 0.05), "read at once");
        assert!(!of_file("/lib/x86_64-linux-gnu/libc.so.6", 3.9));
        assert!(!of_file("/usr/share/locale/locale.alias", 3.9));
    }

    #[test]
    fn a_pipe_to_itself_is_no_output() {
        let (mut output, process) = run(&[(50, 3.9)], &[(1, 3.99)]);
        output.files[0].path = "pipe:[2]".into();
        assert!(worked((output, process)));
    }

    #[test]
    fn cpu_time_after_the_last_write_is_work() {
        let computing = |user_s: f64, threads: u32| {
            let (output, process) = run(&[], &[(1, 0.5)]);
            worked((output, Process { user_s, threads, ..process }))
        };
        assert!(computing(3.0, 1) && !computing(0.55, 1));
        assert!(!computing(1.5, 3), "perhaps before it, in three threads");
    }
}
