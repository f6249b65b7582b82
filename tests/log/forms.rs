//! How records are divided and how they look in the log.

use crate::common::{disk_dir, text, wait_for};
use crate::{Collector, lines_of, log_of};

/// Logs `input` with these options. Returns the log.
fn logged(options: &[&str], input: &[u8]) -> String {
    let dir = disk_dir();
    let output = log_of(dir.path(), &[&["-o", "out"], options].concat(), input);
    assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
    text(&std::fs::read(dir.path().join("out")).expect("the log"))
}

#[test]
fn the_last_record_is_kept() {
    assert_eq!(logged(&[], b"one\ntwo"), "one\ntwo");
    assert_eq!(logged(&["--mark"], b"one\ntwo"), "one\ntwo [weir: unfinished]\n");
    assert_eq!(logged(&["--record", "nul"], b"one\0two"), "one\0two");
    let dir = disk_dir();
    let output = log_of(dir.path(), &["-o", "out", "--record", "len:4"], b"abcdefg");
    assert!(text(&output.stderr).contains("its 3 bytes are in out.unfinished"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(dir.path().join("out")).expect("the log"), b"abcd");
    assert_eq!(std::fs::read(dir.path().join("out.unfinished")).expect("the rest"), b"efg");
}

#[test]
fn long_records_are_split_cut_or_refused() {
    let input = b"short\n123456789\nend\n";
    assert_eq!(logged(&["--max-record", "5"], input), "short\n12345\n6789\nend\n");
    assert_eq!(logged(&["--max-record", "5", "--mark"], input), "short\n12345 [weir: split]\n6789\nend\n");
    assert_eq!(logged(&["--max-record", "5", "--oversize", "cut"], input), "short\n12345\nend\n");
    for (mark, expected) in [
        (&[][..], "short\nend\n"),
        (&["--mark"], "short\nweir: 1 record of stdin refused: longer than 5 B\nend\n"),
    ] {
        let dir = disk_dir();
        let options = [&["-q", "-o", "out", "--max-record", "5", "--oversize", "refuse"], mark].concat();
        let output = log_of(dir.path(), &options, input);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{mark:?}: a record is missing: {error}");
        assert!(error.contains("records are missing in the log: 1 refused"), "{error}");
        assert_eq!(text(&std::fs::read(dir.path().join("out")).expect("the log")), expected);
    }
}

#[test]
fn lines_of_one_event_stay_together() {
    let input = b"ERROR one\n  at a\n  at b\nINFO two\n";
    let log = logged(&["--multiline", "^[A-Z]", "--sequence"], input);
    assert_eq!(log, "#1 ERROR one\n  at a\n  at b\n#2 INFO two\n");
}

#[test]
fn bytes_that_are_no_text_pass() {
    let input = b"caf\xe9\n\x1b[31mred\n\0\n";
    let dir = disk_dir();
    assert!(log_of(dir.path(), &["-o", "out"], input).status.success());
    assert_eq!(std::fs::read(dir.path().join("out")).expect("the log"), input);
    let json = logged(&["--format", "json"], input);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["hex"], "636166e9");
    assert_eq!((&lines[1]["text"], &lines[1]["sequence"]), (&"\u{1b}[31mred".into(), &2.into()));
    assert!(json.is_ascii() || !json.contains('\u{1b}'), "control characters are escaped");
}

#[test]
fn stamps_are_put_before_records() {
    let log = logged(&["--stamp", "iso", "--format", "csv"], b"25.5\n");
    let (stamp, value) = log.split_once(',').expect("two fields");
    assert_eq!((value, stamp.len(), &stamp[4..5], &stamp[10..11]), ("25.5\n", 19, "-", "T"));
    let log = logged(&["--stamp", "tai64n"], b"x\n");
    assert!(log.starts_with("@4000000") && log.len() == "@400000000000000000000000 x\n".len(), "{log}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let dir = disk_dir();
    for (options, sentence) in [
        (&["-o", "out", "--ack"][..], "--ack needs --sync"),
        (&["-o", "-", "--sync", "record"], "--sync needs a file"),
        (&["-o", "-", "--rotate", "1M"], "--rotate needs a file"),
        (&["-o", "out", "--format", "raw", "--tag"], "--format raw has no place"),
        (&["-o", "out", "--record", "len:5", "--mark"], "--mark needs records with a delimiter"),
        (&["-o", "out", "--listen", "pigeon:x"], "is not a kind of socket"),
        (&["-o", "out", "--record", "len:0"], "is not a record length"),
        (&["-o", "out", "--flush", "soon"], "use none, line or full"),
        (&["-o", "out", "--multiline", "("], "unclosed group"),
        (&["-o", "out", "--every", "1s"], "--every needs --read"),
        (&["-o", "out", "--follow", ""], "the value is empty"),
        (&["-o", "out", "--every", "1s", "--exec", " "], "the value is empty"),
        (&["-o", "-", "--keep", "3"], "--keep needs a file: standard output cannot be rotated"),
        (&["-o", "-", "--compress", "zstd"], "--compress needs a file"),
        (&[], "-o FILE"),
    ] {
        let output = log_of(dir.path(), options, b"");
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(sentence), "{options:?}: {}", text(&output.stderr));
    }
    assert!(!dir.path().join("out").exists(), "nothing is created");
}

#[test]
fn messages_of_syslog_are_understood() {
    let dir = disk_dir();
    let messages = [
        "<30>Nov 25 10:00:00 sshd[71]: hello",
        "<165>1 2003-10-11T22:14:15.003Z host app - ID47 - two\nlines",
        "no priority",
    ];
    for (form, expected) in [
        ("text", ["daemon.info sshd[71]: hello", "local4.notice host app: two#012lines", "no priority"]),
        (
            "raw",
            [
                "<30>Nov 25 10:00:00 sshd[71]: hello",
                "<165>1 2003-10-11T22:14:15.003Z host app - ID47 - two",
                "lines",
            ],
        ),
    ] {
        let _ = std::fs::remove_file(dir.path().join("out"));
        let collector =
            Collector::start(dir.path(), &["-o", "out", "--listen", "syslog:dev-log", "--format", form]);
        let sender = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        for message in messages {
            sender.send_to(message.as_bytes(), dir.path().join("dev-log")).expect("sent");
        }
        assert_eq!(lines_of(&dir.path().join("out"), 3)[..3], expected, "{form}");
        assert_eq!(collector.stop(), 0);
    }
    let collector =
        Collector::start(dir.path(), &["-o", "json", "--listen", "syslog:dev-log", "--format", "json"]);
    let sender = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
    sender.send_to(messages[1].as_bytes(), dir.path().join("dev-log")).expect("sent");
    let line = lines_of(&dir.path().join("json"), 1).remove(0);
    let record: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let expected = [
        ("facility", "local4"),
        ("severity", "notice"),
        ("app", "app"),
        ("msgid", "ID47"),
        ("text", "two\nlines"),
    ];
    for (field, value) in expected {
        assert_eq!(record[field], value, "{line}");
    }
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_stream_of_syslog_messages_ends_them_with_nul_or_newline() {
    use std::io::Write as _;
    let dir = disk_dir();
    let arguments = ["-o", "out", "--listen", "syslog-stream:dev-log", "--max-record", "4K"];
    let collector = Collector::start(dir.path(), &arguments);
    let connect = || std::os::unix::net::UnixStream::connect(dir.path().join("dev-log")).expect("connected");
    // As syslog(3) of glibc sends them on a stream: in one call, with a NUL; a message may have its own newline before it.
    let mut libc = connect();
    libc.write_all(b"<30>Nov 25 10:00:00 sshd[71]: hello\n\0").expect("sent");
    libc.write_all(b"<165>1 2003-10-11T22:14:15.003Z host app - ID47 - one\0").expect("sent");
    assert_eq!(
        lines_of(&dir.path().join("out"), 2),
        ["daemon.info sshd[71]: hello", "local4.notice host app: one"]
    );
    let mut lines = connect();
    lines.write_all(b"<13>cut in ").expect("sent");
    lines.write_all(b"two: x\n\n\0\0no priority\n<13>no end: y").expect("sent");
    drop(lines);
    assert_eq!(
        lines_of(&dir.path().join("out"), 5)[2..],
        ["user.notice cut in two: x", "no priority", "user.notice no end: y"]
    );
    assert_eq!(collector.stop(), 0);
}

#[test]
fn libc_finds_a_stream_of_syslog() {
    // syslog(3) tries a datagram socket first, whose error for a stream socket is EPROTOTYPE.
    let dir = disk_dir();
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "syslog-stream:dev-log"]);
    let path = dir.path().join("dev-log");
    let datagram = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
    assert_eq!(
        datagram.connect(&path).expect_err("a stream").raw_os_error(),
        Some(rustix::io::Errno::PROTOTYPE.raw_os_error())
    );
    assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_message_of_another_length_does_not_shift_the_records_behind_it() {
    let long = vec![b'x'; 256];
    for (form, expected) in
        [("len:8", &b"12345678abcdefgh"[..]), ("prefix:u8", b"\x0812345678\x05short\x08abcdefgh")]
    {
        let dir = disk_dir();
        let arguments = ["-o", "out", "--record", form, "--listen", "unix-dgram:d"];
        let collector = Collector::start(dir.path(), &arguments);
        let socket = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        for message in [&b"12345678"[..], b"short", &long, b"abcdefgh"] {
            socket.send_to(message, dir.path().join("d")).expect("sent");
        }
        let log = || std::fs::read(dir.path().join("out")).unwrap_or_default();
        wait_for("the last record", || log().ends_with(b"abcdefgh"));
        assert_eq!(log(), expected, "{form}");
        wait_for("the sentence", || collector.errors().contains(" is refused, as further ones will be"));
        let errors = collector.errors();
        assert_eq!(errors.matches("is refused").count(), 1, "{errors}");
        assert_eq!(collector.stop(), 1, "records are missing");
    }
}
