/* stdio_errors.c: failures with weir/stdio.h: return values, errno, the error and end-of-file indicators. */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <weir/stdio.h>

#include "stdio/check.h"

static void test_full_device(void)
{
    begin("a full device");
    FILE *f = fopen("/dev/full", "w");
    expect(f != NULL);
    expect_equal(fprintf(f, "%d\n", 12345), 6);
    expect_equal(ferror(f), 0);
    errno = 0;
    expect_equal(fflush(f), EOF);
    expect_equal(errno, ENOSPC);
    expect(ferror(f));
    expect_equal(fflush(f), EOF);
    errno = 0;
    expect_equal(fclose(f), EOF);
    expect_equal(errno, ENOSPC);

    f = fopen("/dev/full", "w");
    expect_equal(fputs("x", f), 1);
    errno = 0;
    expect_equal(fclose(f), EOF);
    expect_equal(errno, ENOSPC);
}

static void test_full_unbuffered(void)
{
    begin("a full device, unbuffered and line-buffered");
    FILE *f = fopen("/dev/full", "w");
    expect_equal(setvbuf(f, NULL, _IONBF, 0), 0);
    errno = 0;
    expect_equal(fprintf(f, "text"), -1);
    expect_equal(errno, ENOSPC);
    errno = 0;
    expect_equal(fputc('x', f), EOF);
    expect_equal(errno, ENOSPC);
    expect_equal(fputs("text", f), EOF);
    expect_equal(fwrite("text", 1, 4, f), 0);
    expect(ferror(f));
    clearerr(f);
    expect(!ferror(f));
    fclose(f);

    f = fopen("/dev/full", "w");
    setlinebuf(f);
    expect_equal(fputs("no end", f), 1);
    expect(!ferror(f));
    errno = 0;
    expect_equal(putc('\n', f), EOF);
    expect_equal(errno, ENOSPC);
    expect(ferror(f));
    expect_equal(fclose(f), EOF);
}

/* The bytes of a line come one by one; the last of them writes the line. */
static void test_bytes_of_a_line(void)
{
    begin("bytes of a line, one by one");
    const char *path = in_directory("line");
    FILE *f = fopen(path, "w");
    setlinebuf(f);
    putc('a', f);
    putc('b', f);
    expect_equal(file_bytes(path), 0);
    expect_equal(putc('\n', f), '\n');
    expect_equal(fflush(f), 0);
    expect_text(file_text(path), "ab\n");
    for (int i = 0; i < 70000; i++) /* more than the buffer has */
        expect_equal(putc('c', f), 'c');
    putc('\n', f);
    expect_equal(file_bytes(path), 70004);
    setvbuf(f, NULL, _IOFBF, 0);
    putc('d', f);
    putc('\n', f);
    expect_equal(file_bytes(path), 70004);
    setlinebuf(f);
    expect_equal(file_bytes(path), 70006);
    expect_equal(lseek(fileno(f), 0, SEEK_SET), 0); /* after fflush another user may move the position */
    expect_equal(fflush(f), 0);
    expect_equal(lseek(fileno(f), 10, SEEK_SET), 10);
    expect_equal(ftell(f), 10);
    fclose(f);
}

/* Sets a file size limit, which replaces a full disk that gets space again. */
static void limit_size(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void test_recovery(void)
{
    begin("a write after an error continues where the last one stopped");
    signal(SIGXFSZ, SIG_IGN);
    const char *path = in_directory("grows");
    FILE *f = fopen(path, "w");
    setvbuf(f, NULL, _IOFBF, 16);
    limit_size(20);
    fputs("0123456789abcdef", f);
    errno = 0;
    expect_equal(fputs("ghijklmn", f) == EOF || fflush(f) == EOF, 1);
    expect_equal(errno, EFBIG);
    expect(ferror(f));
    expect_equal(file_bytes(path), 20);
    limit_size(RLIM_INFINITY);
    expect_equal(fputs("opq", f), 1);
    expect_equal(fflush(f), 0);
    expect(ferror(f)); /* clearerr has not been called */
    expect_text(file_text(path), "0123456789abcdefghijklmnopq");
    errno = 0;
    expect_equal(fclose(f), EOF);
    expect_equal(errno, EFBIG);

    f = fopen(path, "w");
    limit_size(2);
    fputs("abc", f);
    expect_equal(fflush(f), EOF);
    limit_size(RLIM_INFINITY);
    clearerr(f);
    expect(!ferror(f));
    expect_equal(fclose(f), 0); /* the program has cleared the error, so it knows it */
    expect_text(file_text(path), "abc");
}

static void drain_pipe(int fd, char *to, size_t *length)
{
    ssize_t got;
    while ((got = read(fd, to + *length, 4096)) > 0)
        *length += (size_t)got;
}

static void test_would_block(void)
{
    begin("output to a full non-blocking pipe");
    static char out[300000], in[700000];
    int ends[2];
    size_t length = 0;
    expect_equal(pipe2(ends, O_NONBLOCK), 0);
    FILE *f = fdopen(ends[1], "w");
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (char)(i % 251);
    errno = 0;
    size_t written = fwrite(out, 1, sizeof out, f);
    expect(written < sizeof out);
    expect_equal(errno, EAGAIN);
    expect(ferror(f));
    clearerr(f);
    while (written < sizeof out) {
        drain_pipe(ends[0], in, &length);
        size_t more = fwrite(out + written, 1, sizeof out - written, f);
        written += more;
        clearerr(f);
    }
    for (int i = 0; i < 100 && fflush(f) != 0; i++)
        drain_pipe(ends[0], in, &length);
    expect_equal(fflush(f), 0);
    drain_pipe(ends[0], in, &length);
    expect_equal(length, sizeof out);
    expect(memcmp(in, out, sizeof out) == 0);
    fwrite(out, 1, sizeof out, f);
    fputs("pending", f);
    clearerr(f);
    errno = 0;
    expect_equal(fclose(f), EOF); /* the stream is closed in spite of the error */
    expect_equal(errno, EAGAIN);
    expect_equal(fcntl(ends[1], F_GETFD), -1);
    close(ends[0]);
}

static void test_would_block_reading(void)
{
    begin("input from an empty non-blocking pipe");
    int ends[2];
    char line[32] = "";
    expect_equal(pipe2(ends, O_NONBLOCK), 0);
    FILE *f = fdopen(ends[0], "r");
    errno = 0;
    expect_equal(getc(f), EOF);
    expect_equal(errno, EAGAIN);
    expect(ferror(f) && !feof(f));
    clearerr(f);
    expect_equal(write(ends[1], "par", 3), 3);
    errno = 0;
    expect(fgets(line, sizeof line, f) == line);
    expect_equal(errno, EAGAIN);
    expect_text(line, "par");
    expect(ferror(f));
    expect_equal(write(ends[1], "tial\nx", 6), 6);
    expect(fgets(line, sizeof line, f) == line); /* reads in spite of the error indicator */
    expect_text(line, "tial\n");
    expect_equal(getc(f), 'x');
    close(ends[1]);
    clearerr(f);
    expect_equal(getc(f), EOF);
    expect(feof(f) && !ferror(f));
    expect_equal(fclose(f), 0);
}

static void test_directions(void)
{
    begin("the wrong direction");
    const char *path = in_directory("directions");
    put_file(path, "abc\n");
    char text[8], *line = NULL;
    size_t room = 0;
    FILE *r = fopen(path, "r"), *w = fopen(path, "a");
    errno = 0;
    expect_equal(fputc('x', r), EOF);
    expect_equal(errno, EBADF);
    expect(ferror(r));
    expect_equal(fprintf(r, "x"), -1);
    expect_equal(fputs("x", r), EOF);
    expect_equal(fwrite("x", 1, 1, r), 0);
    expect_equal(getc(r), 'a'); /* reading works in spite of the error */
    expect_equal(fclose(r), 0);
    errno = 0;
    expect_equal(fgetc(w), EOF);
    expect_equal(errno, EBADF);
    expect(ferror(w) && !feof(w));
    expect(fgets(text, sizeof text, w) == NULL);
    expect_equal(fread(text, 1, 4, w), 0);
    expect_equal(getline(&line, &room, w), -1);
    int n = 5;
    errno = 0;
    expect_equal(fscanf(w, "%n%d", &n, &n), EOF);
    expect(errno == EBADF && n == 5);
    expect_equal(fputs("def\n", w), 1);
    expect_equal(fclose(w), 0);
    expect_text(file_text(path), "abc\ndef\n");
    free(line);
}

static void test_end(void)
{
    begin("the end of the input");
    const char *path = in_directory("end");
    put_file(path, "one");
    FILE *f = fopen(path, "r+");
    char *line = NULL;
    size_t room = 0;
    expect_equal(getline(&line, &room, f), 3);
    expect(feof(f) && !ferror(f));
    errno = 0;
    expect_equal(getline(&line, &room, f), -1);
    expect_equal(errno, 0);
    expect_equal(getc(f), EOF);
    expect_equal(errno, 0);
    int fd = open(path, O_WRONLY | O_APPEND);
    expect_equal(write(fd, "two", 3), 3);
    close(fd);
    expect_equal(getc(f), EOF); /* because the end-of-file indicator is set */
    clearerr(f);
    expect_equal(getc(f), 't');
    expect(!feof(f));
    ungetc('T', f);
    while (getc(f) != EOF) {}
    expect(feof(f));
    ungetc('x', f);
    expect(!feof(f));
    expect_equal(getc(f), 'x');
    expect_equal(getc(f), EOF);
    expect(feof(f));
    expect_equal(fputs("three", f), 1); /* C11 allows a write after end of file without a seek */
    expect(feof(f));
    rewind(f);
    expect(!feof(f));
    expect_equal(fclose(f), 0);
    expect_text(file_text(path), "onetwothree");
    free(line);
}

static void test_directory(void)
{
    begin("a directory");
    FILE *f = fopen(directory, "r");
    expect(f != NULL);
    errno = 0;
    expect_equal(getc(f), EOF);
    expect_equal(errno, EISDIR);
    expect(ferror(f) && !feof(f));
    expect_equal(fclose(f), 0); /* there are no pending bytes */
    errno = 0;
    expect(fopen(directory, "w") == NULL);
    expect_equal(errno, EISDIR);
}

static void test_broken_pipe(void)
{
    begin("the reader has closed the pipe");
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    expect_equal(pipe(ends), 0);
    FILE *f = fdopen(ends[1], "w");
    close(ends[0]);
    expect_equal(fputs("lost\n", f), 1);
    errno = 0;
    expect_equal(fflush(NULL), EOF);
    expect_equal(errno, EPIPE);
    expect(ferror(f));
    expect_equal(fclose(f), EOF);
    expect_equal(errno, EPIPE);
    expect_equal(fflush(NULL), 0);
}

static void test_format_failures(void)
{
    begin("formatting errors");
    const char *path = in_directory("format");
    FILE *f = fopen(path, "w");
    errno = 0;
    expect_equal(fprintf(f, "abc%lc", (wint_t)0x20ac), -1); /* the C locale has no such character */
    expect_equal(errno, EILSEQ);
    expect(!ferror(f));
    int count = 0;
    expect_equal(fprintf(f, "%s%n!\n", "four", &count), 6);
    expect_equal(count, 4);
    errno = ENOENT;
    expect_equal(fprintf(f, "%m\n"), (int)strlen(strerror(ENOENT)) + 1);
    expect_equal(fclose(f), 0);
    expect_text(file_text(path), "four!\nNo such file or directory\n");
}

static void test_perror(void)
{
    begin("perror");
    const char *path = in_directory("perror");
    int before = dup(2);
    expect(freopen(path, "w", stderr) == stderr);
    errno = ENOENT;
    perror("where");
    expect_equal(errno, ENOENT);
    perror("");
    errno = EACCES;
    perror(NULL);
    expect_text(file_text(path), "where: No such file or directory\nNo such file or directory\nPermission denied\n");
    dup2(before, 2);
    close(before);
}

int main(void)
{
    make_directory();
    test_full_device();
    test_full_unbuffered();
    test_bytes_of_a_line();
    test_recovery();
    test_would_block();
    test_would_block_reading();
    test_directions();
    test_end();
    test_directory();
    test_broken_pipe();
    test_format_failures();
    test_perror();
    remove_directory();
    return finish("stdio_errors");
}
