//! Tests of writes for other processes.

use std::io::Read;
use std::os::fd::AsRawFd;

use super::*;

fn open_own(fd: i32) -> ForeignFile {
    ForeignFile::open(&TargetThread::new(std::process::id()), fd, &[]).expect("an own descriptor")
}

#[test]
fn a_write_to_a_full_pipe_returns_at_once() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let file = open_own(writer.as_raw_fd());
    assert!(file.takes_whole(60_000));
    let progress = file.write_available(&[7; 100_000]);
    assert!(
        progress.error.is_none() && progress.written >= 4096 && progress.written < 100_000,
        "{progress:?}"
    );
    assert!(!file.takes_whole(60_000) && file.write_available(b"more").written == 0);
    let mut got = vec![0; progress.written];
    reader.read_exact(&mut got).unwrap();
    assert!(got.iter().all(|byte| *byte == 7));
    drop(reader);
    assert_eq!(file.write_available(b"x").error.unwrap().raw_os_error(), Some(libc::EPIPE));
}

#[test]
fn the_duplicate_shares_the_offset() {
    let mut temporary = tempfile::tempfile().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&temporary);
    let file = open_own(fd);
    assert_eq!(file.write_available(b"first ").written, 6);
    std::io::Write::write_all(&mut temporary, b"second").unwrap();
    std::io::Seek::rewind(&mut temporary).unwrap();
    let mut text = String::new();
    temporary.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first second");
    assert!(ForeignFile::open(&TargetThread::new(std::process::id()), 9999, &[]).is_err());
}

#[test]
fn all_files_of_a_thread_share_one_look_at_its_identity() {
    let own = WriterIdentity::own().expect("an identity");
    let other = WriterIdentity { groups: [&own.groups[..], &[4_000_000_000]].concat(), ..own.clone() };
    for (identity, is_own) in [(own, true), (other, false)] {
        let thread = TargetThread::new(std::process::id());
        thread.identity.set(Some(identity)).expect("no identity yet");
        let (_reader, writer) = std::io::pipe().unwrap();
        let file = ForeignFile::open(&thread, writer.as_raw_fd(), &[std::process::id()]).expect("a file");
        assert_eq!(matches!(file.writer, Writer::Weir), is_own, "{file:?}");
    }
}

#[test]
fn commands_to_the_kernel_are_refused() {
    for path in ["/proc/self/comm", "/proc/self/oom_score_adj"] {
        let file = std::fs::File::options().write(true).open(path).expect(path);
        let thread = TargetThread::new(std::process::id());
        let refused = ForeignFile::open(&thread, file.as_raw_fd(), &[]);
        assert!(
            matches!(&refused, Err(ForeignFileError::Refused(why)) if why.contains("procfs")),
            "{refused:?}"
        );
    }
}

#[test]
fn a_write_ends_at_the_limit_of_the_file_size() {
    let file = tempfile::tempfile().expect("a file");
    let sink = Sink::with_limit(file.as_fd(), 6).expect("a sink");
    let mut written = 0;
    let result = write_pieces(file.as_fd(), &sink, b"12345678", |piece| written += piece);
    assert_eq!((written, result), (6, Err(Errno::FBIG)));
}

#[test]
fn a_stream_that_only_writes_is_written_ahead_at_the_end_of_its_file() {
    let mut temporary = tempfile::tempfile().unwrap();
    let file = open_own(temporary.as_raw_fd());
    assert!(
        file.allows_writing_ahead(true) && !file.allows_writing_ahead(false),
        "it is open for reading too"
    );
    std::io::Write::write_all(&mut temporary, b"text").unwrap();
    assert!(file.allows_writing_ahead(true));
    std::io::Seek::rewind(&mut temporary).unwrap();
    assert!(!file.allows_writing_ahead(true), "a read would find other bytes");
    let (_reader, writer) = std::io::pipe().unwrap();
    assert!(open_own(writer.as_raw_fd()).allows_writing_ahead(false));
}

#[test]
fn a_signal_at_a_full_pipe_is_no_error() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    const SIGNALS: u32 = 400_000;
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    let file = open_own(writer.as_raw_fd());
    assert!(file.write_available(&[7; 100_000]).error.is_none());
    let _handled = weir_sys::signals::HandledSignal::begin().expect("a handler");
    // SAFETY: the call takes no argument.
    let (thread, sent) = (unsafe { libc::pthread_self() }, AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while sent.fetch_add(1, Relaxed) < SIGNALS {
                // SAFETY: the thread lives until this scope ends, and the signal has a handler.
                unsafe { libc::pthread_kill(thread, libc::SIGRTMAX()) };
            }
        });
        while sent.load(Relaxed) < SIGNALS {
            let failed = file.write_available(b"more").error;
            assert!(failed.is_none(), "{failed:?}");
        }
    });
}
