//! A process that is killed while its pipe is full: weir rescues its bytes also if the command ends before the reader makes room.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use common::{disk_dir, text, wait_for, weir};
use trace::compile;

/// Writes numbered lines of 8 bytes until its pipe is full.
const WRITER: &str = "#include <stdio.h>\n\
    int main(void) { for (int line = 0; line < 1000000; line++) printf(\"%07d\\n\", line); return 0; }\n";

const PIPE_BYTES: u64 = 64 << 10;

/// The pipe, and the buffer of the C library.
const EXPECTED_BYTES: usize = PIPE_BYTES as usize + 4096;

#[test]
fn a_child_is_rescued_after_the_command() {
    let dir = disk_dir();
    if compile(dir.path(), "writer", WRITER, &[]).is_none() {
        return;
    }
    // timeout kills its process group, and so itself. The shell ends after the kill.
    for command in
        [&["timeout", "-s", "KILL", "2", "./writer"][..], &["sh", "-c", "./writer & sleep 2; kill -9 $!"]]
    {
        let mut weir = weir(dir.path(), &[&["run", "--rescue", "--"], command].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir starts");
        let mut pipe = weir.stdout.take().expect("a pipe");
        wait_for("a full pipe", || rustix::io::ioctl_fionread(&pipe).expect("its bytes") >= PIPE_BYTES);
        // The kill comes 2 s after the start of the writer.
        std::thread::sleep(Duration::from_secs(4));
        let mut read = Vec::new();
        pipe.read_to_end(&mut read).expect("its bytes");
        let errors = text(&weir.wait_with_output().expect("its end").stderr);
        let expected: String = (0..EXPECTED_BYTES / 8).map(|line| format!("{line:07}\n")).collect();
        assert_eq!(read.len(), EXPECTED_BYTES, "{command:?}: {errors}");
        assert!(read == expected.as_bytes(), "{command:?}: each byte once, in order");
        assert!(errors.contains("rescued 4 KiB of writer"), "{command:?}: {errors}");
    }
}
