//! Compiles the BPF programs in bpf/ for the target architecture, links them into one object, and generates the Rust side
//! of bpf/events.h.

#[path = "build/shared_types.rs"]
mod shared_types;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// -g: the BTF is needed by the kernel, for CO-RE, and for the Rust side of events.h.
const TARGET: &[&str] = &["-O2", "-g", "-target", "bpf", "-mcpu=v3"];
const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];

fn main() {
    let source = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("bpf");
    let out = PathBuf::from(env("OUT_DIR"));
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    let units = units(&source);
    link(&units, &out, "trace.bpf.o", &[]);
    link(&units, &out, "trace-before-6.1.bpf.o", &["-DBEFORE_6_1"]);

    let types = out.join("shared_types.o");
    clang(compile(&source.join("shared_types.c"), &types));
    let object = std::fs::read(&types).unwrap_or_else(|error| panic!("{}: {error}", types.display()));
    let rust = out.join("shared_types.rs");
    std::fs::write(&rust, shared_types::generate(&object))
        .unwrap_or_else(|error| panic!("{}: {error}", rust.display()));
}

/// The translation units, sorted so that builds are reproducible.
fn units(source: &Path) -> Vec<PathBuf> {
    let entries = source.read_dir().unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let mut units: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    units.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    units.sort();
    units
}

/// Compiles each unit to bitcode and has clang link and optimize all of it (see bpf/README.md). `definitions`: more options.
fn link(units: &[PathBuf], out: &Path, object: &str, definitions: &[&str]) {
    let mut command: Vec<OsString> = TARGET.iter().map(Into::into).collect();
    for unit in units {
        let bitcode = out.join(unit.file_name().expect("it is a file")).with_extension("bc");
        let mut compile = compile(unit, &bitcode);
        compile.extend(definitions.iter().map(Into::into));
        compile.extend(["-emit-llvm", "-Xclang", "-disable-llvm-passes"].map(Into::into));
        clang(compile);
        command.extend(["-Xclang", "-mlink-bitcode-file", "-Xclang"].map(Into::into));
        command.push(bitcode.into());
    }
    command.extend(["-c", "-x", "c", "/dev/null", "-o"].map(Into::into));
    command.push(out.join(object).into());
    clang(command);
}

/// The arguments that compile one C file.
fn compile(source: &Path, object: &Path) -> Vec<OsString> {
    let (target, headers) = match env("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => ("x86", "x86_64-linux-gnu"),
        "aarch64" => ("arm64", "aarch64-linux-gnu"),
        other => panic!("weir supports x86-64 and aarch64, not {other}"),
    };
    let mut arguments: Vec<OsString> = TARGET.iter().chain(WARNINGS).map(Into::into).collect();
    arguments.push(format!("-D__TARGET_ARCH_{target}").into());
    arguments.push(format!("-I/usr/include/{headers}").into());
    arguments.push(format!("-I/usr/{headers}/include").into()); // of Debian's cross compilers
    arguments.extend(["-c".into(), source.into(), "-o".into(), object.into()]);
    arguments
}

fn clang(arguments: Vec<OsString>) {
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    match Command::new(&clang).args(&arguments).status() {
        Ok(status) if status.success() => {}
        Ok(status) => {
            panic!("{clang} {arguments:?}: {status}; it needs clang and libbpf-dev (make deps installs them)")
        }
        Err(error) => panic!("{clang}: {error}; install clang and libbpf-dev (make deps does)"),
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
