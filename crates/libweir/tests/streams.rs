//! Tests of the wrapper as a program uses it.

use std::fs;
use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use libweir::{Options, StreamDurability, StreamMode};

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a private directory")
}

#[test]
fn written_bytes_are_read_back() {
    let dir = dir();
    let path = dir.path().join("file");
    let mut out = Options::new().create(&path).unwrap();
    for i in 0..100_000 {
        writeln!(out, "line {i}").unwrap();
    }
    out.close().unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    assert_eq!(whole.lines().count(), 100_000);

    let input = Options::new().open(&path).unwrap();
    assert!(input.lines().map(Result::unwrap).eq(whole.lines().map(String::from)));
    let mut input = Options::new().buffer_bytes(1).open(&path).unwrap();
    let mut again = String::new();
    input.read_to_string(&mut again).unwrap();
    assert_eq!(again, whole);
    assert!(input.at_end());
}

#[test]
fn nothing_is_written_before_the_buffer_is_full_or_flushed() {
    let dir = dir();
    let path = dir.path().join("file");
    let mut out = Options::new().mode(StreamMode::Full).create(&path).unwrap();
    out.write_all(b"pending").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    assert_eq!(out.stats().pending_bytes, 7);
    out.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"pending");
    assert_eq!(out.stats().writes, 1);
}

#[test]
fn a_delay_is_kept_without_a_flush() {
    let dir = dir();
    let path = dir.path().join("file");
    let mut out = Options::new().stale(Duration::from_millis(20)).create(&path).unwrap();
    out.write_all(b"in time").unwrap();
    let start = Instant::now();
    while fs::read(&path).unwrap() != b"in time" {
        assert!(start.elapsed() < Duration::from_secs(10), "not written in time");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(out.stats().stale_drains, 1);
}

#[test]
fn close_reports_lost_bytes_and_drop_does_not_panic() {
    let mut out = Options::new().open_with(Path::new("/dev/full"), rustix::fs::OFlags::WRONLY).unwrap();
    out.write_all(b"nowhere").unwrap();
    let error = out.close().unwrap_err();
    assert_eq!(error.error.kind(), ErrorKind::StorageFull);
    assert_eq!(error.lost_bytes, 7);
    assert!(error.stream.is_none());
    assert!(error.to_string().contains("7 bytes not written"), "{error}");
    let mut out = Options::new().open_with(Path::new("/dev/full"), rustix::fs::OFlags::WRONLY).unwrap();
    out.write_all(b"nowhere").unwrap();
    drop(out);
}

#[test]
fn pending_bytes_are_written_after_eagain() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut out = Options::new().mode(StreamMode::Full).buffer_bytes(4096).from_fd(writer.into()).unwrap();
    let block = [b'x'; 4096];
    let mut accepted = 0;
    let error = loop {
        match out.write(&block[..1000]) {
            Ok(taken) => accepted += taken,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let error = out.close().unwrap_err();
    let out = error.stream.expect("EAGAIN leaves it open");
    let mut got = 0;
    let mut buffer = vec![0; 1 << 20];
    let mut open = Some(out);
    while got < accepted {
        got += reader.read(&mut buffer).unwrap();
        if let Some(stream) = open.take() {
            open = stream.close().err().and_then(|error| error.stream);
        }
    }
    assert!(open.is_none());
    assert_eq!(reader.read(&mut buffer).unwrap(), 0, "not one byte more");
    assert_eq!(got, accepted);
}

#[test]
fn bytes_that_are_written_in_the_buffer_keep_their_order() {
    let dir = dir();
    let path = dir.path().join("file");
    let mut out = Options::new().mode(StreamMode::Full).buffer_bytes(1000).append(&path).unwrap();
    let mut expected = Vec::new();
    for round in 0..1000usize {
        let (room, length) = (1 + round * 7 % 1500, round * 3 % 1500 % (1 + round * 7 % 1500));
        let appended = out.append_with(room, |free| {
            assert!(free.len() >= room);
            free[..length].fill(b'a' + (round % 26) as u8);
            length
        });
        assert_eq!(appended.unwrap(), length);
        expected.resize(expected.len() + length, b'a' + (round % 26) as u8);
        out.write_all(b"\n").unwrap();
        expected.push(b'\n');
    }
    let mut room = 0;
    let error = out.append_with(1, |free| {
        room = free.len();
        room + 1
    });
    assert_eq!(error.unwrap_err().raw_os_error(), Some(22), "more than the room of {room}");
    out.close().unwrap();
    assert!(fs::read(&path).unwrap() == expected);
}

#[test]
fn records_of_threads_stay_whole() {
    let dir = dir();
    let path = dir.path().join("file");
    let out = Arc::new(Options::new().mode(StreamMode::Record).buffer_bytes(1000).append(&path).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let out = Arc::clone(&out);
            thread::spawn(move || {
                let record = vec![b'a' + thread; 100 + usize::from(thread)];
                for _ in 0..1000 {
                    out.put_record(&record).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    Arc::into_inner(out).unwrap().close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4000);
    for line in text.lines() {
        let first = line.as_bytes()[0];
        assert_eq!(line.len(), 100 + usize::from(first - b'a'));
        assert!(line.bytes().all(|byte| byte == first));
    }
}

#[test]
fn threads_that_sync_together_share_the_call() {
    let dir = dir();
    let out = Arc::new(Options::new().create(&dir.path().join("file")).unwrap());
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let out = Arc::clone(&out);
            thread::spawn(move || {
                for _ in 0..50 {
                    out.put_record(b"record").unwrap();
                    out.sync(StreamDurability::Data).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let stats = out.stats();
    assert_eq!(stats.syncs + stats.shared_syncs, 400);
    assert_eq!(stats.pending_bytes, 0);
    assert_eq!(stats.written_bytes, 400 * 7);
}

#[test]
fn a_file_is_replaced_completely_or_not_at_all() {
    let dir = dir();
    let path = dir.path().join("file");
    fs::write(&path, "old").unwrap();
    let mut out = Options::new().open_replace(&path).unwrap();
    out.write_all(b"new").unwrap();
    out.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(out);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let mut out = Options::new().open_replace(&path).unwrap();
    out.write_all(b"new").unwrap();
    out.replace().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn seeking_and_records_work_together() {
    let dir = dir();
    let path = dir.path().join("file");
    fs::write(&path, b"one\0two\0three").unwrap();
    let mut input = Options::new().separator(0).open(&path).unwrap();
    assert_eq!(input.next_record().unwrap(), Some(&b"one\0"[..]));
    assert_eq!(input.stream_position().unwrap(), 4);
    input.seek(SeekFrom::End(-5)).unwrap();
    assert_eq!(input.next_record().unwrap(), Some(&b"three"[..]));
    assert_eq!(input.next_record().unwrap(), None);
    input.seek(SeekFrom::Start(4)).unwrap();
    assert_eq!(input.fill_buf().unwrap(), b"two\0three");
    input.consume(4);
    assert_eq!(input.next_record().unwrap(), Some(&b"three"[..]));
    let mut short = Options::new().separator(0).max_record_bytes(3).open(&path).unwrap();
    assert_eq!(short.next_record().unwrap_err().raw_os_error(), Some(90), "EMSGSIZE");
}

#[test]
fn invalid_options_are_rejected() {
    let path = dir().path().join("file");
    let error = Options::new().buffer_bytes(usize::MAX).create(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(!path.exists(), "the file is not created");
    assert_eq!(Options::new().open(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_descriptor_can_be_borrowed() {
    let dir = dir();
    let path = dir.path().join("file");
    let mut out = Options::new().create(&path).unwrap();
    out.write_all(b"abc").unwrap();
    out.flush().unwrap();
    assert_eq!(rustix::fs::fstat(out.as_fd()).unwrap().st_size, 3);
}
