//! `weir run` says what it does not reach, and refuses what cannot be done: one line, `--strict`, exit statuses.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::programs::{self, PROGRAM, SOURCE, has_libcxx};
use common::{disk_dir, run, skip, text, weir};

/// Compiles a program with the words of a compiler's command; returns None, and notes a skip, without the compiler.
fn build(dir: &Path, name: &str, file: &str, source: &str, compiler: &[&str]) -> Option<String> {
    if compiler.contains(&"-stdlib=libc++") && !has_libcxx() {
        skip(&format!("run limits: {file}"), "there is no clang++ with libc++");
        return None;
    }
    std::fs::write(dir.join(file), source).unwrap();
    let program = dir.join(name).to_str().unwrap().to_string();
    let words = [&compiler[1..], &["-o", PROGRAM, SOURCE]].concat();
    match programs::compile(compiler[0], &words, &dir.join(file), Path::new(&program)) {
        Ok(output) => {
            assert!(output.status.success(), "{compiler:?} {file}: {}", text(&output.stderr));
            Some(program)
        }
        Err(_) => {
            skip(&format!("run limits: {file}"), &format!("{} is not here", compiler[0]));
            None
        }
    }
}

fn errors(output: &Output) -> String {
    text(&output.stderr)
}

const HELLO_C: &str = "#include <stdio.h>\nint main(void) { puts(\"hi\"); }\n";
const COUT: &str = "#include <iostream>\nint main() { std::cout << \"hi\\n\"; }\n";
const UNSYNCED: &str =
    "#include <iostream>\nint main() { std::ios::sync_with_stdio(false); std::cout << \"hi\\n\"; }\n";
const OFSTREAM: &str =
    "#include <fstream>\nint main() { std::ofstream file(\"/dev/stdout\"); file << \"hi\\n\"; }\n";
const IFSTREAM: &str = "#include <fstream>\n#include <iostream>\n#include <string>\n\
    int main() { std::ifstream file(\"/dev/null\"); std::string s; file >> s; std::cout << s << \"hi\\n\"; }\n";
const GO: &str = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hi\") }\n";
const BUFIO: &str = "package main\nimport (\"bufio\"; \"os\")\n\
    func main() { w := bufio.NewWriter(os.Stdout); w.WriteString(\"hi\\n\"); w.Flush() }\n";
const OWN_WRITER: &str = "package main\nimport (\"bufio\"; \"io\"; \"os\")\n\
    type own struct { to io.Writer }\n\
    func (o *own) Write(bytes []byte) (int, error) { return o.to.Write(bytes) }\n\
    func main() { w := bufio.NewWriter(&own{os.Stdout}); w.WriteString(\"hi\\n\"); w.Flush() }\n";
const GZIP: &str = "package main\nimport (\"compress/gzip\"; \"io\"; \"os\")\n\
    func main() { w := gzip.NewWriter(io.Discard); w.Write([]byte(\"hi\")); w.Close(); os.Stdout.WriteString(\"hi\\n\") }\n";
const RUST: &str = "fn main() { println!(\"hi\"); }\n";
const BUF_WRITER: &str = "use std::io::Write;\nfn main() { let mut out = std::io::BufWriter::new(std::fs::File::create(\
    \"/dev/stdout\").unwrap()); writeln!(out, \"hi\").unwrap(); out.flush().unwrap(); }\n";

/// A program: name, file, source, compiler, and what `weir run -oL` does not reach.
type Program = (&'static str, &'static str, &'static str, &'static [&'static str], Option<&'static str>);

fn programs() -> Vec<Program> {
    vec![
        ("c", "c.c", HELLO_C, &["cc"], None),
        ("cout", "cout.cc", COUT, &["g++"], None),
        ("unsynced", "unsynced.cc", UNSYNCED, &["g++"], Some("std::cout after sync_with_stdio(false)")),
        (
            "unsynced-O2",
            "unsynced.cc",
            UNSYNCED,
            &["g++", "-O2"],
            Some("std::cout after sync_with_stdio(false)"),
        ),
        ("ofstream", "ofstream.cc", OFSTREAM, &["g++", "-O2"], Some("a std::ofstream")),
        ("ofstream-O0", "ofstream.cc", OFSTREAM, &["g++"], Some("a std::ofstream")),
        ("ifstream", "ifstream.cc", IFSTREAM, &["g++", "-O2"], None),
        ("cout-libc++", "cout.cc", COUT, &["clang++", "-stdlib=libc++"], None),
        ("ofstream-libc++", "ofstream.cc", OFSTREAM, &["clang++", "-stdlib=libc++"], Some("a std::ofstream")),
        ("linked-in", "cout.cc", COUT, &["g++", "-static-libstdc++"], Some("std::cout after")),
        ("static-cc", "cout.cc", COUT, &["g++", "-static"], Some("it is linked statically")),
        ("go", "go.go", GO, &["go", "build"], None),
        ("bufio", "bufio.go", BUFIO, &["go", "build"], Some("a bufio.Writer")),
        ("bufio-stripped", "bufio.go", BUFIO, &["go", "build", "-ldflags=-s -w"], Some("a bufio.Writer")),
        (
            "own-writer",
            "own_writer.go",
            OWN_WRITER,
            &["go", "build", "-ldflags=-s -w"],
            Some("a bufio.Writer over a writer of the program's own"),
        ),
        ("gzip", "gzip.go", GZIP, &["go", "build"], Some("a gzip.Writer or another compressor")),
        ("rust", "rust.rs", RUST, &["rustc"], None),
        ("buf-writer", "buf_writer.rs", BUF_WRITER, &["rustc"], Some("a BufWriter")),
    ]
}

#[test]
fn what_is_out_of_reach_is_said_in_one_line() {
    let dir = disk_dir();
    for (name, file, source, compiler, unreached) in programs() {
        let Some(program) = build(dir.path(), name, file, source, compiler) else { continue };
        let output = run(dir.path(), &["run", "-oL", "--", &program]);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "hi\n"), "{name}");
        let said = errors(&output);
        match unreached {
            None => assert_eq!(said, "", "{name}"),
            Some(buffers) => {
                assert!(said.lines().count() == 1 && said.contains(buffers), "{name}: {said}");
                assert!(said.starts_with("weir: --stdout line: "), "{name}: {said}");
            }
        }
        let quiet = run(dir.path(), &["run", "-oL", "--quiet", "--", &program]);
        assert_eq!((errors(&quiet).as_str(), text(&quiet.stdout).as_str()), ("", "hi\n"), "{name}");
        let strict = run(dir.path(), &["run", "-oL", "--strict", "--", &program]);
        let status = if unreached.is_some() { 125 } else { 0 };
        assert_eq!(strict.status.code(), Some(status), "{name}: {}", errors(&strict));
        assert_eq!(strict.stdout.is_empty(), unreached.is_some(), "{name}");
        let why = text(&run(dir.path(), &["run", "-oL", "--why=only", "--", &program]).stdout);
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_missed =
            why.contains("out of reach") || why.contains("older than 10 ms are written from outside");
        assert_eq!(is_missed, unreached.is_some(), "{name}: {why}");
        assert!(
            unreached.is_none() || !why.contains("done, ") && !why.contains("not needed"),
            "{name}: {why}"
        );
    }
}

/// Its standard output is the C library's always.
#[test]
fn a_static_program_with_libcxx_is_one_in_cpp() {
    let dir = disk_dir();
    let compiler = &["clang++", "-stdlib=libc++", "-static", "-s"];
    let Some(program) = build(dir.path(), "static-libc++", "ofstream.cc", OFSTREAM, compiler) else { return };
    let output = run(dir.path(), &["run", "--fix-order", "--max-delay", "1s", "--why=only", "--", &program]);
    let why = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("· C++ · linked statically"), "{why}");
    assert!(!why.contains("sync_with_stdio") && !why.contains("out of reach"), "{why}");
}

/// Prints a line with write(2), and has its own buffer.
const NO_LIBRARY: &str = "static char out[64]; static long call(long number, long fd, const char *bytes, long count) { long is; \
    __asm__ volatile(\"syscall\" : \"=a\"(is) : \"a\"(number), \"D\"(fd), \"S\"(bytes), \"d\"(count) \
    : \"rcx\", \"r11\", \"memory\"); return is; }\nvoid _start(void) { out[0] = 'h'; out[1] = 10; call(1, 1, out, 2); call(60, 0, 0, 0); }\n";
/// May execute its first argument.
const LAUNCHER: &str = "void _start(void) { __asm__ volatile(\"mov $59, %eax\\nxor %edi, %edi\\nsyscall\\nmov $60, %eax\\nsyscall\"); }\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program_without_streams_is_not_served() {
    const WHY: &str = "this static program has no stream of a C library that weir could change";
    let dir = disk_dir();
    let alone: &[&str] = &["cc", "-O1", "-static", "-nostdlib", "-fno-stack-protector"];
    let alone_pie: &[&str] = &["cc", "-O1", "-static-pie", "-fPIE", "-nostdlib", "-fno-stack-protector"];
    for (name, compiler) in [("alone", alone), ("alone-pie", alone_pie)] {
        let Some(program) = build(dir.path(), name, "alone.c", NO_LIBRARY, compiler) else { return };
        for option in ["--max-delay=100ms", "--rescue", "-oL", "-o0", "--fix-fork", "--fix-order"] {
            let output = run(dir.path(), &["run", "--why", option, "--", &program]);
            assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(125), ""), "{name} {option}");
            let why = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(why.contains(&format!("cannot be honoured: {WHY}")), "{name} {option}: {why}");
        }
        let output = run(dir.path(), &["run", "--", &program]);
        assert_eq!(text(&output.stdout), "h\n");
        assert!(errors(&output).lines().count() == 1 && errors(&output).contains(WHY), "{}", errors(&output));
        let output = run(dir.path(), &["run", "--strict", "--", &program]);
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(125), ""), "{name}");
    }
    let others: [(&str, &str, &[&str]); 5] = [
        ("launcher", LAUNCHER, alone),
        ("still", HELLO_C, &["cc", "-static"]),
        ("still-stripped", HELLO_C, &["cc", "-static", "-s"]),
        ("still-pie", HELLO_C, &["cc", "-static-pie", "-s"]),
        ("musl", HELLO_C, &["musl-gcc", "-static", "-s"]),
    ];
    for (name, source, compiler) in others {
        let Some(program) = build(dir.path(), name, "other.c", source, compiler) else { continue };
        let why = text(&run(dir.path(), &["run", "--why=only", "--rescue", "--", &program]).stdout);
        assert!(why.contains("--rescue done, from outside"), "{name}: {why}");
    }
}

#[test]
fn what_is_honoured_is_not_commented() {
    let dir = disk_dir();
    for command in [
        &["-oL", "--", "sh", "-c", "echo hi"][..],
        &["--", "bash", "-c", "seq 1 | sed s/1/hi/"],
        &["--rescue", "--", "sh", "-c", "echo hi"],
        &["--max-delay", "50ms", "--strict", "--", "echo", "hi"],
        &["-oL", "--strict", "--", "python3", "-c", "print('hi')"],
        &["--", "perl", "-e", "print \"hi\\n\""],
        &["--private-stdin", "--strict", "--", "sh", "-c", "echo hi"],
        &["--stdout=auto", "--strict", "--", "echo", "hi"],
    ] {
        let output = run(dir.path(), &[&["run"], command].concat());
        assert_eq!((text(&output.stdout).as_str(), errors(&output).as_str()), ("hi\n", ""), "{command:?}");
    }
}

/// Options with the same limit share a line.
#[test]
fn a_limit_of_two_options_is_said_once() {
    let dir = disk_dir();
    let Some(program) = build(dir.path(), "bufio", "bufio.go", BUFIO, &["go", "build"]) else { return };
    let output = run(dir.path(), &["run", "--fix-fork", "--fix-order", "--", &program]);
    let said = errors(&output);
    assert!(said.starts_with("weir: --fix-fork, --fix-order: out of reach"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// The statuses are those of env(1): 127 if there is no such file, 126 for every other reason.
#[test]
fn a_file_that_cannot_be_executed_has_status_126() {
    let dir = disk_dir();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
    std::fs::write(dir.path().join("plain"), "x").unwrap();
    let long = "x".repeat(300);
    for word in [
        "/etc",
        ".",
        "/etc/passwd/x",
        "/etc/passwd",
        "./folder",
        "./loop",
        "./plain",
        &long,
        "",
        "./none",
        "no-such",
    ] {
        let env = Command::new("env").arg(word).current_dir(dir.path()).output().unwrap();
        for verb in [&["run"][..], &["run", "-oL"], &["run", "--rescue", "--coalesce"], &["trace", "--quiet"]]
        {
            let output = run(dir.path(), &[verb, &["--", word]].concat());
            assert_eq!(output.status.code(), env.status.code(), "{verb:?} {word:?}: {}", errors(&output));
            assert!(
                errors(&output).starts_with(&format!("weir: {word}: E")),
                "{verb:?}: {}",
                errors(&output)
            );
        }
    }
}

/// Under `strace -f` the library gathers calls without a tracer of weir's own.
#[test]
fn coalesce_works_under_another_tracer() {
    let dir = disk_dir();
    let source = "#include <unistd.h>\n#include <time.h>\nint main(void) { \
        for (int i = 0; i < 20000; i++) write(1, \"0123456789abcdef\" + i % 16, 1); \
        struct timespec t = {0, 1000000}; nanosleep(&t, 0); \
        for (int i = 0; i < 20000; i++) write(1, \"y\", 1); }\n";
    let program = build(dir.path(), "bytes", "bytes.c", source, &["cc"]).unwrap();
    let traced = |options: &[&str]| {
        let words = [
            &["-qq", "-f", "-o", "calls", "-e", "trace=write", common::WEIR, "run"],
            options,
            &["--", &program],
        ];
        Command::new("strace").args(words.concat()).current_dir(dir.path()).output().unwrap()
    };
    let bare = Command::new(&program).output().unwrap().stdout;
    let output = traced(&["--coalesce"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(output.stdout == bare, "{} bytes, not {}", output.stdout.len(), bare.len());
    let said = errors(&output);
    assert!(said.lines().count() == 1 && said.contains("a kill loses gathered bytes"), "{said}");
    let calls = std::fs::read_to_string(dir.path().join("calls")).unwrap();
    let writes = calls.lines().filter(|line| line.contains("write(1,")).count();
    assert!(writes < 100, "{writes} writes of 40,000 bytes");
    assert_eq!(traced(&["--coalesce", "--strict"]).status.code(), Some(125));
    for options in [&["--rescue"][..], &["--max-delay=50ms"], &["--coalesce", "--rescue"], &[]] {
        let output = traced(options);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{options:?}");
        assert!(errors(&output).contains("(strace) traces it already"), "{options:?}: {}", errors(&output));
    }
    // Without -f the tracer does not follow the command.
    let words = ["-qq", "-o", "/dev/null", common::WEIR, "run", "--rescue", "--strict", "--", &program];
    let output = Command::new("strace").args(words).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success() && output.stdout == bare, "{}", errors(&output));
}

#[test]
fn sizes_are_those_of_stdbuf() {
    let dir = disk_dir();
    let source = "#include <stdio.h>\n#include <stdio_ext.h>\nint main(void) { \
        printf(\"%d %zu\\n\", __flbf(stdout), __fbufsize(stdout)); }\n";
    let program = build(dir.path(), "size", "size.c", source, &["cc"]).unwrap();
    for mode in ["0", "1", "K", "k", "KB", "1kB", "1KiB", "1M", "MB", "2G", "L", " L", "+5", "0K"] {
        let stdbuf = Command::new("stdbuf").args(["-o", mode, &program]).output().unwrap();
        let output = run(dir.path(), &["run", "-o", mode, "--", &program]);
        assert_eq!(text(&output.stdout), text(&stdbuf.stdout), "{mode}: {}", errors(&output));
    }
    for mode in ["Z", "1Y", "x", "LL", "-1", "", "99999999999999999999", "1KK", "B"] {
        let stdbuf = Command::new("stdbuf").args(["-o", mode, &program]).output().unwrap();
        assert_eq!(stdbuf.status.code(), Some(125), "{mode}");
        let output = run(dir.path(), &["run", &format!("-o{mode}"), "--", &program]);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{mode}: {}", errors(&output));
    }
    let output = run(dir.path(), &["run", "-iL", "--", &program]);
    assert!(errors(&output).contains("meaningless"), "{}", errors(&output));
    let output = run(dir.path(), &["run", "-o1E", "--", &program]);
    assert!(
        output.status.code() == Some(125) && errors(&output).contains("cannot be allocated"),
        "{}",
        errors(&output)
    );
}

#[test]
fn programs_that_a_shell_starts_are_served_or_named() {
    let dir = disk_dir();
    let script = "import os; print('first'); os.write(1, b'second\\n'); print('third')";
    std::fs::write(dir.path().join("mixed.py"), script).unwrap();
    let words = ["run", "--fix-order", "--strict", "--", "sh", "-c", "python3 mixed.py 2>&1"];
    let output = weir(dir.path(), &words).env_remove("PYTHONUNBUFFERED").output().unwrap();
    assert_eq!(text(&output.stdout), "first\nsecond\nthird\n", "{}", errors(&output));
    for (option, name) in [("--max-delay=100ms", "mawk"), ("--rescue", "swipl")] {
        let script = format!("{name} x > /dev/null");
        let command = ["--", "sh", "-c", script.as_str()];
        let only = run(dir.path(), &[&["run", "--why=only", option], &command[..]].concat());
        let strict = run(dir.path(), &[&["run", "--strict", option], &command[..]].concat());
        let why = text(&only.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(why.contains(" done in part, from outside: ") && why.contains(name), "{why}");
        let expected = format!("out of reach in programs that it starts: {name} (");
        assert!(
            strict.status.code() == Some(125) && errors(&strict).contains(&expected),
            "{}",
            errors(&strict)
        );
    }
}

#[test]
fn file_patterns_that_the_library_cannot_take_are_refused() {
    let dir = disk_dir();
    let with = |count: usize, glob: &str| {
        let option = format!("--file={glob}=line");
        run(dir.path(), &[&["run"], &vec![option.as_str(); count][..], &["--", "echo", "ran"]].concat())
    };
    assert_eq!(text(&with(16, "*.log").stdout), "ran\n");
    for (output, limit) in
        [(with(17, "*.log"), "at most 16 patterns"), (with(1, &"x".repeat(8192)), "at most 8191")]
    {
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(125), String::new()));
        assert!(errors(&output).contains(limit), "{}", errors(&output));
    }
}

#[test]
fn processes_that_run_on_are_named() {
    let dir = disk_dir();
    let of = |options: &[&str], script: &str| {
        errors(&run(dir.path(), &[&["run"], options, &["--", "sh", "-c", script]].concat()))
    };
    // The child must be sleep when the shell ends.
    let background = "sleep 1.5 >&- 2>&- & until grep -q sleep /proc/$!/comm; do :; done; echo";
    let early = of(&["--max-delay", "100ms"], background);
    assert!(
        early.starts_with("weir: sleep (pid ")
            && early
                .ends_with(") runs on after the command: its pending bytes are no longer written early\n"),
        "{early}"
    );
    let both = of(&["--max-delay", "100ms", "--rescue"], &format!("sleep 1.5 >&- 2>&- & {background}"));
    assert!(
        both.contains(") and sleep (pid ")
            && both.ends_with(
                ") run on after the command: their pending bytes are no longer written early or rescued\n"
            ),
        "{both}"
    );
    let forks = of(&["--fix-fork"], background);
    assert!(forks.ends_with(": its pending bytes are no longer written once at a fork\n"), "{forks}");
    let gathered = of(&["--coalesce"], background);
    assert!(
        cfg!(not(target_arch = "x86_64")) || gathered.ends_with("its pending bytes are no longer gathered\n"),
        "{gathered}"
    );
    assert_eq!(of(&["--max-delay", "100ms", "--quiet"], background), "");
    assert_eq!(of(&["--max-delay", "100ms"], "sleep 0.1 & wait; seq 100000 | head -n 1"), "");
}
