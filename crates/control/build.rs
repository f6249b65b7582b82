//! Builds the preload library (native/preload) for the target machine.

use std::path::PathBuf;

const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-nostdlib", // the library loads into programs of any C library
    "-ffreestanding",
    "-fvisibility=hidden",
    "-fno-stack-protector",         // the canary needs a C library
    "-fasynchronous-unwind-tables", // unwinders pass through call_handler in handlers.c
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,-soname,libweir-run.so",
    "-Wl,-z,now", // resolve symbols at load time, not in a signal handler
    "-Wl,-z,relro",
    "-Wl,--hash-style=both",
    "-s",
];

fn main() {
    let source = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("../../native/preload");
    println!("cargo::rerun-if-changed={}", source.display());
    let library = PathBuf::from(env("OUT_DIR")).join("libweir-run.so");
    let mut files: Vec<_> = std::fs::read_dir(&source)
        .unwrap_or_else(|why| panic!("{}: {why}", source.display()))
        .map(|entry| entry.expect("a readable directory entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect();
    files.sort();
    let machine = match env("CARGO_CFG_TARGET_ARCH").as_str() {
        "aarch64" => Some("-mno-outline-atomics"), // the outlined helpers are in libgcc
        _ => None,
    };
    let compiler = cc::Build::new().get_compiler();
    let status =
        compiler.to_command().args(FLAGS).args(machine).args(&files).arg("-o").arg(&library).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} on native/preload: {status}", compiler.path().display()),
        Err(why) => panic!("{}: {why}; install a C compiler (make deps does)", compiler.path().display()),
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
