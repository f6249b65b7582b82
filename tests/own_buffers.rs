//! Buffers that a program has made itself, as nginx and rsyslogd do: no walker reads them, and weir says for which files.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;
use std::process::Command;

use common::{has, run, skip, text, wait_for};
use trace::{compile, for_each_engine, path, traced};

/// Opens each file of its arguments, keeps bytes for it in memory of its own, makes the file `ready`, and waits.
const OWN_BUFFERS: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <string.h>\n#include <unistd.h>\n\
    static char own[16][4096];\n\
    int main(int words, char **word) {\n\
        for (int i = 1; i < words; i++)\n\
            if (open(word[i], O_WRONLY | O_CREAT | O_TRUNC, 0644) >= 0) strcpy(own[i], \"line\\n\");\n\
        close(open(\"ready\", O_RDWR | O_CREAT, 0644));\n\
        if (getenv(\"KILLED\")) kill(getpid(), SIGKILL);\n\
        sleep(30); }\n";

fn own(dir: &Path) -> Option<String> {
    let code = format!("#include <stdlib.h>\n{OWN_BUFFERS}");
    compile(dir, "own", &code, &[]).map(|program| path(&program).to_string())
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn trace_names_each_file_of_a_killed_program() {
    for_each_engine(|engine, dir| {
        let Some(own) = own(dir) else { return };
        let verdict = |files: &[&str]| {
            let command = [&["env", "KILLED=1", &own][..], files].concat();
            let (_, document) = traced(dir, &["-q", "--engine", engine], &command);
            document["verdict"].as_str().expect("a verdict").replace(dir.to_str().expect("text"), "")
        };
        let named = verdict(&["a.log", "b.log", "c.log"]);
        assert!(named.contains("own may keep for /a.log, /b.log and /c.log in memory"), "{engine}: {named}");
        let counted = verdict(&["a.log", "b.log", "c.log", "d.log", "e.log"]);
        assert!(counted.contains("for /a.log, /b.log, /c.log and 2 other files in"), "{engine}: {counted}");
    });
}

#[test]
fn peek_names_each_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(own) = own(dir.path()) else { return };
    let mut own =
        Command::new(own).args(["a.log", "b.log"]).current_dir(dir.path()).spawn().expect("it starts");
    wait_for("the program", || dir.path().join("ready").exists());
    let peek = text(&run(dir.path(), &["peek", &own.id().to_string()]).stdout);
    own.kill().expect("it runs");
    own.wait().expect("it ends");
    let peek = in_one_line(&peek).replace(dir.path().to_str().expect("text"), "");
    assert!(peek.contains("descriptor 3 (/a.log) and descriptor 4 (/b.log) in memory of its own"), "{peek}");
}

#[test]
fn a_rescue_says_what_it_could_not_save() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(own) = own(dir.path()) else { return };
    let errors = |words: &[&str]| {
        let output = run(dir.path(), &[&["run", "--rescue"], words].concat());
        text(&output.stderr).replace(dir.path().to_str().expect("text"), "")
    };
    let killed = errors(&["--", "env", "KILLED=1", &own, "a.log", "b.log"]);
    assert!(
        killed.starts_with("weir: if own (")
            && killed.ends_with(
                ") kept bytes for descriptor 3 (/a.log) and descriptor 4 (/b.log) in memory of its own, they are lost: \
                 weir cannot read them\n"
            ),
        "{killed}"
    );
    let no_file = errors(&["--", "env", "KILLED=1", &own]);
    assert_eq!(no_file, "", "it has only its standard streams");
    let ended = errors(&["--", "timeout", "0.2", &own, "a.log"]);
    assert!(ended.contains("kept bytes for descriptor 3 (/a.log)"), "SIGTERM ends it: {ended}");
    let redirected = errors(&["--", "sh", "-c", "sleep 9 > out & sleep 0.3; kill -9 $!; wait"]);
    assert_eq!(redirected, "", "the C library's stream of standard output is read");
    assert_eq!(errors(&["--", "sh", "-c", "yes | head -n 1 > out"]), "", "SIGPIPE: the pipe has no reader");
}

/// Most programs of Node write to standard output only, which has a queue only while its pipe is full.
#[test]
fn a_rescue_names_the_files_of_node_at_its_kill_only() {
    let dir = tempfile::tempdir().expect("a directory");
    if !has("node") {
        return skip("a_rescue_names_the_files_of_node_at_its_kill_only", "there is no node");
    }
    let errors = |options: &[&str], script: &str| {
        let output =
            run(dir.path(), &[&["run", "--rescue"], options, &["--", "node", "-e", script]].concat());
        (output.status.code(), text(&output.stderr).replace(dir.path().to_str().expect("text"), ""))
    };
    let kill = "process.kill(process.pid, 'SIGKILL')";
    assert_eq!(errors(&[], "console.log(1)"), (Some(0), String::new()));
    assert_eq!(errors(&[], &format!("console.log(1); {kill}")), (Some(137), String::new()));
    let stream = format!("s = fs.createWriteStream('a.log'); s.on('open', () => {{ s.write('x'); {kill} }})");
    let (status, killed) = errors(&[], &stream);
    assert_eq!(status, Some(137), "{killed}");
    assert!(
        killed.contains(" (/a.log) in the queue of an fs.WriteStream, they are lost: weir cannot read them"),
        "{killed}"
    );
    let (status, strict) = errors(&["--strict"], "console.log(1)");
    assert!(
        status == Some(125) && strict.contains("the queue of an fs.WriteStream, if the program"),
        "{strict}"
    );
}

/// Node queues what a full pipe does not take, and process.exit does not wait for the reader.
#[test]
fn a_rescue_says_that_node_can_have_queued_bytes_for_a_full_pipe() {
    const TEST: &str = "a_rescue_says_that_node_can_have_queued_bytes_for_a_full_pipe";
    if !has("node") {
        return skip(TEST, "there is no node");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let run_to = |reader: &str, end: &str| {
        let script = format!(
            "for (let i = 0; i < 5000; i++) process.stdout.write('x'.repeat(99) + '\\n'); \
             fs.writeSync(2, process.stdout.writableLength + ' queued\\n'); {end}"
        );
        std::fs::write(dir.path().join("a.js"), format!("const fs = require('fs'); {script}"))
            .expect("a script");
        let line = format!(
            "rm -f done; {{ \"$0\" run --rescue -- node a.js; touch done; }} | {{ {reader}; wc -c; }}"
        );
        let output = Command::new("sh").args(["-c", &line, common::WEIR]).current_dir(dir.path()).output();
        let output = output.expect("a shell");
        (text(&output.stdout).trim().parse::<u64>().expect("a number"), text(&output.stderr))
    };
    for end in ["process.exit(0)", "process.kill(process.pid, 'SIGKILL')"] {
        let (bytes, errors) = run_to("while [ ! -e done ]; do sleep 0.05; done", end);
        assert!(bytes < 500_000 && errors.contains("queued"), "{bytes}: {errors}");
        let says = "the pipe of descriptor 1 was full when node (";
        assert!(errors.contains(says) && errors.contains("they are lost"), "{end}: {errors}");
    }
    let (bytes, errors) = run_to("sleep 0.5", "");
    assert_eq!(bytes, 500_000, "a program that ends by itself waits for the reader: {errors}");
}

#[test]
fn a_rescue_says_that_php_can_have_kept_output() {
    if !has("php") {
        return skip("a_rescue_says_that_php_can_have_kept_output", "there is no php");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let errors = |options: &[&str], script: &str| {
        let output = run(dir.path(), &[&["run", "--rescue"], options, &["--", "php", "-r", script]].concat());
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(errors(&[], "ob_start(); echo 1;"), (Some(0), String::new()));
    let (status, killed) = errors(&[], "ob_start(); echo 1; $own = getmypid(); exec(\"kill -9 $own\");");
    assert_eq!(status, Some(137), "{killed}");
    let says =
        ") kept output in a buffer of ob_start() or output_buffering, it is lost: weir cannot read it\n";
    assert!(killed.starts_with("weir: if php") && killed.ends_with(says), "{killed}");
    let (status, strict) = errors(&["--strict"], "echo 1;");
    assert!(
        status == Some(125) && strict.contains("the buffer of ob_start() or output_buffering"),
        "{strict}"
    );
}

/// Keeps 12 records in a handler of `logging`, makes the file `ready`, and is killed or waits.
const KEEPS_RECORDS: &str = "import logging.handlers, os, sys, time\n\
    handler = logging.handlers.MemoryHandler(1000, target=logging.FileHandler('own.log'))\n\
    logging.getLogger().addHandler(handler)\n\
    for number in range(12): logging.warning('record %d', number)\n\
    open('ready', 'w').close()\n\
    if len(sys.argv) > 1: time.sleep(0.3); os.kill(os.getpid(), 9)\n\
    time.sleep(30)";

#[test]
fn records_in_a_memory_handler_of_python_are_counted() {
    const RECORDS: &str = "12 records in a MemoryHandler of Python's logging";
    if !has("/usr/bin/python3") {
        return skip("records_in_a_memory_handler_of_python_are_counted", "there is no python3");
    }
    let command = ["/usr/bin/python3", "-c", KEEPS_RECORDS, "killed"];
    for_each_engine(|engine, dir| {
        let (_, document) = traced(dir, &["-q", "--engine", engine], &command);
        let verdict = document["verdict"].as_str().expect("a verdict");
        let expected = format!("Nothing wrong in what could be seen; {RECORDS} cannot be read");
        assert!(verdict.starts_with(&expected), "{engine}: {verdict}");
    });
    let dir = tempfile::tempdir().expect("a directory");
    let rescue = run(dir.path(), &[&["run", "--rescue", "--"], &command[..]].concat());
    let errors = text(&rescue.stderr);
    assert!(errors.ends_with(&format!(" kept {RECORDS}: weir cannot write them\n")), "{errors}");
    let ready = dir.path().join("ready");
    std::fs::remove_file(&ready).expect("the first program has made it");
    let mut waiting =
        Command::new(command[0]).args(&command[1..3]).current_dir(dir.path()).spawn().expect("python3");
    wait_for("the records", || ready.exists());
    let peek = in_one_line(&text(&run(dir.path(), &["peek", &waiting.id().to_string()]).stdout));
    waiting.kill().expect("it runs");
    waiting.wait().expect("it ends");
    assert!(peek.contains(&format!("{RECORDS}: weir flush cannot write them")), "{peek}");
}

/// The C library writes standard error without a buffer, so a process that still runs keeps no bytes for it.
#[test]
fn trace_of_a_running_process_does_not_doubt_its_standard_error() {
    let code = "#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n\
        for (int i = 0; i < 300; i++) { printf(\"line %d\\n\", i); fflush(stdout); usleep(100000); } }\n";
    for_each_engine(|engine, dir| {
        let Some(program) = compile(dir, "lines", code, &[]) else { return };
        let script = format!("exec {} >out 2>err", path(&program));
        let mut shell = Command::new("sh");
        let mut lines = common::KillOnDrop(shell.args(["-c", &script]).current_dir(dir).spawn().expect("sh"));
        wait_for("the program", || std::fs::metadata(dir.join("out")).is_ok_and(|out| out.len() > 0));
        let pid = lines.0.id().to_string();
        let output = run(dir, &["trace", "--engine", engine, "--time", "1500ms", "--pid", &pid]);
        lines.0.kill().expect("it runs");
        let said = in_one_line(&text(&output.stderr));
        assert!(!said.contains("may keep for"), "{engine}: {said}");
    });
}
