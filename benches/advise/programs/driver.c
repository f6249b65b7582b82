/* Runs a program of weir advise with records of its own: driver FILE RECORDS RECORD_BYTES RECORDS_PER_TICK THREADS. Prints the
 * nanoseconds from after the opening to after the closing. CHOICE is the program's file; HAS_TICK: it has sync_log,
 * the work of its timer. */
#define main example_main
#include CHOICE
#undef main

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static size_t record_bytes;
static uint64_t records, tick_every;
static pthread_barrier_t tick;

static void fail(const char *call)
{
    fprintf(stderr, "%s failed\n", call);
    exit(1);
}

static void *write_records(void *text)
{
    const uint64_t every = tick_every;
    uint64_t next = every;
    for (uint64_t number = 1; number <= records; number++) {
        if (log_record(text, record_bytes) != 0)
            fail("log_record");
#ifdef HAS_TICK
        /* The interval's number of records has come, so its timer is due. All writers wait for it: otherwise those that go on
         * would hide its time. */
        if (number == next) {
            next += every;
            if (pthread_barrier_wait(&tick) == PTHREAD_BARRIER_SERIAL_THREAD && sync_log() != 0)
                fail("sync_log");
            pthread_barrier_wait(&tick);
        }
#else
        (void)next;
#endif
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    enum { THREADS = 64 };
    pthread_t threads[THREADS];
    if (argc != 6)
        return 2;
    records = strtoull(argv[2], NULL, 10);
    record_bytes = (size_t)strtoull(argv[3], NULL, 10);
    tick_every = strtoull(argv[4], NULL, 10);
    int writers = atoi(argv[5]);
    char *text = malloc(record_bytes);
    if (!text || record_bytes == 0 || writers < 1 || writers > THREADS)
        return 2;
    memset(text, 'x', record_bytes);
    text[record_bytes - 1] = '\n';
    if (log_open(argv[1]) != 0)
        fail("log_open");
    pthread_barrier_init(&tick, NULL, (unsigned)writers);
    double start = now_ns();
    if (writers == 1) {
        write_records(text);
    } else {
        records /= (uint64_t)writers;
        tick_every = tick_every / (uint64_t)writers ? tick_every / (uint64_t)writers : 1;
        for (int i = 0; i < writers; i++)
            if (pthread_create(&threads[i], NULL, write_records, text) != 0)
                fail("pthread_create");
        for (int i = 0; i < writers; i++)
            pthread_join(threads[i], NULL);
    }
    if (log_close() != 0)
        fail("log_close");
    printf("%.0f\n", now_ns() - start);
    return 0;
}
