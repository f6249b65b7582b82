//! `weir trace`: each open file behind each descriptor has its own counters, for low and high descriptors, however the
//! descriptor is closed. The bytes of programs with many stdio streams are found.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::collections::BTreeMap;

use common::{disk_dir, has, skip, text};
use serde_json::Value;
use trace::{compile, engines, finding, list, path, traced};

/// Descriptors on both sides of the boundaries of 32-bit and 64-bit words, and one far above.
const DESCRIPTORS: [u64; 9] = [5, 6, 31, 32, 33, 62, 63, 64, 900];

/// Opens a new file behind each descriptor three times. The first is closed by close_range(2), the second by dup2(2), the
/// third by the exit. The n-th descriptor, from 0, gets n + 1, n + 2 and n + 3 writes of a byte. A forked child exits at
/// once between the second and the third time.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static const int at[] = {5, 6, 31, 32, 33, 62, 63, 64, 900};
enum { COUNT = sizeof at / sizeof *at };
static void fill(int turn)
{
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.%d", at[i], turn);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd < 0 || dup2(fd, at[i]) < 0)
            exit(1);
        close(fd);
        for (int calls = 0; calls < i + 1 + turn; calls++)
            if (write(at[i], "x", 1) != 1)
                exit(2);
    }
}
int main(void)
{
    fill(0);
    if (syscall(SYS_close_range, 5, 1000, 0) != 0)
        return 3;
    fill(1);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (waitpid(child, 0, 0) != child)
        return 4;
    fill(2);
    return 0;
}"#;

#[test]
fn each_file_behind_each_descriptor_has_its_own_calls() {
    let dir = disk_dir();
    let program = compile(dir.path(), "fill", PROGRAM, &[]).expect("a C compiler");
    for engine in engines() {
        let (output, document) = traced(dir.path(), &["--exact", "--engine", engine], &[path(&program)]);
        assert!(output.status.success(), "{engine}: {}\n{}", output.status, text(&output.stderr));
        let name = |stream: &Value| stream["path"].as_str().unwrap().rsplit('/').next().unwrap().to_string();
        let counted: BTreeMap<(String, u64), u64> = list(&document, "streams")
            .iter()
            .filter(|stream| stream["direction"] == "out" && stream["fd"].as_u64().unwrap() >= 5)
            .map(|stream| ((name(stream), stream["fd"].as_u64().unwrap()), stream["calls"].as_u64().unwrap()))
            .collect();
        let expected: BTreeMap<(String, u64), u64> = (0..3)
            .flat_map(|turn| {
                DESCRIPTORS.iter().zip(1..).map(move |(&fd, n)| ((format!("{fd}.{turn}"), fd), n + turn))
            })
            .collect();
        assert_eq!(counted, expected, "{engine}");
    }
}

/// bash reads its script from descriptor 255, and leaves it open until execve(2).
#[test]
fn the_calls_on_a_high_descriptor_are_those_of_the_image_that_made_them() {
    let dir = disk_dir();
    if !has("bash") {
        return skip("the_calls_on_a_high_descriptor_are_those_of_the_image_that_made_them", "no bash");
    }
    std::fs::write(dir.path().join("script"), "exec /bin/true\n").expect("the script");
    for engine in engines() {
        let (output, document) = traced(dir.path(), &["--exact", "--engine", engine], &["bash", "script"]);
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let reads = list(&document, "streams").iter().filter(|stream| stream["fd"] == 255);
        let images: Vec<_> =
            reads.map(|stream| (stream["image"].as_u64(), stream["comm"].as_str())).collect();
        assert_eq!(images, [(Some(0), Some("bash"))], "{engine}");
    }
}

/// Opens as many streams as its argument says, which have no descriptor, and loses 10 bytes of standard output. glibc's list has
/// the stream that was opened last first.
const MANY_STREAMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    static char memory[8];
    for (int left = atoi(words[1]); left > 0; left--)
        if (!fmemopen(memory, sizeof memory, "r"))
            return 1;
    printf("lost bytes");
    _exit(0);
}"#;

#[test]
fn the_lost_bytes_of_a_program_with_many_streams_are_found_or_the_limit_is_named() {
    let dir = disk_dir();
    let program = compile(dir.path(), "many", MANY_STREAMS, &[]).expect("a C compiler");
    let trace = |engine: &str, streams: &str| {
        let script = format!("exec {} {streams} > out", path(&program));
        let (output, document) = traced(dir.path(), &["--engine", engine], &["sh", "-c", &script]);
        assert!(output.status.success(), "{engine}: {}\n{}", output.status, text(&output.stderr));
        let lost =
            finding(&document, "lost-at-exit").and_then(|lost| lost["evidence"]["lost_bytes"].as_f64());
        let is_limit = |why: &&Value| why.as_str().is_some_and(|why| why.contains("than weir reads"));
        (lost, list(&document, "blind").iter().filter(is_limit).count())
    };
    for engine in engines() {
        assert_eq!(trace(engine, "70"), (Some(10.0), 0), "{engine}");
    }
    if engines().contains(&"ebpf") {
        assert_eq!(trace("ebpf", "5000"), (None, 1));
    }
}
