//! A process that is killed while its pipe is full: weir rescues its bytes also if the command ends before the reader makes room.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs::{self, File};
use std::io::{PipeReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{KillOnDrop, disk_dir, text, wait_for, weir};
use rustix::process::{Pid, Signal, kill_process};
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
        assert_eq!(read.len(), EXPECTED_BYTES, "{command:?}: {errors}");
        assert!(read == lines(EXPECTED_BYTES).as_bytes(), "{command:?}: each byte once, in order");
        assert!(errors.contains("rescued 4 KiB of writer"), "{command:?}: {errors}");
    }
}

/// As [`WRITER`], with a buffer of 512 KiB, whose first write fills the pipe.
const LARGE_WRITER: &str = "#include <stdio.h>\n\
    static char buffer[1 << 19];\n\
    int main(void) { setvbuf(stdout, buffer, _IOFBF, sizeof buffer); \
    for (int line = 0; line < 1000000; line++) printf(\"%07d\\n\", line); return 0; }\n";

const LARGE_BYTES: usize = 1 << 19;

fn lines(bytes: usize) -> String {
    (0..bytes / 8).map(|line| format!("{line:07}\n")).collect()
}

/// Starts a command whose program is killed while its pipe is full, and returns it when the command has ended. Its errors are in the
/// file "said".
fn rescuing(dir: &Path) -> Option<(KillOnDrop, PipeReader)> {
    compile(dir, "writer", LARGE_WRITER, &[])?;
    let (from, to) = std::io::pipe().expect("a pipe");
    let said = File::create(dir.join("said")).expect("a file");
    let mut command = weir(dir, &["run", "--rescue", "--", "timeout", "-s", "KILL", "2", "./writer"]);
    let weir = KillOnDrop(command.stdin(Stdio::null()).stdout(to).stderr(said).spawn().expect("weir starts"));
    drop(command);
    wait_for("a rescue after the command", || said_in(dir).contains("weir stays until"));
    Some((weir, from))
}

fn said_in(dir: &Path) -> String {
    text(&fs::read(dir.join("said")).unwrap_or_default())
}

#[test]
fn a_slow_reader_gets_all_bytes() {
    let dir = disk_dir();
    let Some((mut weir, mut pipe)) = rescuing(dir.path()) else { return };
    let (mut read, mut piece) = (Vec::new(), [0; 32 << 10]);
    // 9 s: longer than weir waits for a killed process without a rescue.
    for _ in 0..15 {
        let length = pipe.read(&mut piece).expect("bytes");
        read.extend(&piece[..length]);
        std::thread::sleep(Duration::from_millis(600));
    }
    pipe.read_to_end(&mut read).expect("its bytes");
    weir.0.wait().expect("its end");
    assert_eq!(read.len(), LARGE_BYTES, "{}", said_in(dir.path()));
    assert!(read == lines(LARGE_BYTES).as_bytes(), "each byte once, in order");
}

#[test]
fn the_second_signal_saves_the_rest() {
    let dir = disk_dir();
    let Some((mut weir, mut pipe)) = rescuing(dir.path()) else { return };
    let signal = || kill_process(Pid::from_child(&weir.0), Signal::TERM).expect("kill");
    signal();
    std::thread::sleep(Duration::from_millis(300));
    signal();
    weir.0.wait().expect("its end");
    let mut all = Vec::new();
    pipe.read_to_end(&mut all).expect("its bytes");
    let said = said_in(dir.path());
    let files = fs::read_dir(dir.path()).expect("the directory").map(|entry| entry.expect("an entry").path());
    let saved: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "bin")).collect();
    assert_eq!(saved.len(), 1, "{said}");
    assert!(said.contains("a signal has ended weir"), "{said}");
    all.extend(fs::read(&saved[0]).expect("the saved bytes"));
    assert!(all == lines(LARGE_BYTES).as_bytes(), "{} bytes: {said}", all.len());
}
