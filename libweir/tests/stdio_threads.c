/* stdio_threads.c: threads that share a FILE of weir/stdio.h. Run it with ThreadSanitizer, too. */
#include <pthread.h>
#include <stdatomic.h>

#include <weir/stdio.h>

#include "stdio/check.h"

enum { THREADS = 8 };

static struct {
    FILE *file;
    long rounds;
    atomic_long sum, failed;
} shared;

static void run_threads(void *(*job)(void *number))
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        expect_equal(pthread_create(&threads[i], NULL, job, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_equal(shared.failed, 0);
}

/* Writes lines with each function in turn. */
static void *write_lines(void *number)
{
    int thread = (int)(intptr_t)number;
    char line[64];
    for (long i = 0; i < shared.rounds; i++) {
        int bytes = snprintf(line, sizeof line, "thread %d line %ld end\n", thread, i);
        switch (i % 4) {
        case 0: shared.failed += fprintf(shared.file, "thread %d line %ld end\n", thread, i) != bytes; break;
        case 1: shared.failed += fputs(line, shared.file) == EOF; break;
        case 2: shared.failed += fwrite(line, 1, (size_t)bytes, shared.file) != (size_t)bytes; break;
        default:
            flockfile(shared.file);
            for (const char *at = line; *at; at++)
                shared.failed += (at - line) % 2 ? putc_unlocked(*at, shared.file) == EOF : putc(*at, shared.file) == EOF;
            funlockfile(shared.file);
        }
    }
    return NULL;
}

/* Checks that the lines of each thread are there in order and whole. */
static void check_lines(const char *path, long rounds)
{
    FILE *f = fopen(path, "r");
    char line[64], should[64];
    long next[THREADS] = {0}, lines = 0;
    while (fgets(line, sizeof line, f)) {
        int thread;
        long number;
        if (!expect_equal(sscanf(line, "thread %d line %ld", &thread, &number), 2) || thread < 0 || thread >= THREADS)
            break;
        snprintf(should, sizeof should, "thread %d line %ld end\n", thread, next[thread]++);
        expect_text(line, should);
        lines++;
    }
    expect_equal(lines, rounds * THREADS);
    fclose(f);
}

static void test_lines(const char *test, int mode, size_t bytes, long rounds)
{
    begin(test);
    const char *path = in_directory("lines");
    shared.file = fopen(path, "w");
    shared.rounds = rounds;
    setvbuf(shared.file, NULL, mode, bytes);
    run_threads(write_lines);
    expect_equal(fclose(shared.file), 0);
    check_lines(path, rounds);
}

static void *print_lines(void *number)
{
    int thread = (int)(intptr_t)number;
    for (long i = 0; i < shared.rounds; i++) {
        char line[64];
        snprintf(line, sizeof line, "thread %d line %ld end", thread, i);
        if (i % 2)
            shared.failed += puts(line) == EOF;
        else
            shared.failed += printf("%s\n", line) < 0;
    }
    return NULL;
}

static void test_stdout(void)
{
    begin("printf and puts");
    const char *path = in_directory("stdout");
    int before = dup(1);
    shared.rounds = 3000;
    expect(freopen(path, "w", stdout) == stdout);
    setvbuf(stdout, NULL, _IOLBF, 300);
    run_threads(print_lines);
    expect_equal(fflush(stdout), 0);
    check_lines(path, shared.rounds);
    dup2(before, 1);
    close(before);
}

static void *read_lines(void *unused)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    (void)unused;
    while ((length = getline(&line, &room, shared.file)) > 0) {
        long number, check;
        if (length != 18 || sscanf(line, "%8ld %8ld", &number, &check) != 2 || number != check)
            shared.failed++;
        else
            shared.sum += number;
    }
    free(line);
    return NULL;
}

static void *read_numbers(void *unused)
{
    long number;
    (void)unused;
    while (fscanf(shared.file, "%ld", &number) == 1)
        shared.sum += number;
    return NULL;
}

static void *read_bytes(void *unused)
{
    int c;
    (void)unused;
    while ((c = getc(shared.file)) != EOF)
        shared.sum += c;
    return NULL;
}

static void test_reading(void)
{
    begin("reading by lines, by scanf, by bytes");
    enum { LINES = 20000 };
    long numbers = 0, bytes = 0;
    const char *path = in_directory("numbers");
    FILE *f = fopen(path, "w+");
    for (long i = 0; i < LINES; i++) {
        fprintf(f, "%8ld %8ld\n", i, i);
        numbers += i;
    }
    rewind(f);
    int c;
    while ((c = getc(f)) != EOF)
        bytes += c;
    setvbuf(f, NULL, _IOFBF, 1000);
    void *(*const jobs[])(void *) = {read_lines, read_numbers, read_bytes};
    const long sums[] = {numbers, 2 * numbers, bytes};
    shared.file = f;
    for (int i = 0; i < 3; i++) {
        rewind(f);
        shared.sum = 0;
        run_threads(jobs[i]);
        expect_equal(shared.sum, sums[i]);
        expect(feof(f) && !ferror(f));
    }
    fclose(f);
}

static void *write_bytes(void *number)
{
    for (long i = 0; i < shared.rounds; i++)
        shared.failed += putc('a' + (int)(intptr_t)number, shared.file) == EOF;
    return NULL;
}

static void test_bytes(void)
{
    begin("putc");
    const char *path = in_directory("bytes");
    shared.file = fopen(path, "w+");
    shared.rounds = 50000;
    setvbuf(shared.file, NULL, _IOFBF, 777);
    run_threads(write_bytes);
    rewind(shared.file);
    long count[256] = {0};
    int c;
    while ((c = getc(shared.file)) != EOF)
        count[c]++;
    for (int i = 0; i < THREADS; i++)
        expect_equal(count['a' + i], shared.rounds);
    fclose(shared.file);
}

/* Two threads flush all streams while the others open and close streams. */
static void *open_and_close(void *number)
{
    char name[100];
    snprintf(name, sizeof name, "%s/file-%d", directory, (int)(intptr_t)number);
    for (long i = 0; i < shared.rounds; i++) {
        if ((intptr_t)number < 2) {
            shared.failed += fflush(NULL) != 0;
            continue;
        }
        FILE *f = fopen(name, "w+");
        shared.failed += !f || fprintf(f, "%ld\n", i) < 2;
        rewind(f);
        long is = -1;
        shared.failed += fscanf(f, "%ld", &is) != 1 || is != i;
        if (i % 3 == 0)
            shared.failed += freopen(name, "a", f) != f || fputs("more\n", f) == EOF;
        shared.failed += fclose(f) != 0;
    }
    return NULL;
}

static void test_flush_all(void)
{
    begin("fflush(NULL) while streams are opened and closed");
    shared.rounds = 2000;
    run_threads(open_and_close);
}

static void *run_commands(void *number)
{
    for (long i = 0; i < shared.rounds; i++) {
        char command[64];
        snprintf(command, sizeof command, "echo %d", (int)(intptr_t)number * 100 + (int)i);
        FILE *f = popen(command, "r");
        int is = -1;
        shared.failed += !f || fscanf(f, "%d", &is) != 1 || is != (int)(intptr_t)number * 100 + (int)i;
        shared.failed += pclose(f) != 0;
    }
    return NULL;
}

static void test_popen(void)
{
    begin("popen");
    shared.rounds = 10;
    run_threads(run_commands);
}

static void *try_lock(void *number)
{
    if (ftrylockfile(shared.file) == 0) {
        funlockfile(shared.file);
        shared.sum++;
    }
    (void)number;
    return NULL;
}

static void test_trylock(void)
{
    begin("ftrylockfile");
    shared.file = fopen("/dev/null", "r");
    shared.sum = 0;
    flockfile(shared.file);
    run_threads(try_lock);
    expect_equal(shared.sum, 0);
    funlockfile(shared.file);
    run_threads(try_lock);
    expect(shared.sum > 0);
    fclose(shared.file);
}

int main(void)
{
    make_directory();
    test_lines("lines, a full buffer", _IOFBF, 4096, 10000);
    test_lines("lines, a tiny buffer", _IOFBF, 16, 1500);
    test_lines("lines, a buffer of one byte", _IOFBF, 1, 500);
    test_lines("lines, line-buffered", _IOLBF, 100, 1500);
    test_stdout();
    test_reading();
    test_bytes();
    test_flush_all();
    test_popen();
    test_trylock();
    remove_directory();
    return finish("stdio_threads");
}
