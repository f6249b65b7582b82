//! `weir trace` reports the bytes that it cannot count, and marks incomplete figures as not exact.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{KillOnDrop, disk_dir, has, is_root, skip, text, weir};
use serde_json::Value;
use trace::{compile, engines, list, path, traced};

/// Writes `argv[1]` by io_uring, one operation per call. With a second argument it sets up a polled ring and exits.
const RING: &str = r#"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    if (argc > 2)
        p.flags = IORING_SETUP_SQPOLL;
    int fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    int ring = syscall(SYS_io_uring_setup, 4, &p);
    if (fd < 0 || ring < 0)
        return 77;
    if (argc > 2)
        return 0;
    char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqe = mmap(0, p.sq_entries * sizeof *sqe, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    static char block[4096];
    for (unsigned i = 0; i < 10; i++) {
        unsigned slot = i & (p.sq_entries - 1);
        memset(&sqe[slot], 0, sizeof *sqe);
        sqe[slot].opcode = IORING_OP_WRITE;
        sqe[slot].fd = fd;
        sqe[slot].addr = (unsigned long)block;
        sqe[slot].len = sizeof block;
        sqe[slot].off = i * sizeof block;
        ((unsigned *)(sq + p.sq_off.array))[slot] = slot;
        __atomic_store_n((unsigned *)(sq + p.sq_off.tail), i + 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1)
            return 78;
    }
    return 0;
}
"#;

/// In a PID namespace of its own weir knows other PIDs than the kernel's programs: eBPF would silently record nothing.
#[test]
fn ebpf_is_not_used_in_another_pid_namespace() {
    let name = "ebpf_is_not_used_in_another_pid_namespace";
    let inside = |engine: &str| {
        let mut command = Command::new("unshare");
        let command =
            command.args(["--pid", "--fork", "--mount-proc", common::WEIR, "trace", "--engine", engine]);
        command.args(["--", "sh", "-c", "echo seen"]).output().expect("unshare starts")
    };
    if !common::is_root() || !inside("ptrace").status.success() {
        skip(name, "needs root and PID namespaces (unshare --pid --mount-proc)");
        return;
    }
    let (automatic, asked) = (inside("auto"), inside("ebpf"));
    let report = text(&automatic.stderr);
    assert!(automatic.status.success() && report.contains("engine ptrace"), "{report}");
    let refusal = text(&asked.stderr);
    assert!(!asked.status.success() && refusal.contains("PID namespace"), "{refusal}");
}

/// Writes `argv[1]` by Linux aio, three operations per call.
const AIO: &str = r#"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    aio_context_t context = 0;
    static char block[4096];
    struct io_event done[3];
    int fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0 || syscall(SYS_io_setup, 8, &context) != 0)
        return 77;
    for (int round = 0; round < 4; round++) {
        struct iocb one[3] = {{0}}, *all[3];
        for (int i = 0; i < 3; i++) {
            one[i].aio_lio_opcode = IOCB_CMD_PWRITE;
            one[i].aio_fildes = fd;
            one[i].aio_buf = (unsigned long)block;
            one[i].aio_nbytes = sizeof block;
            all[i] = &one[i];
        }
        if (syscall(SYS_io_submit, context, 3, all) != 3 || syscall(SYS_io_getevents, context, 3, 3, done, 0) != 3)
            return 78;
    }
    return 0;
}
"#;

/// Writes `argv[1]` through a shared mapping.
const MAPPED: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, 65536) != 0)
        return 77;
    char *at = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return 77;
    memset(at, 1, 65536);
    return 0;
}
"#;

/// Compiles `source`, traces it with --exact, and returns standard error and the document. Returns None if it cannot be
/// compiled or exits with 77: the kernel lacks the feature.
fn exactly(dir: &Path, engine: &str, source: &str, more: &[&str]) -> Option<(String, Value)> {
    let program = compile(dir, "program", source, &[])?;
    let command = [&[path(&program), "out"], more].concat();
    let (output, document) = traced(dir, &["--exact", "--engine", engine], &command);
    match output.status.code() {
        Some(0) => Some((text(&output.stderr), document)),
        Some(77) => None,
        _ => panic!("{engine}: {}\n{}", output.status, text(&output.stderr)),
    }
}

/// The descriptor of bytes whose stream is unknown.
const UNKNOWN: i64 = weir_model::trace::StreamCounts::UNKNOWN as i64;

fn blind(document: &Value) -> String {
    list(document, "blind").iter().map(|said| said.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns how often a call was made and how many operations it submitted.
fn submitted(document: &Value, call: &str) -> (u64, u64) {
    let calls = list(document, "other_calls").iter().filter(|one| one["call"] == call);
    calls.fold((0, 0), |sum, one| {
        (sum.0 + one["calls"].as_u64().unwrap(), sum.1 + one["submitted"].as_u64().unwrap())
    })
}

/// Joins the lines of a screen, because a sentence may be broken over two lines.
fn flat(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn submissions_are_counted_and_their_bytes_reported_as_uncounted() {
    let dir = disk_dir();
    let kinds = [
        ("io_uring", RING, "io_uring_enter", (10, 10), "10 operations to the kernel, in 10 calls"),
        ("aio", AIO, "io_submit", (4, 12), "12 operations to the kernel, in 4 calls"),
    ];
    for (how, source, call, expected, sentence) in kinds {
        for engine in engines() {
            let Some((screen, document)) = exactly(dir.path(), engine, source, &[]) else {
                skip("submissions_are_counted_and_their_bytes_reported_as_uncounted", how);
                continue;
            };
            assert_eq!(submitted(&document, call), expected, "{engine}: {screen}");
            let blind = blind(&document);
            assert!(
                blind.contains(&format!("the transfers by {how}: 1 process submitted {sentence}")),
                "{blind}"
            );
            assert_eq!(document["exact"], false, "{engine}: {call}");
            assert!(!screen.contains("every call counted"), "{engine}: {screen}");
            let line =
                format!("{} operations submitted to the kernel; their bytes are in no row", expected.1);
            assert!(flat(&screen).contains(&line), "{engine}: {screen}");
        }
    }
}

#[test]
fn a_polled_ring_is_reported() {
    let dir = disk_dir();
    for engine in engines() {
        let Some((screen, document)) = exactly(dir.path(), engine, RING, &["polled"]) else {
            skip("a_polled_ring_is_reported", "the kernel has no polled rings");
            continue;
        };
        assert!(blind(&document).contains("IORING_SETUP_SQPOLL"), "{engine}: {screen}");
        assert_eq!(document["exact"], false, "{engine}");
        assert!(!screen.contains("every call counted"), "{engine}: {screen}");
    }
}

#[test]
fn a_written_shared_mapping_is_reported() {
    let dir = disk_dir();
    for engine in engines() {
        let Some((_, document)) = exactly(dir.path(), engine, MAPPED, &[]) else {
            skip("a_written_shared_mapping_is_reported", "there is no C compiler");
            continue;
        };
        let blind = blind(&document);
        assert!(blind.contains("MAP_SHARED") && blind.contains("/out:"), "{engine}: {blind}");
        assert!(blind.contains("64 KiB"), "{engine}: {blind}");
    }
}

#[test]
fn attaching_to_an_ended_process_is_an_error() {
    let dir = disk_dir();
    let mut zombie = Command::new("true").spawn().unwrap();
    let id = zombie.id().to_string();
    let stat = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    while !stat().contains(") Z ") {
        std::thread::yield_now();
    }
    for engine in engines() {
        let zombie = format!("weir: process {id} (true) is a zombie: it has ended");
        let cases = [(id.as_str(), zombie.as_str()), ("4194999", "weir: no process 4194999")];
        for (pid, expected) in cases.into_iter().chain(is_root().then_some(("2", "is a kernel thread"))) {
            let options = ["trace", "--time", "1", "--engine", engine, "-p", pid];
            let output = weir(dir.path(), &options).stdin(Stdio::null()).output().unwrap();
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{engine} {pid}: {errors}");
            assert!(errors.contains(expected), "{engine} {pid}: {errors}");
        }
    }
    zombie.wait().unwrap();
}

#[test]
fn a_stopped_process_is_named() {
    let dir = disk_dir();
    let stopped = KillOnDrop(Command::new("sleep").arg("60").spawn().unwrap());
    let pid = stopped.0.id();
    let process = rustix::process::Pid::from_child(&stopped.0);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    for engine in engines() {
        // Also after a detach: the process runs for a moment before it stops again.
        common::wait_for("the stop", || stat().contains(") T "));
        let words = [
            "trace",
            "-q",
            "--time",
            "300ms",
            "--engine",
            engine,
            "--json",
            "t.json",
            "-p",
            &pid.to_string(),
        ];
        let output = weir(dir.path(), &words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let document = serde_json::from_slice(&fs::read(dir.path().join("t.json")).unwrap()).unwrap();
        let blind = blind(&document);
        assert!(blind.contains(&format!("kill -CONT {pid}")), "{engine}: {blind}");
        assert!(!blind.contains("a stop would change"), "{engine}: {blind}");
    }
}

/// Returns the sums of calls and bytes that a program read, over its streams.
fn read_by(document: &Value, comm: &str) -> (u64, u64) {
    let own = |stream: &&Value| stream["comm"] == comm && stream["direction"] == "in";
    let number = |stream: &Value, of: &str| stream[of].as_u64().unwrap();
    let streams = list(document, "streams").iter().filter(own);
    streams.fold((0, 0), |sum, stream| (sum.0 + number(stream, "calls"), sum.1 + number(stream, "bytes")))
}

/// The kernel's own reads at execve(2) are not attributed to the program: the totals equal the sums of the calls.
#[test]
fn reads_of_execve_are_not_the_programs() {
    let dir = disk_dir();
    fs::write(dir.path().join("nums"), "123456\n".repeat(100_000)).unwrap();
    fs::write(dir.path().join("script"), "#!/bin/sh\nexec dd if=nums of=o bs=10 status=none\n").unwrap();
    let runs = Command::new("chmod").arg("+x").arg(dir.path().join("script")).status();
    assert!(runs.unwrap().success() && has("dd"));
    let dd = "dd if=nums of=o bs=10 status=none";
    for script in [format!("{dd}; true"), format!("exec {dd}"), "./script; true".into()] {
        // eBPF only: tests of the ptrace backend check its totals.
        for engine in engines().into_iter().filter(|engine| *engine == "ebpf") {
            let run = |more: &[&str]| {
                let options = [&["--engine", engine], more].concat();
                let (output, document) = traced(dir.path(), &options, &["sh", "-c", &script]);
                assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
                document
            };
            let (exact, sampled) = (run(&["--exact"]), run(&[]));
            assert!(read_by(&exact, "dd").1 >= 700_000, "{engine}: {exact}");
            assert_eq!(read_by(&sampled, "dd"), read_by(&exact, "dd"), "{engine}: {script}");
        }
    }
}

/// If some bytes of a process are of an unknown stream, none of its streams is exact.
#[test]
fn streams_beside_an_unknown_one_are_not_exact() {
    let dir = disk_dir();
    fs::write(dir.path().join("nums"), "123456\n".repeat(20_000)).unwrap();
    for engine in engines() {
        let script = "head -20000 nums | while read x; do echo $x; done | tail -1";
        let (output, document) = traced(dir.path(), &["--engine", engine], &["sh", "-c", script]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let streams = list(&document, "streams");
        for unknown in streams.iter().filter(|stream| stream["fd"] == UNKNOWN) {
            let beside = |stream: &&Value| {
                stream["pid"] == unknown["pid"] && stream["direction"] == unknown["direction"]
            };
            let exact = streams.iter().filter(beside).filter(|stream| stream["exact"] == true);
            assert_eq!(exact.count(), 0, "{engine}: {document}");
        }
    }
}
