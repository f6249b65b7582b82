//! `weir peek` and `weir flush` on processes whose pending bytes fork(2) has copied: the bytes are written once.

mod common;
#[path = "peek_flush/programs.rs"]
mod programs;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::process::{Command, Output};

use common::schema::assert_schema;
use common::{has, run, skip, text, wait_for};
use programs::Program;
use serde_json::Value;

const PYTHON: &str = "import multiprocessing as mp, sys, time\n\
    out = open('log', 'w')\n\
    out.write('# header\\n')\n\
    def work(number):\n    open(f'ready{number}', 'w').close()\n    sys.stdin.read()\n    time.sleep(60)\n\
    if __name__ == '__main__':\n\
    \x20   workers = [mp.get_context('fork').Process(target=work, args=(n,)) for n in range(2)]\n\
    \x20   for worker in workers: worker.start()\n\
    \x20   sys.stderr.write('.')\n    sys.stderr.flush()\n\
    \x20   sys.stdin.read()\n\
    \x20   for worker in workers: worker.kill(); worker.join()\n\
    \x20   out.write('end\\n')\n    out.close()\n";

/// The child adds bytes of its own after those of its parent, and ends by _exit(2).
const C: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n\
    #include <sys/prctl.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(void) {\n\
        FILE *out = fopen(\"log\", \"w\");\n\
        fputs(\"# header\\n\", out);\n\
        pid_t children[2];\n\
        for (int one = 0; one < 2; one++) {\n\
            children[one] = fork();\n\
            if (children[one] == 0) {\n\
                prctl(PR_SET_PDEATHSIG, SIGKILL);\n\
                if (one) fputs(\"own\\n\", out);\n\
                close(open(one ? \"ready1\" : \"ready0\", O_CREAT | O_WRONLY, 0600));\n\
                sleep(60);\n\
                _exit(0);\n\
            }\n\
        }\n\
        fputc('.', stderr);\n\
        getchar();\n\
        for (int one = 0; one < 2; one++) { kill(children[one], SIGKILL); waitpid(children[one], 0, 0); }\n\
        fputs(\"end\\n\", out);\n\
        return fclose(out); }\n";

/// Starts the program in Python and in C, and returns those that can run here, with their children.
fn families(test: &str) -> Vec<(Program, Vec<u32>)> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut commands = Vec::new();
    if has("python3") {
        fs::write(dir.path().join("family.py"), PYTHON).expect("a script");
        let mut python = Command::new("python3");
        python.arg(dir.path().join("family.py"));
        commands.push(python);
    }
    commands.extend(trace::compile(dir.path(), "family", C, &[]).map(Command::new));
    if commands.is_empty() {
        skip(test, "there is neither python3 nor a C compiler");
    }
    commands.into_iter().map(start).collect()
}

/// Starts a program, and returns it with its children when they are ready.
fn start(mut command: Command) -> (Program, Vec<u32>) {
    let program = Program::start(&mut command);
    wait_for("the children", || ["ready0", "ready1"].iter().all(|name| program.dir().join(name).exists()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let list = fs::read_to_string(format!("/proc/{0}/task/{0}/children", program.pid())).expect("a list");
    let children = list.split_whitespace().map(|pid| pid.parse().expect("a PID")).collect();
    (program, children)
}

fn log(program: &Program) -> String {
    fs::read_to_string(program.dir().join("log")).expect("the log")
}

fn weir(program: &Program, words: &[&str]) -> Output {
    run(program.dir(), words)
}

fn checked(output: &Output, schema: &str) -> Value {
    let document = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_schema(&document, schema);
    document
}

#[test]
fn children_do_not_write_the_bytes_of_their_parent() {
    for (mut program, children) in families("children_do_not_write_the_bytes_of_their_parent") {
        let pid = program.pid().to_string();
        // The order of the numbers does not matter.
        let last = children.last().expect("a child").to_string();
        let flush = weir(&program, &["flush", "--children", &last, &pid]);
        let (out, errors) = (text(&flush.stdout), text(&flush.stderr));
        assert_eq!(log(&program), "# header\n", "{out}{errors}");
        assert!(out.contains(&format!("({pid}): 9 B written to descriptor 3")), "{out}");
        let copies = errors.lines().filter(|line| line.contains("copy that fork(2) made of bytes of"));
        let copies: Vec<&str> = copies.filter(|line| line.contains(&format!(" ({pid})"))).collect();
        assert_eq!(copies.len(), 2, "{errors}");
        assert!(errors.contains(&format!("weir flush {pid} writes those")), "{errors}");
        assert_eq!(flush.status.code(), Some(1), "bytes are still pending");
        assert_eq!(program.end(), Some(0));
        assert_eq!(log(&program), "# header\nend\n");
    }
}

#[test]
fn a_child_alone_leaves_the_bytes_to_its_parent() {
    for (mut program, children) in families("a_child_alone_leaves_the_bytes_to_its_parent") {
        let pid = program.pid();
        for child in &children {
            let flush = weir(&program, &["flush", "--json", "-", &child.to_string()]);
            let document = checked(&flush, "weir-flush-1");
            assert_eq!(document["processes"][0]["streams"][0]["copy_of"], pid, "{document}");
            assert_eq!(log(&program), "", "{document}");
        }
        assert!(weir(&program, &["flush", &pid.to_string()]).status.success());
        assert_eq!(log(&program), "# header\n");
        assert_eq!(program.end(), Some(0));
    }
}

#[test]
fn repeated_flushes_leave_copies_whose_original_is_written() {
    for (mut program, _) in families("repeated_flushes_leave_copies_whose_original_is_written") {
        let mut flush = Command::new("timeout");
        let pid = program.pid().to_string();
        flush.args(["-s", "INT", "3", common::WEIR, "flush", "--children", "--every", "200ms", &pid]);
        let flush = flush.output().expect("timeout");
        assert_eq!(log(&program), "# header\n", "{}{}", text(&flush.stdout), text(&flush.stderr));
        assert_eq!(program.end(), Some(0));
    }
}

#[test]
fn peek_names_the_process_whose_bytes_are_copied() {
    for (mut program, children) in families("peek_names_the_process_whose_bytes_are_copied") {
        let pid = program.pid();
        let peek = weir(&program, &["peek", "--children", "--json", "-", &pid.to_string()]);
        let document = checked(&peek, "weir-peek-1");
        let streams = |at: usize| &document["processes"][at]["streams"][0];
        assert!(streams(0)["copy_of"].is_null(), "{document}");
        for at in [1, 2] {
            let copy = (&streams(at)["copy_of"], &streams(at)["copied_bytes"]);
            assert_eq!(copy, (&pid.into(), &9.into()), "{document}");
        }
        let screen = text(&weir(&program, &["peek", &children[0].to_string()]).stdout);
        assert!(
            screen.contains("a copy that fork(2) made of bytes of") && screen.contains(&format!("({pid})")),
            "{screen}"
        );
        assert_eq!(program.end(), Some(0));
    }
}

/// The child has a copy of 1,000 bytes and bytes of its own after them.
const LONG: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n\
    #include <sys/prctl.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(void) {\n\
        FILE *out = fopen(\"log\", \"w\");\n\
        for (int line = 0; line < 100; line++) fprintf(out, \"line %04d\\n\", line);\n\
        pid_t child = fork();\n\
        if (child == 0) {\n\
            prctl(PR_SET_PDEATHSIG, SIGKILL);\n\
            fputs(\"own\\n\", out);\n\
            close(open(\"ready0\", O_CREAT | O_WRONLY, 0600));\n\
            close(open(\"ready1\", O_CREAT | O_WRONLY, 0600));\n\
            sleep(60);\n\
            _exit(0);\n\
        }\n\
        fputc('.', stderr);\n\
        getchar();\n\
        kill(child, SIGKILL); waitpid(child, 0, 0);\n\
        return fclose(out); }\n";

#[test]
fn peek_does_not_advise_to_write_a_copy_that_flush_leaves() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = trace::compile(dir.path(), "long", LONG, &[]) else {
        return skip("peek_does_not_advise_to_write_a_copy_that_flush_leaves", "there is no C compiler");
    };
    let (mut program, children) = start(Command::new(program));
    let child = children[0].to_string();
    let screen = text(&weir(&program, &["peek", &child]).stdout);
    let copy = "at least 256 B: a copy that fork(2) made of bytes of ";
    assert!(screen.contains(copy) && !screen.contains("write it out now"), "{screen}");
    let flush = weir(&program, &["flush", &child]);
    let errors = text(&flush.stderr);
    assert!(errors.contains("at least 256 B of them are a copy"), "{errors}");
    assert_eq!(log(&program), "", "{errors}");
    let of_parent = text(&weir(&program, &["peek", &program.pid().to_string()]).stdout);
    assert!(of_parent.contains("write it out now"), "{of_parent}");
    assert_eq!(program.end(), Some(0));
    assert_eq!(log(&program).len(), 1000);
}
