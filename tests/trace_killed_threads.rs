//! `weir trace` of a program that is killed while several threads write streams: what their last write(2) wrote is not lost.

mod common;
#[path = "common/trace.rs"]
mod trace;

use common::{disk_dir, skip};
use trace::{compile, engines, list, path, traced};

/// Each of four threads waits in the write(2) of a buffer of 8192 bytes, of which 4096 fit into its pipe. The program ends by
/// SIGKILL when all four wait.
const IN_WRITE: &str = "#include <fcntl.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include <sys/ioctl.h>\n#include <unistd.h>\n\
    static void *fill(void *stream) { for (;;) putc('a', stream); }\n\
    int main(void) { int ends[4][2]; pthread_t thread;\n\
    for (int i = 0; i < 4; i++) {\n\
    if (pipe(ends[i]) || fcntl(ends[i][1], F_SETPIPE_SZ, 4096) != 4096) return 1;\n\
    FILE *stream = fdopen(ends[i][1], \"w\"); setvbuf(stream, malloc(8192), _IOFBF, 8192);\n\
    pthread_create(&thread, 0, fill, stream); }\n\
    for (int i = 0, bytes = 0; i < 4; i += bytes == 4096) { usleep(1000); ioctl(ends[i][0], FIONREAD, &bytes); }\n\
    usleep(100000); kill(getpid(), SIGKILL); pause(); }\n";

/// Each of four threads writes the bytes of its stream as glibc does, and ends before the stream notes it. A fifth stream has
/// bytes that nothing has written.
const AFTER_WRITE: &str = "#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n\
    static int written;\n\
    static void *flush(void *name) { FILE *stream = fopen(name, \"w\"); fputs(\"a thousand\", stream);\n\
    char *begin = stream->_IO_write_base; long bytes = stream->_IO_write_ptr - begin, fd = fileno(stream);\n\
    __atomic_fetch_add(&written, 1, __ATOMIC_SEQ_CST);\n\
    __asm__ volatile(\"syscall\\n1: jmp 1b\" : : \"a\"(1L), \"D\"(fd), \"S\"(begin), \"d\"(bytes) : \"rcx\", \"r11\", \"memory\");\n\
    return 0; }\n\
    int main(void) { pthread_t thread; char *names[] = {\"a\", \"b\", \"c\", \"d\"};\n\
    fputs(\"pending\", fopen(\"e\", \"w\"));\n\
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, flush, names[i]);\n\
    while (__atomic_load_n(&written, __ATOMIC_SEQ_CST) < 4) usleep(1000);\n\
    usleep(300000); kill(getpid(), SIGKILL); pause(); }\n";

/// Returns the lost bytes of each stream that `weir trace` reports for the program, by engine.
fn lost_bytes(source: &str) -> Option<Vec<(&'static str, Vec<u64>)>> {
    let dir = disk_dir();
    let program = compile(dir.path(), "killed", source, &["-pthread"])?;
    let lost = |engine| {
        let (_, document) = traced(dir.path(), &["-q", "--engine", engine], &[path(&program)]);
        let findings = list(&document, "findings").iter().filter(|one| one["id"] == "lost-at-kill");
        findings.filter_map(|one| one["evidence"]["lost_bytes"].as_f64()).map(|bytes| bytes as u64).collect()
    };
    Some(engines().into_iter().map(|engine| (engine, lost(engine))).collect())
}

#[test]
fn bytes_that_several_threads_wrote_when_a_kill_ended_them_are_not_lost() {
    let Some(lost) = lost_bytes(IN_WRITE) else {
        return skip("bytes_that_several_threads_wrote_when_a_kill_ended_them_are_not_lost", "it needs cc");
    };
    for (engine, bytes) in lost {
        assert_eq!(bytes, [4096; 4], "{engine}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn bytes_that_threads_wrote_before_a_kill_are_not_lost_before_the_streams_note_them() {
    let Some(lost) = lost_bytes(AFTER_WRITE) else {
        return skip(
            "bytes_that_threads_wrote_before_a_kill_are_not_lost_before_the_streams_note_them",
            "it needs cc",
        );
    };
    for (engine, bytes) in lost {
        assert_eq!(bytes, [7], "{engine}");
    }
}
