//! `weir run --pty` when its own output takes no more bytes: the error is named, and the status shows it.

mod common;

use std::fs::File;
use std::path::Path;
use std::process::{Output, Stdio};

use common::{disk_dir, text, weir};

/// Runs a command with terminals, whose standard output is a full device.
fn on_full_device(dir: &Path, options: &[&str], command: &[&str]) -> Output {
    let words = [&["run", "--pty"], options, &["--"], command].concat();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    weir(dir, &words).stdout(full).stderr(Stdio::piped()).output().expect("weir")
}

#[test]
fn a_full_disk_is_named_and_ends_the_command_by_its_own_error() {
    let dir = disk_dir();
    for options in [&[][..], &["-q"], &["--max-delay=20ms"]] {
        let output = on_full_device(dir.path(), options, &["seq", "100000"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        assert!(
            said.contains("seq: ") && said.contains("standard output: write: ENOSPC"),
            "{options:?}: {said}"
        );
        assert!(
            said.contains("bytes of the command's output are lost") && said.contains("make room"),
            "{said}"
        );
    }
}

#[test]
fn a_command_that_does_not_notice_the_full_disk_gets_the_status_of_weir() {
    let dir = disk_dir();
    let output = on_full_device(dir.path(), &[], &["echo", "text"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("standard output: write: ENOSPC") && said.contains("5 bytes"), "{said}");
}
