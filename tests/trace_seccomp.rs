//! `weir trace --exact --seccomp`: the same counts as without the filter, no other change to the program, and no program
//! that outlives weir, because its filtered calls would fail.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{as_nobody, disk_dir, for_nobody, is_root, run, skip, text, wait_for, weir};
use serde_json::Value;
use trace::{compile, document, list, path, traced};

const FILTER: [&str; 8] = ["trace", "-q", "--exact", "--seccomp", "--json", "t.json", "--", "sh"];

/// Runs `weir trace --exact -- COMMAND…` in `dir`, with the seccomp filter or with plain ptrace, and returns its output and
/// the document.
fn trace(dir: &Path, filter: bool, command: &[&str]) -> (Output, Value) {
    let how = if filter { "--seccomp" } else { "--engine=ptrace" };
    traced(dir, &["-q", "--exact", how], command)
}

/// Returns the sums of calls, bytes and errors of the streams by program, path and direction.
fn streams(document: &Value) -> BTreeMap<[String; 3], [u64; 3]> {
    let mut sums: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for stream in list(document, "streams") {
        let key = ["comm", "path", "direction"].map(|name| stream[name].to_string());
        let sum = sums.entry(key).or_default();
        for (sum, name) in sum.iter_mut().zip(["calls", "bytes", "errors"]) {
            *sum += stream[name].as_u64().expect("a number");
        }
    }
    sums
}

fn blind(document: &Value) -> String {
    document["blind"].to_string()
}

/// Runs four threads, each of which writes 500 single bytes to its own part of a file.
const THREADS: &str = "#include <fcntl.h>\n#include <pthread.h>\n#include <unistd.h>\nstatic int out;\n\
    static void *work(void *at) { for (int n = 0; n < 500; n++) {\n\
    if (pwrite(out, \"x\", 1, (long)at * 500 + n) != 1) _exit(1); getppid(); } return 0; }\n\
    int main(int count, char **words) { pthread_t threads[4];\n\
    out = open(words[count - 1], O_WRONLY | O_CREAT, 0600);\n\
    for (long n = 0; n < 4; n++) if (pthread_create(&threads[n], 0, work, (void *)n)) return 2;\n\
    for (long n = 0; n < 4; n++) pthread_join(threads[n], 0);\n\
    return close(out) ? 3 : 7; }\n";

#[test]
fn counts_equal_those_without_the_filter() {
    let dir = disk_dir();
    let threads = compile(dir.path(), "threads", THREADS, &["-pthread"]).expect("cc");
    fs::write(dir.path().join("in"), "one line\n".repeat(2000)).expect("a file");
    let script = format!(
        "dd if=in of=one bs=1 count=3000 status=none & dd if=in of=two bs=7 status=none & wait\n\
         while read line; do echo $line; done < in > three; (cat in in > four); cat none 2> five\n\
         exec {} six",
        path(&threads)
    );
    let (bare, unfiltered) = trace(dir.path(), false, &["sh", "-c", &script]);
    let (output, filtered) = trace(dir.path(), true, &["sh", "-c", &script]);
    assert_eq!((bare.status.code(), output.status.code()), (Some(7), Some(7)), "{}", text(&output.stderr));
    assert_eq!(streams(&filtered), streams(&unfiltered));
    let six = |streams: &BTreeMap<[String; 3], [u64; 3]>| {
        streams.iter().find(|(key, _)| key[1].ends_with("/six\"")).map(|(_, sums)| *sums)
    };
    assert_eq!(six(&streams(&filtered)), Some([2000, 2000, 0]));
    assert_eq!(filtered["exact"], true);
    assert_eq!(filtered["engine"], "ptrace");
    assert!(filtered["engine_reason"].to_string().contains("seccomp"), "{}", filtered["engine_reason"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_call_of_a_64_bit_program_is_reported() {
    // getpid(2) of i386, in a program of 64 bits, between two writes.
    let source = "#include <unistd.h>\nint main(void) { int pid;\n\
        if (write(1, \"one\\n\", 4) != 4) return 1;\n\
        __asm__ volatile(\"int $0x80\" : \"=a\"(pid) : \"a\"(20) : \"memory\");\n\
        if (pid == -38) return 9; if (pid != getpid()) return 2;\n\
        return write(1, \"two\\n\", 4) == 4 ? 4 : 3; }\n";
    let dir = disk_dir();
    let program = compile(dir.path(), "mixed", source, &[]).expect("cc");
    match Command::new(&program).output().expect("the program starts").status.code() {
        Some(4) => {}
        other => {
            return skip(
                "a_32_bit_call_of_a_64_bit_program_is_reported",
                &format!("this machine has no 32-bit calls: {other:?}"),
            );
        }
    }
    let (output, seen) = trace(dir.path(), true, &[path(&program)]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), "one\ntwo\n".into()));
    assert!(blind(&seen).contains("32-bit"), "{}", blind(&seen));
    assert_eq!(seen["exact"], false);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_program_ends_with_its_status() {
    let source = "static const char text[] = \"other\\n\";\n\
        void _start(void) { int n; __asm__ volatile(\"int $0x80\" : \"=a\"(n)\n\
        : \"a\"(4), \"b\"(1), \"c\"(text), \"d\"(6) : \"memory\");\n\
        __asm__ volatile(\"int $0x80\" : : \"a\"(1), \"b\"(n - 2)); }\n";
    let dir = disk_dir();
    let flags = ["-m32", "-static", "-nostdlib", "-ffreestanding"];
    let program = compile(dir.path(), "small", source, &flags);
    let Some(program) = program.filter(|program| Command::new(program).output().is_ok()) else {
        return skip(
            "a_32_bit_program_ends_with_its_status (filter)",
            "this machine runs no 32-bit programs",
        );
    };
    let (output, seen) = trace(dir.path(), true, &[path(&program)]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(4), "other\n".into()));
    assert!(blind(&seen).contains("32-bit"), "{}", blind(&seen));
}

/// Installs a filter of its own: getppid(2) and write(2) to descriptor 9 return RET_TRACE without a tracer, so they fail
/// with ENOSYS; dup(2) fails with EPERM.
const SANDBOX: &str = "#include <errno.h>\n#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <stddef.h>\n\
    #include <sys/prctl.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    #define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))\n\
    #define UNLESS(what, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what, 0, skip)\n\
    #define SAY(what) BPF_STMT(BPF_RET | BPF_K, what)\n\
    int main(void) {\n\
    struct sock_filter code[] = {LOAD(nr),\n\
        UNLESS(SYS_getppid, 1), SAY(SECCOMP_RET_TRACE | 9), UNLESS(SYS_dup, 1), SAY(SECCOMP_RET_ERRNO | EPERM),\n\
        UNLESS(SYS_write, 3), LOAD(args[0]), UNLESS(9, 1), SAY(SECCOMP_RET_TRACE), SAY(SECCOMP_RET_ALLOW)};\n\
    struct sock_fprog program = {sizeof code / sizeof *code, code};\n\
    if (dup2(1, 9) != 9 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;\n\
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;\n\
    if (syscall(SYS_getppid) != -1 || errno != ENOSYS) return 3;\n\
    if (dup(1) != -1 || errno != EPERM) return 4;\n\
    if (write(9, \"no\\n\", 3) != -1 || errno != ENOSYS) return 5;\n\
    for (int n = 0; n < 100; n++) if (write(1, \"yes\\n\", 4) != 4) return 6;\n\
    int status; pid_t child = fork(); if (child == 0) _exit(write(1, \"child\\n\", 6));\n\
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6 ? 8 : 7; }\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_with_its_own_filter_gets_the_same_results() {
    let dir = disk_dir();
    let program = compile(dir.path(), "sandbox", SANDBOX, &[]).expect("cc");
    let alone = Command::new(&program).output().expect("the program starts");
    assert_eq!(alone.status.code(), Some(8), "alone");
    let (output, seen) = trace(dir.path(), true, &["sh", "-c", &format!("{} > out", path(&program))]);
    assert_eq!(output.status.code(), Some(8), "{}", text(&output.stderr));
    assert_eq!(fs::read(dir.path().join("out")).expect("out"), alone.stdout);
    let written = streams(&seen).into_iter().find(|(key, _)| key[0] == "\"sandbox\"" && key[2] == "\"out\"");
    // 100 and that of the child; the write that the filter refuses does not count.
    assert_eq!(written.map(|(_, sums)| [sums[0], sums[1]]), Some([101, 406]), "{seen}");
}

/// Starts children with CLONE_UNTRACED: by clone(2), and by clone3(2) with arguments in read-only memory.
const UNTRACED: &str = "#include <errno.h>\n#include <linux/sched.h>\n#include <signal.h>\n#include <sys/syscall.h>\n\
    #include <sys/wait.h>\n#include <unistd.h>\n\
    static const struct clone_args hidden = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};\n\
    static int child(long pid) { int status;\n\
    if (pid == 0) _exit(write(1, \"child\\n\", 6) == 6 ? 6 : 100);\n\
    return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 50; }\n\
    int main(void) { long first = CLONE_UNTRACED | SIGCHLD;\n\
    if (child(syscall(SYS_clone, first, 0, 0, 0, 0)) != 6) return 1;\n\
    if (child(syscall(SYS_clone3, &hidden, sizeof hidden)) != 6) return 2;\n\
    return 9; }\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_child_with_clone_untraced_keeps_its_calls() {
    let dir = disk_dir();
    let program = compile(dir.path(), "hides", UNTRACED, &[]).expect("cc");
    let alone = Command::new(&program).output().expect("the program starts");
    if alone.status.code() != Some(9) {
        return skip(
            "a_child_with_clone_untraced_keeps_its_calls",
            &format!("this machine has no clone3(2): {}", alone.status),
        );
    }
    let (output, _) = trace(dir.path(), true, &[path(&program)]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(9), "child\nchild\n".into()));
}

#[test]
fn a_second_tracer_is_refused_and_reported() {
    let source = "#include <errno.h>\n#include <sys/ptrace.h>\n#include <unistd.h>\n\
        int main(void) { if (ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM) return 1;\n\
        return write(1, \"on\\n\", 3) == 3 ? 5 : 2; }\n";
    let dir = disk_dir();
    let program = compile(dir.path(), "wants", source, &[]).expect("cc");
    let (output, seen) = trace(dir.path(), true, &[path(&program)]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(5), "on\n".into()));
    assert!(blind(&seen).contains("could not be traced by another program"), "{}", blind(&seen));
    assert_eq!(seen["exact"], true);
}

#[test]
fn weir_waits_for_the_last_process() {
    let dir = disk_dir();
    // The child runs until the file `go` exists, longer than the command.
    let script = "(while [ ! -e go ]; do sleep 0.05; done; echo late > late; cat late late > twice) & exit 5";
    let mut weir = weir(dir.path(), &[&FILTER[..], &["-c", script]].concat());
    let mut weir = weir.stdin(Stdio::null()).spawn().expect("weir starts");
    sleep(Duration::from_millis(300));
    assert_eq!(weir.try_wait().expect("a status"), None, "weir ended before the child");
    fs::write(dir.path().join("go"), "").expect("a file");
    assert_eq!(weir.wait().expect("a status").code(), Some(5));
    assert_eq!(fs::read_to_string(dir.path().join("twice")).expect("the child has ended"), "late\nlate\n");
    let seen = document(dir.path());
    assert_eq!((&seen["exit"]["code"], &seen["exact"]), (&5.into(), &true.into()));
    assert!(streams(&seen).keys().any(|key| key[1].ends_with("/twice\"")), "{seen}");
}

/// Returns true if the process does not exist or is a zombie.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with(['Z', 'X']))
}

/// Runs two processes that write without end. When a call fails they make a directory, with a call that the filter does
/// not stop.
const WRITERS: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/stat.h>\n#include <unistd.h>\n\
    int main(int count, char **words) { int out = open(\"/dev/null\", O_WRONLY);\n\
    int me = fork() == 0; FILE *file = fopen(words[me + 1], \"w\");\n\
    fprintf(file, \"%d\\n\", (int)getpid()); fclose(file);\n\
    while (write(out, \"x\", 1) == 1) getppid();\n\
    return mkdir(words[count - 1], 0700); }\n";

#[test]
fn filtered_programs_are_killed_with_weir() {
    let dir = disk_dir();
    let program = compile(dir.path(), "writers", WRITERS, &[]).expect("cc");
    let script = format!("{} one two failed", path(&program));
    let pids = ["one", "two"].map(|name| dir.path().join(name));
    let read = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default();
    for round in 0..10u64 {
        let mut weir = weir(dir.path(), &[&FILTER[..], &["-c", &script]].concat());
        let mut weir = weir.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts");
        wait_for("both processes to run", || pids.iter().all(|file| read(file).ends_with('\n')));
        sleep(Duration::from_micros(round * 1777));
        weir.kill().expect("killed");
        assert_eq!(weir.wait().expect("a status").signal(), Some(9));
        for file in &pids {
            let pid = read(file).trim().to_string();
            assert!(pid.parse::<u32>().is_ok(), "{pid}");
            wait_for("the process to end", || has_ended(&pid));
            fs::remove_file(file).expect("removed");
        }
        assert!(!dir.path().join("failed").exists(), "a call failed before weir was killed");
    }
}

#[test]
fn the_filter_needs_no_privilege() {
    if !is_root() {
        return skip("the_filter_needs_no_privilege", "needs root, to become one");
    }
    let dir = for_nobody();
    let source = "#include <stdio.h>\n#include <unistd.h>\n\
        int main(void) { printf(\"%d\\n\", (int)geteuid()); return 0; }\n";
    let program = compile(dir.path(), "whoami", source, &[]).expect("cc");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("a mode");
    fs::write(dir.path().join("in"), "x".repeat(3000)).expect("a file");
    let script = "dd if=in of=out bs=1 status=none; ./whoami > who; grep NoNewPrivs /proc/self/status > flag";
    let output =
        as_nobody(dir.path(), &[&FILTER[..], &["-c", script]].concat()).output().expect("weir starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("a file");
    assert_eq!((read("who"), read("flag")), ("65534\n".into(), "NoNewPrivs:\t1\n".into()));
    let seen = document(dir.path());
    let out = streams(&seen).into_iter().find(|(key, _)| key[1].ends_with("/out\""));
    assert_eq!(out.map(|(_, sums)| sums), Some([3000, 3000, 0]));
    assert!(blind(&seen).contains("set-user-ID"), "{}", blind(&seen));
}

#[test]
fn a_command_that_cannot_be_executed_has_the_status_of_env() {
    let dir = disk_dir();
    fs::write(dir.path().join("text"), "no program\n").expect("a file");
    for (command, status) in [("./text", 126), ("./none", 127), ("no-such-command-here", 127)] {
        let (output, _) = trace(dir.path(), true, &[command]);
        assert_eq!(output.status.code(), Some(status), "{command}: {}", text(&output.stderr));
    }
}

#[test]
fn the_filter_needs_exact_and_a_command() {
    let dir = disk_dir();
    let wrong: [&[&str]; 6] = [
        &["--seccomp", "--", "true"],
        &["--exact", "--seccomp", "-p", "1"],
        &["--exact", "--seccomp", "-t", "1s", "--", "true"],
        &["--exact", "--seccomp", "--engine", "ebpf", "--", "true"],
        &["--exact", "--seccomp", "--engine", "sample", "--", "true"],
        &["--exact", "--seccomp"],
    ];
    for arguments in wrong {
        let output = run(dir.path(), &[&["trace"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
    let right = ["trace", "-q", "--exact", "--seccomp", "--engine", "ptrace", "--", "true"];
    assert!(run(dir.path(), &right).status.success());
    let help = text(&run(dir.path(), &["trace", "--help"]).stdout);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("if weir is killed by SIGKILL, they are killed as well"), "{help}");
}
