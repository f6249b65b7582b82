//! Writers of Go and Rust that no walker finds.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::process::Command;

use common::programs::{self, PROGRAM, SOURCE};
use common::{disk_dir, has, run, skip, text, wait_for};
use trace::{for_each_engine, path, verdict};

/// Nothing flushes the buffers of Go when a program ends.
#[test]
fn a_go_writer_over_another_one() {
    let own = "package main\nimport (\"bufio\"; \"io\"; \"os\")\n\
        type own struct { to io.Writer }\n\
        func (o *own) Write(bytes []byte) (int, error) { return o.to.Write(bytes) }\n\
        func main() { f, _ := os.Create(\"log\"); w := bufio.NewWriter(&own{f}); w.WriteString(\"abc\"); os.Exit(3) }\n";
    let gzip = "package main\nimport (\"compress/gzip\"; \"os\")\n\
        func main() { f, _ := os.Create(\"log\"); w := gzip.NewWriter(f); w.Write([]byte(\"abc\")); os.Exit(3) }\n";
    // Its buffers are examined while it sleeps: the program has none.
    let closed = "package main\nimport (\"os\"; \"time\")\n\
        func main() { f, _ := os.Create(\"log\"); f.Close(); time.Sleep(300 * time.Millisecond); os.Exit(3) }\n";
    for_each_engine(|engine, dir| {
        for (name, code, is_held) in [("own", own, true), ("gzip", gzip, true), ("closed", closed, false)] {
            let (file, program) = (dir.join(format!("{name}.go")), dir.join(name));
            std::fs::write(&file, code).expect("the source");
            let Ok(made) = programs::compile("go", &["build", "-o", PROGRAM, SOURCE], &file, &program) else {
                return skip("a_go_writer_over_another_one", "there is no go");
            };
            assert!(made.status.success(), "{name}: {made:?}");
            let (verdict, buffers) = verdict(engine, dir, &[path(&program)]);
            let held: Vec<String> =
                buffers.into_iter().filter(|one| one.contains("/log in memory of its own")).collect();
            assert_eq!(held.len(), usize::from(is_held), "{engine} {name}: {held:?}");
            assert_eq!(
                verdict.starts_with("Nothing wrong in what could be seen; "),
                is_held,
                "{engine} {name}: {verdict}"
            );
        }
    });
}

#[test]
fn peek_names_the_writers_of_a_go_program_only_if_it_can_have_some() {
    const TEST: &str = "peek_names_the_writers_of_a_go_program_only_if_it_can_have_some";
    let own = "package main\nimport (\"bufio\"; \"os\"; \"time\")\n\
        type own struct { to *os.File }\n\
        func (o *own) Write(bytes []byte) (int, error) { return o.to.Write(bytes) }\n\
        func main() { f, _ := os.Create(\"log\"); w := bufio.NewWriter(&own{f}); w.WriteString(\"abc\"); \
        os.Create(\"ready\"); time.Sleep(time.Minute) }\n";
    let none = "package main\nimport (\"os\"; \"time\")\n\
        func main() { os.Create(\"ready\"); time.Sleep(time.Minute) }\n";
    for (name, code, is_named) in [("own", own, true), ("none", none, false)] {
        let dir = disk_dir();
        let (file, program) = (dir.path().join(format!("{name}.go")), dir.path().join(name));
        std::fs::write(&file, code).expect("the source");
        let Ok(made) = programs::compile("go", &["build", "-o", PROGRAM, SOURCE], &file, &program) else {
            return skip(TEST, "there is no go");
        };
        assert!(made.status.success(), "{name}: {made:?}");
        let mut child = Command::new(&program).current_dir(dir.path()).spawn().expect("the program");
        wait_for(name, || dir.path().join("ready").exists());
        let peek = run(dir.path(), &["peek", &child.id().to_string()]);
        child.kill().expect("killed");
        child.wait().expect("ended");
        let screen = text(&peek.stdout);
        assert_eq!(screen.contains("the buffers of a Go program"), is_named, "{name}: {screen}");
    }
}

#[test]
fn writers_of_rust_count_only_where_a_program_has_them() {
    const TEST: &str = "writers_of_rust_count_only_where_a_program_has_them";
    let plain = "fn main() { println!(\"a line\"); }\n";
    let writer = "use std::io::{BufWriter, Write};\n\
        fn main() { BufWriter::new(std::fs::File::create(\"log\").unwrap()).write_all(b\"text\").unwrap(); }\n";
    let boxed = writer.replace("BufWriter::new(", "BufWriter::new(Box::new(");
    let boxed = boxed.replace(".unwrap()).write_all", ".unwrap()) as Box<dyn Write>).write_all");
    if !has("rustc") {
        return skip(TEST, "there is no rustc");
    }
    for_each_engine(|engine, dir| {
        for (name, code, flags, expected) in [
            ("plain", plain, &["-g", "-o", PROGRAM, SOURCE][..], "Nothing is wrong with "),
            ("bare", plain, &["-o", PROGRAM, SOURCE], "Nothing is wrong with "),
            ("writer", writer, &["-g", "-o", PROGRAM, SOURCE], "Nothing is wrong with "),
            (
                "boxed",
                &boxed,
                &["-g", "-o", PROGRAM, SOURCE],
                "Nothing wrong in what could be seen; the BufWriters over Box<dyn Write> or another type than a file in",
            ),
            (
                "hidden",
                writer,
                &["-o", PROGRAM, SOURCE],
                "Nothing wrong in what could be seen; the BufWriters of a Rust program without debug information of types",
            ),
        ] {
            let (file, program) = (dir.join(format!("{name}.rs")), dir.join(name));
            std::fs::write(&file, code).expect("the source");
            let made = programs::compile("rustc", flags, &file, &program);
            assert!(made.is_ok_and(|made| made.status.success()), "rustc {name}");
            let (verdict, _) = verdict(engine, dir, &[path(&program)]);
            assert!(verdict.starts_with(expected), "{engine} {name}: {verdict}");
        }
    });
}
