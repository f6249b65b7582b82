//! The advice of findings on the built binary: a `weir run` command is printed only if `weir run` accepts it for this
//! program, and the code is that of the program's language and of the object concerned.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{KillOnDrop, WEIR, disk_dir, has, skip, text, wait_for, weir};
use serde_json::Value;
use weir_diagnose::{SESSION_CALLS, SESSION_WARMUP};

/// Runs a command under `weir trace` and returns its findings.
fn findings(dir: &Path, words: &[&str]) -> Vec<Value> {
    let arguments = [&["trace", "--quiet", "--json", "t.json", "--"], words].concat();
    let mut command = weir(dir, &arguments);
    command
        .env_remove("PYTHONUNBUFFERED")
        .stdin(Stdio::null())
        .stdout(fs::File::create(dir.join("stdout")).expect("stdout"));
    let output = command.output().expect("weir starts");
    document(dir, &text(&output.stderr))
}

fn document(dir: &Path, errors: &str) -> Vec<Value> {
    let bytes = fs::read(dir.join("t.json")).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let document: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {errors}"));
    document["findings"].as_array().expect("findings").clone()
}

/// Returns the only finding with this identifier.
#[track_caller]
fn only<'a>(findings: &'a [Value], id: &str) -> &'a Value {
    let found: Vec<&Value> = findings.iter().filter(|finding| finding["id"] == id).collect();
    assert_eq!(found.len(), 1, "{id}: {findings:#?}");
    found[0]
}

fn fix(finding: &Value) -> &str {
    finding["fix"].as_str().expect("a fix")
}

/// Builds a program from its source. Returns false if the compiler is missing.
fn build(dir: &Path, test: &str, compiler: &[&str], name: &str, source: &str) -> bool {
    if !has(compiler[0]) {
        skip(test, &format!("{} is not installed", compiler[0]));
        return false;
    }
    fs::write(dir.join(name), source).expect("the source");
    let output = Command::new(compiler[0]).args(&compiler[1..]).arg(name).current_dir(dir).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    true
}

/// Asserts that `weir run` accepts a printed command.
#[track_caller]
fn assert_accepted(dir: &Path, command: &str) {
    let script = command.replacen("weir run ", &format!("{WEIR} run --why=only "), 1);
    let output = Command::new("bash").args(["-c", &script]).current_dir(dir).output().expect("bash");
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
}

const BYTEWISE: &str = "#include <fcntl.h>\n#include <unistd.h>\nint main(void) {\n\
    int fd = open(\"out\", O_WRONLY | O_CREAT | O_TRUNC, 0644);\n\
    for (int i = 0; i < 300000; i++) if (write(fd, \"x\", 1) != 1) return 1;\nreturn 0; }\n";

#[test]
fn an_unbuffered_go_program_gets_go_code_and_no_command() {
    let dir = disk_dir();
    let source = "package main\nimport \"os\"\nfunc main() { f, _ := os.Create(\"out\"); \
        for i := 0; i < 300000; i++ { f.Write([]byte(\"x\")) }; f.Close() }\n";
    if !build(dir.path(), "advice for Go", &["go", "build", "-o", "prog"], "prog.go", source) {
        return;
    }
    let found = findings(dir.path(), &["./prog"]);
    let finding = only(&found, "tiny-writes");
    assert!(fix(finding).contains("bufio.NewWriterSize(f, 65536)"), "{finding:#}");
    assert!(finding["command"].is_null() && !fix(finding).contains("weir run"), "{finding:#}");
    assert!(!fix(finding).contains("setvbuf"), "{finding:#}");
}

#[test]
fn a_deleted_executable_keeps_its_language() {
    let dir = disk_dir();
    let source = "package main\nimport (\"os\"; \"time\")\nfunc main() { f, _ := os.Create(\"out\"); \
        for i := 0; i < 300000; i++ { f.Write([]byte(\"x\")) }; f.Close(); time.Sleep(200 * time.Millisecond); \
        os.Remove(\"prog\") }\n";
    if !build(
        dir.path(),
        "advice for a deleted Go program",
        &["go", "build", "-o", "prog"],
        "prog.go",
        source,
    ) {
        return;
    }
    let found = findings(dir.path(), &["./prog"]);
    assert!(fix(only(&found, "tiny-writes")).contains("bufio"), "{found:#?}");
    assert!(!dir.path().join("prog").exists());
}

#[test]
fn a_cpp_program_gets_the_code_of_iostreams() {
    let dir = disk_dir();
    let source = "#include <fstream>\n#include <iostream>\nint main() { std::ofstream out(\"out\");\n\
        for (int i = 0; i < 200000; i++) out << 'x' << std::endl;\n\
        for (int i = 0; i < 200000; i++) std::cout << i << std::endl; }\n";
    if !build(dir.path(), "advice for C++", &["g++", "-O1", "-o", "prog"], "prog.cpp", source) {
        return;
    }
    let found = findings(dir.path(), &["./prog"]);
    let of =
        |fd: i64| found.iter().find(|finding| finding["fd"] == fd).unwrap_or_else(|| panic!("{found:#?}"));
    let (stdout, file) = (of(1), of(3));
    assert!(
        fix(stdout).contains("sync_with_stdio(false)") && fix(stdout).contains("no std::endl"),
        "{stdout:#}"
    );
    assert!(fix(file).contains("std::ofstream out(path);"), "{file:#}");
    assert_accepted(dir.path(), file["command"].as_str().unwrap_or_else(|| panic!("no command: {found:#?}")));
}

#[test]
fn a_python_file_gets_the_code_of_files() {
    let dir = disk_dir();
    fs::write(
        dir.path().join("save.py"),
        "import os, time\nf = open('out', 'w')\nf.write('kept')\ntime.sleep(1.6)\nos._exit(0)\n",
    )
    .expect("a script");
    let found = findings(dir.path(), &["/usr/bin/python3", "save.py"]);
    for id in ["stuck-output", "lost-at-exit"] {
        let finding = only(&found, id);
        assert!(fix(finding).contains("f.flush()") && !fix(finding).contains("print("), "{finding:#}");
        assert_accepted(dir.path(), finding["command"].as_str().expect("a command"));
    }
}

/// `weir run` writes the bytes of these runtimes from outside, though a search finds their streams.
#[test]
fn go_and_rust_writers_get_the_command_that_writes_their_bytes() {
    let go = "package main\nimport (\"bufio\"; \"fmt\"; \"os\"; \"time\")\nfunc main() { w := bufio.NewWriter(os.Stdout); \
        fmt.Fprintln(w, \"a line\"); time.Sleep(1600 * time.Millisecond); os.Exit(2) }\n";
    let rust = "use std::io::Write;\nfn main() { let file = std::fs::File::create(\"log\").unwrap();\n\
        let mut out = std::io::BufWriter::new(file); writeln!(out, \"a line\").unwrap();\n\
        std::thread::sleep(std::time::Duration::from_millis(1600)); std::process::exit(3) }\n";
    for (language, compiler, source, text) in [
        ("Go", &["go", "build", "-o", "prog"][..], "prog.go", go),
        ("Rust", &["rustc", "-g", "-O", "-o", "prog"], "prog.rs", rust),
    ] {
        let dir = disk_dir();
        if !build(dir.path(), &format!("advice for {language}"), compiler, source, text) {
            continue;
        }
        let found = findings(dir.path(), &["./prog"]);
        for id in ["stuck-output", "lost-at-exit"] {
            let finding = only(&found, id);
            let command = finding["command"].as_str().unwrap_or_else(|| panic!("{language}: {finding:#}"));
            assert_accepted(dir.path(), command);
        }
    }
}

#[test]
fn a_static_program_is_not_offered_what_needs_a_library() {
    let dir = disk_dir();
    let compiler = ["gcc", "-static", "-O1", "-o", "prog"];
    assert!(build(dir.path(), "advice for a static program", &compiler, "prog.c", BYTEWISE));
    let found = findings(dir.path(), &["./prog"]);
    let finding = only(&found, "tiny-writes");
    assert!(finding["command"].is_null() && fix(finding).starts_with("FILE *f = fopen("), "{finding:#}");
}

#[test]
fn a_command_runs_from_the_directory_of_the_trace() {
    let dir = disk_dir();
    fs::create_dir(dir.path().join("sub")).expect("a directory");
    assert!(build(
        dir.path(),
        "advice in a directory",
        &["gcc", "-O1", "-o", "sub/prog"],
        "prog.c",
        BYTEWISE
    ));
    let found = findings(dir.path(), &["sh", "-c", "cd sub && ./prog; true"]);
    let finding = only(&found, "tiny-writes");
    let command = finding["command"].as_str().unwrap_or_else(|| panic!("{finding:#}"));
    assert_eq!(command, "weir run --coalesce -- sh -c 'cd sub && ./prog; true'");
    fs::remove_file(dir.path().join("sub/out")).expect("the program's output");
    let command = command.replacen("weir", WEIR, 1);
    let status = Command::new("bash").args(["-c", &command]).current_dir(dir.path()).status().expect("bash");
    assert!(status.success());
    assert_eq!(fs::metadata(dir.path().join("sub/out")).expect("the output").len(), 300_000);
}

/// Each of these ends a session of the library before it gathers: a seek of Python's own before each write, and the handler of
/// SIGSYS that libgfortran installs.
#[test]
fn gathering_is_not_offered_where_each_write_would_end_it() {
    let dir = disk_dir();
    let script = "f = open('out', 'a+', buffering=1)\nfor i in range(100000): f.write('%d line\\n' % i)\n";
    fs::write(dir.path().join("append.py"), script).expect("a script");
    let found = findings(dir.path(), &["/usr/bin/python3", "append.py"]);
    let finding = only(&found, "line-buffered-bulk");
    assert!(finding["command"].is_null() && !fix(finding).contains("weir run"), "{finding:#}");

    const FORTRAN: &str = "program each\n integer :: i\n open(10, file='written')\n do i = 1, 100000\n write(10, *) i\n\
        flush(10)\n end do\nend program\n";
    let compiler = ["gfortran", "-O1", "-o", "lines"];
    if build(dir.path(), "advice for Fortran", &compiler, "lines.f90", FORTRAN) {
        let found = findings(dir.path(), &["./lines"]);
        let finding = only(&found, "line-buffered-bulk");
        assert!(finding["command"].is_null() && !fix(finding).contains("weir run"), "{finding:#}");
    }
}

/// Python's logging asks for the number of the process with each record.
#[test]
#[cfg(target_arch = "x86_64")]
fn records_of_pythons_logging_are_gathered() {
    const TEST: &str = "records_of_pythons_logging_are_gathered";
    if !has("strace") {
        return skip(TEST, "strace is not installed");
    }
    let dir = disk_dir();
    let script = "import logging\nlogging.basicConfig(filename='out', level=logging.INFO)\n\
        for i in range(3000): logging.info('record %d', i)\n";
    fs::write(dir.path().join("records.py"), script).expect("a script");
    let command = format!(
        "strace -f -qq -e trace=write -e signal=none -o log {WEIR} run -q --coalesce -- /usr/bin/python3 records.py"
    );
    let status = Command::new("sh").args(["-c", &command]).current_dir(dir.path()).status().expect("sh");
    assert!(status.success());
    let output = fs::read_to_string(dir.path().join("out")).expect("the records");
    let expected: String = (0..3000).map(|i| format!("INFO:root:record {i}\n")).collect();
    assert!(output == expected);
    let log = fs::read_to_string(dir.path().join("log")).expect("strace's log");
    let writes = log.lines().filter(|line| line.contains("INFO:root")).count();
    assert!(writes < 100, "{writes} writes of 3,000 records");
}

#[test]
fn a_command_that_refuses_the_option_is_not_offered_for_its_child() {
    let dir = disk_dir();
    if !has("node") {
        return skip("advice for a child of node", "node is not installed");
    }
    assert!(build(dir.path(), "advice for a child", &["gcc", "-O1", "-o", "prog"], "prog.c", BYTEWISE));
    fs::write(dir.path().join("start.js"), "require('child_process').spawnSync('./prog')\n")
        .expect("a script");
    let found = findings(dir.path(), &["node", "start.js"]);
    for finding in found {
        if let Some(command) = finding["command"].as_str() {
            assert_accepted(dir.path(), command);
        }
    }
}

/// `weir run` adds `-W interactive` to mawk only if mawk is the command itself.
#[test]
fn options_of_a_program_are_offered_only_for_the_command_itself() {
    const NAME: &str = "options_of_a_program_are_offered_only_for_the_command_itself";
    if !has("mawk") {
        return skip(NAME, "mawk is not installed");
    }
    let dir = disk_dir();
    let lines = "(for i in 1 2 3; do echo line; sleep .8; done)";
    for (words, offered) in [("mawk '{print}'", true), ("sh -c \"mawk '{print}' | cat\"", false)] {
        let script = format!("{lines} | {WEIR} trace --quiet --json t.json -- {words} | cat");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().expect("sh starts");
        assert_eq!(text(&output.stdout), "line\nline\nline\n");
        let findings = document(dir.path(), &text(&output.stderr));
        let held = fix(only(&findings, "held-output"));
        assert_eq!(held.contains("weir run --max-delay"), offered, "{words}: {held}");
        assert!(held.contains("-W interactive") || offered, "{words}: {held}");
    }
}

/// Starts a script in a directory, with this PWD, and returns the only finding of `weir trace --pid` about it.
fn finding_of_attached(dir: &Path, start: &Path, script: &str, shell_directory: Option<&Path>) -> Value {
    fs::write(start.join("wait.py"), script).expect("a script");
    let out = fs::File::create(dir.join("stdout")).expect("stdout");
    let mut command = Command::new("/usr/bin/python3");
    command.arg("wait.py").current_dir(start).env_remove("PYTHONUNBUFFERED").stdout(out);
    command.env_remove("PWD").env_remove("OLDPWD");
    command.envs(shell_directory.map(|directory| ("PWD", directory)));
    let process = KillOnDrop(command.spawn().expect("python3"));
    let pid = process.0.id().to_string();
    let sleeps =
        || fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|wait| wait.contains("nanosleep"));
    wait_for("the script", sleeps);
    std::thread::sleep(Duration::from_millis(100));
    let arguments = ["trace", "--quiet", "--json", "t.json", "--pid", &pid, "--time", "4s"];
    let output = weir(dir, &arguments).output().expect("weir starts");
    only(&document(dir, &text(&output.stderr)), "stuck-output").clone()
}

#[test]
fn the_command_of_an_attached_process_changes_to_its_directory() {
    let (dir, elsewhere) = (disk_dir(), disk_dir());
    let wait = "import os, time\nprint('kept')\nfor i in range(60): time.sleep(0.5)\n";
    let daemon = wait.replacen("\n", "\nos.chdir('/')\n", 1);
    let start = format!("cd {} && weir run --max-delay 100ms -- ", elsewhere.path().display());
    for (script, shell_directory) in [(wait, None), (&daemon, Some(elsewhere.path()))] {
        let finding = finding_of_attached(dir.path(), elsewhere.path(), script, shell_directory);
        let command = finding["command"].as_str().unwrap_or_else(|| panic!("{finding:#}"));
        assert!(command.starts_with(&start) && command.ends_with("python3 wait.py"), "{command}");
        assert_accepted(dir.path(), command);
    }
    // The directory of the start is not known: /, to which the program changed, has no such script.
    let finding = finding_of_attached(dir.path(), elsewhere.path(), &daemon, None);
    assert!(finding["command"].is_null() && !fix(&finding).contains("cd /"), "{finding:#}");
}

/// Makes sessions of `weir run --coalesce`: COUNT calls of one byte each, and getppid(2) after them.
const SESSIONS: &str = "#include <string.h>\n#include <unistd.h>\nint main(int count, char **words) {\n\
    char byte = 'x'; int writes = count > 1 && !strcmp(words[1], \"write\");\n\
    for (int session = 0; session < 10; session++) {\n\
    for (int i = 0; i < 400; i++) if ((writes ? write(1, &byte, 1) : read(0, &byte, 1)) != 1) return 1;\n\
    getppid(); } return 0; }\n";

/// Returns the names of the program's calls between two calls of getppid(2), as strace(1) logs them.
fn calls_of_sessions(log: &str) -> Vec<Vec<&str>> {
    // Children of weir call getppid(2) too.
    let program = log.lines().find(|line| line.contains(" execve(\"./sessions\"")).expect("the program");
    let pid = program.split_whitespace().next().expect("a PID");
    let lines = log.lines().filter(|line| line.split_whitespace().next() == Some(pid));
    let calls = lines.filter_map(|line| line.split_whitespace().nth(1)?.split_once('(')).map(|call| call.0);
    let calls: Vec<&str> = calls.collect();
    calls.split(|call| *call == "getppid").map(<[&str]>::to_vec).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_session_makes_the_calls_that_its_price_contains() {
    const TEST: &str = "a_session_makes_the_calls_that_its_price_contains";
    if !has("strace") {
        return skip(TEST, "strace is not installed");
    }
    let dir = disk_dir();
    if !build(dir.path(), TEST, &["cc", "-O1", "-o", "sessions"], "sessions.c", SESSIONS) {
        return;
    }
    fs::write(dir.path().join("in"), [b'x'; 10_000]).expect("the input");
    for (direction, sink) in [("write", "out"), ("write", "/dev/stdout"), ("read", "out")] {
        let script = format!(
            "strace -f -qq -e signal=none -o log {WEIR} run -q --coalesce -- ./sessions {direction} < in > {sink}"
        );
        // Output to the pipe of this process, or to a file.
        let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().expect("sh");
        assert!(output.status.success(), "{direction} {sink}: {}", text(&output.stderr));
        let log = fs::read_to_string(dir.path().join("log")).expect("strace's log");
        let sessions = calls_of_sessions(&log);
        // The first one also sets the library up.
        let session = sessions.get(4).unwrap_or_else(|| panic!("{direction} {sink}: {sessions:?}"));
        let moving = session.iter().filter(|call| **call == direction).count() as u64;
        let others =
            session.iter().filter(|call| **call != direction && **call != "rt_sigreturn").count() as u64;
        assert!((1..=2).contains(&(moving - SESSION_WARMUP)), "{direction} {sink}: {session:?}");
        assert!(others.abs_diff(SESSION_CALLS) <= 1, "{direction} {sink}: {others} calls: {session:?}");
    }
}
