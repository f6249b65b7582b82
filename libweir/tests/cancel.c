/* cancel.c: pthread_cancel(3) of a thread inside a call. The stream is unlocked afterwards, and accepted bytes are
 * written completely and once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
    check(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
    return thread;
}

static void wait_for_call(void)
{
    while (in_call == 0)
        sleep_seconds(0.001);
    sleep_seconds(0.02);
}

static bool is_unlocked(void)
{
    bool unlocked = weir_trylock(shared) == 0;
    if (unlocked)
        weir_unlock(shared);
    return unlocked;
}

/* ---- writes and syncs: the cancellation takes effect after the call ---- */

static ssize_t cancellable_write(int fd, const void *from, size_t bytes)
{
    ssize_t half = real.write(fd, from, bytes / 2);
    in_call = 1;
    sleep_seconds(0.1); /* a cancellation point, as write(2) is */
    return half + real.write(fd, (const char *)from + half, bytes - (size_t)half);
}

static int cancellable_sync(int fd)
{
    in_call = 1;
    sleep_seconds(0.1);
    return fd < 0 ? -1 : 0;
}

static void *print_line(void *unused)
{
    weir_printf(shared, "a line\n");
    for (;;)
        sleep_seconds(1);
    return unused;
}

static void *sync_line(void *unused)
{
    weir_put_str(shared, "a line\n");
    weir_sync(shared, WEIR_DATA);
    for (;;)
        sleep_seconds(1);
    return unused;
}

static void cancel_writer(const char *name, void *(*work)(void *), enum weir_mode mode)
{
    check_begin("a thread is cancelled in %s", name);
    int fd = nameless_file();
    struct weir_options options = {.mode = mode, .flags = WEIR_THREADS};
    check(weir_fdopen(&shared, dup(fd), &options) == 0, "fdopen");
    weir__kernel.write = cancellable_write;
    weir__kernel.fdatasync = cancellable_sync;
    void *result = NULL;
    pthread_t thread = start(work);
    wait_for_call();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    weir__kernel = real;
    check(result == PTHREAD_CANCELED, "the thread was not cancelled after the call");
    if (check(is_unlocked(), "the stream is still locked")) {
        check(weir_put_str(shared, "another\n") == 8, "put_str after the cancellation");
        check(weir_close(shared) == 0, "close");
    }
    char is[32];
    ssize_t got = pread(fd, is, sizeof is, 0);
    check(got == 15 && memcmp(is, "a line\nanother\n", 15) == 0, "the file has %.*s", (int)got, is);
    close(fd);
}

/* ---- reads: the cancellation takes effect inside the call, which may block without end ---- */

static char some[100], *text, *line;
static wchar_t wide[100];
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
static void by_fgetwc(void) { length = (ssize_t)fgetwc(shared); }
static void by_fgetws(void) { fgetws(wide, sizeof wide / sizeof *wide, shared); }
static void by_fwscanf(void) { length = fwscanf(shared, L"%d", &number); }

static void unlock(void *s) { weir_unlock(s); }

static void by_getc_locked(void)
{
    weir_lock(shared);
    pthread_cleanup_push(unlock, shared);
    weir_getc(shared);
    pthread_cleanup_pop(1);
}

static void (*read_call)(void);

static void *read_once(void *unused)
{
    in_call = 1;
    read_call();
    return unused;
}

static void cancel_reader(const char *name, void (*call)(void))
{
    check_begin("a thread is cancelled in a read by %s", name);
    int ends[2];
    struct weir_options options = {.flags = WEIR_THREADS};
    check(pipe(ends) == 0 && weir_fdopen(&shared, ends[0], &options) == 0, "fdopen");
    void *result = NULL;
    read_call = call;
    pthread_t thread = start(read_once);
    wait_for_call();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED, "the thread was not cancelled");
    if (check(is_unlocked(), "the stream is still locked")) {
        check(write(ends[1], "xyz\n", 4) == 4 && weir_getc(shared) == 'x', "getc after the cancellation");
        check(!atomic_load(&weir__state(shared)->in_read), "in_read is still set");
        check(weir_close(shared) == 0, "close");
    }
    close(ends[1]);
}

/* ---- waits for another thread's stream: the cancellation takes effect after the call ---- */

static void flush_all(void) { weir_flush_all(); }

static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void fail_to_exec(void)
{
    char *const arguments[] = {"none", NULL};
    execv("/no/such/program", arguments);
}

/* Fills the pipe with a stream that only this thread uses. */
static void *fill_pipe(void *unused)
{
    static char much[200000];
    weir_write(shared, much, sizeof much);
    return unused;
}

static void *wait_once(void *unused)
{
    in_call = 1;
    read_call();
    for (;;)
        sleep_seconds(1);
    return unused;
}

static void *drain_pipe(void *end)
{
    static char page[4096];
    static size_t total;
    total = 0;
    for (ssize_t got; (got = read(*(int *)end, page, sizeof page)) > 0; total += (size_t)got)
        continue;
    return &total;
}

static void cancel_waiter(const char *name, void (*call)(void))
{
    check_begin("a thread is cancelled while %s waits for another thread's write", name);
    int ends[2];
    struct weir_options options = {.mode = WEIR_FULL, .on_fork = WEIR_FORK_FLUSH};
    check(pipe(ends) == 0 && weir_fdopen(&shared, ends[1], &options) == 0, "fdopen");
    void *result = NULL, *total = NULL;
    pthread_t reader, writer = start(fill_pipe);
    while (!atomic_load(&weir__state(shared)->writer))
        sleep_seconds(0.001);
    read_call = call;
    pthread_t waiter = start(wait_once);
    wait_for_call();
    pthread_cancel(waiter);
    pthread_join(waiter, &result);
    check(result == PTHREAD_CANCELED, "the thread was not cancelled after the call");
    check(atomic_load(&weir__state(shared)->refs) == 0, "a reference is left, for which weir_close waits");
    pthread_create(&reader, NULL, drain_pipe, &ends[0]);
    pthread_join(writer, NULL);
    check(is_unlocked(), "the stream is still locked");
    if (check_wrong() == 0)
        check(weir_close(shared) == 0, "close");
    else
        close(ends[1]);
    pthread_join(reader, &total);
    check(*(size_t *)total == 200000, "%zu bytes", *(size_t *)total);
    close(ends[0]);
}

int main(void)
{
    real = weir__kernel;
    alarm(120); /* ends the test if a thread hangs */
    cancel_writer("a write", print_line, WEIR_LINE);
    cancel_writer("a sync", sync_line, WEIR_FULL);
    cancel_reader("weir_getc", by_getc);
    cancel_reader("weir_getc with the lock held", by_getc_locked);
    cancel_reader("weir_read", by_read);
    cancel_reader("weir_read_some", by_read_some);
    cancel_reader("weir_getrec", by_getrec);
    cancel_reader("weir_peek", by_peek);
    cancel_reader("fgets", by_fgets);
    cancel_reader("fread", by_fread);
    cancel_reader("getline", by_getline);
    cancel_reader("fscanf", by_fscanf);
    cancel_reader("fgetwc", by_fgetwc);
    cancel_reader("fgetws", by_fgetws);
    cancel_reader("fwscanf", by_fwscanf);
    cancel_waiter("weir_flush_all", flush_all);
    cancel_waiter("fork", fork_once);
    cancel_waiter("execv", fail_to_exec);
    return check_finish("cancel");
}
