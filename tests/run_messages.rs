//! `weir run` on descriptors where each write is one message: sockets of packets and datagrams, and pipes in packet mode. Bytes that are
//! pending are part of a message.

mod common;

#[path = "common/trace.rs"]
mod trace;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use common::{disk_dir, skip, text, weir};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use trace::compile;

/// Writes one message slowly, one at once, and one by write(2).
const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    printf("head ");
    usleep(400000);
    printf("tail\n");
    fflush(stdout);
    printf("second\n");
    fflush(stdout);
    return write(1, "third\n", 6) != 6;
}
"#;

/// Returns the two ends of a descriptor of each kind, by its name: the reader and the writer.
fn kinds() -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let socket = |kind| socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).expect("sockets");
    let (a, b) = socket(SocketType::SEQPACKET);
    let (c, d) = socket(SocketType::DGRAM);
    let (e, f) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).expect("a pipe");
    vec![("packets", a, b), ("datagrams", c, d), ("pipe", e, f)]
}

/// Returns the messages that are there.
fn messages(reader: &OwnedFd) -> Vec<String> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)], Some(&now)).expect("poll") > 0
    {
        match rustix::io::read(reader, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(got) => all.push(text(&buffer[..got])),
        }
    }
    all
}

/// Runs the program under weir on each kind of descriptor, and asserts that it writes three messages there.
fn assert_three_messages(dir: &Path, options: &[&str], said: &str) {
    for (name, reader, writer) in kinds() {
        let mut command = weir(dir, &[&["run"], options, &["--", "./program"]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::from(writer)).stderr(Stdio::piped());
        let output = command.spawn().expect("weir starts").wait_with_output().expect("its end");
        drop(command);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{name} {options:?}: {errors}");
        assert_eq!(messages(&reader), ["head tail\n", "second\n", "third\n"], "{name} {options:?}: {errors}");
        assert!(errors.contains(said), "{name} {options:?}: {errors}");
    }
}

#[test]
fn messages_are_not_divided_or_joined() {
    let dir = disk_dir();
    if compile(dir.path(), "program", PROGRAM, &[]).is_none() {
        return skip("messages_are_not_divided_or_joined", "no gcc");
    }
    let said = "are not written early: each write to it is one message, which would be divided";
    assert_three_messages(dir.path(), &[], said);
    assert_three_messages(dir.path(), &["--max-delay", "5ms", "--rescue", "--fix-fork"], said);
    if cfg!(target_arch = "x86_64") {
        assert_three_messages(dir.path(), &["--coalesce"], "");
    }
}
