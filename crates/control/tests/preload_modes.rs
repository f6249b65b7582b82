//! The library's effect on stdio streams of glibc and musl. Each write(2) arrives as one packet.

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use support::{directory, library, prepare, program};
use weir_control::preload::PreloadConfig;

/// Returns the packets that a program writes to standard output and standard error.
fn packets(program: &Path, how: &str, config: &PreloadConfig, stdin: Stdio) -> Vec<String> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let mut command = Command::new(program);
    command.arg(how).stdin(stdin);
    prepare(&mut command, config);
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
    let mut config = PreloadConfig::default();
    config.standard[stream] = Some(mode.into());
    config
}

const LINES: [&str; 3] = ["line 0\n", "line 1\n", "line 2\n"];

fn with_each_libc(check: impl Fn(&dyn Fn(&str, &PreloadConfig) -> Vec<String>)) {
    for compiler in ["cc", "musl-gcc"] {
        let program = program(compiler, "modes");
        check(&|how, config| packets(&program, how, config, Stdio::null()));
    }
}

#[test]
fn modes_of_the_standard_streams() {
    with_each_libc(|run| {
        assert!(run("lines", &PreloadConfig::default()).len() < 3); // musl writes the first line at once
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
    with_each_libc(|run| {
        assert_eq!(run("setvbuf", &mode(1, "line")), [LINES.concat()]);
        assert_eq!(run("setvbuf", &PreloadConfig { force: true, ..mode(1, "line") }), LINES);
    });
}

#[test]
fn files_have_modes_by_glob() {
    with_each_libc(|run| {
        let config = |glob: &str| PreloadConfig {
            files: vec![(glob.into(), "line".into())],
            ..PreloadConfig::default()
        };
        assert_eq!(run("fdopen", &config("socket:*")), LINES);
        assert_eq!(run("fdopen", &config("*.log")), run("fdopen", &PreloadConfig::default()));
    });
}

#[test]
fn children_keep_it_when_the_environment_is_cleaned() {
    with_each_libc(|run| {
        assert_eq!(run("clean", &mode(1, "line")), LINES);
        assert_eq!(run("system", &mode(1, "line")), LINES);
        let printed = run("own-preload", &mode(1, "full")).concat();
        let want = format!("LD_PRELOAD={}:/nonexistent.so\n", library().display());
        assert!(printed.contains(&want), "{printed}");
    });
}

#[test]
fn stdio_and_write_keep_their_order() {
    with_each_libc(|run| {
        assert_eq!(run("order", &PreloadConfig::default()).concat(), "b b b a0 a1 a2 ");
        assert_eq!(
            run("order", &PreloadConfig { order: true, ..PreloadConfig::default() }).concat(),
            "a0 b a1 b a2 b "
        );
    });
}

#[test]
fn exec_flush_writes_own_bytes_and_no_inherited_ones() {
    let config = PreloadConfig { exec_flush: true, ..PreloadConfig::default() };
    with_each_libc(|run| {
        assert_eq!(run("exec", &PreloadConfig::default()).concat(), LINES.concat());
        assert_eq!(run("exec", &config).concat(), format!("pending {}", LINES.concat()));
        assert_eq!(run("vfork-exec", &config).concat(), "between parent's ");
    });
    let glibc = program("cc", "modes");
    assert_eq!(packets(&glibc, "fork-exec", &config, Stdio::null()), ["own ", "inherited "]);
}

#[test]
fn exec_flush_writes_what_a_child_prints_after_a_flush_of_its_inherited_bytes() {
    let config = PreloadConfig { exec_flush: true, ..PreloadConfig::default() };
    with_each_libc(|run| {
        for own in ["xyz", "xyz1", "xyz1more", "abd more"] {
            assert_eq!(run(&format!("flush {own}"), &config), ["abc ", own, "abc "], "{own}");
            assert_eq!(run(&format!("purge {own}"), &config), [own, "abc "], "{own}");
        }
    });
    // glibc's streams also tell a flush if the same bytes follow.
    let glibc = program("cc", "modes");
    for own in ["abc ", "abc more"] {
        let found = packets(&glibc, &format!("flush {own}"), &config, Stdio::null());
        assert_eq!(found, ["abc ", own, "abc "], "{own}");
    }
}

#[test]
fn children_do_not_read_a_private_input() {
    let (dir, program) = (directory(), program("cc", "modes"));
    let path = dir.path().join("in");
    std::fs::write(&path, "food\n").unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    let config = PreloadConfig {
        private_stdin: Some((metadata.dev(), metadata.ino())),
        first_pid: Some(std::process::id()),
        ..PreloadConfig::default()
    };
    let input = || std::fs::File::open(&path).unwrap().into();
    assert_eq!(packets(&program, "input", &config, input()).concat(), "food\n");
    assert_eq!(packets(&program, "child-input", &PreloadConfig::default(), input()).concat(), "food\nthen\n");
    assert_eq!(packets(&program, "child-input", &config, input()).concat(), "then\n");
}

/// Builds the program tests/NAME.c of the library with some of the library's files, and runs it.
fn runs_in_c(name: &str, arguments: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload");
    let dir = directory();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", &format!("tests/{name}.c")])
        .args(arguments)
        .arg("-o")
        .arg(dir.path().join(name))
        .current_dir(source)
        .status();
    assert!(built.unwrap().success());
    let ran = Command::new(dir.path().join(name)).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()));
}

#[test]
fn pure_parts_pass_the_sanitizers() {
    runs_in_c("core", &["config.c", "text.c", "-fsanitize=address,undefined", "-fno-sanitize-recover"]);
}

#[test]
fn accessible_pages_are_told_from_others() {
    runs_in_c(
        "page_access",
        &["page_access.c", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-Wno-nonnull"],
    );
}

#[test]
fn functions_are_found_without_dlsym() {
    runs_in_c("lookup", &["lookup.c", "-ldl", "-pthread"]);
}
