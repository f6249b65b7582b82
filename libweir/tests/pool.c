/* pool.c: streams that are opened where others were closed: nothing of the old one is left in them, none has another's
 * memory, and a process that opens and closes all day does not grow. */
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

/* How many mappings the process has. */
static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; maps && (c = getc(maps)) != EOF;)
        lines += c == '\n';
    if (maps)
        fclose(maps);
    return lines;
}

static bool holds(int fd, const char *text)
{
    char got[4096] = "";
    ssize_t bytes = pread(fd, got, sizeof got - 1, 0);
    return bytes == (ssize_t)strlen(text) && strcmp(got, text) == 0;
}

static void a_new_stream_knows_nothing_of_the_old(void)
{
    check_begin("a new stream knows nothing of an old one");
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
    check(holds(file, ""), "it still has the mode of the old one");
    check(weir_close(s) == 0 && holds(file, "one\ntwo"), "its bytes did not come");
}

/* The kernel wipes a stream in a child if it was told to, once for each mapping. */
static void children_have_what_was_asked_for_each_stream(void)
{
    static const enum weir_on_fork turns[] = {WEIR_FORK_EMPTY, WEIR_FORK_KEEP, WEIR_FORK_EMPTY, WEIR_FORK_FLUSH,
                                              WEIR_FORK_KEEP};
    check_begin("a stream in the memory of another forks as it was asked to");
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        int file = nameless_file(), status = 0;
        weir_stream *s = stream(file, &(struct weir_options){.on_fork = turns[i]});
        weir_write(s, "x", 1);
        pid_t child = fork();
        if (child == 0)
            _exit(weir_flush(s) != 0);
        check(waitpid(child, &status, 0) == child && status == 0, "turn %zu: the child ended with %d", i, status);
        const char *by_child = turns[i] == WEIR_FORK_EMPTY ? "" : "x";
        check(holds(file, by_child), "turn %zu: what the child wrote", i);
        weir_close(s);
    }
}

static void a_process_does_not_grow(void)
{
    check_begin("opening and closing a thousand times leaves no mapping more");
    static const size_t sizes[] = {0, 1, 4096, 100000, 300000, 1 << 20};
    int before = 0;
    for (int turn = 0; turn < 1000; turn++) {
        weir_stream *s = stream(nameless_file(), &(struct weir_options){.buffer_bytes = sizes[turn % 6]});
        weir_printf(s, "%d", turn);
        weir_close(s);
        if (turn == 100)
            before = mappings();
    }
    int after = mappings();
    check(after <= before + 2, "%d mappings, %d after them", before, after);
}

static int by_thread[8];

/* Each thread has a stream open most of the time, and finds what it wrote. */
static void *opens_and_closes(void *number)
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
        if (weir_close(s) != 0 || !holds(file, expected))
            by_thread[thread % 8]++;
        close(file);
    }
    return NULL;
}

static void threads_have_each_their_own(void)
{
    check_begin("threads that open and close at once have each their own memory");
    in_threads(8, opens_and_closes);
    for (int i = 0; i < 8; i++)
        check(by_thread[i] == 0, "thread %d: %d streams had other bytes", i, by_thread[i]);
}

int main(void)
{
    a_new_stream_knows_nothing_of_the_old();
    children_have_what_was_asked_for_each_stream();
    a_process_does_not_grow();
    threads_have_each_their_own();
    return check_finish("pool");
}
