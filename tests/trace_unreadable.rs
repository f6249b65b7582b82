//! `weir trace` does not say that nothing is wrong if buffers could not be read.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;

use common::programs::has_libcxx;
use common::{has, skip};
use trace::{compile, compile_by, for_each_engine, path, traced};

/// Returns the verdict on a command, and the kinds of buffers in `unreadable`.
fn verdict(engine: &str, dir: &Path, command: &[&str]) -> (String, Vec<String>) {
    let (_, seen) = traced(dir, &["-q", "--engine", engine], command);
    let unreadable = seen["unreadable"].as_array().expect("a list");
    let buffers = unreadable.iter().map(|one| one["buffers"].as_str().expect("text").to_string());
    (seen["verdict"].as_str().expect("a verdict").to_string(), buffers.collect())
}

#[test]
fn file_buffers_of_libcxx() {
    let code = "#include <fstream>\n#include <csignal>\n#include <unistd.h>\n\
        int main(int words, char **word) {\n\
            std::ofstream log(\"log\");\n\
            log << \"pending\\n\";\n\
            if (words > 1) usleep(200000);\n\
            if (words > 2) kill(getpid(), SIGKILL);\n\
        }\n";
    for_each_engine(|engine, dir| {
        if !has_libcxx() {
            return skip("file_buffers_of_libcxx", "there is no clang++ with libc++");
        }
        let Some(program) = compile_by("clang++", dir, "writer", code, &["-stdlib=libc++"]) else { return };
        let program = path(&program);
        for command in [&[program][..], &[program, "silent"]] {
            let (verdict, buffers) = verdict(engine, dir, command);
            assert!(verdict.starts_with("Nothing is wrong with "), "{engine} {command:?}: {verdict}");
            assert!(buffers.is_empty(), "{buffers:?}");
        }
        let (verdict, buffers) = verdict(engine, dir, &[program, "is", "killed"]);
        assert!(verdict.contains("lost") && buffers.is_empty(), "{engine}: {verdict} {buffers:?}");
    });
}

#[test]
fn programs_whose_buffers_are_read() {
    let cpp = "#include <cstdio>\n#include <string>\n\
        int main() { std::string text(\"text\"); std::printf(\"%s\\n\", text.c_str()); }\n";
    for_each_engine(|engine, dir| {
        let c =
            compile(dir, "plain", "#include <stdio.h>\nint main(void) { return puts(\"text\") < 0; }\n", &[]);
        let cpp = compile_by("c++", dir, "plaincpp", cpp, &[]);
        let file = "#include <fstream>\nint main() { std::ofstream(\"log\") << \"text\\n\"; }\n";
        let file = compile_by("c++", dir, "filecpp", file, &[]);
        for program in [c, cpp, file].into_iter().flatten() {
            let (verdict, buffers) = verdict(engine, dir, &[path(&program)]);
            assert!(verdict.starts_with("Nothing is wrong with "), "{engine} {program:?}: {verdict}");
            assert!(buffers.is_empty(), "{buffers:?}");
        }
    });
}

#[test]
fn static_programs_without_known_streams() {
    let code = "void _start(void) { __asm__ volatile(\"syscall\" :: \"a\"(1), \"D\"(1), \"S\"(\"x\\n\"), \"d\"(2) : \"rcx\", \"r11\", \"memory\");\n\
        long nap[2] = {0, 300000000};\n\
        __asm__ volatile(\"syscall\" :: \"a\"(35), \"D\"(nap), \"S\"(0) : \"rcx\", \"r11\", \"memory\");\n\
        __asm__ volatile(\"syscall\" :: \"a\"(60), \"D\"(0)); }\n";
    if !cfg!(target_arch = "x86_64") {
        return skip("static_programs_without_known_streams", "the program is for x86-64");
    }
    for_each_engine(|engine, dir| {
        let flags = ["-static", "-nostdlib", "-ffreestanding", "-s", "-fno-stack-protector"];
        let Some(program) = compile(dir, "bare", code, &flags) else { return };
        let (verdict, buffers) = verdict(engine, dir, &[path(&program)]);
        assert!(
            verdict.starts_with("Nothing wrong in what could be seen; the buffers of a static program"),
            "{verdict}"
        );
        assert_eq!(buffers.len(), 1, "{buffers:?}");
    });
}

#[test]
fn interpreters_without_a_walker() {
    for (name, command, buffers) in [
        ("node", &["node", "-e", "setTimeout(() => console.log('a line'), 500)"][..], "Node's own buffers"),
        ("java", &["java", "-version"], "Java's own buffers"),
        ("php", &["php", "-r", "echo \"a line\\n\"; usleep(200000);"], "PHP's own buffers"),
        ("guile", &["guile", "-c", "(display \"a line\\n\") (usleep 200000)"], "Guile's own buffers"),
    ] {
        if !has(name) {
            skip("interpreters_without_a_walker", &format!("there is no {name}"));
            continue;
        }
        for_each_engine(|engine, dir| {
            let (verdict, found) = verdict(engine, dir, command);
            let expected = format!("Nothing wrong in what could be seen; {buffers} cannot be read");
            assert!(verdict.starts_with(&expected), "{engine}: {verdict}");
            assert_eq!(found, [buffers], "{engine}");
        });
    }
}

/// A program that ends while weir reads its types is not one whose buffers cannot be read.
#[test]
fn a_go_program_that_ends_at_once() {
    let code = "package main\nimport (\"bufio\"; \"os\")\n\
        func main() { w := bufio.NewWriter(os.Stdout); w.WriteString(\"text\\n\"); w.Flush() }\n";
    for_each_engine(|engine, dir| {
        std::fs::write(dir.join("short.go"), code).expect("the source");
        let mut go = std::process::Command::new("go");
        go.args(["build", "short.go"]).current_dir(dir).env("GO111MODULE", "off").env("GOTOOLCHAIN", "local");
        if !go.status().is_ok_and(|status| status.success()) {
            return skip("a_go_program_that_ends_at_once", "go is not installed");
        }
        for _ in 0..8 {
            let (verdict, buffers) = verdict(engine, dir, &["./short"]);
            assert!(!buffers.iter().any(|one| one.contains("Go")), "{engine}: {verdict}");
        }
    });
}
