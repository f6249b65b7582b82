//! Compiles the programs that run in the kernel (crates/trace-ebpf/bpf), for the machine that weir is built for.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let source = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("bpf");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    let machine = env("CARGO_CFG_TARGET_ARCH");
    let (target, headers) = match machine.as_str() {
        "x86_64" => ("x86", "x86_64-linux-gnu"),
        "aarch64" => ("arm64", "aarch64-linux-gnu"),
        other => panic!("weir sees into processes on x86-64 and aarch64; this is {other}"),
    };
    let object = PathBuf::from(env("OUT_DIR")).join("trace.bpf.o");
    let status = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{target}"))
        .arg(format!("-I/usr/include/{headers}"))
        .arg("-c")
        .arg(source.join("trace.bpf.c"))
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            panic!(
                "{clang} on crates/trace-ebpf/bpf/trace.bpf.c: {status}; it needs clang and libbpf-dev (make deps)"
            )
        }
        Err(error) => panic!("{clang}: {error}; install clang and libbpf-dev (make deps does)"),
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
