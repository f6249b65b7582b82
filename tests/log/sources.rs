//! Each kind of source.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::thread;

use crate::common::{WEIR, disk_dir, run, text, wait_for, weir};
use crate::session::Session;
use crate::{Collector, lines_of, log_of, rounds};

#[test]
fn standard_input_is_logged_exactly() {
    let dir = disk_dir();
    let input: Vec<u8> = (0..50_000).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
    let output = log_of(dir.path(), &["-o", "out", "--quiet"], &input);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(dir.path().join("out")).expect("the log"), input);

    let file = std::fs::File::open(dir.path().join("out")).expect("the log");
    let output = weir(dir.path(), &["log", "-o", "-", "--quiet"]).stdin(file).output().expect("weir runs");
    assert_eq!(output.stdout, input, "from a file to standard output");
}

#[test]
fn records_of_25_writers_stay_whole() {
    (0..rounds(1)).for_each(|_| records_of_25_writers());
}

fn records_of_25_writers() {
    let dir = disk_dir();
    let collector =
        Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--record", "len:9999"]);
    let path = dir.path().join("s");
    assert_eq!(std::fs::symlink_metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
    thread::scope(|scope| {
        for letter in (b'a'..=b'z').take(25) {
            let path = &path;
            scope.spawn(move || {
                let mut socket = UnixStream::connect(path).expect("connected");
                // Blocks as a C program's stdio sends them: not of records.
                let all = vec![letter; 100 * 9999];
                all.chunks(8192).for_each(|block| socket.write_all(block).expect("sent"));
            });
        }
    });
    let log = dir.path().join("out");
    wait_for("all bytes", || std::fs::metadata(&log).expect("the log").len() == 24_997_500);
    assert_eq!(collector.stop(), 0);
    assert!(!path.exists(), "the socket is removed");
    let check = run(dir.path(), &["log", "check", "out", "--record", "len:9999", "--uniform", "--json", "-"]);
    let check: serde_json::Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!((&check["whole"], &check["records"]), (&2500.into(), &2500.into()));
    let writers = check["writers"].as_array().expect("writers");
    assert!(writers.len() == 25 && writers.iter().all(|writer| writer["records"] == 100));
}

#[test]
fn datagrams_and_packets_are_records() {
    let dir = disk_dir();
    let arguments = ["-o", "out", "--tag", "--listen", "unix-dgram:d", "--listen", "unix-seqpacket:p"];
    let collector = Collector::start(dir.path(), &arguments);
    let sender = UnixDatagram::unbound().expect("a socket");
    for message in ["one", "two\n", "three\nfour"] {
        sender.send_to(message.as_bytes(), dir.path().join("d")).expect("sent");
    }
    let packets =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::SEQPACKET, None);
    let packets = packets.expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(dir.path().join("p")).expect("an address");
    rustix::net::connect(&packets, &address).expect("connected");
    rustix::net::send(&packets, b"a packet", rustix::net::SendFlags::empty()).expect("sent");
    drop(packets);
    let lines = lines_of(&dir.path().join("out"), 5);
    let pid = std::process::id();
    let own = |name: &str| -> Vec<&String> { lines.iter().filter(|line| line.starts_with(name)).collect() };
    assert_eq!(own("d"), [&format!("d[{pid}]: one"), &format!("d[{pid}]: two"), &format!("d[{pid}]: three")]);
    assert_eq!(own("p#1"), [&format!("p#1[{pid}]: a packet")]);
    assert_eq!(collector.stop(), 0);
}

#[test]
fn tcp_and_udp_listen_on_the_loopback_interface() {
    let dir = disk_dir();
    let port =
        || UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let (tcp, udp) = (port(), port());
    let arguments =
        ["-o", "out", "--listen", &format!("tcp:{tcp}"), "--listen", &format!("udp:127.0.0.1:{udp}")];
    let collector = Collector::start(dir.path(), &arguments);
    let mut stream = TcpStream::connect(("127.0.0.1", tcp)).expect("connected");
    stream.write_all(b"by tcp\nand the rest").expect("sent");
    drop(stream);
    let lines = lines_of(&dir.path().join("out"), 2);
    assert_eq!(lines, ["by tcp", "and the rest"]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.send_to(b"by udp", ("127.0.0.1", udp)).expect("sent");
    assert_eq!(lines_of(&dir.path().join("out"), 3)[2], "by udp");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_fifo_has_many_writers() {
    let dir = disk_dir();
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "fifo:f"]);
    let path = dir.path().join("f");
    assert!(std::fs::symlink_metadata(&path).expect("a FIFO").file_type().is_fifo());
    for number in 0..3 {
        std::fs::write(&path, format!("writer {number}\n")).expect("written");
        lines_of(&dir.path().join("out"), number + 1);
    }
    assert_eq!(collector.stop(), 0);
    assert_eq!(lines_of(&dir.path().join("out"), 3), ["writer 0", "writer 1", "writer 2"]);
    assert!(!path.exists(), "the FIFO is removed");
}

#[test]
fn a_command_has_two_outputs_and_a_status() {
    let dir = disk_dir();
    let script = "echo out; echo error >&2; printf unfinished; exit 7";
    let output =
        run(dir.path(), &["log", "-o", "out", "--tag", "--mark", "--name", "job", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7));
    let mut lines = lines_of(&dir.path().join("out"), 3);
    lines.sort();
    assert_eq!(lines, ["job.err: error", "job: out", "job: unfinished [weir: unfinished]"]);
    assert!(text(&output.stderr).contains("1 unfinished"), "{}", text(&output.stderr));
    let missing = run(dir.path(), &["log", "-o", "out2", "--", "./no-such-command"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("exec ./no-such-command: ENOENT"), "{}", text(&missing.stderr));
    let missing = log_of(dir.path(), &["-o", "out", "--", "/no/such/command"], b"");
    assert!(text(&missing.stderr).contains("exec /no/such/command: ENOENT"), "{}", text(&missing.stderr));
}

/// A parent that ignores SIGCHLD lets the kernel reap the children of weir, with their status.
#[test]
fn the_status_of_a_command_is_known_also_if_sigchld_was_ignored() {
    let dir = disk_dir();
    let mut command = std::process::Command::new("env");
    command.args(["--ignore-signal=CHLD", WEIR, "log", "-o", "out", "--", "sh", "-c", "echo line; exit 3"]);
    let output = command.current_dir(dir.path()).output().expect("env of coreutils");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(lines_of(&dir.path().join("out"), 1), ["line"]);
}

#[test]
fn a_command_that_cannot_start_has_the_status_of_env() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("data"), "no program").expect("a file");
    let status_of = |command: &str| {
        let output = run(dir.path(), &["log", "-o", "out", "--", command]);
        assert!(text(&output.stderr).contains(&format!("exec {command}: ")), "{}", text(&output.stderr));
        output.status.code()
    };
    assert_eq!(["./absent", "./data"].map(status_of), [Some(127), Some(126)]);
}

#[test]
fn sigterm_ends_the_command_and_keeps_its_last_words() {
    let dir = disk_dir();
    let script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let collector = Collector::start(dir.path(), &["-o", "out", "--drain", "25s", "--", "sh", "-c", script]);
    lines_of(&dir.path().join("out"), 1);
    assert_eq!(collector.stop(), 0);
    assert_eq!(lines_of(&dir.path().join("out"), 2), ["ready", "bye"]);
}

/// A shell without job control starts background jobs with SIGINT ignored: a Ctrl-C is meant for another job.
#[test]
fn an_ignored_sigint_stays_ignored() {
    let dir = disk_dir();
    let weir = crate::common::WEIR;
    let script = format!(
        "{weir} log -q -o out --listen unix:s & while ! [ -S s ]; do sleep 0.02; done; kill -INT $!; sleep 0.3; \
         kill -TERM $! && wait $!; echo $?"
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output();
    let output = output.expect("sh");
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("0\n".into(), String::new()));
}

#[test]
fn sensors_are_read_at_intervals() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("temp1_input"), "25500\n").expect("written");
    let arguments = ["-o", "out", "--format", "csv", "--tag", "--every", "20ms", "--read", "temp1_input"];
    let collector = Collector::start(dir.path(), &[&arguments[..], &["--exec", "echo 7,8"]].concat());
    let log = dir.path().join("out");
    let has = |line: &str| lines_of(&log, 1).iter().filter(|one| *one == line).count() >= 3;
    wait_for("three values", || has("temp1_input,25500") && has("echo,7,8"));
    std::fs::remove_file(dir.path().join("temp1_input")).expect("removed");
    wait_for("the sentence", || collector.errors().contains("read temp1_input: ENOENT"));
    assert_eq!(collector.errors().matches("ENOENT").count(), 1, "once");
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_stale_socket_is_replaced_and_a_used_one_is_not() {
    let dir = disk_dir();
    let mut first = Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s"]);
    let second = run(dir.path(), &["log", "-o", "out2", "--listen", "unix:s"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("bind s: EADDRINUSE"), "{}", text(&second.stderr));
    let same_log = run(dir.path(), &["log", "-o", "out", "--listen", "unix:s2"]);
    assert!(
        text(&same_log.stderr).contains("another weir log writes this file"),
        "{}",
        text(&same_log.stderr)
    );
    first.signal(libc::SIGKILL);
    first.child().wait().expect("killed");
    assert!(dir.path().join("s").exists(), "a kill leaves the socket");
    let third = Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s"]);
    UnixStream::connect(dir.path().join("s"))
        .and_then(|mut socket| socket.write_all(b"hello\n"))
        .expect("sent");
    assert_eq!(lines_of(&dir.path().join("out"), 1), ["hello"]);
    assert_eq!(third.stop(), 0);
    std::fs::write(dir.path().join("s"), "a file").expect("written");
    assert_eq!(run(dir.path(), &["log", "-o", "out", "--listen", "unix:s"]).status.code(), Some(1));
    assert_eq!(std::fs::read(dir.path().join("s")).expect("kept"), b"a file");
}

#[test]
fn many_connections_lose_nothing() {
    let dir = disk_dir();
    let collector = Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--sequence", "--tag"]);
    let path = dir.path().join("s");
    let mut sockets: Vec<UnixStream> =
        (0..500).map(|_| UnixStream::connect(&path).expect("connected")).collect();
    for round in 0..20 {
        for (number, socket) in sockets.iter_mut().enumerate() {
            socket.write_all(format!("{number} {round}\n").as_bytes()).expect("sent");
        }
    }
    drop(sockets);
    let lines = lines_of(&dir.path().join("out"), 10_000);
    let mut rounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, sequence, number, round] = words[..] else { panic!("{line}") };
        assert_eq!(sequence, format!("#{}", round.parse::<u32>().expect("a number") + 1), "{line}");
        rounds.entry(number.into()).or_default().push(round.into());
    }
    let all: Vec<String> = (0..20).map(|round| round.to_string()).collect();
    assert!(rounds.len() == 500 && rounds.values().all(|rounds| *rounds == all));
    assert_eq!(collector.stop(), 0);
}

#[test]
fn a_connection_beyond_the_maximum_is_refused() {
    let dir = disk_dir();
    let collector =
        Collector::start(dir.path(), &["-o", "out", "--listen", "unix:s", "--max-connections", "1"]);
    let path = dir.path().join("s");
    let mut first = UnixStream::connect(&path).expect("connected");
    first.write_all(b"one\n").expect("sent");
    lines_of(&dir.path().join("out"), 1);
    let mut second = UnixStream::connect(&path).expect("connected");
    assert_eq!(second.read(&mut [0; 1]).expect("closed"), 0);
    wait_for("the sentence", || collector.errors().contains("--max-connections"));
    assert_eq!(collector.stop(), 0);
}

#[test]
fn connections_wait_while_there_are_no_descriptors() {
    let dir = disk_dir();
    let script = "ulimit -n 40; exec \"$0\" log -o out --listen unix:./s";
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", script, crate::common::WEIR])
        .current_dir(dir.path())
        .stdin(std::process::Stdio::null());
    command.stderr(std::fs::File::create(dir.path().join("errors")).expect("a file"));
    let mut child =
        crate::common::KillOnDrop(crate::common::with_signals(&mut command).spawn().expect("sh starts"));
    let path = dir.path().join("s");
    wait_for("the socket", || path.exists());
    let send = |number: usize| {
        let mut socket = UnixStream::connect(&path).expect("connected");
        socket.write_all(format!("{number}\n").as_bytes()).expect("sent");
        socket
    };
    let sockets: Vec<UnixStream> = (0..60).map(send).collect();
    let errors = || text(&std::fs::read(dir.path().join("errors")).expect("read"));
    wait_for("the sentence", || errors().contains("accept ./s: EMFILE"));
    // weir tries again while the others wait, and takes them when these leave.
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(sockets);
    lines_of(&dir.path().join("out"), 60);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.0.try_wait().expect("a state").is_none(), "it runs on: {}", errors());
    drop(send(60));
    let mut lines = lines_of(&dir.path().join("out"), 61);
    lines.sort_by_key(|line| line.parse::<usize>().expect("a number"));
    assert!(lines.into_iter().eq((0..61).map(|number| number.to_string())), "{}", errors());
    assert_eq!(errors().matches("EMFILE").count(), 1, "said once: {}", errors());
}

#[test]
fn dev_null_ends_at_once() {
    let dir = disk_dir();
    // epoll(7) refuses /dev/null.
    let mut command = weir(dir.path(), &["log", "-o", "out", "--stdin"]);
    let output = command.stdin(std::process::Stdio::null()).output().expect("weir runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(dir.path().join("out")).expect("the log"), b"");
}

#[test]
fn several_commands_share_a_log() {
    let dir = disk_dir();
    let arguments = [
        "log",
        "-o",
        "out",
        "--tag",
        "--run",
        "echo one; exit 3",
        "--run",
        "echo two >&2",
        "--",
        "/bin/sh",
        "-c",
        "echo three",
    ];
    let output = run(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(3), "the command that failed: {}", text(&output.stderr));
    let mut lines = lines_of(&dir.path().join("out"), 3);
    lines.sort();
    assert_eq!(lines, ["echo.2.err: two", "echo: one", "sh: three"]);
}

#[test]
fn a_terminal_gets_no_control_bytes() {
    let dir = disk_dir();
    let mut command = weir(dir.path(), &["log", "-o", "-", "--quiet", "--", "printf", "a\\033]0;b\\007c\\n"]);
    command.stdin(std::process::Stdio::null());
    let mut session = Session::start(command, 80, 24);
    session.until("the record", |shown| shown.contains("a\\x1b]0;b\\x07c"));
    assert!(session.end().success());
    let output = run(dir.path(), &["log", "-o", "-", "--quiet", "--", "printf", "a\\033b\\n"]);
    assert_eq!(output.stdout, b"a\x1bb\n", "a pipe gets the bytes as they are");
}

#[test]
fn the_service_manager_hears_from_weir() {
    let dir = disk_dir();
    let manager = UnixDatagram::bind(dir.path().join("manager")).expect("a socket");
    let mut command = weir(dir.path(), &["log", "-o", "out", "--listen", "unix:s", "--quiet"]);
    crate::common::with_signals(&mut command);
    command.env("NOTIFY_SOCKET", dir.path().join("manager")).env("WATCHDOG_USEC", "20000");
    let mut child =
        crate::common::KillOnDrop(command.stdin(std::process::Stdio::null()).spawn().expect("weir starts"));
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("set");
    let next = || {
        let mut buffer = [0; 100];
        let length = manager.recv(&mut buffer).expect("a message");
        text(&buffer[..length])
    };
    assert_eq!([next(), next(), next()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    // SAFETY: kill(2) has no memory effects; the child is not reaped yet, so the PID is its own.
    assert_eq!(unsafe { libc::kill(child.0.id() as i32, libc::SIGTERM) }, 0);
    while next() != "STOPPING=1" {}
    assert!(child.0.wait().expect("it ends").success());
}

/// A command that ignores SIGTERM goes on after weir, whose end says so.
#[test]
fn a_command_that_outlives_the_end_is_named() {
    let dir = disk_dir();
    let script = "trap '' TERM; echo a; sleep 3; echo b";
    let collector =
        Collector::start(dir.path(), &["-o", "out", "--drain", "200ms", "--", "sh", "-c", script]);
    lines_of(&dir.path().join("out"), 1);
    assert_eq!(collector.stop(), 1);
    let errors = std::fs::read_to_string(dir.path().join("errors")).expect("the messages");
    assert!(errors.contains("weir log: sh (") && errors.contains("did not end within"), "{errors}");
    assert!(errors.contains("its further output is lost"), "{errors}");
}

#[test]
fn acknowledgements_need_connections() {
    let dir = disk_dir();
    for listen in [&["--stdin"][..], &["--listen", "unix-dgram:d"]] {
        let output = log_of(dir.path(), &[&["-o", "out", "--sync", "record", "--ack"], listen].concat(), b"");
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("--ack needs a source with"), "{errors}");
    }
}
