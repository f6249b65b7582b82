/* group_commit.c: threads that sync one stream at the same time share the calls; no sync returns 0 before the record is
 * on the device; and the error of a failed sync stays. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { SYNCERS = 16, SYNCED_RECORDS = 40 };

static weir_stream *shared;
static struct weir__kernel real;

static _Atomic int sync_calls, fail_from, failures;
static _Atomic int durable[SYNCERS]; /* records of each thread on the device */
static int sync_fd;

/* Makes the records durable that are in the file when the call begins. */
static int slow_fdatasync(int fd)
{
    (void)fd;
    int call = atomic_fetch_add(&sync_calls, 1) + 1, had[SYNCERS] = {0};
    char record[16];
    for (off_t at = 0; pread(sync_fd, record, 8, at) == 8; at += 8) {
        int thread = (record[0] - '0') * 10 + record[1] - '0', number = atoi(record + 3) + 1;
        if (thread >= 0 && thread < SYNCERS && number > had[thread])
            had[thread] = number;
    }
    sleep_seconds(0.002);
    if (fail_from && call >= fail_from) {
        errno = EIO;
        return -1;
    }
    for (int i = 0; i < SYNCERS; i++)
        for (int is = durable[i]; is < had[i] && !atomic_compare_exchange_weak(&durable[i], &is, had[i]);)
            ;
    return 0;
}

static void *sync_records(void *argument)
{
    int thread = (int)(intptr_t)argument;
    char record[16];
    for (int i = 0; i < SYNCED_RECORDS; i++) {
        sprintf(record, "%02d %04d", thread, i);
        if (weir_putrec(shared, record, 7) != 7)
            break;
        int result = weir_sync(shared, WEIR_DATA);
        if (result < 0) {
            atomic_fetch_add(&failures, result == -EIO);
            break;
        }
        if (durable[thread] <= i)
            atomic_fetch_add(&failures, 1000);
    }
    return NULL;
}

static void begin_syncs(struct weir_options options)
{
    sync_fd = nameless_file();
    options.flags |= WEIR_THREADS;
    sync_calls = fail_from = failures = 0;
    for (int i = 0; i < SYNCERS; i++)
        durable[i] = 0;
    weir__kernel.fdatasync = slow_fdatasync;
    check(weir_fdopen(&shared, dup(sync_fd), &options) == 0, "fdopen");
}

static void end_syncs(int expected)
{
    int result = weir_close(shared);
    check(result == expected, "close returned %d", result);
    weir__kernel.fdatasync = real.fdatasync;
    close(sync_fd);
}

static void group_commit(const char *name, struct weir_options options)
{
    check_begin("16 threads sync each record, %s", name);
    begin_syncs(options);
    in_threads(SYNCERS, sync_records);
    int records = SYNCERS * SYNCED_RECORDS;
    check(failures == 0, "%d syncs returned 0 too early", failures / 1000);
    check(sync_calls * 4 < records, "%d calls for %d records", sync_calls, records);
    struct weir_stats stats;
    weir_get_stats(shared, &stats);
    check(stats.syncs == (uint64_t)sync_calls && stats.shared_syncs > (uint64_t)records / 2,
          "weir_get_stats: %llu syncs, %llu shared", (unsigned long long)stats.syncs,
          (unsigned long long)stats.shared_syncs);
    printf("  %d fdatasync calls for %d records\n", sync_calls, records);
    end_syncs(0);
}

/* A thread that is woken to lead, but whose record another leader has synced meanwhile, must wake the next leader. Else
 * the followers wait without end. */
enum { FAST_RECORDS = 8000, FAST_SECONDS = 3 };

static _Atomic int fast_records;
static time_t fast_end;

static int fast_fdatasync(int fd)
{
    sleep_seconds(atomic_fetch_add(&sync_calls, 1) % 4 * 50e-6);
    return fd < 0 ? -1 : 0;
}

static void *sync_fast(void *argument)
{
    unsigned thread = (unsigned)(intptr_t)argument;
    for (unsigned i = 0; i < FAST_RECORDS && time(NULL) < fast_end; i++) {
        bool locks = thread == 0 && i % 64 == 0;
        if (locks)
            weir_lock(shared);
        if (weir_putrec(shared, "00 0000", 7) != 7 || weir_sync(shared, i % 16 ? WEIR_DATA : WEIR_WHOLE) != 0)
            atomic_fetch_add(&failures, 1);
        if (locks)
            weir_unlock(shared);
        atomic_fetch_add(&fast_records, 1);
        for (unsigned pause = (i * 7 + thread) % 5; pause > 0; pause--)
            sched_yield();
    }
    return NULL;
}

static void every_follower_returns(void)
{
    check_begin("every sync returns, with threads that start and end syncs at any time");
    begin_syncs((struct weir_options){.mode = WEIR_RECORD});
    weir__kernel.fdatasync = weir__kernel.fsync = fast_fdatasync;
    fast_end = time(NULL) + FAST_SECONDS;
    alarm(60); /* ends the test if a thread hangs */
    in_threads(SYNCERS, sync_fast);
    alarm(0);
    check(failures == 0, "%d syncs failed", failures);
    struct weir_stats stats;
    weir_get_stats(shared, &stats);
    check(stats.syncs + stats.shared_syncs >= (uint64_t)fast_records && fast_records > 0,
          "weir_get_stats: %llu syncs, %llu shared", (unsigned long long)stats.syncs,
          (unsigned long long)stats.shared_syncs);
    weir__kernel.fsync = real.fsync;
    end_syncs(0);
}

static void failed_sync_is_sticky(void)
{
    check_begin("all threads get the error of a failed sync, and weir_clear does not remove it");
    begin_syncs((struct weir_options){.mode = WEIR_RECORD});
    fail_from = 5;
    in_threads(SYNCERS, sync_records);
    check(failures == SYNCERS, "%d of %d threads got the error", failures, SYNCERS);
    fail_from = 0;
    weir_clear(shared);
    check(weir_sync(shared, WEIR_DATA) == -EIO, "weir_sync after weir_clear");
    end_syncs(-EIO);
}

/* A thread that holds the lock syncs while another thread is in fdatasync(2). */
static ssize_t fail_with_eagain(int fd, const void *from, size_t bytes)
{
    (void)fd, (void)from, (void)bytes;
    errno = EAGAIN;
    return -1;
}

static void *sync_once(void *unused)
{
    weir_sync(shared, WEIR_DATA);
    return unused;
}

static void sync_with_the_lock_held(void)
{
    check_begin("a sync by the thread that holds the lock");
    begin_syncs((struct weir_options){.mode = WEIR_FULL});
    pthread_t thread;
    weir_putrec(shared, "00 0000", 7);
    pthread_create(&thread, NULL, sync_once, NULL);
    while (sync_calls == 0)
        sched_yield();
    weir_lock(shared); /* the other thread is in fdatasync(2) and has released the lock */
    weir_putrec(shared, "01 0000", 7);
    weir__kernel.write = fail_with_eagain;
    check(weir_sync(shared, WEIR_DATA) == -EAGAIN, "weir_sync returned 0 without the record");
    weir__kernel.write = real.write;
    check(weir_sync(shared, WEIR_DATA) == 0 && durable[1] == 1, "weir_sync after EAGAIN");
    weir_unlock(shared);
    pthread_join(thread, NULL);
    end_syncs(0);
}

/* The kernel reports a write-back error once, to one of two simultaneous calls. */
static _Atomic int in_device;

static int second_fails(int fd)
{
    (void)fd;
    if (atomic_fetch_add(&in_device, 1) == 0) {
        while (in_device < 3)
            sched_yield();
        return 0;
    }
    errno = EIO;
    return -1;
}

static void *first_result(void *result)
{
    *(int *)result = weir_sync(shared, WEIR_DATA);
    return NULL;
}

static void error_of_other_thread(void)
{
    check_begin("an error that the kernel reported to another thread");
    begin_syncs((struct weir_options){.mode = WEIR_FULL});
    weir__kernel.fdatasync = second_fails;
    int result = 1;
    pthread_t thread;
    in_device = 0;
    weir_putrec(shared, "00 0000", 7);
    pthread_create(&thread, NULL, first_result, &result);
    while (in_device == 0)
        sched_yield();
    weir_lock(shared);
    check(weir_sync(shared, WEIR_DATA) == -EIO, "the second call");
    weir_unlock(shared);
    in_device = 3;
    pthread_join(thread, NULL);
    check(result == -EIO, "the first call returned %d", result);
    end_syncs(-EIO);
}

/* The kernel reports the error to the first call, which returns after the second one. */
static int first_fails_late(int fd)
{
    (void)fd;
    if (atomic_fetch_add(&in_device, 1) > 0)
        return 0;
    while (in_device < 2)
        sched_yield();
    sleep_seconds(0.1);
    errno = EIO;
    return -1;
}

static void error_stored_late(void)
{
    check_begin("an error that another thread is about to report");
    begin_syncs((struct weir_options){.mode = WEIR_FULL});
    weir__kernel.fdatasync = first_fails_late;
    int result = 1;
    pthread_t thread;
    in_device = 0;
    weir_putrec(shared, "00 0000", 7);
    pthread_create(&thread, NULL, first_result, &result);
    while (in_device == 0)
        sched_yield();
    weir_lock(shared); /* keeps the other thread from storing the error under the lock */
    weir_putrec(shared, "01 0000", 7);
    int own = weir_sync(shared, WEIR_DATA);
    check(own == -EIO, "the second call returned %d", own);
    weir_unlock(shared);
    pthread_join(thread, NULL);
    check(result == -EIO, "the first call returned %d", result);
    end_syncs(-EIO);
}

/* Writes two lines by one call, in two pieces that do not end at a newline. */
static void *write_pairs(void *argument)
{
    char first[64], second[16];
    for (int i = 0; i < 40; i++) {
        int length = sprintf(first, "%d-%d\n%d-", (int)(intptr_t)argument, i, (int)(intptr_t)argument);
        int rest = sprintf(second, "%d\n", i);
        struct iovec parts[2] = {{first, (size_t)length}, {second, (size_t)rest}};
        if (i % 2 ? weir_writev(shared, parts, 2) != length + rest : weir_printf(shared, "%s%s", first, second) < 0)
            break;
    }
    return NULL;
}

/* During the sync after the first line the lock is free, but no other thread may write before the second line. */
static void calls_are_not_interleaved(struct weir_options options)
{
    check_begin("bytes of one call are contiguous, mode %d, %zu bytes", (int)options.mode, options.buffer_bytes);
    options.durability = WEIR_DATA;
    begin_syncs(options);
    in_threads(8, write_pairs);
    int copy = dup(sync_fd), pairs = 0;
    end_syncs(0);
    char first[64], second[64];
    FILE *f = fdopen(copy, "r");
    rewind(f);
    for (; fgets(first, sizeof first, f) && fgets(second, sizeof second, f); pairs++)
        if (!check(strcmp(first, second) == 0, "%s and %s", first, second))
            break;
    check(pairs == 8 * 40, "%d pairs", pairs);
    fclose(f);
}

int main(void)
{
    real = weir__kernel;
    group_commit("full", (struct weir_options){.mode = WEIR_FULL});
    group_commit("record", (struct weir_options){.mode = WEIR_RECORD});
    group_commit("line", (struct weir_options){.mode = WEIR_LINE});
    group_commit("none", (struct weir_options){.mode = WEIR_NONE});
    every_follower_returns();
    failed_sync_is_sticky();
    sync_with_the_lock_held();
    error_of_other_thread();
    error_stored_late();
    calls_are_not_interleaved((struct weir_options){.mode = WEIR_LINE, .buffer_bytes = 1});
    calls_are_not_interleaved((struct weir_options){.mode = WEIR_LINE});
    calls_are_not_interleaved((struct weir_options){.mode = WEIR_FULL, .buffer_bytes = 1});
    calls_are_not_interleaved((struct weir_options){.mode = WEIR_NONE, .buffer_bytes = 1});
    calls_are_not_interleaved((struct weir_options){.mode = WEIR_RECORD, .buffer_bytes = 1});
    return check_finish("group_commit");
}
