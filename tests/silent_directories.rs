//! The server of a directory that weir works in stops answering: `copy`, `bench`, `advise` and `lab` say what does not answer and since
//! when, go on when it answers again, and end at a signal, also if no signal ends a thread that waits.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use common::silent_directory::{prepared, server};
use common::{disk_dir, skip, text, wait_for, weir};

/// A verb whose directory `mount` is served by a program of the test, from the directory `backing`.
struct Silenced {
    dir: tempfile::TempDir,
    weir: Child,
    /// The lines that it writes to the standard error.
    errors: Receiver<String>,
}

impl Silenced {
    /// Starts the verb; None if this machine does not permit it.
    fn start(test: &str, arguments: &[&str]) -> Option<Silenced> {
        let dir = prepared(test)?;
        let path = dir.path();
        fs::create_dir(path.join("state")).expect("a directory");
        fs::write(path.join("source"), vec![b'x'; 40 << 20]).expect("the source");
        fs::write(path.join("backing/source"), vec![b'x'; 40 << 20]).expect("the source");
        let weir = weir(path, arguments);
        let mut command = Command::new(path.join("silent_directory"));
        command.args(["mount", "backing"]).arg(weir.get_program()).args(weir.get_args()).current_dir(path);
        command.env("XDG_CACHE_HOME", path.join("state")).env("XDG_STATE_HOME", path.join("state"));
        if arguments[0] == "lab" {
            command.env("TMPDIR", path.join("mount"));
        }
        common::with_signals(&mut command).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut weir = command.spawn().expect("it starts");
        let (sender, errors) = channel();
        let pipe = BufReader::new(weir.stderr.take().expect("a pipe"));
        std::thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut has_ended = false;
        wait_for("the server starts", || {
            has_ended = weir.try_wait().expect("a child").is_some();
            has_ended || server(dir.path()).is_some()
        });
        if has_ended {
            skip(test, "FUSE in a user namespace is not permitted");
            return None;
        }
        Some(Silenced { dir, weir, errors })
    }

    /// Waits until a file in the directory whose path ends so has bytes, and sends the signal to the server.
    fn silence_at(&self, name: &str, signal: &str) {
        let backing = self.dir.path().join("backing");
        wait_for("the work begins", || has_bytes(&backing, name));
        self.signal_server(signal);
    }

    fn signal_server(&self, signal: &str) {
        let pid = server(self.dir.path()).expect("its number");
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().expect("kill").success());
    }

    /// Returns the next line of errors with this text.
    fn wait_for_line(&mut self, expected: &str) -> String {
        loop {
            match self.errors.recv_timeout(Duration::from_secs(90)) {
                Ok(line) if line.contains(expected) => return line,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("90 s without: {expected}\n{}", self.processes()),
                Err(RecvTimeoutError::Disconnected) => panic!("weir ended without: {expected}"),
            }
        }
    }

    /// Describes what the processes of weir wait for.
    fn processes(&self) -> String {
        let group = self.weir.id().to_string();
        let list = Command::new("timeout")
            .args(["-s", "KILL", "5", "ps", "-eLo", "pgid,pid,tid,stat,wchan:30,args"])
            .output()
            .expect("ps");
        let list = text(&list.stdout);
        let lines = list.lines().filter(|line| line.split_whitespace().next() == Some(&group));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Sends signals to the process group of weir, as a terminal does. Returns the status and the rest of the errors.
    fn end(mut self, signals: &[&str]) -> (Option<i32>, String) {
        let pid = self.weir.id().to_string();
        for signal in signals {
            Command::new("kill").args(["-s", signal, &pid]).status().expect("kill");
        }
        let weir = &mut self.weir;
        wait_for("weir ends", || weir.try_wait().expect("a child").is_some());
        let status = self.weir.wait().expect("its status");
        let status = status
            .code()
            .or_else(|| std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal));
        (status, self.errors.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Silenced {
    /// Ends the server if the test fails; weir then ends too.
    fn drop(&mut self) {
        let _ended = self.weir.kill();
        let _reaped = self.weir.wait();
    }
}

/// Returns whether a file whose path ends so has bytes.
fn has_bytes(directory: &Path, name: &str) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| match fs::metadata(&path) {
        Ok(about) if about.is_dir() => has_bytes(&path, name),
        Ok(about) => path.to_string_lossy().ends_with(name) && about.len() > 0,
        Err(_) => false,
    })
}

/// Runs cases side by side: each waits for 10 s.
fn run_together(cases: &[fn()]) {
    std::thread::scope(|threads| {
        for case in cases {
            threads.spawn(case);
        }
    });
}

#[test]
fn copies_wait_and_can_be_ended() {
    run_together(&[
        a_copy_waits_for_its_target_and_goes_on,
        a_copy_waits_for_the_close_of_its_target,
        one_signal_ends_a_copy_whose_target_is_silent,
        two_signals_end_a_copy_whose_source_is_silent,
        a_frozen_file_system_does_not_keep_the_terminal,
    ]);
}

#[test]
fn measurements_can_be_ended() {
    run_together(&[two_signals_end_a_measurement, one_signal_ends_an_advice, two_signals_end_an_experiment]);
}

fn a_copy_waits_for_its_target_and_goes_on() {
    let test = "a_copy_waits_for_its_target_and_goes_on";
    let Some(mut copy) = Silenced::start(test, &["copy", "--limit", "8M", "source", "mount/target"]) else {
        return;
    };
    copy.silence_at("target", "STOP");
    let line = copy.wait_for_line("still waiting for");
    assert!(line.contains("/mount/target: ") && line.contains(" has not returned for 1"), "{line}");
    copy.signal_server("CONT");
    let copied = fs::read(copy.dir.path().join("source")).expect("the source");
    let line = copy.wait_for_line("answers again");
    assert!(line.contains("/mount/target answers again: "), "{line}");
    let target = copy.dir.path().join("backing/target");
    wait_for("the copy ends", || copy.weir.try_wait().expect("a child").is_some());
    assert!(fs::read(target).expect("the copy") == copied);
    let (status, rest) = copy.end(&[]);
    assert_eq!(status, Some(0), "{rest}");
}

fn a_copy_waits_for_the_close_of_its_target() {
    let test = "a_copy_waits_for_the_close_of_its_target";
    let Some(mut copy) = Silenced::start(test, &["copy", "--limit", "20M", "source", "mount/target"]) else {
        return;
    };
    copy.silence_at("target", "USR2");
    let line = copy.wait_for_line("still waiting for");
    assert!(line.contains("a file that thread ") && line.contains(" closes: close has not"), "{line}");
    let (status, rest) = copy.end(&["TERM"]);
    assert_eq!(status, Some(143), "{rest}");
}

fn one_signal_ends_a_copy_whose_target_is_silent() {
    let test = "one_signal_ends_a_copy_whose_target_is_silent";
    let Some(mut copy) = Silenced::start(test, &["copy", "--limit", "1M", "source", "mount/target"]) else {
        return;
    };
    copy.silence_at("target", "USR1");
    copy.wait_for_line("still waiting for");
    let (status, rest) = copy.end(&["TERM"]);
    assert_eq!(status, Some(143), "{rest}");
    assert!(rest.contains("stays, because no signal ends it: ") && rest.contains("/mount/target"), "{rest}");
}

fn two_signals_end_a_copy_whose_source_is_silent() {
    let test = "two_signals_end_a_copy_whose_source_is_silent";
    let Some(mut copy) = Silenced::start(test, &["copy", "--limit", "1M", "mount/source", "target"]) else {
        return;
    };
    wait_for("the copy begins", || has_bytes(copy.dir.path(), "target"));
    copy.signal_server("USR1");
    let line = copy.wait_for_line("still waiting for");
    assert!(line.contains("has not returned for 1"), "{line}");
    let (status, rest) = copy.end(&["INT", "INT"]);
    assert_eq!(status, Some(130), "{rest}");
}

fn two_signals_end_a_measurement() {
    let test = "two_signals_end_a_measurement";
    let words =
        ["bench", "write", "--dir", "mount", "--records", "64,4096", "--size", "1MB", "--budget", "50s"];
    let Some(mut bench) = Silenced::start(test, &words) else { return };
    bench.silence_at("out", "USR1");
    let line = bench.wait_for_line("still waiting for");
    let names_file =
        line.contains("/mount/") || line.contains("a file that thread ") && line.contains(" closes");
    assert!(line.starts_with("weir bench: still waiting for ") && names_file, "{line}");
    let (status, rest) = bench.end(&["INT", "INT"]);
    assert_eq!(status, Some(130), "{rest}");
}

fn one_signal_ends_an_advice() {
    let test = "one_signal_ends_an_advice";
    let Some(mut advise) = Silenced::start(test, &["advise", "-y", "--dir", "mount", "--recalibrate"]) else {
        return;
    };
    advise.silence_at("out", "STOP");
    let line = advise.wait_for_line("still waiting for");
    assert!(line.starts_with("weir advise: still waiting for "), "{line}");
    let (status, rest) = advise.end(&["TERM"]);
    assert_eq!(status, Some(143), "{rest}");
}

fn two_signals_end_an_experiment() {
    let test = "two_signals_end_an_experiment";
    let Some(mut lab) = Silenced::start(test, &["lab", "all", "--quick"]) else { return };
    lab.silence_at(".c", "USR1");
    lab.wait_for_line("still waiting for");
    let (status, rest) = lab.end(&["INT", "INT"]);
    assert_eq!(status, Some(130), "{rest}");
}

fn a_frozen_file_system_does_not_keep_the_terminal() {
    let test = "a_frozen_file_system_does_not_keep_the_terminal";
    if !common::is_root() || !common::has_private_mounts() || !common::has("mkfs.ext4") {
        return skip(test, "a mounted image needs root, private mounts and mkfs.ext4");
    }
    // If weir hangs, the end of the shell lets the file system go.
    const SCRIPT: &str = r#"
        truncate -s 64M image && mkfs.ext4 -q image && mkdir mount && mount -o loop image mount || exit 77
        head -c 20M /dev/zero > source
        $WEIR copy --limit 500K source mount/target > output 2> errors & copy=$!
        trap 'fsfreeze -u mount; kill -KILL $copy' EXIT
        trap 'exit 99' TERM
        until [ -s mount/target ]; do sleep 0.1; done
        fsfreeze -f mount || exit 77
        until grep -q 'still waiting for' errors; do sleep 0.1; done
        kill -TERM $copy
        wait $copy
        status=$?
        cat errors
        exit $status"#;
    let dir = disk_dir();
    let weir = weir(dir.path(), &[]);
    let mut command = Command::new("timeout");
    command
        .args(["-k", "10", common::limited::TIMEOUT, "unshare", "-m", "sh", "-c", SCRIPT])
        .current_dir(dir.path());
    let output = command.env("WEIR", weir.get_program()).output().expect("unshare");
    if output.status.code() == Some(77) {
        return skip(test, &text(&output.stderr));
    }
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(143), "{said} {}", text(&output.stderr));
    assert!(
        said.contains("stays, because no signal ends it: ") && said.contains("/mount/target has not"),
        "{said}"
    );
}
