/* stdio_conformance.c: cases in which weir/stdio.h once differed from glibc; the expected values are glibc's. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <weir/stdio.h>

#include "stdio/check.h"

/* The sanitizers reserve terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__) || WITH_TSAN
#define LIMITS_MEMORY 0
#else
#define LIMITS_MEMORY 1
#endif

/* ---- the position of a descriptor that the program moves itself ---- */

static void test_moved_descriptor(void)
{
    begin("ftell and fseek after the program moved the descriptor");
    const char *path = in_directory("moved");
    put_file(path, "0123456789");
    FILE *f = fopen(path, "r");
    lseek(fileno(f), 6, SEEK_SET);
    expect_equal(ftell(f), 6);
    lseek(fileno(f), 4, SEEK_SET);
    expect_equal(ftell(f), 4);
    expect_equal(fseek(f, 0, SEEK_CUR), 0);
    expect_equal(lseek(fileno(f), 0, SEEK_CUR), 4);
    expect_equal(getc(f), '4');
    expect_equal(ftell(f), 5);
    fclose(f);

    f = fopen(path, "r+");
    expect_equal(fputs("ab", f), 1);
    expect_equal(fflush(f), 0);
    expect_equal(ftell(f), 2);
    lseek(fileno(f), 6, SEEK_SET);
    expect_equal(ftell(f), 6);
    expect_equal(fseek(f, 1, SEEK_CUR), 0);
    fputs("X", f);
    expect_equal(ftell(f), 8);
    fclose(f);
    expect_text(file_text(path), "ab23456X89");

    f = fopen(path, "r");
    while (getc(f) != EOF) {
    }
    lseek(fileno(f), 3, SEEK_SET);
    expect_equal(ftell(f), 3);
    fclose(f);
}

/* Returns where the descriptor is after fdopen; the file has 10 bytes and the descriptor was at 3. */
static off_t after_fdopen(const char *path, int oflags, const char *mode)
{
    int fd = open(path, oflags);
    lseek(fd, 3, SEEK_SET);
    FILE *f = fdopen(fd, mode);
    off_t position = lseek(fd, 0, SEEK_CUR);
    expect_equal(ftell(f), position);
    expect_equal(fclose(f), 0);
    return position;
}

static void test_fdopen_position(void)
{
    begin("fdopen moves only a descriptor that it makes append");
    const char *path = in_directory("fdopen");
    put_file(path, "0123456789");
    expect_equal(after_fdopen(path, O_WRONLY | O_APPEND, "a"), 3);
    expect_equal(after_fdopen(path, O_WRONLY | O_APPEND, "w"), 3);
    expect_equal(after_fdopen(path, O_WRONLY, "a"), 10);
    expect_equal(after_fdopen(path, O_RDWR, "a+"), 3);
}

/* ---- printf ---- */

static void test_long_text(void)
{
    begin("a text longer than the largest buffer");
    FILE *f = fopen("/dev/null", "w");
    expect_equal(fprintf(f, "%1073741830d%s", 1, "abc"), 1073741833);
    expect_equal(ferror(f), 0);
    expect_equal(fclose(f), 0);
    f = fopen("/dev/full", "w");
    expect_equal(fprintf(f, "%1073741830d%s", 1, "abc"), -1);
    expect_equal(errno, ENOSPC);
    fclose(f);
}

static void test_no_memory(void)
{
    begin("a long text without memory for it");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {256 << 20, 256 << 20};
        FILE *f = fopen("/dev/null", "w");
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(77);
        _exit(fprintf(f, "%500000000d", 1) != 500000000 || fclose(f) != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    expect_equal(status, 0);
}

/* ---- streams in memory ---- */

static void test_memstream_variables(void)
{
    begin("open_memstream stores at fflush and fclose, not at the opening");
    char *text = "before";
    size_t bytes = 77;
    FILE *f = open_memstream(&text, &bytes);
    expect_text(text, "before");
    expect_equal(bytes, 77);
    fputs("hello", f);
    fflush(f);
    expect_text(text, "hello");
    char *first = text;
    text = NULL;
    bytes = 0;
    expect_equal(fclose(f), 0);
    expect(text == first);
    expect_equal(bytes, 5);
    free(text);

    text = NULL;
    f = open_memstream(&text, &bytes);
    expect_equal(fclose(f), 0);
    expect_text(text, "");
    expect_equal(bytes, 0);
    free(text);
}

/* A stream that a function has left open: its variables are on the stack of a frame or thread that has ended. */
static void test_memstream_without_variables(void)
{
    begin("exit and fflush(NULL) with an open_memstream whose variables are gone");
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct variables {
            char *text;
            size_t bytes;
        } *gone = mmap(NULL, sizeof *gone, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FILE *f = open_memstream(&gone->text, &gone->bytes);
        fputs("pending", f);
        munmap(gone, sizeof *gone);
        fflush(NULL);
        fputs("pending again", f);
        exit(0);
    }
    expect(child > 0 && waitpid(child, &status, 0) == child);
    expect_equal(status, 0);
}

static void test_no_memory_bytes(void)
{
    begin("fmemopen of no bytes");
    static const char *const modes[] = {"r", "w", "a", "r+", "w+", "a+"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (int own = 0; own < 2; own++) {
            char byte = 'x';
            FILE *f = fmemopen(own ? &byte : NULL, 0, modes[i]);
            if (!expect(f != NULL))
                continue;
            if (__freadable(f)) {
                expect_equal(getc(f), EOF);
                expect(feof(f));
            }
            if (__fwritable(f)) {
                expect_equal(fputs("y", f), 1);
                errno = 0;
                expect_equal(fflush(f), EOF);
                expect_equal(errno, ENOSPC);
            }
            fclose(f);
            expect_equal(byte, 'x');
        }
    }
}

/* ---- popen ---- */

static void test_popen_modes(void)
{
    begin("the modes of popen");
    static const struct {
        const char *mode;
        bool valid;
    } cases[] = {{"r", 1},  {"w", 1},  {"re", 1}, {"er", 1}, {"we", 1}, {"rr", 1}, {"rw", 0},
                 {"wr", 0}, {"rb", 0}, {"r+", 0}, {"a", 0},  {"x", 0},  {"e", 0},  {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        errno = 0;
        FILE *f = popen("true", cases[i].mode);
        expect_equal(f != NULL, cases[i].valid);
        if (f)
            expect_equal(pclose(f), 0);
        else
            expect_equal(errno, EINVAL);
    }
}

/* ---- fopencookie ---- */

static unsigned cookie_reads, cookie_writes, cookie_seeks;

static ssize_t careless_read(void *cookie, char *to, size_t bytes)
{
    (void)cookie;
    cookie_reads++;
    memset(to, 'r', bytes < 42 ? bytes : 42);
    return 42;
}
static ssize_t careless_write(void *cookie, const char *from, size_t bytes)
{
    (void)cookie;
    (void)from;
    (void)bytes;
    cookie_writes++;
    return 43; /* more than it was given */
}
static int careless_seek(void *cookie, off64_t *offset, int whence)
{
    (void)cookie;
    (void)offset; /* which stays relative */
    (void)whence;
    cookie_seeks++;
    return 44;
}

static void test_careless_cookie(void)
{
    begin("callbacks that return too much and leave the offset");
    char byte = 'b';
    FILE *f = fopencookie(NULL, "r+", (cookie_io_functions_t){careless_read, careless_write, careless_seek, NULL});
    expect_equal(fread(&byte, 1, 1, f), 1);
    expect_equal(fwrite(&byte, 1, 1, f), 1);
    expect_equal(fseek(f, 0, SEEK_CUR), 0);
    expect_equal(fclose(f), 0);
    expect_equal(cookie_reads, 1);
    expect_equal(cookie_writes, 1);
    expect(cookie_seeks > 0);
}

/* ---- musl's additions to stdio_ext.h ---- */

static void test_read_ahead(void)
{
    begin("the unread bytes, as gnulib sees them");
    const char *path = in_directory("ahead");
    size_t bytes = 99;
    put_file(path, "0123456789");
    FILE *f = fopen(path, "r");
    expect_equal(__freadahead(f), 0);
    expect(__freadptr(f, &bytes) == NULL);
    expect_equal(bytes, 0);
    expect_equal(getc(f), '0');
    expect_equal(__freadahead(f), 9);
    const char *next = __freadptr(f, &bytes);
    expect_equal(bytes, 9);
    expect(next && memcmp(next, "123456789", 9) == 0);
    __freadptrinc(f, 4);
    expect_equal(getc(f), '5');
    expect_equal(ftell(f), 6);
    expect_equal(ferror(f), 0);
    __fseterr(f);
    expect(ferror(f));
    clearerr(f);
    expect_equal(ferror(f), 0);
    fclose(f);
}

/* ---- freopen ---- */

static void test_failed_freopen(void)
{
    begin("a stream after a failed freopen, and opened again");
    const char *path = in_directory("again");
    put_file(path, "a");
    FILE *f = fopen(path, "r");
    errno = 0;
    expect(freopen(in_directory("missing/x"), "r", f) == NULL);
    expect_equal(errno, ENOENT);
    errno = 0;
    expect_equal(getc(f), EOF);
    expect_equal(errno, EBADF);
    expect(ferror(f));
    errno = 0;
    expect(freopen(path, "r", f) == f);
    expect_equal(errno, 0);
    expect_equal(ferror(f), 0);
    expect_equal(getc(f), 'a');
    expect_equal(fclose(f), 0);

    f = fopen("/dev/full", "w");
    fputs("lost", f);
    errno = 0;
    expect(freopen(path, "r", f) == f);
    expect_equal(errno, 0);
    expect_equal(ferror(f), 0);
    expect_equal(fclose(f), 0);
}

int main(void)
{
    make_directory();
    test_moved_descriptor();
    test_fdopen_position();
    test_long_text();
    if (LIMITS_MEMORY)
        test_no_memory();
    test_memstream_variables();
    test_memstream_without_variables();
    test_no_memory_bytes();
    test_popen_modes();
    test_careless_cookie();
    test_read_ahead();
    test_failed_freopen();
    remove_directory();
    return finish("stdio_conformance");
}
