/* pool.c: reuse of the memory of closed streams: a new stream has no state of an old one, no two streams share memory,
 * and a process that opens and closes streams does not grow. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { LINES = 200 };

static weir_stream *stream(int fd, const struct weir_options *options)
{
    weir_stream *s;
    return weir_fdopen(&s, fd, options) == 0 ? s : NULL;
}

static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; maps && (c = getc(maps)) != EOF;)
        lines += c == '\n';
    if (maps)
        fclose(maps);
    return lines;
}

static bool file_is(int fd, const char *text)
{
    char got[4096] = "";
    ssize_t bytes = pread(fd, got, sizeof got - 1, 0);
    return bytes == (ssize_t)strlen(text) && strcmp(got, text) == 0;
}

static void new_stream_has_no_old_state(void)
{
    check_begin("a new stream has no state of an old one");
    int old_file = nameless_file(), file = nameless_file();
    struct weir_options odd = {.mode = WEIR_LINE, .separator = ';', .max_record_bytes = 7, .flags = WEIR_THREADS,
                               .stale_ms = 50};
    weir_stream *old = stream(old_file, &odd);
    weir_write(old, "a;b", 3);
    weir_close(old);
    weir_stream *s = stream(dup(file), NULL);
    struct weir_stats stats;
    weir_get_stats(s, &stats);
    check(stats.mode == WEIR_FULL && stats.writes == 0 && stats.written_bytes == 0 && stats.pending_bytes == 0,
          "mode %d, %llu writes", (int)stats.mode, (unsigned long long)stats.writes);
    weir_write(s, "one\ntwo", 7);
    check(file_is(file, ""), "the new stream has the mode of the old one");
    check(weir_close(s) == 0 && file_is(file, "one\ntwo"), "the bytes were not written");
}

/* madvise(2) with MADV_WIPEONFORK applies to a mapping and stays when a new stream reuses it. */
static void each_stream_has_its_on_fork(void)
{
    static const enum weir_on_fork on_fork[] = {WEIR_FORK_EMPTY, WEIR_FORK_KEEP,  WEIR_FORK_EMPTY, WEIR_FORK_FLUSH,
                                                WEIR_FORK_KEEP,  WEIR_FORK_KEEP, WEIR_FORK_EMPTY, WEIR_FORK_KEEP};
    check_begin("a stream in reused memory has its own on_fork");
    for (size_t i = 0; i < sizeof on_fork / sizeof *on_fork; i++) {
        int file = nameless_file(), status = 0;
        weir_stream *s = stream(file, &(struct weir_options){.on_fork = on_fork[i]});
        weir_write(s, "x", 1);
        pid_t child = fork();
        if (child == 0)
            _exit(weir_flush(s) != 0);
        check(waitpid(child, &status, 0) == child && status == 0, "stream %zu: the child ended with %d", i, status);
        const char *by_child = on_fork[i] == WEIR_FORK_EMPTY ? "" : "x";
        check(file_is(file, by_child), "stream %zu: the child's bytes", i);
        weir_close(s);
    }
}

static void mappings_do_not_grow(void)
{
    check_begin("opening and closing a thousand times adds no mappings");
    static const size_t sizes[] = {0, 1, 4096, 100000, 300000, 1 << 20};
    int before = 0;
    for (int turn = 0; turn < 1000; turn++) {
        weir_stream *s = stream(nameless_file(), &(struct weir_options){.buffer_bytes = sizes[turn % 6]});
        weir_printf(s, "%d", turn);
        weir_close(s);
        if (turn == 100)
            before = count_mappings();
    }
    int after = count_mappings();
    check(after <= before + 2, "%d mappings, then %d", before, after);
}

static int failures[8]; /* of each thread */

/* Opens, writes and closes streams, and compares the files. */
static void *open_and_close(void *number)
{
    int thread = (int)(intptr_t)number;
    for (int turn = 0; turn < LINES; turn++) {
        int file = nameless_file();
        weir_stream *s = stream(dup(file), NULL);
        char expected[4096] = "", line[32];
        for (int i = 0; i < 20; i++) {
            snprintf(line, sizeof line, "%d %d %d\n", thread, turn, i);
            strcat(expected, line);
            weir_write(s, line, strlen(line));
        }
        if (weir_close(s) != 0 || !file_is(file, expected))
            failures[thread % 8]++;
        close(file);
    }
    return NULL;
}

static void threads_have_separate_memory(void)
{
    check_begin("threads that open and close streams at the same time have separate memory");
    in_threads(8, open_and_close);
    for (int i = 0; i < 8; i++)
        check(failures[i] == 0, "thread %d: %d streams wrote wrong bytes", i, failures[i]);
}

int main(void)
{
    new_stream_has_no_old_state();
    each_stream_has_its_on_fork();
    mappings_do_not_grow();
    threads_have_separate_memory();
    return check_finish("pool");
}
