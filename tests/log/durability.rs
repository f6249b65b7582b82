//! Flush, sync and acknowledgements: what is promised is there.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::common::{disk_dir, run, wait_for};
use crate::{Collector, lines_of};

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
    wait_for("a full buffer", || std::fs::metadata(&log).expect("the log").len() > 17);
    let length = std::fs::metadata(&log).expect("the log").len();
    assert_eq!((length - 17) % 1000, 0, "whole records only");
    assert_eq!(collector.stop(), 0);
    assert_eq!(std::fs::metadata(&log).expect("the log").len(), 100_017);
}

#[test]
fn a_killed_collector_loses_no_written_record() {
    let dir = disk_dir();
    let log = dir.path().join("out");
    for round in 0..10 {
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
