//! Programs that are hard to trace: tracers, and 32-bit, static and set-user-ID programs.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use weir_model::trace::{Exit, Op};

use common::{compile, skip, text, trace_exact, trace_sampled};

/// Traces its own child, by PTRACE_TRACEME or by PTRACE_SEIZE, and exits with the status of the child.
const TRACER: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int status, seize = count > 1 && words[1][0] == 's';
    pid_t child = fork();
    if (child == 0) {
        if (!seize && ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(50);
        raise(SIGSTOP);
        write(-1, "traced", 6);
        _exit(6);
    }
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return 51;
    if (seize && ptrace(PTRACE_SEIZE, child, 0, 0)) return 52;
    if (seize) kill(child, SIGCONT);
    else if (ptrace(PTRACE_CONT, child, 0, 0)) return 53;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        if (ptrace(PTRACE_CONT, child, 0, 0)) return 54;
    return WEXITSTATUS(status);
}
"#;

#[test]
fn a_tracer_gets_the_child_it_wants() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = compile(dir.path(), "tracer", TRACER, &[]);
    for way in ["traceme", "seize"] {
        for run in [trace_exact(&[text(&program), way]), trace_sampled(&[text(&program), way])] {
            assert_eq!(run.report.exit, Some(Exit::Code(6)), "{way}");
            assert!(
                run.report.blind_spots.iter().any(|why| why.contains("traced by another program")),
                "{way}"
            );
        }
    }
}

#[test]
fn strace_itself_can_be_watched() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("strace_itself_can_be_watched", "strace is not here");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let list = dir.path().join("list");
    let run = trace_exact(&["strace", "-f", "-o", text(&list), "sh", "-c", "exit 8"]);
    assert_eq!(run.report.exit, Some(Exit::Code(8)));
    assert!(std::fs::read_to_string(list).expect("what strace saw").contains("exit_group(8)"));
}

/// A static 32-bit program without a C library that writes five lines and exits with 4.
const OTHER: &str = r#"
static long call(long number, long one, long two, long three) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(one), "c"(two), "d"(three) : "memory");
    return result;
}
void _start(void) {
    for (int n = 0; n < 5; n++) call(4, 1, (long)"other\n", 6);
    call(1, 4, 0, 0);
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_program_is_run_and_said_to_be_unseen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (source, program) = (dir.path().join("other.c"), dir.path().join("other"));
    std::fs::write(&source, OTHER).expect("the source");
    let mut cc = Command::new("cc");
    cc.args(["-m32", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-o"]);
    if !cc.arg(&program).arg(&source).output().is_ok_and(|made| made.status.success()) {
        return skip("a_32_bit_program_is_run_and_said_to_be_unseen", "cc makes no 32-bit programs");
    }
    let run = trace_sampled(&["sh", "-c", &format!("{} >/dev/null; exit $?", program.display())]);
    if run.report.exit == Some(Exit::Code(126)) {
        return skip("a_32_bit_program_is_run_and_said_to_be_unseen", "the kernel runs no 32-bit programs");
    }
    assert_eq!(run.report.exit, Some(Exit::Code(4)));
    assert!(run.report.blind_spots.iter().any(|why| why.contains("(other)") && why.contains("32-bit")));
    assert!(run.calls().all(|call| call.head != b"other\n"), "no call with a wrong name");
    let io = run.exits()[0].2.expect("counts");
    assert_eq!((io.write_calls, io.written_bytes), (5, 30));
}

#[test]
fn a_static_program_is_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = r#"#include <unistd.h>
        int main(void) { return write(-1, "static", 6) == -1 ? 2 : 3; }"#;
    let program = compile(dir.path(), "static", source, &["-static"]);
    let run = trace_exact(&[text(&program)]);
    assert_eq!(run.report.exit, Some(Exit::Code(2)));
    let write = run.calls().find(|call| call.op == Op::Write).expect("a write");
    assert_eq!(write.result, -i64::from(libc::EBADF));
}

/// Runs the example as user nobody, on a program that prints its user ID.
fn as_nobody(program: &Path) -> std::process::Output {
    let own = std::env::current_exe().expect("a path");
    let example = own.ancestors().nth(2).expect("the target directory").join("examples/raw_events");
    let weir = program.with_file_name("weir");
    common::programs::copy_program(example, &weir);
    let script = format!("exec {} -q {}", weir.display(), program.display());
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &script]);
    command.output().expect("setpriv runs")
}

#[test]
fn a_set_user_id_program_runs_without_its_privilege_and_that_is_said() {
    let name = "a_set_user_id_program_runs_without_its_privilege_and_that_is_said";
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("-V").output().is_err() {
        return skip(name, "needs root and setpriv");
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let source = r#"#include <stdio.h>
        #include <unistd.h>
        int main(void) { printf("%d\n", (int)geteuid()); return 0; }"#;
    let program = compile(dir.path(), "whoami", source, &[]);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("a mode");
    let output = as_nobody(&program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "65534\n", "{said}");
    assert!(said.contains("set-user-ID"), "{said}");
    // A tracer with privilege does not take that of the program, so there is no blind spot.
    assert!(
        trace_sampled(&["sh", "-c", &format!("{} >/dev/null", program.display())])
            .report
            .blind_spots
            .is_empty()
    );
}

#[test]
fn a_program_whose_standard_descriptors_are_closed_runs() {
    let run = trace_exact(&["sh", "-c", "exec 0<&- 1>&- 2>&-; exec sh -c 'exit 12'"]);
    assert_eq!(run.report.exit, Some(Exit::Code(12)));
}
