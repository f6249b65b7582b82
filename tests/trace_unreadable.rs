//! `weir trace` does not say that nothing is wrong if buffers could not be read.

mod common;
#[path = "common/trace.rs"]
mod trace;

use common::programs::has_libcxx;
use common::{has, skip};
use trace::{compile, compile_by, finding, for_each_engine, path, traced, verdict};

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

/// Their bytes are made from wide characters only when they are written.
#[test]
fn a_file_of_wide_characters() {
    let file = "#include <fstream>\n#include <unistd.h>\n\
        int main() { std::wofstream log(\"log\"); log << L\"pending\"; usleep(200000); _exit(0); }\n";
    let standard = "#include <iostream>\n#include <unistd.h>\n\
        int main() { std::ios::sync_with_stdio(false); std::wcout << L\"pending\"; usleep(200000); _exit(0); }\n";
    for_each_engine(|engine, dir| {
        for (name, code) in [("file", file), ("standard", standard)] {
            let Some(program) = compile_by("c++", dir, name, code, &[]) else { return };
            let (verdict, buffers) = verdict(engine, dir, &[path(&program)]);
            assert!(verdict.starts_with("Nothing wrong in what could be seen; "), "{engine}: {verdict}");
            assert_eq!(buffers, ["C++ file buffers of wide characters (std::wofstream)"], "{engine}");
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

const NAP: &str =
    "class Nap { public static void main(String[] words) throws Exception { Thread.sleep(300); } }\n";

#[test]
fn interpreters_without_a_walker() {
    for (name, command, buffers) in [
        ("node", &["node", "-e", "setTimeout(() => console.log('a line'), 500)"][..], "Node's own buffers"),
        // javac: a program's source needs it. `java -version` can end before the search.
        ("javac", &["java", "Nap.java"], "Java's own buffers"),
        ("php", &["php", "-r", "echo \"a line\\n\"; usleep(200000);"], "PHP's own buffers"),
        ("guile", &["guile", "-c", "(display \"a line\\n\") (usleep 200000)"], "Guile's own buffers"),
        ("swipl", &["swipl", "-g", "format('a line~n'), sleep(0.2), halt"], "SWI-Prolog's own buffers"),
        (
            "clisp",
            &["clisp", "-q", "-x", "(progn (format t \"a line~%\") (sleep 0.2))"],
            "CLISP's own buffers",
        ),
        ("raku", &["raku", "-e", "say 'a line'; sleep 0.3"], "Raku's own buffers"),
        ("sbcl", &["sbcl", "--noinform", "--eval", "(sleep 0.2)", "--quit"], "SBCL's own buffers"),
        ("scheme", &["scheme", "--quiet", "--script", "/dev/null"], "Chez Scheme's own buffers"),
    ] {
        if !has(name) {
            skip("interpreters_without_a_walker", &format!("there is no {name}"));
            continue;
        }
        for_each_engine(|engine, dir| {
            std::fs::write(dir.join("Nap.java"), NAP).expect("a source");
            let (verdict, found) = verdict(engine, dir, command);
            let is_named =
                verdict.starts_with("Nothing wrong in what could be seen; ") && verdict.contains(buffers);
            assert!(is_named, "{engine} {name}: {verdict}");
            // Java has C++ too; beside other load the search for its buffers can take too long.
            let found: Vec<_> = found.iter().filter(|one| !one.starts_with("C++")).collect();
            assert_eq!(found, [buffers], "{engine}");
        });
    }
}

/// Opens a file, keeps bytes for it in memory of its own, and sleeps. With a second argument it is killed, and writes some of the
/// bytes first if that begins with `w`.
const OWN_BUFFER: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <string.h>\n#include <unistd.h>\n\
    static char own[65536];\n\
    int main(int words, char **word) {\n\
        int fd = open(word[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);\n\
        strcpy(own, \"line 1\\n\");\n\
        if (words > 2 && *word[2] == 'w' && write(fd, own, 7) != 7) return 1;\n\
        if (words > 2) usleep(100000), kill(getpid(), SIGKILL);\n\
        sleep(30);\n\
        return write(fd, own, 7) != 7; }\n";

#[test]
fn a_killed_program_with_a_buffer_of_its_own() {
    for_each_engine(|engine, dir| {
        let Some(program) = compile(dir, "own", OWN_BUFFER, &[]) else { return };
        let killed = |how: &str| verdict(engine, dir, &[path(&program), "file", how]).0;
        let (unseen, written) = (killed("killed"), killed("written"));
        assert!(
            unseen.starts_with("Nothing wrong in what could be seen; bytes that own may keep for /")
                && unseen.contains("/file in memory of its own cannot be read"),
            "{engine}: {unseen}"
        );
        assert!(written.starts_with("Nothing is wrong with "), "{engine}: {written}");
        // The C library has a stream for each standard descriptor.
        let (sleep, _) = verdict(engine, dir, &["sh", "-c", "sleep 9 > out & sleep 0.3; kill -9 $!; wait"]);
        assert!(sleep.starts_with("Nothing is wrong with "), "{engine}: {sleep}");
    });
}

/// Passes on the first line of its input, keeps the others in memory of its own or, with an argument, in standard output's buffer,
/// and is killed at the fourth. With an argument that begins with `l` it writes each line.
const OWN_FILTER: &str = "#include <signal.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
    static char own[4096];\n\
    int main(int words, char **word) {\n\
        char piece[sizeof \"line 1\"];\n\
        int lines = words > 1 && *word[1] == 'l';\n\
        if (lines) setvbuf(stdout, NULL, _IOLBF, 0);\n\
        for (int read_pieces = 0; read_pieces < 4; read_pieces++) {\n\
            ssize_t bytes = read(0, piece, sizeof piece);\n\
            if (bytes <= 0) return 1;\n\
            if (words > 1) fwrite(piece, 1, bytes, stdout);\n\
            else if (read_pieces == 0 && write(1, piece, bytes) != bytes) return 1;\n\
            else memcpy(own + 64 * read_pieces, piece, bytes);\n\
        }\n\
        kill(getpid(), SIGKILL); }\n";

#[test]
fn a_killed_filter_that_read_on_after_its_last_write() {
    for_each_engine(|engine, dir| {
        if compile(dir, "filter", OWN_FILTER, &[]).is_none() {
            return;
        }
        let slow = "(for i in 1 2 3 4; do echo line $i; sleep 0.1; done)";
        let killed = |rest: &str| verdict(engine, dir, &["sh", "-c", &format!("{slow} | {rest}")]).0;
        for output in ["./filter > file", "./filter | cat", "{ exec 5> file; ./filter >&5; }"] {
            let said = killed(output);
            assert!(
                said.starts_with("Nothing wrong in what could be seen; bytes that filter may keep for "),
                "{engine} {output}: {said}"
            );
        }
        assert!(killed("./filter lines > file").starts_with("Nothing is wrong with "), "{engine}");
        assert!(killed("./filter block > file").contains("lost"), "{engine}: a walker reads the buffer");
        assert!(killed("./filter > /dev/null").starts_with("Nothing is wrong with "), "{engine}");
    });
}

/// Opens a log, writes it at the first request, keeps the next lines in memory of its own, and answers each request. Is killed at the
/// fourth.
const SERVER: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <string.h>\n#include <unistd.h>\n\
    static char own[4096];\n\
    int main(void) {\n\
        char request[64];\n\
        int log = open(\"log\", O_WRONLY | O_CREAT | O_APPEND, 0644);\n\
        for (int number = 0; number < 4; number++) {\n\
            ssize_t bytes = read(0, request, sizeof request);\n\
            if (bytes <= 0) break;\n\
            if (number == 0 && write(log, request, bytes) != bytes) return 1;\n\
            if (number > 0) memcpy(own + 64 * number, request, bytes);\n\
            if (write(1, request, bytes) != bytes) return 1;\n\
        }\n\
        kill(getpid(), SIGKILL); }\n";

#[test]
fn a_killed_server_that_keeps_lines_of_its_log() {
    for_each_engine(|engine, dir| {
        if compile(dir, "server", SERVER, &[]).is_none() {
            return;
        }
        let slow = "(for i in 1 2 3 4; do echo line $i; sleep 0.1; done)";
        let said = verdict(engine, dir, &["sh", "-c", &format!("{slow} | ./server | cat")]).0;
        assert!(
            said.starts_with("Nothing wrong in what could be seen; bytes that server may keep for ")
                && said.contains("/log in memory of its own cannot be read"),
            "{engine}: {said}"
        );
    });
}

/// Reads records of eight bytes to the end of its input, writes the first three, and is killed.
const RECORDS: &str = "#include <fcntl.h>\n#include <signal.h>\n#include <string.h>\n#include <unistd.h>\n\
    int main(void) {\n\
        char own[4096], record[8];\n\
        int bytes = 0, count = 0, out = open(\"out\", O_WRONLY | O_CREAT | O_TRUNC, 0644);\n\
        while (read(0, record, 8) == 8) {\n\
            memcpy(own + bytes, record, 8);\n\
            bytes += 8;\n\
            if (++count == 3 && write(out, own, bytes) != bytes) return 1;\n\
        }\n\
        kill(getpid(), SIGKILL); }\n";

#[test]
fn a_killed_filter_at_the_end_of_its_input() {
    for_each_engine(|engine, dir| {
        if compile(dir, "records", RECORDS, &[]).is_none() {
            return;
        }
        let numbers = "seq -f %07g 40 > in";
        for input in ["./records < in", "cat in | ./records"] {
            let said = verdict(engine, dir, &["sh", "-c", &format!("{numbers}; {input}")]).0;
            assert!(
                said.starts_with("Nothing wrong in what could be seen; bytes that records may keep for "),
                "{engine} {input}: {said}"
            );
        }
    });
}

#[test]
fn a_daemon_that_outlives_the_command() {
    for_each_engine(|engine, dir| {
        let (_, seen) = traced(dir, &["-q", "--engine", engine], &["sh", "-c", "sleep 2 > out & sleep 0.3"]);
        let (verdict, blind) = (seen["verdict"].to_string(), seen["blind"].to_string());
        assert!(verdict.contains("Nothing wrong in what could be seen"), "{engine}: {verdict}");
        assert!(
            blind.contains("what sleep (")
                && blind.contains(") does from now on: it runs on; weir trace -p "),
            "{engine}: {blind}"
        );
    });
}

#[test]
fn a_running_program_with_a_buffer_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(dir.path(), "own", OWN_BUFFER, &[]) else { return };
    let mut own = std::process::Command::new(program);
    let mut own = own.arg("file").current_dir(dir.path()).spawn().expect("the program");
    let pid = own.id().to_string();
    common::wait_for("the program to sleep", || dir.path().join("file").exists());
    std::thread::sleep(std::time::Duration::from_millis(200));
    let peek = common::run(dir.path(), &["peek", &pid]);
    let flush = common::run(dir.path(), &["flush", &pid]);
    let mut trace = std::process::Command::new("timeout");
    trace.args(["-s", "INT", "1", common::WEIR, "trace", "-p", &pid]).current_dir(dir.path());
    let trace = trace.output().expect("timeout");
    own.kill().expect("the program runs");
    own.wait().expect("it ends");
    let sentence = "if own keeps bytes for descriptor 3 (";
    let (peek, errors) = (common::text(&peek.stdout), common::text(&flush.stderr));
    assert!(peek.lines().all(|line| line.chars().count() <= 80), "{peek}");
    let peek = peek.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        peek.contains(sentence) && peek.contains("/file) in memory of its own, weir cannot read them"),
        "{peek}"
    );
    assert!(errors.contains(sentence), "{errors}");
    let flush = common::text(&flush.stdout);
    assert!(flush.ends_with("nothing is pending in the buffers that weir can read\n"), "{flush}");
    let trace = common::text(&trace.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(trace.contains("bytes that own may keep for /"), "{trace}");
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

/// The snapshot at the end of a process belongs to the process, also if its end is read from the kernel first.
#[test]
fn a_short_static_program_is_named_and_rescued() {
    let code =
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"lost text\"); _exit(7); }\n";
    for_each_engine(|engine, dir| {
        let Some(_program) = compile(dir, "short", code, &["-static"]) else {
            return skip("a_short_static_program_is_named_and_rescued", "there is no static C library");
        };
        for run in 0..5 {
            let (_, document) = traced(dir, &["-q", "--engine", engine, "-o", "report"], &["./short"]);
            let found =
                finding(&document, "lost-at-exit").unwrap_or_else(|| panic!("{engine} {run}: {document:#}"));
            let why = found["why"].as_str().expect("a sentence");
            assert!(why.contains("in the buffer of short ("), "{engine} {run}: {why}");
            assert_eq!(found["command"], "weir run --rescue -- ./short", "{engine} {run}");
            assert_eq!(
                document["unreadable"].as_array().map_or(0, Vec::len),
                0,
                "{engine} {run}: {document:#}"
            );
        }
    });
}

/// A program that ends within milliseconds of its execve(2) is read at its end, or named as one that could not be stopped.
#[test]
fn a_short_program_behind_env_that_kills_itself() {
    let programs = [
        ("perl", ["-e", "print 'x'; kill 9, $$"]),
        ("python3", ["-c", "import os; print('x'); os.kill(os.getpid(), 9)"]),
    ];
    for_each_engine(|engine, dir| {
        for (name, words) in programs.iter().filter(|(name, _)| has(name)) {
            for run in 0..10 {
                let (options, command) = (["-q", "--engine", engine, "-o", "report"], ["env", "X=1", *name]);
                let (_, document) = traced(dir, &options, &[&command[..], &words[..]].concat());
                let is_found = finding(&document, "lost-at-kill").is_some();
                let verdict = document["verdict"].as_str().expect("a verdict");
                assert!(is_found || verdict.contains("cannot be read"), "{engine} {name} {run}: {verdict}");
            }
        }
    });
}
