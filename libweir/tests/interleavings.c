/* interleavings.c: a thread is stopped before and after every system call of every scenario, and at this moment the process
 * exits, executes another program or forks, the thread is cancelled or gets a signal, another thread makes a call, or the
 * timer's time has come. Each accepted line is then in the file or pipe once, whole and in order. A replaced file has the
 * old content or all lines, and no temporary file stays.
 * --every=N: only every Nth system call (1). --scenario=N: only the Nth, from 1. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/scenarios.h"
#include "support/stop_counts.h"
#include "support/stopping_kernel.h"
#include "support/target.h"
#include "support/test_dirs.h"

enum event { EXIT, EXEC, FORK, CANCEL, SIGNAL, CALL, TIMER, EVENTS };
static const char *const event_names[] = {"exit", "exec", "fork", "cancel", "signal", "call", "timer"};
enum { LINES = 20, LINE = 8, LONG_LINE = 1000, GRACE_MS = 10 };

static const struct scenario *scenario;
static const char *stop_name; /* only calls of this name are stopped; NULL: all */
static enum event event;
static weir_stream *stream;
static int file_fd, stream_fd;
static size_t line_bytes;
static pthread_t worker;
static _Atomic bool reached, done, opened, closed;
static struct shared { /* with the child that exits or executes another program */
    _Atomic int accepted, others, at_stop;
    _Atomic bool replaced;
    const char *_Atomic stopped; /* the name of the call */
} *shared;

/* ---- the thread that is stopped ---- */

/* Makes a line of `line_bytes` bytes: a letter, a number, and the letter again. */
static const char *make_line(char *line, char letter, int number)
{
    snprintf(line, LONG_LINE + 1, "%c%06d", letter, number);
    memset(line + LINE - 1, letter, line_bytes - LINE + 1);
    line[line_bytes - 1] = '\n';
    line[line_bytes] = '\0';
    return line;
}

static _Thread_local bool is_worker;
static struct weir__kernel real;

/* Of three writes of the thread, the second takes a half, and the third finds the disk full. */
static ssize_t write_scarce(int fd, const void *from, size_t bytes)
{
    static _Thread_local unsigned turn;
    unsigned third = scenario->fails && is_worker ? turn++ % 3 : 0;
    errno = ENOSPC;
    return third == 2 ? -1 : real.write(fd, from, third ? bytes / 2 : bytes);
}

/* Makes space and repeats the call, until the line is accepted. */
static void write_until_accepted(const char *line)
{
    ssize_t result;
    do {
        result = line[LINE - 2] & 1 ? weir_printf(stream, "%s", line) : weir_write(stream, line, line_bytes);
        if (weir_error(stream) < 0)
            weir_clear(stream);
    } while (result < 0);
    shared->accepted++;
}

static void write_line(int number)
{
    char line[LONG_LINE + 1], *to;
    make_line(line, 'w', number);
    if (scenario->fails) {
        write_until_accepted(line);
        return;
    }
    struct iovec parts[2] = {{line, 3}, {line + 3, line_bytes - 3}};
    ssize_t result = -1;
    switch (scenario->by_putc ? 4 : number % 5) {
    case 0: result = weir_printf(stream, "%s", line); break;
    case 1: result = weir_putrec(stream, line, line_bytes - 1); break;
    case 2: result = weir_writev(stream, parts, 2); break;
    case 3:
        weir_lock(stream);
        if (weir_reserve(stream, &to, line_bytes) >= (ssize_t)line_bytes) {
            memcpy(to, line, line_bytes);
            result = weir_commit(stream, line_bytes);
        }
        weir_unlock(stream);
        break;
    default: result = weir_write(stream, line, line_bytes);
    }
    if (result >= 0)
        shared->accepted++;
}

/* A stream that survives a kill, writes directly or with io_uring cannot read. */
static bool only_writes(void)
{
    return !scenario->reads && (scenario->options.durability == WEIR_KILL || scenario->options.flags & (WEIR_DIRECT | WEIR_URING));
}

static int open_stream(void)
{
    char again[64];
    struct weir_options options = scenario->options;
    stream_fd = file_fd;
    if (scenario->kind == TARGET_REPLACED)
        return weir_open_replace(&stream, target_path(), &options);
    options.flags |= WEIR_KEEP_OPEN;
    snprintf(again, sizeof again, "/proc/self/fd/%d", file_fd);
    if (only_writes())
        stream_fd = open(again, O_WRONLY | O_CLOEXEC | (options.durability ? O_APPEND : 0));
    return weir_fdopen(&stream, stream_fd, &options);
}

static void *run_worker(void *unused)
{
    char *record;
    is_worker = true;
    if (scenario->opens && open_stream() < 0)
        _exit(101);
    opened = true;
    for (int i = 0; i < LINES; i++) {
        if (scenario->reads && weir_getrec(stream, &record) == LINE)
            shared->accepted++;
        if (!scenario->reads)
            write_line(i);
        if (i % 7 == 6 && !scenario->reads && !scenario->by_putc)
            weir_flush(stream);
        if (i == 11 && scenario->options.durability >= WEIR_DATA)
            weir_sync(stream, WEIR_WHOLE);
        if (i % 8 == 3 && scenario->options.stale_ms)
            sleep_seconds(0.003); /* for the timer's own calls */
    }
    for (double end = seconds_now() + 5; stop_name && !shared->stopped && seconds_now() < end;)
        sleep_seconds(0.001);
    if (scenario->closes) {
        int result = scenario->kind == TARGET_REPLACED ? weir_replace(stream) : weir_close(stream);
        closed = true;
        shared->replaced = scenario->kind == TARGET_REPLACED && result == 0;
    }
    return unused;
}

/* ---- the event ---- */

static void on_signal(int number) { (void)number; }

/* Runs in the stopped thread. The event may need a lock that this thread has: waits for a limited time. */
static bool at_stop(void)
{
    shared->at_stop = shared->accepted;
    shared->stopped = stopping_name();
    if (event == SIGNAL) {
        pthread_kill(pthread_self(), SIGUSR1);
        return true;
    }
    reached = true;
    double end = seconds_now() + GRACE_MS / 1000.0 / (event == TIMER ? 3 : 1);
    while (!done && seconds_now() < end)
        sleep_seconds(0.0001);
    return false;
}

static void call_from_elsewhere(void)
{
    char *record, line[LONG_LINE + 1];
    if (scenario->reads) {
        shared->others += weir_getrec(stream, &record) == LINE;
    } else if (scenario->closes || !(scenario->options.flags & WEIR_THREADS)) {
        weir_flush_all();
    } else {
        while (weir_putrec(stream, make_line(line, 'm', 0), line_bytes - 1) < 0 && scenario->fails)
            sleep_seconds(0.0001); /* until the thread has cleared the error */
        shared->others++;
        weir_flush(stream);
    }
}

static void act(void)
{
    char *const arguments[] = {"true", NULL};
    if (event == EXIT)
        exit(0);
    if (event == EXEC)
        execv("/bin/true", arguments);
    if (event == FORK) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            exit(0);
        waitpid(child, &status, 0);
    }
    if (event == CANCEL)
        pthread_cancel(worker);
    if (event == CALL)
        call_from_elsewhere();
    done = true;
}

/* ---- a run ---- */

static uint64_t ended_calls; /* the calls of a run without an event */

/* The thread has left the stream unlocked. */
static void close_unlocked(void)
{
    double end = seconds_now() + 20; /* the timer may have the lock for a moment */
    while (weir_trylock(stream) != 0)
        if (seconds_now() > end)
            _exit(103);
    weir_unlock(stream);
    int result = weir_close(stream);
    check(result == 0, "close returned %d", result);
}

static void run_in_this_process(const struct stop *stop)
{
    reached = done = opened = closed = false;
    stopping_begin(stop);
    stream = NULL;
    if (!scenario->opens && open_stream() < 0)
        _exit(101);
    if (pthread_create(&worker, NULL, run_worker, NULL) != 0)
        _exit(102);
    void *result = NULL;
    for (double end = seconds_now() + 20; stop->at && !reached && seconds_now() < end;)
        if (pthread_tryjoin_np(worker, &result) == 0)
            break;
        else
            sleep_seconds(0.0001);
    bool joined = stop->at && !reached;
    if (reached)
        act();
    if (!joined)
        pthread_join(worker, &result);
    ended_calls = stopping_count();
    if (opened && !closed)
        close_unlocked();
    if (stream_fd != file_fd)
        close(stream_fd);
}

static void set_up(void)
{
    char lines[2 * LINES * LINE + 1];
    line_bytes = scenario->options.flags & WEIR_DIRECT && !scenario->reads ? LONG_LINE : LINE;
    memset(shared, 0, sizeof *shared);
    for (int i = 0; i < 2 * LINES; i++)
        snprintf(lines + i * LINE, LINE + 1, "w%06d\n", i);
    file_fd = scenario->reads ? target_open_filled(scenario->kind, lines, sizeof lines - 1) : target_open(scenario->kind);
    if (scenario->reads_on)
        shared->accepted = (int)lseek(file_fd, LINE, SEEK_SET) / LINE;
    fcntl(file_fd, F_SETFL, scenario->options.durability ? O_APPEND : 0);
}

static bool ends_process(void) { return event == EXIT || event == EXEC; }

/* The path has the old file or one with all lines. Returns true for the latter. */
static bool check_replaced(const char *where)
{
    int entries = target_temporaries(ends_process()); /* exec(3) leaves them, see weir_open_replace(3) */
    bool may_stay = event == EXEC || (event == EXIT && scenario->opens);
    check(entries == 0 || may_stay, "%s: %d temporary files are left", where, entries);
    bool is_old = target_is_old();
    check(is_old ? !shared->replaced : shared->accepted == LINES, "%s: the %s file, %d lines accepted", where,
          is_old ? "old" : "new", (int)shared->accepted);
    return !is_old;
}

/* The file has the accepted lines in order; after an end of the process at least those accepted before it. */
static void check_written(const char *where)
{
    char line[LONG_LINE + 1] = "", expected[LONG_LINE + 1], other[LONG_LINE + 1];
    int mine = 0, others = 0;
    ssize_t got, whole = (ssize_t)line_bytes;
    make_line(other, 'm', 0);
    for (off_t at = 0; (got = pread(file_fd, line, line_bytes, at)) > 0; at += whole) {
        make_line(expected, 'w', mine);
        if (got == whole && memcmp(line, other, line_bytes) == 0)
            others++;
        else if (check(got == whole && memcmp(line, expected, line_bytes) == 0, "%s: at byte %lld: \"%.*s\"", where,
                       (long long)at, (int)got, line))
            mine++;
        else
            break;
    }
    int least = ends_process() ? shared->at_stop : shared->accepted;
    bool exact = !ends_process() && event != CANCEL;
    check(mine >= least && (!exact || mine == least), "%s: %d lines, %d accepted", where, mine, least);
    check(others == shared->others, "%s: %d lines of the other thread, not %d", where, others, (int)shared->others);
}

/* The first unread byte is that of the first line that no call has returned. */
static void check_read(const char *where)
{
    size_t position = 2 * LINES * LINE - target_unread(file_fd);
    int lines = (int)(position / LINE), least = shared->accepted + shared->others;
    check(position % LINE == 0 && lines >= least && lines <= least + 1, "%s: position %zu after %d lines", where, position,
          least);
}

static void run(uint64_t at, bool after)
{
    struct stop stop = {at, after, stop_name, at_stop, scenario->zeroes};
    char where[100];
    set_up();
    if (ends_process() && at) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            run_in_this_process(&stop);
            _exit(check_wrong() != 0);
        }
        waitpid(child, &status, 0);
        snprintf(where, sizeof where, "%s call %d", after ? "after" : "before", (int)at);
        check(status == 0, "%s: the child ended with %x", where, (unsigned)status);
    } else {
        run_in_this_process(&stop);
        const char *name = stopping_name();
        snprintf(where, sizeof where, "%s call %d (%s)", after ? "after" : "before", (int)at, name ? name : "not made");
    }
    stop_counts_note(shared->stopped, after, event);
    if (scenario->reads) {
        check_read(where);
        return;
    }
    file_fd = target_file(file_fd);
    if (scenario->kind != TARGET_REPLACED || check_replaced(where))
        check_written(where);
    close(file_fd);
}

/* The timer makes these calls only if it comes in time: the thread waits for each. */
static void timer_calls(void)
{
    static const char *const calls_of[][2] = {
        [TARGET_PIPE] = {"poll", "pwritev2"}, [TARGET_SOCKET] = {"poll", "sendmsg"}, [TARGET_TERMINAL] = {"poll", "ioctl"}};
    if (scenario->kind < TARGET_PIPE || scenario->kind > TARGET_TERMINAL || !scenario->options.stale_ms)
        return;
    for (int i = 0; i < 4; i++) {
        stop_name = calls_of[scenario->kind][i / 2];
        if (strcmp(stop_name, "pwritev2") == 0 && scenario->options.flags & WEIR_URING)
            continue;
        run(1, i % 2);
        check(shared->stopped != NULL, "the timer makes no call of %s", stop_name);
    }
    stop_name = NULL;
}

static void every_call(uint64_t every)
{
    check_begin("%s: %s", scenario->name, event_names[event]);
    if (CHECK_SANITIZED && (ends_process() || event == FORK)) {
        check_skip("the sanitizer's own threads do not survive fork");
        return;
    }
    if (scenario->options.flags & WEIR_DIRECT && !supports_direct_io(target_directory())) {
        check_skip("no direct writes in the directory for temporary files");
        return;
    }
    run(0, false);
    uint64_t calls = ended_calls;
    for (uint64_t at = 1; at <= calls && check_wrong() < 5; at += every)
        for (int after = 0; after < 2; after++)
            run(at, after);
    timer_calls();
}

int main(int count, char **arguments)
{
    uint64_t every = check_option(count, arguments, "every", check_quick() ? 3 : 1), only = check_option(count, arguments, "scenario", 0);
    signal(SIGUSR1, on_signal);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    target_prepare();
    real = weir__kernel;
    weir__kernel.write = write_scarce;
    stopping_install();
    for (scenario = scenarios; scenario->name; scenario++)
        for (int e = 0; e < EVENTS && (!only || scenario == &scenarios[only - 1]); e++) {
            event = (enum event)e;
            alarm(300); /* ends the test if a call hangs */
            every_call(every);
        }
    stop_counts_check(EVENTS, every == 1 && !only && !CHECK_SANITIZED && supports_direct_io(target_directory()));
    return check_finish("interleavings");
}
