//! `weir trace` ends with the program's status for every kind of program: 32-bit, static, set-user-ID, a tracer itself,
//! one that cannot be executed. It reads buffers from the first write on.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::programs::{self, PROGRAM, SOURCE, has_libcxx};
use common::{disk_dir, has, is_root, skip, text, wait_for, weir, with_signals};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use trace::{compile, compile_by, engines, finding, path, traced};

/// Runs `weir trace --engine ENGINE -- COMMAND…` in `dir` and returns its output and the document, or null.
/// Each call is recorded: between samples the last write of a process can be unseen, beside other load.
fn trace(dir: &Path, engine: &str, command: &[&str]) -> (Output, Value) {
    traced(dir, &["-q", "--exact", "--engine", engine], command)
}

/// Runs a command with a pipe of 4096 bytes as standard output, kills it when the pipe is full, and reads the pipe.
const FULL_PIPE: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <sys/ioctl.h>\n\
    #include <sys/wait.h>\n#include <unistd.h>\nint main(int count, char **words) {\n\
    int ends[2], bytes = 0, status; char into[8192];\n\
    if (count < 2 || pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096) return 1;\n\
    pid_t child = fork(); if (!child) { dup2(ends[1], 1); close(ends[0]); close(ends[1]);\n\
    execvp(words[1], words + 1); _exit(127); }\n\
    while (ioctl(ends[0], FIONREAD, &bytes) == 0 && bytes < 4096 && waitpid(child, &status, WNOHANG) == 0) usleep(1000);\n\
    usleep(500000); kill(child, SIGKILL); waitpid(child, &status, 0); close(ends[1]);\n\
    return read(ends[0], into, sizeof into) == 4096 && read(ends[0], into, 1) == 0 ? 0 : 2; }\n";

/// Fills a buffer of 8192 bytes until it is written.
const FILL: &str = "#include <stdio.h>\nint main(void) { static char buffer[8192];\n\
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);\n\
    for (int i = 0; ; i++) putchar('a' + i % 26); }\n";
const FILL_BY_PYTHON: &str = "out = open(1, 'wb', 8192)\nwhile True: out.write(b'0123456789')";

const FILL_BY_GO: &str = "package main\nimport (\"bufio\"; \"os\")\n\
    func main() { w := bufio.NewWriterSize(os.Stdout, 8192); for { w.WriteString(\"0123456789abcdef\") } }\n";
/// Flushes a buffer that is not full.
const FLUSH_BY_GO: &str = "package main\nimport (\"bufio\"; \"os\")\n\
    func main() { w := bufio.NewWriterSize(os.Stdout, 8192); for { w.Write(make([]byte, 6000)); w.Flush() } }\n";

/// Builds a Go program; returns whether that was possible.
fn build_go(dir: &Path, name: &str, source: &str) -> bool {
    let file = dir.join(name).with_extension("go");
    fs::write(&file, source).expect("a file");
    let built = programs::compile("go", &["build", "-o", PROGRAM, SOURCE], &file, &dir.join(name));
    built.is_ok_and(|output| output.status.success())
}

#[test]
fn bytes_of_the_write_in_which_a_go_program_is_killed_are_not_lost() {
    let test = "bytes_of_the_write_in_which_a_go_program_is_killed_are_not_lost";
    let dir = disk_dir();
    let parent = compile(dir.path(), "full", FULL_PIPE, &[]).expect("cc");
    for (name, source, expected) in [("fill", FILL_BY_GO, 4096.0), ("flush", FLUSH_BY_GO, 1904.0)] {
        if !build_go(dir.path(), name, source) {
            return skip(test, "go is not installed");
        }
        for engine in engines() {
            let (output, document) = trace(dir.path(), engine, &[path(&parent), &format!("./{name}")]);
            assert_eq!(output.status.code(), Some(0), "{engine} {name}: {}", text(&output.stderr));
            let lost = finding(&document, "lost-at-kill").map(|one| one["evidence"]["lost_bytes"].as_f64());
            assert_eq!(lost, Some(Some(expected)), "{engine} {name}: {document}");
        }
    }
}

/// CPython has the bytes of a flush in no stream while it writes them to a pipe that is full.
#[test]
fn bytes_of_the_write_in_which_python_is_killed_are_lost() {
    let dir = disk_dir();
    let parent = compile(dir.path(), "full", FULL_PIPE, &[]).expect("cc");
    fs::write(dir.path().join("prints.py"), "for i in range(100000): print('x' * 90)\n").expect("a script");
    for engine in engines() {
        let command = [path(&parent), "/usr/bin/python3", "prints.py"];
        let (output, document) = trace(dir.path(), engine, &command);
        assert_eq!(output.status.code(), Some(0), "{engine}: {}", text(&output.stderr));
        let lost = finding(&document, "lost-at-kill").map(|one| one["evidence"]["lost_bytes"].as_f64());
        // The first write has 90 lines of 91 bytes.
        assert_eq!(lost, Some(Some(8190.0 - 4096.0)), "{engine}: {document}");
    }
}

/// Makes `bufio.(*Writer).Flush` of a program wait for ever where the call of the writer's method returns.
fn stop_flush_after_its_write(program: &Path) {
    let mut dump = Command::new("go");
    dump.args(["tool", "objdump", "-s", r"bufio.\(\*Writer\).Flush"]).arg(program);
    let dump = dump.output().expect("go tool objdump");
    let listing = text(&dump.stdout);
    let mut lines = listing.lines().skip_while(|line| {
        // A call by a register, whose name has two letters.
        let call = line.split("CALL ").nth(1).unwrap_or("runtime.");
        call.trim().len() != 2
    });
    let next = lines.nth(1).expect("an instruction after the call");
    let address = next.split_whitespace().find_map(|word| word.strip_prefix("0x")).expect("an address");
    let address = u64::from_str_radix(address, 16).expect("a number");
    let mut bytes = fs::read(program).expect("the program");
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word"));
    let headers = word(&bytes, 32) as usize..;
    let header = headers.step_by(56).find(|at| {
        let (start, length) = (word(&bytes, at + 16), word(&bytes, at + 32));
        bytes[*at] == 1 && (start..start + length).contains(&address)
    });
    let header = header.expect("a segment");
    let at = (address - word(&bytes, header + 16) + word(&bytes, header + 8)) as usize;
    // jmp to itself
    bytes[at..at + 2].copy_from_slice(&[0xeb, 0xfe]);
    fs::write(program, bytes).expect("the program");
}

/// The scheduler interrupts a goroutine that computes, and forgets its registers when it goes on.
#[test]
#[cfg(target_arch = "x86_64")]
fn bytes_that_a_go_flush_has_written_are_not_lost_before_it_notes_them() {
    let test = "bytes_that_a_go_flush_has_written_are_not_lost_before_it_notes_them";
    let source = "package main\nimport (\"bufio\"; \"os\")\n\
        func main() { w := bufio.NewWriterSize(os.Stdout, 8192); w.Write(make([]byte, 6000)); w.Flush() }\n";
    let dir = disk_dir();
    if !is_root() || !build_go(dir.path(), "flush", source) {
        return skip(test, "it needs root and go");
    }
    stop_flush_after_its_write(&dir.path().join("flush"));
    // timeout(1) kills it while it waits in Flush.
    let (_, document) =
        trace(dir.path(), "ebpf", &["sh", "-c", "timeout -s KILL 0.5 ./flush > out; test $? = 137"]);
    assert_eq!(fs::metadata(dir.path().join("out")).expect("the output").len(), 6000);
    assert_eq!(finding(&document, "lost-at-kill"), None);
    let verdict = document["verdict"].as_str().expect("a sentence");
    assert!(!verdict.starts_with("Nothing is wrong"), "{verdict}");
}

/// The first byte of a file buffer of libc++ is in the C library's stream: both are one loss.
#[test]
fn bytes_of_a_file_buffer_of_libcxx_are_lost_once() {
    let test = "bytes_of_a_file_buffer_of_libcxx_are_lost_once";
    if !has_libcxx() {
        return skip(test, "there is no clang++ with libc++");
    }
    let dir = disk_dir();
    let code = "#include <csignal>\n#include <fstream>\n#include <unistd.h>\n\
        int main(int, char **words) { std::ofstream log(\"log\"); log << \"a line\\n\";\n\
            for (int i = 0; words[1][0] == 't' && i < 9; i++) { log << \"and more\\n\"; usleep(100000); }\n\
            if (words[1][0] == 'x') { execl(\"/bin/true\", \"true\", (char *)0); }\n\
            if (words[1][0] == 'e') _exit(0);\n\
            kill(getpid(), SIGKILL); }\n";
    let program = compile_by("clang++", dir.path(), "program", code, &["-stdlib=libc++"]).expect("clang++");
    for engine in engines() {
        for (how, id, bytes) in [
            ("kill", "lost-at-kill", 7),
            ("exit", "lost-at-exit", 7),
            ("xec", "lost-at-exec", 7),
            ("tick", "lost-at-kill", 88),
        ] {
            let (_, document) = trace(dir.path(), engine, &[path(&program), how]);
            let found: Vec<(&Value, &Value)> = trace::list(&document, "findings")
                .iter()
                .map(|one| (&one["id"], &one["evidence"]["lost_bytes"]))
                .collect();
            assert_eq!(found, [(&id.into(), &f64::from(bytes).into())], "{engine} {how}: {document}");
            let why = document["findings"][0]["why"].as_str().expect("a sentence");
            assert!(why.contains("beginning \"a line"), "{engine} {how}: {why}");
        }
    }
}

/// The kernel has taken half of a buffer when the kill comes, but the stream still has all of it.
#[test]
fn bytes_of_the_write_that_a_kill_interrupts_are_not_lost() {
    let dir = disk_dir();
    let parent = compile(dir.path(), "full", FULL_PIPE, &[]).expect("cc");
    let fill = compile(dir.path(), "fill", FILL, &[]).expect("cc");
    let linked = compile(dir.path(), "static", FILL, &["-static"]);
    let mut commands = vec![vec![path(&fill)]];
    commands.extend(linked.as_deref().map(|program| vec![path(program)]));
    // The interpreter itself: `python3` may be a script that starts it, and takes its time.
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output();
    let python = python.map(|output| text(&output.stdout)).unwrap_or_default();
    if !python.is_empty() {
        commands.push(vec![&python, "-c", FILL_BY_PYTHON]);
    }
    for engine in engines() {
        for command in &commands {
            let (output, document) = trace(dir.path(), engine, &[&[path(&parent)], &command[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{engine} {command:?}: {}", text(&output.stderr));
            let finding = finding(&document, "lost-at-kill");
            let finding = finding.unwrap_or_else(|| panic!("{engine} {command:?}: {}", document["findings"]));
            let lost = finding["evidence"]["lost_bytes"].as_f64().expect("a number");
            assert!((4000.0..=4096.0).contains(&lost), "{engine} {command:?}: {finding}");
        }
    }
}

const HELLO: &str = "#include <unistd.h>\n\
    int main(void) { return write(1, \"hello\\n\", 6) == 6 ? 4 : 1; }\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_program_ends_with_its_status() {
    // write(1, text, 6), exit(4), without a C library: few systems have one for 32 bits.
    let source = "static const char text[] = \"other\\n\";\n\
        void _start(void) { int n; __asm__ volatile(\"int $0x80\" : \"=a\"(n)\n\
        : \"a\"(4), \"b\"(1), \"c\"(text), \"d\"(6) : \"memory\");\n\
        __asm__ volatile(\"int $0x80\" : : \"a\"(1), \"b\"(4)); }\n";
    let dir = disk_dir();
    let flags = ["-m32", "-static", "-nostdlib", "-ffreestanding"];
    let program = compile(dir.path(), "small", source, &flags);
    let Some(program) = program.filter(|program| Command::new(program).status().is_ok()) else {
        return skip("a_32_bit_program_ends_with_its_status", "this machine runs no 32-bit programs");
    };
    for engine in engines() {
        let (output, document) = trace(dir.path(), engine, &[path(&program)]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), "other\n".into()), "{engine}");
        let is_reported = document["blind"].to_string().contains("32-bit");
        assert!(is_reported, "{engine}: {}", document["blind"]);
    }
}

#[test]
fn a_static_program_ends_with_its_status() {
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "alone", HELLO, &["-static"]) else {
        return skip("a_static_program_ends_with_its_status", "cc makes no static programs");
    };
    for engine in engines() {
        let (output, _) = trace(dir.path(), engine, &[path(&program)]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), "hello\n".into()), "{engine}");
    }
}

#[test]
fn the_command_has_ended_when_weir_ends() {
    // The kernel takes a while to free the memory, and releases the lock after that.
    let source = "#include <fcntl.h>\n#include <sys/file.h>\n#include <sys/mman.h>\n\
        int main(void) { int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;\n\
        int lock = open(\"lock\", O_RDWR | O_CREAT, 0600);\n\
        void *memory = mmap(0, 512 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);\n\
        return lock < 0 || flock(lock, LOCK_EX) || memory == MAP_FAILED ? 1 : 7; }\n";
    let dir = disk_dir();
    let program = compile(dir.path(), "large", source, &[]).expect("cc");
    for engine in engines() {
        let (output, document) = trace(dir.path(), engine, &[path(&program)]);
        let lock = fs::File::open(dir.path().join("lock")).expect("the program has created it");
        lock.try_lock().unwrap_or_else(|error| panic!("{engine}: {error}: the lock is still held"));
        assert_eq!((output.status.code(), &document["exit"]["code"]), (Some(7), &7.into()), "{engine}");
    }
}

#[test]
fn a_set_user_id_program_keeps_its_privilege_under_root() {
    let name = "a_set_user_id_program_keeps_its_privilege_under_root";
    if !is_root() || !has("setpriv") {
        return skip(name, "needs root and setpriv");
    }
    let dir = disk_dir();
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int main(void) { printf(\"%d\\n\", (int)geteuid()); return 0; }\n";
    let program = compile(dir.path(), "whoami", source, &[]).expect("cc");
    std::os::unix::fs::chown(&program, Some(65533), None).expect("another owner");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("a mode");
    let nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", path(&program)];
    // Runs the program as nobody only if the directory of the tests is open to other users.
    let is_reachable =
        Command::new(nobody[0]).args(&nobody[1..]).output().is_ok_and(|ran| ran.status.success());
    for engine in engines() {
        let alone = [path(&program)];
        let commands = [&alone[..], &nobody].into_iter().take(1 + usize::from(is_reachable));
        for command in commands {
            let (output, _) = trace(dir.path(), engine, command);
            assert_eq!(text(&output.stdout), "65533\n", "{engine}: {command:?}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn a_tracer_runs_under_weir() {
    if !has("strace") {
        return skip("a_tracer_runs_under_weir", "strace is not installed");
    }
    let dir = disk_dir();
    for engine in engines() {
        let command = ["strace", "-f", "-o", "log", "sh", "-c", "perl -e 'print 1' | cat; exit 3"];
        let (output, _) = trace(dir.path(), engine, &command);
        assert_eq!(output.status.code(), Some(3), "{engine}: {}", text(&output.stderr));
        let log = fs::read_to_string(dir.path().join("log")).expect("strace's log");
        assert!(log.contains("exited with 3"), "{engine}: {log}");
    }
}

#[test]
fn ten_thousand_children_and_files_are_traced() {
    let children = "#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n\
        for (int i = 0; i < 10000; i++) { pid_t one = fork(); if (!one) _exit(0);\n\
        if (one < 0 || waitpid(one, 0, 0) != one) return 1; } return 7; }\n";
    let files = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/resource.h>\n#include <unistd.h>\n\
        int main(void) { struct rlimit most = {10100, 10100}; char name[16];\n\
        if (setrlimit(RLIMIT_NOFILE, &most)) return 1;\n\
        for (int i = 0; i < 10000; i++) { sprintf(name, \"f%d\", i); int fd = open(name, O_CREAT | O_RDWR, 0600);\n\
        if (fd < 0 || write(fd, \"x\", 1) != 1 || unlink(name)) return 2; } return 8; }\n";
    let dir = disk_dir();
    // The first engine only: ptrace stops at each of them, and trace_programs tests it with fewer.
    let engine = engines()[0];
    for (name, source, status) in [("children", children, 7), ("files", files, 8)] {
        let program = compile(dir.path(), name, source, &[]).expect("cc");
        let (output, document) = trace(dir.path(), engine, &[path(&program)]);
        assert_eq!(output.status.code(), Some(status), "{engine}: {name}: {}", text(&output.stderr));
        assert_eq!(document["exit"]["code"], status, "{engine}: {name}");
    }
}

#[test]
fn a_command_that_cannot_be_executed_leaves_no_files() {
    let dir = disk_dir();
    fs::write(dir.path().join("text"), "no program\n").expect("a file");
    for engine in engines() {
        for (command, status) in [("./text", 126), ("./none", 127)] {
            let (output, _) = trace(dir.path(), engine, &[command]);
            assert_eq!(output.status.code(), Some(status), "{engine}: {command}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn an_execve_by_a_second_thread_is_not_an_exit() {
    if !has("python3") {
        return skip("an_execve_by_a_second_thread_is_not_an_exit", "python3 is not installed");
    }
    let dir = disk_dir();
    let script = "import os, threading\nprint('waits')\n\
        threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'sleep 0.3; exit 6'])).start()\n";
    for engine in engines() {
        let (output, document) = trace(dir.path(), engine, &["python3", "-c", script]);
        assert_eq!(output.status.code(), Some(6), "{engine}: {}", text(&output.stderr));
        assert!(finding(&document, "lost-at-exit").is_none(), "{engine}: {}", document["findings"]);
    }
}

#[test]
fn the_first_write_of_a_runtime_has_its_pending_bytes() {
    let name = "the_first_write_of_a_runtime_has_its_pending_bytes";
    if !is_root() || !has("perl") {
        return skip(name, "needs root and perl");
    }
    let dir = disk_dir();
    let script =
        "open my $out, '>', 'out' or die; print $out \"first\\n\"; syswrite $out, \"second\\n\"; close $out";
    for _ in 0..5 {
        let (_, document) = trace(dir.path(), "ebpf", &["perl", "-e", script]);
        assert_eq!(fs::read_to_string(dir.path().join("out")).expect("out"), "second\nfirst\n");
        assert!(finding(&document, "mixed-order").is_some(), "{}", document["findings"]);
    }
}

/// weir passes a signal that it receives, such as that which stops a service, on to the command, waits until the command
/// ends, and writes the report.
#[test]
fn signals_to_weir_reach_the_command() {
    let signals = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2];
    for engine in engines() {
        for signal in signals {
            let dir = disk_dir();
            let name = signal.as_raw();
            let script = format!("trap 'echo got; exit 3' {name}; touch ready; while :; do sleep 0.05; done");
            let mut command =
                weir(dir.path(), &["trace", "-q", "--engine", engine, "--json", "t.json", "--"]);
            command.args(["bash", "-c", &script]).stdout(Stdio::piped());
            let child = with_signals(&mut command).spawn().expect("weir");
            wait_for("the command to start", || dir.path().join("ready").exists());
            let pid = Pid::from_raw(child.id() as i32).expect("a process");
            kill_process(pid, signal).expect("kill");
            let output = child.wait_with_output().expect("weir ends");
            assert_eq!(
                (output.status.code(), text(&output.stdout)),
                (Some(3), "got\n".into()),
                "{engine} {name}"
            );
            let document: Value =
                serde_json::from_slice(&fs::read(dir.path().join("t.json")).expect("a report"))
                    .expect("JSON");
            assert!(document["streams"].is_array(), "{engine} {name}");
        }
    }
}
