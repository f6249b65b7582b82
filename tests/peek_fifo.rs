//! `weir peek` of processes that write to a pipe: the processes at the other end of a FIFO, and the bytes of a write that blocks.

mod common;

use std::process::{Command, Stdio};

use common::{KillOnDrop, disk_dir, run, text, wait_for};
use serde_json::Value;

/// The other end of a FIFO was not looked for, and the stream had "no reader".
#[test]
fn the_reader_of_a_fifo_is_named() {
    let dir = disk_dir();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(dir.path()).stdout(Stdio::null());
        command
    };
    // One reads it, and one has it open for both.
    let reader = KillOnDrop(shell("exec cat fifo").spawn().expect("sh"));
    let both = KillOnDrop(shell("exec sleep 60 <> fifo").spawn().expect("sh"));
    let writer = KillOnDrop(shell("exec perl -e 'print \"kept\"; sleep 60' > fifo").spawn().expect("sh"));
    let pid = writer.0.id().to_string();
    let mut document = Value::Null;
    wait_for("the pending bytes", || {
        let output = run(dir.path(), &["peek", "--json", "-", &pid]);
        document = serde_json::from_slice(&output.stdout).unwrap_or_default();
        document["processes"][0]["streams"][0]["pending_bytes"] == 4
    });
    let stream = &document["processes"][0]["streams"][0];
    let peers: Vec<u64> =
        stream["peers"].as_array().expect("peers").iter().filter_map(|one| one["pid"].as_u64()).collect();
    assert_eq!(peers.len(), 2, "{stream}");
    assert!([&reader, &both].iter().all(|one| peers.contains(&u64::from(one.0.id()))), "{stream}");
    let screen = text(&run(dir.path(), &["peek", &pid]).stdout);
    assert!(!screen.contains("no reader"), "{screen}");
}

/// Python has taken the bytes from its buffer when its write(2) blocks: nothing was said to be pending.
#[test]
fn the_bytes_of_a_blocked_write_are_shown() {
    let dir = disk_dir();
    let mut command = Command::new("python3");
    command.args(["-c", "for i in range(100000): print('line', i)"]).env_remove("PYTHONUNBUFFERED");
    let writer = KillOnDrop(command.stdout(Stdio::piped()).spawn().expect("python3"));
    let pid = writer.0.id().to_string();
    let mut document = Value::Null;
    wait_for("the write", || {
        let output = run(dir.path(), &["peek", "--json", "-", &pid]);
        document = serde_json::from_slice(&output.stdout).unwrap_or_default();
        document["processes"][0]["writing"]["fd"] == 1
    });
    let writing = &document["processes"][0]["writing"];
    let bytes = writing["bytes"].as_u64().expect("a length");
    assert!(bytes >= 4096 && writing["preview_bytes"] == 256, "{writing}");
    assert!(writing["preview"].as_str().expect("text").contains("\\nline "), "{writing}");
    let screen = text(&run(dir.path(), &["peek", &pid]).stdout);
    assert!(screen.contains("in progress: a write of ") && screen.contains(" B to descriptor 1"), "{screen}");
    assert!(screen.contains("nothing pending in descriptors 0, 2"), "{screen}");
}

/// The main thread sleeps, and another one blocks in writev(2).
#[test]
fn the_bytes_of_another_threads_call_are_shown() {
    let dir = disk_dir();
    let script = "import os, threading, time; end = os.pipe()[1]\n\
        threading.Thread(target=os.writev, args=(end, [b'one ', b'two ' * 50000]), daemon=True).start()\n\
        time.sleep(60)";
    let mut command = Command::new("python3");
    let writer = KillOnDrop(command.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("python3"));
    let pid = writer.0.id().to_string();
    let mut document = Value::Null;
    wait_for("the call", || {
        let output = run(dir.path(), &["peek", "--json", "-", &pid]);
        document = serde_json::from_slice(&output.stdout).unwrap_or_default();
        document["processes"][0]["other_writes"][0]["call"] == "writev"
    });
    let process = &document["processes"][0];
    let call = &process["other_writes"][0];
    assert!(
        process["writing"].is_null() && call["bytes"] == 200_004 && call["tid"] != process["pid"],
        "{process}"
    );
    assert!(call["preview"].as_str().expect("text").starts_with("one two two "), "{call}");
    let screen = text(&run(dir.path(), &["peek", &pid]).stdout);
    let expected =
        format!("in progress: a writev of 200,004 B to descriptor {}, by thread {}", call["fd"], call["tid"]);
    assert!(screen.contains(&expected), "{screen}");
}

/// The bytes were said to appear "at exit", where the write ends with SIGPIPE or EPIPE.
#[test]
fn bytes_for_a_pipe_without_a_reader_never_appear() {
    let dir = disk_dir();
    let mut command = Command::new("perl");
    command.args(["-e", "print 'kept'; sleep 60"]).stdout(Stdio::piped());
    let mut writer = KillOnDrop(command.spawn().expect("perl"));
    drop(writer.0.stdout.take());
    let pid = writer.0.id().to_string();
    let mut screen = String::new();
    wait_for("the pending bytes", || {
        screen = text(&run(dir.path(), &["peek", &pid]).stdout);
        screen.contains("kept")
    });
    assert!(screen.contains("→ no reader") && screen.contains("never: SIGPIPE or EPIPE"), "{screen}");
    assert!(!screen.contains("at exit") && !screen.contains("weir flush"), "{screen}");
}
