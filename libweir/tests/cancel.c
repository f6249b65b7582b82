/* cancel.c: pthread_cancel of a thread that is inside a call. The call leaves no lock behind, and what was accepted is
 * written whole and once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

#include <weir/stdio.h>

static weir_stream *shared;
static struct weir__kernel real;
static _Atomic int in_call;

static pthread_t start(void *(*work)(void *))
{
    pthread_t thread;
    in_call = 0;
    check(pthread_create(&thread, NULL, work, NULL) == 0, "starts");
    return thread;
}

static void wait_for_call(void)
{
    while (in_call == 0)
        sleep_seconds(0.001);
    sleep_seconds(0.02);
}

static bool is_free(void)
{
    bool is = weir_trylock(shared) == 0;
    if (is)
        weir_unlock(shared);
    return is;
}

/* ---- writes and syncs: not inside them ---- */

static ssize_t write_that_can_be_cancelled(int fd, const void *from, size_t bytes)
{
    ssize_t half = real.write(fd, from, bytes / 2);
    in_call = 1;
    sleep_seconds(0.1); /* a cancellation point, as write(2) */
    return half + real.write(fd, (const char *)from + half, bytes - (size_t)half);
}

static int sync_that_can_be_cancelled(int fd)
{
    in_call = 1;
    sleep_seconds(0.1);
    return fd < 0 ? -1 : 0;
}

static void *print_a_line(void *unused)
{
    weir_printf(shared, "a line\n");
    for (;;)
        sleep_seconds(1);
    return unused;
}

static void *sync_a_line(void *unused)
{
    weir_put_str(shared, "a line\n");
    weir_sync(shared, WEIR_DATA);
    for (;;)
        sleep_seconds(1);
    return unused;
}

static void cancelled_in(const char *name, void *(*work)(void *), enum weir_mode mode)
{
    check_begin("a thread that is cancelled in %s", name);
    int fd = nameless_file();
    struct weir_options options = {.mode = mode, .flags = WEIR_THREADS};
    check(weir_fdopen(&shared, dup(fd), &options) == 0, "opens");
    weir__kernel.write = write_that_can_be_cancelled;
    weir__kernel.fdatasync = sync_that_can_be_cancelled;
    void *result = NULL;
    pthread_t thread = start(work);
    wait_for_call();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    weir__kernel = real;
    check(result == PTHREAD_CANCELED, "is cancelled behind the call");
    if (check(is_free(), "the lock is free")) {
        check(weir_put_str(shared, "another\n") == 8, "the stream works");
        check(weir_close(shared) == 0, "closes");
    }
    char is[32];
    ssize_t got = pread(fd, is, sizeof is, 0);
    check(got == 15 && memcmp(is, "a line\nanother\n", 15) == 0, "the file has %.*s", (int)got, is);
    close(fd);
}

/* ---- reads: inside them, for they may take for ever ---- */

static char some[100], *text, *line;
static int number;
static ssize_t length;
static size_t room;

static void by_getc(void) { length = weir_getc(shared); }
static void by_read(void) { length = weir_read(shared, some, sizeof some); }
static void by_read_some(void) { length = weir_read_some(shared, some, 1); }
static void by_getrec(void) { length = weir_getrec(shared, &text); }
static void by_peek(void) { length = weir_peek(shared, &text, 1); }
static void by_fgets(void) { text = fgets(some, sizeof some, shared); }
static void by_fread(void) { length = (ssize_t)fread(some, 1, sizeof some, shared); }
static void by_getline(void) { length = getline(&line, &room, shared); }
static void by_fscanf(void) { length = fscanf(shared, "%d", &number); }

static void unlock(void *s) { weir_unlock(s); }

static void by_getc_locked(void)
{
    weir_lock(shared);
    pthread_cleanup_push(unlock, shared);
    weir_getc(shared);
    pthread_cleanup_pop(1);
}

static void (*way)(void);

static void *read_once(void *unused)
{
    in_call = 1;
    way();
    return unused;
}

static void cancelled_in_a_read(const char *name, void (*by)(void))
{
    check_begin("a thread that is cancelled in a read by %s", name);
    int ends[2];
    struct weir_options options = {.flags = WEIR_THREADS};
    check(pipe(ends) == 0 && weir_fdopen(&shared, ends[0], &options) == 0, "opens");
    void *result = NULL;
    way = by;
    pthread_t thread = start(read_once);
    wait_for_call();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED, "is cancelled");
    if (check(is_free(), "the lock is free")) {
        check(write(ends[1], "xyz\n", 4) == 4 && weir_getc(shared) == 'x', "the stream works");
        check(!atomic_load(&weir__state(shared)->in_read), "the stream is not marked as being read");
        check(weir_close(shared) == 0, "closes");
    }
    close(ends[1]);
}

int main(void)
{
    real = weir__kernel;
    alarm(120); /* the end, if one waits for ever */
    cancelled_in("a write", print_a_line, WEIR_LINE);
    cancelled_in("a sync", sync_a_line, WEIR_FULL);
    cancelled_in_a_read("weir_getc", by_getc);
    cancelled_in_a_read("weir_getc with the lock held", by_getc_locked);
    cancelled_in_a_read("weir_read", by_read);
    cancelled_in_a_read("weir_read_some", by_read_some);
    cancelled_in_a_read("weir_getrec", by_getrec);
    cancelled_in_a_read("weir_peek", by_peek);
    cancelled_in_a_read("fgets", by_fgets);
    cancelled_in_a_read("fread", by_fread);
    cancelled_in_a_read("getline", by_getline);
    cancelled_in_a_read("fscanf", by_fscanf);
    return check_finish("cancel");
}
