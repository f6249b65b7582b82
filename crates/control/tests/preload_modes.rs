//! What the loaded library does for stdio streams, for glibc and musl: seen as packets, one a write(2).

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use support::{directory, library, prepare, program};
use weir_control::preload::PreloadConfig;

/// The packets that a program writes; its stderr is the same socket.
fn packets(program: &Path, how: &str, wishes: &PreloadConfig, stdin: Stdio) -> Vec<String> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let mut command = Command::new(program);
    command.arg(how).stdin(stdin);
    prepare(&mut command, wishes);
    let theirs: OwnedFd = theirs;
    let mut child = command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap();
    drop(command);
    let mut found = Vec::new();
    let mut packet = [0; 65536];
    while let Ok((n @ 1.., _)) = rustix::net::recv(&ours, &mut packet[..], RecvFlags::empty()) {
        found.push(String::from_utf8_lossy(&packet[..n]).into_owned());
    }
    assert!(child.wait().unwrap().success(), "{how}");
    found
}

fn mode(stream: usize, mode: &str) -> PreloadConfig {
    let mut wishes = PreloadConfig::default();
    wishes.standard[stream] = Some(mode.into());
    wishes
}

const LINES: [&str; 3] = ["line 0\n", "line 1\n", "line 2\n"];

fn each(check: impl Fn(&dyn Fn(&str, &PreloadConfig) -> Vec<String>)) {
    for compiler in ["cc", "musl-gcc"] {
        let program = program(compiler, "modes");
        check(&|how, wishes| packets(&program, how, wishes, Stdio::null()));
    }
}

#[test]
fn modes_of_the_standard_streams() {
    each(|run| {
        assert!(run("lines", &PreloadConfig::default()).len() < 3); // musl lets the first line out
        assert_eq!(run("lines", &mode(1, "line")), LINES);
        assert_eq!(run("lines", &mode(1, "none")).concat(), LINES.concat());
        assert!(run("lines", &mode(1, "none")).len() >= 3);
        assert_eq!(run("lines", &mode(1, "full")), [LINES.concat()]);
        assert_eq!(run("errors", &mode(2, "full")), [LINES.concat()]);
        let sizes: Vec<usize> = run("long", &mode(1, "full:10000")).iter().map(String::len).collect();
        assert!(sizes.len() == 3 && sizes[0] > 9900, "{sizes:?}");
    });
}

#[test]
fn the_programs_own_setvbuf_yields_to_force() {
    each(|run| {
        assert_eq!(run("setvbuf", &mode(1, "line")), [LINES.concat()]);
        assert_eq!(run("setvbuf", &PreloadConfig { force: true, ..mode(1, "line") }), LINES);
    });
}

#[test]
fn streams_that_the_program_opens() {
    each(|run| {
        let wish = |glob: &str| PreloadConfig {
            files: vec![(glob.into(), "line".into())],
            ..PreloadConfig::default()
        };
        assert_eq!(run("fdopen", &wish("socket:*")), LINES);
        assert_eq!(run("fdopen", &wish("*.log")), run("fdopen", &PreloadConfig::default()));
    });
}

#[test]
fn children_keep_it_when_the_environment_is_cleaned() {
    each(|run| {
        assert_eq!(run("clean", &mode(1, "line")), LINES);
        assert_eq!(run("system", &mode(1, "line")), LINES);
        let said = run("own-preload", &mode(1, "full")).concat();
        let want = format!("LD_PRELOAD={}:/nonexistent.so\n", library().display());
        assert!(said.contains(&want), "{said}");
    });
}

#[test]
fn stdio_and_write_keep_their_order() {
    each(|run| {
        assert_eq!(run("order", &PreloadConfig::default()).concat(), "b b b a0 a1 a2 ");
        assert_eq!(
            run("order", &PreloadConfig { order: true, ..PreloadConfig::default() }).concat(),
            "a0 b a1 b a2 b "
        );
    });
}

#[test]
fn own_bytes_are_out_before_exec_and_inherited_ones_are_not() {
    let wishes = PreloadConfig { exec_flush: true, ..PreloadConfig::default() };
    each(|run| {
        assert_eq!(run("exec", &PreloadConfig::default()).concat(), LINES.concat());
        assert_eq!(run("exec", &wishes).concat(), format!("pending {}", LINES.concat()));
        assert_eq!(run("vfork-exec", &wishes).concat(), "between parent's ");
    });
    let glibc = program("cc", "modes");
    assert_eq!(packets(&glibc, "fork-exec", &wishes, Stdio::null()), ["own ", "inherited "]);
}

#[test]
fn a_private_input_is_not_eaten_by_children() {
    let (dir, program) = (directory(), program("cc", "modes"));
    let path = dir.path().join("in");
    std::fs::write(&path, "food\n").unwrap();
    let about = std::fs::metadata(&path).unwrap();
    let wishes = PreloadConfig {
        private_stdin: Some((about.dev(), about.ino())),
        first_pid: Some(std::process::id()),
        ..PreloadConfig::default()
    };
    let input = || std::fs::File::open(&path).unwrap().into();
    assert_eq!(packets(&program, "input", &wishes, input()).concat(), "food\n");
    assert_eq!(packets(&program, "child-input", &PreloadConfig::default(), input()).concat(), "food\nthen\n");
    assert_eq!(packets(&program, "child-input", &wishes, input()).concat(), "then\n");
}

#[test]
fn the_parts_without_system_calls_are_clean_under_sanitizers() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload");
    let dir = directory();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined"])
        .args(["-fno-sanitize-recover", "tests/core.c", "config.c", "text.c", "-o"])
        .arg(dir.path().join("core"))
        .current_dir(source)
        .status();
    assert!(built.unwrap().success());
    let ran = Command::new(dir.path().join("core")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()));
}
