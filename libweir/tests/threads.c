/* threads.c: streams that threads share: lines are whole, locks nest, and threads may open and close streams while
 * others write. Shared syncs are in group_commit.c, the timer of the bounded delay is in stale.c. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { THREADS = 8, LINES = CHECK_SANITIZED ? 400 : 4000 };

static weir_stream *shared;
static struct weir__kernel real;

/* ---- lines ---- */

/* Makes the line "THREAD NUMBER xxxxx"; its length depends on the number. */
static int line_of(char *to, int thread, int number)
{
    int length = sprintf(to, "%d %d ", thread, number);
    int filler = number * 7 % 90;
    memset(to + length, 'a' + thread, (size_t)filler);
    to[length + filler] = '\0';
    return length + filler;
}

static void *write_lines(void *argument)
{
    int thread = (int)(intptr_t)argument;
    char line[200];
    for (int i = 0; i < LINES; i++) {
        int length = line_of(line, thread, i);
        switch (i % 5) {
        case 0: weir_printf(shared, "%s\n", line); break;
        case 1: weir_putrec(shared, line, (size_t)length); break;
        case 2: {
            struct iovec parts[2] = {{line, (size_t)length}, {(void *)(uintptr_t) "\n", 1}};
            weir_writev(shared, parts, 2);
            break;
        }
        case 3:
            line[length] = '\n';
            weir_write(shared, line, (size_t)length + 1);
            break;
        default: /* in pieces, with a nested lock */
            weir_lock(shared);
            for (int c = 0; c < length; c++)
                weir_putc_unlocked(shared, line[c]);
            weir_lock(shared);
            weir_endrec(shared);
            weir_unlock(shared);
            weir_unlock(shared);
        }
    }
    return NULL;
}

static void check_lines(int fd)
{
    int next[THREADS] = {0}, count = 0;
    char line[300], expected[300];
    FILE *f = fdopen(dup(fd), "r");
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        int thread = -1, number = -1;
        if (sscanf(line, "%d %d", &thread, &number) != 2 || thread < 0 || thread >= THREADS) {
            check(false, "torn: %s", line);
            continue;
        }
        int length = line_of(expected, thread, next[thread]);
        strcpy(expected + length, "\n");
        check(strcmp(line, expected) == 0, "torn or out of order: %s", line);
        next[thread]++;
        count++;
    }
    check(count == THREADS * LINES, "%d lines of %d", count, THREADS * LINES);
    fclose(f);
}

static void whole_lines(const char *name, struct weir_options options)
{
    check_begin("lines of 8 threads, %s, %zu bytes", name, options.buffer_bytes);
    int fd = nameless_file();
    options.flags |= WEIR_THREADS | WEIR_KEEP_OPEN;
    check(weir_fdopen(&shared, fd, &options) == 0, "fdopen");
    in_threads(THREADS, write_lines);
    check(weir_close(shared) == 0, "close");
    check_lines(fd);
    close(fd);
}

/* Writes bytes without the lock and with it held, the latter also by weir_putc_unlocked. */
static void *put_bytes(void *argument)
{
    int c = 'a' + (int)(intptr_t)argument;
    for (int i = 0; i < LINES * 10; i += 4) {
        weir_putc(shared, c);
        weir_lock(shared);
        weir_putc(shared, c);
        weir_putc_unlocked(shared, c);
        weir_unlock(shared);
        weir_putc(shared, c);
    }
    return NULL;
}

static void no_byte_is_lost(int threads)
{
    check_begin("bytes of %d threads", threads);
    int fd = nameless_file(), counts[256] = {0};
    struct weir_options options = {.flags = WEIR_THREADS | WEIR_KEEP_OPEN, .buffer_bytes = 1000};
    weir_fdopen(&shared, fd, &options);
    in_threads(threads, put_bytes);
    check(weir_close(shared) == 0, "close");
    unsigned char bytes[4096];
    lseek(fd, 0, SEEK_SET);
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            counts[bytes[i]]++;
    for (int i = 0; i < threads; i++)
        check(counts['a' + i] == LINES * 10, "thread %d: %d bytes", i, counts['a' + i]);
    close(fd);
}

static _Atomic int read_counts[256];

static void *get_bytes(void *argument)
{
    int c;
    while ((c = weir_getc(shared)) >= 0)
        read_counts[c]++;
    return argument;
}

static void bytes_are_read_once(void)
{
    check_begin("bytes read by 4 threads");
    enum { EACH = LINES * 2 };
    int fd = nameless_file(), wrong = 0;
    unsigned char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (int i = 0; i < EACH; i++)
        check(write(fd, all, sizeof all) == sizeof all, "cannot write the file");
    lseek(fd, 0, SEEK_SET);
    struct weir_options options = {.flags = WEIR_THREADS, .buffer_bytes = 1000};
    weir_fdopen(&shared, fd, &options);
    in_threads(4, get_bytes);
    for (int i = 0; i < 256; i++)
        wrong += read_counts[i] != EACH;
    check(wrong == 0, "%d of 256 byte values were not read as often as the file has them", wrong);
    check(weir_close(shared) == 0, "close");
}

/* ---- locks ---- */

static void *try_lock(void *argument)
{
    *(int *)argument = weir_trylock(shared);
    if (*(int *)argument == 0)
        weir_unlock(shared);
    return NULL;
}

static int try_in_thread(void)
{
    pthread_t thread;
    int result = 1;
    pthread_create(&thread, NULL, try_lock, &result);
    pthread_join(thread, NULL);
    return result;
}

static void locks_nest(unsigned flags)
{
    check_begin("locks nest, flags %u", flags);
    struct weir_options options = {.flags = flags};
    weir_open_collector(&shared, &options);
    check(try_in_thread() == 0, "free");
    weir_lock(shared);
    check(weir_trylock(shared) == 0, "nested lock");
    check(try_in_thread() == -EBUSY, "held twice");
    weir_unlock(shared);
    check(try_in_thread() == -EBUSY, "held once");
    check(weir_putc(shared, 'x') == 'x' && weir_putc_unlocked(shared, 'y') == 'y', "writes with the lock held");
    weir_unlock(shared);
    check(try_in_thread() == 0, "free again");
    char *memory;
    check(weir_memory(shared, &memory) == 2 && memcmp(memory, "xy", 2) == 0, "both bytes are there");
    weir_close(shared);
}

/* ---- opening and closing during other calls ---- */

static _Atomic bool stop;

static void *open_and_close(void *argument)
{
    int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 1500; i++) {
        weir_stream *s;
        struct weir_options options = {.flags = WEIR_THREADS | WEIR_KEEP_OPEN, .buffer_bytes = 100};
        if (weir_fdopen(&s, null, &options) < 0)
            continue;
        weir_put_str(s, "some text");
        weir_close(s);
    }
    close(null);
    return argument;
}

static void *flush_repeatedly(void *argument)
{
    while (!stop)
        weir_flush_all();
    return argument;
}

/* Replaces munmap(2): the memory stays mapped without access, so that a later use crashes. */
static int quarantine(void *address, size_t bytes) { return mprotect(address, bytes, PROT_NONE); }

static ssize_t slow_write(int fd, const void *from, size_t bytes)
{
    sleep_seconds(0.0001); /* lets other threads wait for the lock */
    return real.write(fd, from, bytes);
}

static void flush_all_during_open_and_close(void)
{
    check_begin("weir_flush_all while threads open and close streams");
    pthread_t flushers[2];
    stop = false;
    weir__kernel.munmap = quarantine;
    weir__kernel.write = slow_write;
    for (int i = 0; i < 2; i++)
        pthread_create(&flushers[i], NULL, flush_repeatedly, NULL);
    in_threads(4, open_and_close);
    stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(flushers[i], NULL);
    weir__kernel.munmap = real.munmap;
    weir__kernel.write = real.write;
    check(weir_flush_all() == 0, "flush_all");
}

/* ---- a stream of one thread ---- */

static weir_stream *socket_stream;
static int socket_ends[2];
static _Atomic bool socket_ready;

/* The reads return while the other thread flushes: the worker waits, and goes on with its call. */
static void *ask(void *result)
{
    struct weir_options options = {.mode = WEIR_FULL, .flags = WEIR_KEEP_OPEN};
    if (weir_fdopen(&socket_stream, socket_ends[0], &options) < 0)
        abort();
    socket_ready = true;
    for (int i = 0; i < 200; i++) {
        weir_putc(socket_stream, 'q');
        int c = weir_getc(socket_stream);
        *(int *)result += c == 'a';
    }
    return result;
}

static void *answer_each(void *unused)
{
    char byte;
    for (int i = 0; i < 200; i++) {
        if (write(socket_ends[1], "a", 1) != 1)
            break;
        if (i % 3 == 0)
            sleep_seconds(0.0005);
    }
    for (int i = 0; i < 200 && read(socket_ends[1], &byte, 1) == 1; i++)
        if (byte != 'q')
            abort();
    return unused;
}

static void flush_all_between_reads(void)
{
    check_begin("weir_flush_all while a worker reads and writes a socket");
    pthread_t threads[2];
    int answers = 0;
    socket_ready = false;
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) == 0, "socketpair");
    pthread_create(&threads[0], NULL, ask, &answers);
    double limit = seconds_now() + 20;
    for (; !(socket_ready && atomic_load(&weir__state(socket_stream)->in_read)) && seconds_now() < limit;)
        sleep_seconds(0.001);
    check(weir_flush_all() == 0 && weir__state(socket_stream)->in_call == 1, "the worker's call was ended");
    check(weir__state(socket_stream)->lock.owner == 0, "the stream is still locked");
    pthread_create(&threads[1], NULL, answer_each, NULL);
    for (int i = 0; i < 200; i++)
        check(weir_flush_all() == 0, "weir_flush_all");
    pthread_join(threads[0], NULL);
    check(weir_close(socket_stream) == 0, "close");
    pthread_join(threads[1], NULL);
    check(answers == 200, "%d answers", answers);
    close(socket_ends[0]);
    close(socket_ends[1]);
}

/* ---- exit ---- */

static void *write_until_exit(void *argument)
{
    char line[200];
    for (int i = 0;; i++) {
        line_of(line, (int)(intptr_t)argument, i);
        weir_printf(shared, "%s\n", line);
    }
    return NULL;
}

/* In a child, the main thread calls exit(3) while other threads write, open and close. */
static void exit_during_writes(void)
{
    check_begin("exit(3) while threads write and close");
    if (CHECK_SANITIZED) {
        check_skip("the sanitizer's own threads do not survive fork");
        return;
    }
    for (int round = 0; round < 20; round++) {
        int fd = nameless_file(), status = -1;
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            struct weir_options options = {.flags = WEIR_THREADS | WEIR_KEEP_OPEN};
            weir_fdopen(&shared, fd, &options);
            for (intptr_t i = 0; i < 3; i++)
                pthread_create(&thread, NULL, write_until_exit, (void *)i);
            for (int i = 0; i < 3; i++)
                pthread_create(&thread, NULL, open_and_close, NULL);
            sleep_seconds(0.003 * round / 4);
            exit(0);
        }
        waitpid(child, &status, 0);
        check(status == 0, "the child ended with %x", (unsigned)status);
        struct stat file;
        char last = '\n';
        fstat(fd, &file);
        check(file.st_size == 0 || (pread(fd, &last, 1, file.st_size - 1) == 1 && last == '\n'), "the last line is torn");
        close(fd);
    }
}

int main(void)
{
    real = weir__kernel;
    static const size_t sizes[] = {1, 100, 0};
    for (int i = 0; i < 3; i++) {
        whole_lines("none", (struct weir_options){.mode = WEIR_NONE, .buffer_bytes = sizes[i]});
        whole_lines("line", (struct weir_options){.mode = WEIR_LINE, .buffer_bytes = sizes[i]});
        whole_lines("full", (struct weir_options){.mode = WEIR_FULL, .buffer_bytes = sizes[i]});
        whole_lines("record", (struct weir_options){.mode = WEIR_RECORD, .buffer_bytes = sizes[i]});
    }
    whole_lines("line and delay", (struct weir_options){.mode = WEIR_LINE, .stale_ms = 1});
    whole_lines("full and delay", (struct weir_options){.mode = WEIR_FULL, .stale_ms = 1});
    for (int threads = 2; threads <= THREADS; threads *= 2)
        no_byte_is_lost(threads);
    bytes_are_read_once();
    locks_nest(WEIR_THREADS);
    locks_nest(0);
    flush_all_during_open_and_close();
    flush_all_between_reads();
    exit_during_writes();
    return check_finish("threads");
}
