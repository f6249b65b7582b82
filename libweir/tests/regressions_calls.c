/* regressions_calls.c: one test for each fixed bug of a call that accepted what it should refuse, or returned a wrong result. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

static char path[] = "/tmp/weir-regression-XXXXXX";

static bool file_is(const char *text)
{
    char is[100];
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, is, sizeof is);
    close(fd);
    return got == (ssize_t)strlen(text) && memcmp(is, text, (size_t)got) == 0;
}

static weir_stream *open_new(int oflags, struct weir_options options)
{
    weir_stream *s = NULL;
    check(weir_open(&s, path, oflags | O_TRUNC, &options) == 0, "open");
    return s;
}

/* ---- weir_commit without a valid reservation ---- */

static void commit_without_reserve(enum weir_mode mode)
{
    weir_stream *s = open_new(O_WRONLY, (struct weir_options){.mode = mode});
    char *to;
    check(weir_commit(s, 1) == -EINVAL && weir_commit(s, 0) == 0, "of a new stream");
    weir_put_str(s, "secret password");
    weir_flush(s);
    check(weir_commit(s, 15) == -EINVAL, "after a flush");
    check(weir_reserve(s, &to, 10) >= 10, "reserve");
    memcpy(to, "123\n", 4);
    check(weir_commit(s, 4) == 0 && weir_commit(s, 4) == -EINVAL, "the second time");
    check(weir_reserve(s, &to, 10) >= 10 && weir_put_str(s, "4\n") == 2 && weir_commit(s, 4) == -EINVAL, "after a write");
    weir_flush(s);
    check(weir_commit(s, 4) == -EINVAL, "after a write and a flush");
    ssize_t room = weir_reserve(s, &to, 1);
    check(weir_commit(s, (size_t)room + 1) == -EINVAL, "of more than the room");
    memcpy(to, "5\n", 2);
    check(weir_commit(s, 2) == 0, "of the room after that error");
    check(weir_close(s) == 0 && file_is("secret password123\n4\n5\n"), "the file has other bytes");
}

static void commits(void)
{
    for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
        check_begin("weir_commit without a reservation, mode %d", mode);
        commit_without_reserve((enum weir_mode)mode);
    }
}

/* ---- weir_commit after a flush that the stream's own calls did not make ---- */

static void wait_for_timer(weir_stream *s)
{
    struct weir_stats stats = {0};
    for (int i = 0; i < 5000 && !stats.stale_drains; i++) {
        usleep(1000);
        weir_get_stats(s, &stats);
    }
    check(stats.stale_drains > 0, "the timer has written");
}

static void *flush_all(void *unused)
{
    check(weir_flush_all() == 0, "weir_flush_all");
    return unused;
}

static void flush_in_thread(weir_stream *s)
{
    pthread_t thread;
    (void)s;
    pthread_create(&thread, NULL, flush_all, NULL);
    pthread_join(thread, NULL);
}

static void fork_and_wait(weir_stream *s)
{
    (void)s;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void commit_after(const char *name, void (*flush)(weir_stream *s), struct weir_options options)
{
    check_begin("weir_commit after a flush by %s, mode %d", name, (int)options.mode);
    weir_stream *s = open_new(O_WRONLY, options);
    char *to;
    weir_put_str(s, "first\n");
    check(weir_reserve(s, &to, 32) >= 32, "reserve");
    memcpy(to, "second\n", 7);
    flush(s);
    check(file_is("first\n"), "the first line is written, the second is not");
    check(weir_commit(s, 7) == 0, "commit");
    check(weir_reserve(s, &to, 32) >= 32 && weir_put_str(s, "third\n") == 6, "reserve and write");
    flush_all(s);
    check(weir_commit(s, 7) == -EINVAL, "after a write and a flush");
    check(weir_close(s) == 0 && file_is("first\nsecond\nthird\n"), "the file");
}

static void commits_after_flush(void)
{
    for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
        struct weir_options options = {.mode = (enum weir_mode)mode};
        commit_after("fork", fork_and_wait, (struct weir_options){.mode = options.mode, .on_fork = WEIR_FORK_FLUSH});
        commit_after("another thread", flush_in_thread, options);
        if (mode == WEIR_FULL || mode == WEIR_RECORD)
            commit_after("the timer", wait_for_timer, (struct weir_options){.mode = options.mode, .stale_ms = 20});
    }
}

/* ---- reading ---- */

static void peek_of_a_growing_token(void)
{
    enum { TOKEN = 200000 };
    check_begin("weir_peek of one byte more than there is, again and again");
    weir_stream *s = open_new(O_RDWR, (struct weir_options){.buffer_bytes = 4096});
    struct weir_stats stats;
    char *at = NULL;
    ssize_t have = 0, got;
    for (int i = 0; i < TOKEN; i++)
        weir_putc(s, 'a' + i % 26);
    check(weir_seek(s, 0, SEEK_SET) == 0, "seek");
    while ((got = weir_peek(s, &at, (size_t)have + 1)) > have)
        have = got;
    check(have == TOKEN && at[TOKEN - 1] == 'a' + (TOKEN - 1) % 26, "%zd bytes", have);
    weir_get_stats(s, &stats);
    check(stats.reads < 20, "%d reads", (int)stats.reads);
    check(weir_close(s) == 0, "close");
}

enum { RECORD_BYTES = 16, RECORDS = 65536, UPDATES = 200 };

/* Adds one to the first byte of records, and checks what was read. */
static void update_records(const char *name, size_t (*next)(size_t record), uint64_t most_bytes)
{
    check_begin("updates of records, %s", name);
    weir_stream *s = open_new(O_RDWR, (struct weir_options){0});
    struct weir_stats before, after;
    char record[RECORD_BYTES];
    for (uint32_t i = 0; i < RECORDS; i++)
        weir_write(s, memcpy(memset(record, 'r', RECORD_BYTES), &i, sizeof i), RECORD_BYTES);
    check(weir_flush(s) == 0 && weir_get_stats(s, &before) == 0, "fill the file");
    size_t at = 0, wrong = 0;
    for (int i = 0; i < UPDATES; i++, at = next(at)) {
        uint32_t number = 0;
        wrong += weir_seek(s, (int64_t)at * RECORD_BYTES, SEEK_SET) < 0;
        wrong += weir_read(s, record, RECORD_BYTES) != RECORD_BYTES;
        wrong += memcpy(&number, record, sizeof number) && number != at;
        wrong += weir_seek(s, -RECORD_BYTES, SEEK_CUR) < 0 || weir_write(s, record, RECORD_BYTES) != RECORD_BYTES;
    }
    weir_get_stats(s, &after);
    check(wrong == 0, "%zu wrong results", wrong);
    uint64_t bytes = after.read_bytes - before.read_bytes;
    check(bytes <= most_bytes, "%d bytes read", (int)bytes);
    check(weir_close(s) == 0, "close");
}

static size_t next_record(size_t record) { return record + 1; }
static size_t random_record(size_t record) { return (record * 25173 + 13849) % RECORDS; }

static void updates(void)
{
    const uint64_t first = 3 * 131072;
    update_records("one after the other", next_record, first + UPDATES * 4096);
    update_records("at random", random_record, first + UPDATES * 4096);
}

/* ---- positions ---- */

static void tell_with_file_lock(void)
{
    check_begin("weir_tell of a stream that writes at the end of the file");
    weir_stream *s = open_new(O_RDWR, (struct weir_options){.flags = WEIR_LOCK_FILE});
    weir_put_str(s, "0123456789");
    check(weir_tell(s) == 10 && weir_flush(s) == 0, "before the first write");
    check(weir_seek(s, 2, SEEK_SET) == 2 && weir_tell(s) == 2, "seek");
    check(weir_put_str(s, "abc") == 3 && weir_tell(s) == 13, "pending bytes: %d", (int)weir_tell(s));
    check(weir_flush(s) == 0 && weir_tell(s) == 13, "written bytes: %d", (int)weir_tell(s));
    check(weir_close(s) == 0 && file_is("0123456789abc"), "the file");
}

static void writev_of_nothing(void)
{
    check_begin("weir_writev of no bytes");
    weir_stream *s = open_new(O_RDWR, (struct weir_options){.flags = WEIR_LOCK_FILE, .mode = WEIR_NONE});
    char bytes[4] = "";
    check(weir_put_str(s, "0123456789") == 10 && weir_seek(s, 2, SEEK_SET) == 2, "seek");
    check(weir_writev(s, &(struct iovec){bytes, 0}, 1) == 0 && weir_writev(s, NULL, 0) == 0, "nothing is written");
    check(weir_tell(s) == 2, "the position is %d", (int)weir_tell(s));
    check(weir_read(s, bytes, 3) == 3 && memcmp(bytes, "234", 3) == 0, "read");
    check(weir_close(s) == 0 && file_is("0123456789"), "the file");
}

/* ---- many streams ---- */

/* Closing a stream that no other one is tied to does not look at the others: the memory of one cannot be read meanwhile. */
static void closing_beside_others(void)
{
    check_begin("the time of closing does not depend on the number of streams");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    weir_stream *s, *other;
    int status = -1;
    check(weir_open_memory(&other, "", 1, NULL) == 0 && weir_open_memory(&s, "", 1, NULL) == 0, "open");
    pid_t child = fork();
    if (child == 0) {
        weir_getc(s);
        weir_getc(other);
        if (mprotect((char *)other + page, page, PROT_NONE) != 0)
            _exit(1);
        _exit(weir_close(s) != 0);
    }
    waitpid(child, &status, 0);
    check(status == 0, "the child ended with %#x", (unsigned)status);
    check(weir_close(s) == 0 && weir_close(other) == 0, "close");
}

/* ---- arguments ---- */

static const char *volatile nothing; /* volatile: the compiler must not see that the arguments are constant */
static volatile size_t none;

/* Returns 1 if `from` is NULL. With memcpy(3) of no bytes from it, gcc would assume that it is not. */
int is_null_after_write(weir_stream *s, const char *from, size_t bytes);
__attribute__((noinline)) int is_null_after_write(weir_stream *s, const char *from, size_t bytes)
{
    ssize_t result = weir_write(s, from, bytes);
    if (result == (ssize_t)bytes && from == NULL)
        return 1;
    return 0;
}

static void write_of_nothing(void)
{
    check_begin("weir_write of no bytes from NULL");
    weir_stream *s = open_new(O_WRONLY, (struct weir_options){0});
    check(weir_putc(s, 'a') == 'a' && is_null_after_write(s, nothing, none) == 1, "the check for NULL was removed");
    check(is_null_after_write(s, "b", 1) == 0 && weir_close(s) == 0 && file_is("ab"), "the file");
}

int main(void)
{
    close(mkstemp(path));
    commits();
    commits_after_flush();
    peek_of_a_growing_token();
    updates();
    tell_with_file_lock();
    writev_of_nothing();
    write_of_nothing();
    closing_beside_others();
    unlink(path);
    return check_finish("regressions_calls");
}
