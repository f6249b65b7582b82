//! Flush, sync and acknowledgements: what is promised is there.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::common::{disk_dir, run, wait_for};
use crate::{Collector, lines_of, rounds};

#[test]
fn each_acknowledged_record_is_in_the_log() {
    let dir = disk_dir();
    for sync in ["record", "interval:20ms", "bytes:10"] {
        let mut collector =
            Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--sync", sync, "--ack"]);
        let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        let mut acks = BufReader::new(socket.try_clone().expect("a copy"));
        for number in 1..=20 {
            socket.write_all(format!("{sync} {number:02} and more\n").as_bytes()).expect("sent");
            let mut line = String::new();
            while line.trim() != number.to_string() {
                line.clear();
                assert!(acks.read_line(&mut line).expect("an acknowledgement") > 0);
            }
        }
        collector.signal(libc::SIGKILL);
        collector.child().wait().expect("killed");
        let log = std::fs::read_to_string(dir.path().join("out")).expect("the log");
        assert_eq!(log.lines().filter(|line| line.starts_with(sync)).count(), 20, "{sync}");
    }
}

#[test]
fn packets_are_acknowledged_in_packets() {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
    };
    let dir = disk_dir();
    let collector = Collector::start(
        dir.path(),
        &["-o", "out", "--listen", "unix-seqpacket:p", "--sync", "record", "--ack"],
    );
    let peer = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    rustix::net::sockopt::set_socket_timeout(
        &peer,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_secs(60)),
    )
    .expect("set");
    connect(&peer, &SocketAddrUnix::new(dir.path().join("p")).expect("an address")).expect("connected");
    for number in 1..=5 {
        send(&peer, format!("packet {number}").as_bytes(), SendFlags::empty()).expect("sent");
        let mut buffer = [0; 100];
        let (length, _) = recv(&peer, &mut buffer[..], RecvFlags::empty()).expect("an acknowledgement");
        assert_eq!(buffer[..length], *format!("{number}\n").as_bytes());
        let log = std::fs::read_to_string(dir.path().join("out")).expect("the log");
        assert_eq!(log.lines().count(), number, "an acknowledged record is in the log");
    }
    drop(peer);
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_connection_that_ends_gets_its_last_acknowledgement() {
    let dir = disk_dir();
    let collector =
        Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--sync", "record", "--ack"]);
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    socket.write_all(b"one\ntwo\nthree").expect("sent");
    socket.shutdown(std::net::Shutdown::Write).expect("shut down");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    let acks: Vec<String> = BufReader::new(socket).lines().map(|line| line.expect("a line")).collect();
    assert_eq!(acks.last().map(String::as_str), Some("3"), "{acks:?}");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_bound_is_kept_and_a_full_buffer_waits() {
    let dir = disk_dir();
    let log = dir.path().join("out");
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--flush", "300ms"]);
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    socket.write_all(b"within the bound\n").expect("sent");
    assert_eq!(lines_of(&log, 1), ["within the bound"]);
    assert_eq!(collector.stop(), 0);

    let collector = Collector::start(
        dir.path(),
        &["-o", "out", "--listen", "unix:s", "--flush", "full", "--buffer", "64K"],
    );
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    let record = [&[b'x'; 999][..], b"\n"].concat();
    let send =
        |socket: &mut UnixStream, count| (0..count).for_each(|_| socket.write_all(&record).expect("sent"));
    send(&mut socket, 10);
    let pending = || -> Value {
        let status = run(dir.path(), &["log", "status", "out", "--json", "-"]);
        serde_json::from_slice::<Value>(&status.stdout).expect("JSON")["pending_bytes"].take()
    };
    wait_for("the records", || pending() == 10_000);
    assert_eq!(std::fs::metadata(&log).expect("the log").len(), 17, "the records wait for a full buffer");
    send(&mut socket, 90);
    // The size of the file grows by pages while the kernel writes.
    let length = || std::fs::metadata(&log).expect("the log").len();
    wait_for("a full buffer of whole records", || length() > 17 && (length() - 17).is_multiple_of(1000));
    assert_eq!(collector.stop(), 0);
    assert_eq!(std::fs::metadata(&log).expect("the log").len(), 100_017);
}

#[test]
fn a_killed_collector_loses_no_written_record() {
    let dir = disk_dir();
    let log = dir.path().join("out");
    for round in 0..rounds(10) {
        let mut collector =
            Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--torn", "cut"]);
        let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
        let before = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
        let writer = std::thread::spawn(move || {
            let mut number = 0;
            while socket.write_all(format!("round {round} record {number}\n").as_bytes()).is_ok() {
                number += 1;
            }
        });
        wait_for("records", || {
            std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > before + 10_000)
        });
        collector.signal(libc::SIGKILL);
        collector.child().wait().expect("killed");
        writer.join().expect("it ends");
    }
    // A kill during write(2) can leave a torn record, which the next collector cuts.
    assert_eq!(Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--torn", "cut"]).stop(), 0);
    let log = std::fs::read_to_string(&log).expect("the log");
    let mut expected = (usize::MAX, 0);
    for line in log.lines() {
        let words: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [round, number] = words[..] else { panic!("torn: {line}") };
        expected = if expected.0 == round { (round, expected.1 + 1) } else { (round, 0) };
        assert_eq!((round, number), expected, "in order, without a gap");
    }
}

#[test]
fn a_write_budget_gathers_and_says_the_delay() {
    let dir = disk_dir();
    let log = dir.path().join("out");
    // 40 KB/s: a small write and its two blocks cost 0.3 s.
    let collector = Collector::start(
        dir.path(),
        &["-o", "out", "--listen", "unix:s", "--write-budget", "40KB/s", "--buffer", "64K"],
    );
    assert!(collector.errors().contains("delays records by 307 ms"), "{}", collector.errors());
    let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
    socket.write_all(b"one\ntwo\n").expect("sent");
    assert_eq!(lines_of(&log, 2), ["one", "two"]);
    let status = || -> Value {
        let status = run(dir.path(), &["log", "status", "out", "--json", "-"]);
        serde_json::from_slice(&status.stdout).expect("JSON")
    };
    wait_for("the sync after the write", || status()["syncs"] == 1 && !status()["last_sync_s"].is_null());
    // More than the buffer takes before the budget allows a write.
    let record = [&[b'x'; 999][..], b"\n"].concat();
    socket.write_all(&record.repeat(300)).expect("sent");
    wait_for("the message", || collector.errors().contains("more than --write-budget allows"));
    drop(socket);
    assert_eq!(collector.stop(), 0);
    assert_eq!(std::fs::metadata(&log).expect("the log").len(), 300_008, "all is written at the end");
}

/// Sends records until `stop`, and again those that were not acknowledged when the collector was killed. Returns how many
/// were acknowledged.
fn send_and_resend(path: &Path, name: &str, stop: &AtomicBool) -> usize {
    let mut acknowledged = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut socket) = UnixStream::connect(path) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut acks = BufReader::new(socket.try_clone().expect("a copy"));
        let first = acknowledged;
        let mut line = String::new();
        // Three records at a time wait for their acknowledgement.
        while !stop.load(Ordering::Relaxed) {
            let batch: String =
                (acknowledged..acknowledged + 3).map(|number| format!("{name} {number} end\n")).collect();
            let goal = acknowledged + 3;
            if socket.write_all(batch.as_bytes()).is_err() {
                break;
            }
            while acknowledged < goal {
                line.clear();
                if !acks.read_line(&mut line).is_ok_and(|count| count > 0) {
                    break;
                }
                acknowledged = first + line.trim().parse::<usize>().expect("a count");
            }
            if acknowledged < goal {
                break;
            }
        }
    }
    acknowledged
}

#[test]
fn senders_that_resend_lose_nothing_by_kills() {
    let dir = disk_dir();
    let path = dir.path().join("s");
    let arguments = ["-o", "out", "--listen", "unix:s", "--sync", "record", "--ack", "--torn", "cut"];
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let senders = ["a", "b", "c"].map(|name| {
            let (path, stop) = (&path, &stop);
            scope.spawn(move || send_and_resend(path, name, stop))
        });
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..rounds(8) {
            let mut collector = Collector::start(dir.path(), &arguments);
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_micros(random % 40_000));
            collector.signal(libc::SIGKILL);
            collector.child().wait().expect("killed");
        }
        let collector = Collector::start(dir.path(), &arguments);
        let length = || std::fs::metadata(dir.path().join("out")).expect("the log").len();
        let before = length();
        wait_for("records after the last start", || length() > before + 100);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(collector.stop(), 0);
        senders.map(|sender| sender.join().expect("it ends"))
    });
    let log = std::fs::read_to_string(dir.path().join("out")).expect("the log");
    for (name, acknowledged) in ["a", "b", "c"].into_iter().zip(acknowledged) {
        let mut next = 0;
        for line in log.lines().filter(|line| line.starts_with(name)) {
            let number: usize = line[2..]
                .strip_suffix(" end")
                .and_then(|number| number.parse().ok())
                .expect("a whole record");
            // At least once: what was sent again may be there twice, and nothing is left out.
            assert!(number <= next, "{name}: {number} follows {next}");
            next = next.max(number + 1);
        }
        assert!(
            acknowledged > 0 && next >= acknowledged,
            "{name}: {acknowledged} acknowledged, {next} in the log"
        );
    }
}

/// A regular file that accepts writes and refuses fdatasync(2).
const UNSYNCABLE: &str = "/proc/self/comm";

#[test]
fn connections_end_after_a_sync_that_failed() {
    let dir = disk_dir();
    let arguments =
        ["-o", UNSYNCABLE, "--listen", "unix:s", "--sync", "record", "--ack", "--max-connections", "2"];
    let collector = Collector::start(dir.path(), &arguments);
    for round in 0..6 {
        let mut socket = UnixStream::connect(dir.path().join("s")).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        socket.write_all(b"one\n").expect("sent");
        if round == 0 {
            wait_for("the sentence", || collector.errors().contains("fdatasync /proc/self/comm: EINVAL"));
        }
        socket.shutdown(std::net::Shutdown::Write).expect("shut down");
        let acks: Vec<_> =
            BufReader::new(socket).lines().collect::<Result<_, _>>().expect("the end of the connection");
        assert!(acks.is_empty(), "round {round}: no record is durable: {acks:?}");
    }
    assert!(!collector.errors().contains("a connection is refused"), "{}", collector.errors());
    assert_eq!(collector.stop(), 1);
}
