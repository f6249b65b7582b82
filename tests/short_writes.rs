//! A signal ends a write to a full pipe after a part of its bytes, and the program ends before its stream notes it: no byte is
//! rescued twice, and none that was written is said to be lost.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{disk_dir, skip, text};
use trace::{compile, engines, finding, path, traced};

/// Bytes in the stream, and those of them that fit into the pipe.
const ALL: usize = 6000;
const WRITTEN: usize = 4096;

/// Writes 750 numbered lines with one flush. When the pipe is full, a signal comes. With the argument `kill` the stream then writes
/// the rest, which blocks, and the program is killed; with `exit` the signal's handler ends the program.
const WRITER: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void on_signal(int number) {
    (void)number;
    close(open("done", O_WRONLY | O_CREAT, 0600));
    _exit(3);
}
static void ignore(int number) { (void)number; }
/* Waits until the parent blocks in a write of so many bytes. */
static void await_write(pid_t parent, const char *count) {
    char name[64], call[16], fd[32], address[32], length[32];
    snprintf(name, sizeof name, "/proc/%d/syscall", (int)parent);
    for (int tries = 0; tries < 30000; tries++, usleep(1000)) {
        FILE *state = fopen(name, "r");
        int fields = state ? fscanf(state, "%15s %31s %31s %31s", call, fd, address, length) : 0;
        if (state) fclose(state);
        if (fields == 4 && !strcmp(call, "1") && !strcmp(length, count)) return;
    }
}
/* Waits until the parent has left its write: it stops for its tracer, or is dead. Before, the write would go on if it were read. */
static void await_end(pid_t parent) {
    char name[64], state = 'S';
    snprintf(name, sizeof name, "/proc/%d/stat", (int)parent);
    for (int tries = 0; tries < 30000 && (state == 'S' || state == 'R'); tries++, usleep(1000)) {
        FILE *stat = fopen(name, "r");
        if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) state = 'X';
        if (stat) fclose(stat);
    }
}
int main(int count, char **words) {
    static char buffer[8192];
    int exits = count > 1 && !strcmp(words[1], "exit");
    struct sigaction action = {.sa_handler = exits ? on_signal : ignore, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pid_t parent = getpid();
    if (fork() == 0) {
        close(1);
        await_write(parent, "0x1770");
        kill(parent, SIGUSR1);
        if (exits) _exit(0);
        await_write(parent, "0x770");
        kill(parent, SIGKILL);
        await_end(parent);
        close(open("done", O_WRONLY | O_CREAT, 0600));
        _exit(0);
    }
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int i = 0; i < 750; i++) printf("%07d\n", i);
    fflush(stdout);
    return 9;
}
"#;

/// Runs a command with a pipe of 4096 bytes as standard output, and copies the pipe to its own when the file `done` exists.
const READER: &str = r#"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int ends[2], status;
    char part[8192];
    if (count < 2 || pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096) return 1;
    if (fork() == 0) { dup2(ends[1], 1); close(ends[0]); close(ends[1]); execvp(words[1], words + 1); _exit(127); }
    close(ends[1]);
    while (access("done", F_OK) && waitpid(-1, &status, WNOHANG) == 0) usleep(1000);
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) if (write(1, part, got) != got) return 1;
    return 0;
}
"#;

/// Builds the reader and the writer, and returns their paths.
fn programs(dir: &Path) -> (String, String) {
    let [reader, writer] = [("reader", READER), ("writer", WRITER)]
        .map(|(name, source)| path(&compile(dir, name, source, &[]).expect("cc")).to_string());
    (reader, writer)
}

fn lines() -> String {
    (0..750).map(|number| format!("{number:07}\n")).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_rest_of_a_short_write_is_rescued_once() {
    for end in ["kill", "exit"] {
        let dir = disk_dir();
        let (reader, writer) = programs(dir.path());
        let alone =
            Command::new(&reader).args([&writer, end]).current_dir(dir.path()).output().expect("a run");
        assert_eq!(text(&alone.stdout), &lines()[..WRITTEN], "{end}: the program alone");
        fs::remove_file(dir.path().join("done")).expect("the file");
        let mut run = Command::new(&reader);
        run.args([env!("CARGO_BIN_EXE_weir"), "run", "--rescue", "--"]).args([&writer, end]);
        let run = run.current_dir(dir.path()).stdin(Stdio::null()).output().expect("a run");
        assert_eq!(text(&run.stdout), lines(), "{end}: {}", text(&run.stderr));
    }
}

#[test]
fn what_a_short_write_has_written_is_not_lost() {
    let test = "what_a_short_write_has_written_is_not_lost";
    for engine in engines() {
        for (end, rule) in [("kill", "lost-at-kill"), ("exit", "lost-at-exit")] {
            if engine == "ebpf" && end == "exit" {
                skip(test, "the kernel programs do not read the registers that a signal handler returns to");
                continue;
            }
            let dir = disk_dir();
            let (reader, writer) = programs(dir.path());
            let (_, document) = traced(dir.path(), &["-q", "--engine", engine], &[&reader, &writer, end]);
            let lost = finding(&document, rule).map(|one| one["evidence"]["lost_bytes"].as_f64());
            assert_eq!(lost, Some(Some((ALL - WRITTEN) as f64)), "{engine} {end}: {document}");
        }
    }
}
