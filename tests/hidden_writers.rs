//! Writers of Go and Rust that no walker finds.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;

use common::programs::{self, PROGRAM, SOURCE};
use common::{has, skip};
use trace::{for_each_engine, path, traced};

/// Returns the verdict on a command of which each call is recorded, and the kinds of buffers in `unreadable`.
fn verdict(engine: &str, dir: &Path, command: &[&str]) -> (String, Vec<String>) {
    let (_, seen) = traced(dir, &["-q", "--exact", "--engine", engine], command);
    let unreadable = seen["unreadable"].as_array().expect("a list");
    let buffers = unreadable.iter().map(|one| one["buffers"].as_str().expect("text").to_string());
    (seen["verdict"].as_str().expect("a verdict").to_string(), buffers.collect())
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
