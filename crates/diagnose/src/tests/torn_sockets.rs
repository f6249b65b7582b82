//! Tests of the rule torn-records on sockets.

use weir_model::Severity::*;

use crate::testing::*;

/// Returns the recording of two processes that write one socket in turns, in full buffers that begin with `head`.
fn two_writers(head: &[u8]) -> RecordingBuilder {
    let mut builder = recording(1.0);
    let socket = builder.file("tcp:127.0.0.1:22-127.0.0.1:40000", Socket);
    for pid in [2, 3] {
        builder.fork(0.1, pid);
        let stream = builder.stream(pid, 4, socket, Out, 28, 4096);
        (stream.first_s, stream.last_s, stream.newline_ends) = (0.2 + 0.01 * f64::from(pid), 0.8, 1);
    }
    for (turn, pid) in [2, 3, 2, 3].into_iter().enumerate() {
        builder.write(0.22 + 0.1 * turn as f64, pid, 4, socket, head);
    }
    builder
}

#[test]
fn lines_of_two_writers_of_a_socket_are_torn() {
    let finding = two_writers(b"process one\nprocess t").finding("torn-records");
    assert_eq!(finding.severity, High);
    assert!(finding.why.contains(" write to one socket at once"), "{}", finding.why);
    // The calls have no end times, so that a line that is split was not seen.
    assert!(finding.why.ends_with("Calls do not show whether it happened."), "{}", finding.why);
}

#[test]
fn an_encrypted_connection_has_no_lines() {
    two_writers(b"\x17\x03\x03\n\x9c\xe0\x00").no_finding("torn-records");
    // The banner of SSH is text, and what follows is not.
    let mut ssh = two_writers(b"\x9c\xe0\x00\n");
    let socket = 0;
    ssh.write(0.21, 2, 4, socket, b"SSH-2.0-OpenSSH_9.2\r\n");
    ssh.0.events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    ssh.no_finding("torn-records");
}
