/* stdio_open.c: opening, reopening, closing and buffering with weir/stdio.h. */
#include <sys/ioctl.h>

#include <weir/stdio.h>

#include "stdio/check.h"

struct mode_case {
    const char *mode;
    int error_missing, error_exists; /* errno of fopen if the file is missing or exists; 0: success */
    int access, append, close_on_exec, truncates;
};

static const struct mode_case mode_cases[] = {
    {"r", ENOENT, 0, O_RDONLY, 0, 0, 0},     {"rb", ENOENT, 0, O_RDONLY, 0, 0, 0},
    {"r+", ENOENT, 0, O_RDWR, 0, 0, 0},      {"rb+", ENOENT, 0, O_RDWR, 0, 0, 0},
    {"r+be", ENOENT, 0, O_RDWR, 0, 1, 0},    {"w", 0, 0, O_WRONLY, 0, 0, 1},
    {"wb", 0, 0, O_WRONLY, 0, 0, 1},         {"w+", 0, 0, O_RDWR, 0, 0, 1},
    {"wx", 0, EEXIST, O_WRONLY, 0, 0, 0},    {"w+bx", 0, EEXIST, O_RDWR, 0, 0, 0},
    {"we", 0, 0, O_WRONLY, 0, 1, 1},         {"a", 0, 0, O_WRONLY, 1, 0, 0},
    {"a+", 0, 0, O_RDWR, 1, 0, 0},           {"ab+e", 0, 0, O_RDWR, 1, 1, 0},
    {"ax", 0, EEXIST, O_WRONLY, 1, 0, 0},    {"rt,ccs=UTF-8", ENOENT, 0, O_RDONLY, 0, 0, 0},
    {"", EINVAL, EINVAL, 0, 0, 0, 0},        {"x", EINVAL, EINVAL, 0, 0, 0, 0},
    {"+r", EINVAL, EINVAL, 0, 0, 0, 0},
};

static void check_stream(FILE *f, const struct mode_case *c, const char *path)
{
    int fd = fileno(f), flags = fcntl(fd, F_GETFL);
    expect_equal(flags & O_ACCMODE, c->access);
    expect_equal(!!(flags & O_APPEND), c->append);
    expect_equal(!!(fcntl(fd, F_GETFD) & FD_CLOEXEC), c->close_on_exec);
    expect_equal(__freadable(f), c->access != O_WRONLY);
    expect_equal(__fwritable(f), c->access != O_RDONLY);
    if (c->truncates)
        expect_equal(file_bytes(path), 0);
    expect_equal(fclose(f), 0);
    expect_equal(fcntl(fd, F_GETFD), -1);
}

static void test_modes(void)
{
    begin("modes");
    const char *path = in_directory("modes");
    for (size_t i = 0; i < sizeof mode_cases / sizeof *mode_cases; i++) {
        const struct mode_case *c = &mode_cases[i];
        for (int exists = 0; exists < 2; exists++) {
            unlink(path);
            if (exists)
                put_file(path, "there\n");
            int error = exists ? c->error_exists : c->error_missing;
            errno = 0;
            FILE *f = fopen(path, c->mode);
            expect_equal(f == NULL, error != 0);
            expect_equal(errno, error);
            if (f)
                check_stream(f, c, path);
            if (!c->truncates && exists)
                expect_text(file_text(path), "there\n");
        }
    }
}

static void test_initial_position(void)
{
    begin("the position after opening");
    const char *path = in_directory("begins");
    put_file(path, "12345");
    FILE *f = fopen(path, "a");
    expect_equal(ftell(f), 5);
    fputs("6", f);
    expect_equal(ftell(f), 6);
    fclose(f);
    f = fopen(path, "a+");
    expect_equal(ftell(f), 0);
    expect_equal(getc(f), '1');
    expect_equal(fputs("7", f), 1);
    expect_equal(ftell(f), 7);
    rewind(f);
    fputs("8", f);
    fclose(f);
    expect_text(file_text(path), "12345678");
    f = fopen(path, "r+");
    expect_equal(ftell(f), 0);
    fputs("ab", f);
    expect_equal(ftell(f), 2);
    expect_equal(getc(f), '3'); /* libweir needs no seek in between */
    fputs("d", f);
    expect_equal(getc(f), '5');
    fclose(f);
    expect_text(file_text(path), "ab3d5678");
}

static void test_fdopen(void)
{
    begin("fdopen");
    const char *path = in_directory("fdopen");
    put_file(path, "0123456789");
    int r = open(path, O_RDONLY), w = open(path, O_WRONLY), both = open(path, O_RDWR | O_CLOEXEC);
    static const struct {
        int descriptor;
        const char *mode;
        bool ok;
    } cases[] = {{0, "r", 1},  {0, "w", 0}, {0, "r+", 0}, {0, "a", 0},  {1, "w", 1}, {1, "r", 0},
                 {1, "w+", 0}, {2, "r", 1}, {2, "w", 1},  {2, "r+", 1}, {2, "q", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dup(cases[i].descriptor == 0 ? r : cases[i].descriptor == 1 ? w : both);
        errno = 0;
        FILE *f = fdopen(fd, cases[i].mode);
        expect_equal(f != NULL, cases[i].ok);
        expect_equal(errno, cases[i].ok ? 0 : EINVAL);
        expect_equal(f ? fclose(f) : close(fd), 0);
    }
    expect_text(file_text(path), "0123456789"); /* fdopen with "w" does not truncate */
    lseek(both, 4, SEEK_SET);
    FILE *f = fdopen(both, "r");
    expect_equal(ftell(f), 4);
    expect_equal(getc(f), '4');
    expect_equal(putc('x', f), EOF); /* the descriptor allows writing, the stream does not */
    expect_equal(fclose(f), 0);
    f = fdopen(w, "a");
    expect(fcntl(w, F_GETFL) & O_APPEND);
    expect_equal(ftell(f), 10);
    fputs("A", f);
    expect_equal(fclose(f), 0);
    expect_text(file_text(path), "0123456789A");
    close(r);
    errno = 0;
    expect(fdopen(r, "r") == NULL);
    expect_equal(errno, EBADF);
}

static void test_freopen(void)
{
    begin("freopen");
    const char *one = in_directory("one"), *two = in_directory("two");
    put_file(two, "second file\n");
    FILE *f = fopen(one, "w");
    int fd = fileno(f);
    setvbuf(f, NULL, _IONBF, 0);
    setvbuf(f, NULL, _IOFBF, 100);
    fputs("pends", f);
    expect(freopen(two, "r", f) == f);
    expect_text(file_text(one), "pends");
    expect_equal(fileno(f), fd);
    char line[40];
    expect(fgets(line, sizeof line, f) == line);
    expect_text(line, "second file\n");
    expect_equal(getc(f), EOF);
    expect(feof(f));
    expect(freopen(one, "a+", f) == f);
    expect(!feof(f) && !ferror(f));
    expect_equal(fputs(" no more", f), 1);
    rewind(f);
    expect(fgets(line, sizeof line, f) == line);
    expect_text(line, "pends no more");
    expect(freopen(NULL, "r", f) == f); /* the same file, with another mode */
    expect_equal(putc('x', f), EOF);
    expect_equal(getc(f), 'p');
    errno = 0;
    expect(freopen(in_directory("missing/file"), "r", f) == NULL);
    expect_equal(errno, ENOENT);
    expect_equal(fcntl(fd, F_GETFD), -1);
    fclose(f);
}

static void test_freopen_memory(void)
{
    begin("freopen of a stream without descriptor");
    char memory[32];
    const char *path = in_directory("memory");
    FILE *f = fmemopen(memory, sizeof memory, "w");
    fputs("in memory", f);
    expect(freopen(path, "w", f) == f);
    expect_text(memory, "in memory");
    fputs("in a file", f);
    expect(fileno(f) >= 0);
    expect_equal(fclose(f), 0);
    expect_text(file_text(path), "in a file");
}

/* Calls `job` in a child, which may close its standard streams. Returns its exit status. */
static int in_child(int (*job)(const char *path), const char *path)
{
    int status, pid = fork();
    if (pid == 0)
        exit(job(path));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int job_redirect(const char *path)
{
    printf("before\n"); /* to the old descriptor 1 */
    if (freopen(path, "w", stdout) != stdout || fileno(stdout) != 1)
        return 1;
    printf("after\n");
    if (system("echo from a child >&1") != 0)
        return 2;
    puts("last");
    return 0;
}

static int job_close_twice(const char *path)
{
    if (freopen(path, "w", stdout) != stdout)
        return 1;
    puts("text");
    if (fclose(stdout) != 0)
        return 2;
    if (fclose(stdout) != EOF || puts("nowhere") != EOF || errno != EBADF || printf("x") != -1)
        return 3;
    if (fflush(NULL) != 0)
        return 4;
    if (freopen(path, "a", stdout) != stdout)
        return 5;
    return puts("again") == EOF;
}

static int job_closed_from_the_start(const char *path)
{
    close(0);
    close(1);
    if (getchar() != EOF || errno != EBADF || !ferror(stdin))
        return 1;
    if (putchar('x') != EOF && fflush(stdout) != EOF)
        return 2;
    int fd = open(path, O_RDWR); /* gets the number 0, but is not the program's stdin */
    if (fd != 0 || getchar() != EOF)
        return 3;
    close(fd);
    if (freopen(path, "r", stdin) != stdin || fileno(stdin) != 0)
        return 4;
    return getchar() != 's';
}

static int job_fclose_descriptors(const char *path)
{
    if (fclose(stdin) != 0)
        return 1;
    return open(path, O_RDONLY) != 0; /* the lowest free number */
}

static void test_standard(void)
{
    begin("the standard streams, reopened and closed");
    const char *path = in_directory("standard");
    int before = dup(1), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    expect_equal(in_child(job_redirect, path), 0);
    expect_text(file_text(path), "from a child\nafter\nlast\n"); /* stdout is pending until exit */
    expect_equal(in_child(job_close_twice, path), 0);
    expect_text(file_text(path), "text\nagain\n");
    put_file(path, "something\n");
    expect_equal(in_child(job_closed_from_the_start, path), 0);
    expect_equal(in_child(job_fclose_descriptors, path), 0);
    dup2(before, 1);
    close(before);
    close(null);
}

static void test_tmpfile(void)
{
    begin("tmpfile");
    FILE *f = tmpfile(), *g = tmpfile();
    struct stat status;
    expect(f && g);
    expect_equal(fstat(fileno(f), &status), 0);
    expect_equal(status.st_nlink, 0);
    expect_equal(status.st_mode & 0777, 0600);
    fputs("f", f);
    fputs("g", g);
    rewind(f);
    rewind(g);
    expect_equal(getc(f), 'f');
    expect_equal(getc(g), 'g');
    expect_equal(fclose(f), 0);
    expect_equal(fclose(g), 0);
}

static int bytes_in_pipe(int fd)
{
    int bytes = -1;
    ioctl(fd, FIONREAD, &bytes);
    return bytes;
}

static void test_output_buffers(void)
{
    begin("when output is written");
    int ends[2];
    char memory[64];
    expect_equal(pipe(ends), 0);
    FILE *f = fdopen(ends[1], "w");
    fputs("12345\n", f);
    expect_equal(bytes_in_pipe(ends[0]), 0);
    expect_equal(__fpending(f), 6);
    expect_equal(fflush(f), 0);
    expect_equal(bytes_in_pipe(ends[0]), 6);
    expect_equal(setvbuf(f, NULL, _IONBF, 0), 0);
    putc('x', f);
    expect_equal(bytes_in_pipe(ends[0]), 7);
    expect_equal(setvbuf(f, memory, _IOLBF, sizeof memory), 0);
    expect(__flbf(f));
    fputs("no end", f);
    expect_equal(bytes_in_pipe(ends[0]), 7);
    fputs(", end\nno end", f);
    expect_equal(bytes_in_pipe(ends[0]), 7 + 12);
    expect_equal(setvbuf(f, memory, _IOFBF, 8), 0);
    int before = bytes_in_pipe(ends[0]);
    fputs("1234567", f);
    expect_equal(bytes_in_pipe(ends[0]), before);
    fputs("89", f);
    expect(bytes_in_pipe(ends[0]) > before);
    expect_equal(setvbuf(f, NULL, 77, 0), EOF);
    setbuf(f, NULL);
    putc('y', f);
    expect_equal(bytes_in_pipe(ends[0]), 7 + 18 + 9 + 1);
    setbuffer(f, memory, 32);
    putc('z', f);
    expect_equal(bytes_in_pipe(ends[0]), 7 + 18 + 9 + 1);
    __fpurge(f);
    expect_equal(fclose(f), 0);
    expect_equal(bytes_in_pipe(ends[0]), 7 + 18 + 9 + 1);
    close(ends[0]);
}

static void test_input_buffers(void)
{
    begin("how much input is read ahead");
    int ends[2];
    char text[8];
    expect_equal(pipe(ends), 0);
    expect_equal(write(ends[1], "0123456789", 10), 10);
    FILE *f = fdopen(ends[0], "r");
    setbuf(f, NULL);
    expect_equal(getc(f), '0');
    expect_equal(bytes_in_pipe(ends[0]), 9);
    expect_equal(fread(text, 1, 3, f), 3);
    expect_equal(bytes_in_pipe(ends[0]), 6);
    int n = 0;
    expect_equal(fscanf(f, "%2d", &n), 1);
    expect_equal(n, 45);
    expect(bytes_in_pipe(ends[0]) >= 3); /* the C library's scanf may have read one byte ahead */
    expect_equal(getc(f), '6');
    expect_equal(bytes_in_pipe(ends[0]), 3);
    expect_equal(setvbuf(f, NULL, _IOFBF, 2), 0);
    expect_equal(getc(f), '7');
    expect_equal(bytes_in_pipe(ends[0]), 1);
    expect_equal(fclose(f), 0);
    close(ends[1]);
}

static void test_shared_position(void)
{
    begin("the position that other descriptors share");
    const char *path = in_directory("shared");
    put_file(path, "line 1\nline 2\nline 3\n");
    char line[16];
    int fd = open(path, O_RDONLY), copy = dup(fd);
    FILE *f = fdopen(fd, "r");
    expect(fgets(line, sizeof line, f) == line);
    expect_equal(fflush(f), 0);
    expect_equal(lseek(copy, 0, SEEK_CUR), 7);
    expect(fgets(line, sizeof line, f) == line);
    expect_text(line, "line 2\n");
    expect_equal(fclose(f), 0);
    expect_equal(lseek(copy, 0, SEEK_CUR), 14);
    lseek(copy, 0, SEEK_SET);
    f = fdopen(dup(copy), "r");
    expect(fgets(line, sizeof line, f) == line);
    expect(freopen("/dev/null", "r", f) == f);
    expect_equal(lseek(copy, 0, SEEK_CUR), 7);
    fclose(f);
    setvbuf(f = fdopen(dup(copy), "r"), NULL, _IONBF, 0);
    expect_equal(getc(f), 'l');
    expect_equal(lseek(copy, 0, SEEK_CUR), 8);
    fclose(f);
    close(copy);
}

int main(void)
{
    make_directory();
    test_modes();
    test_initial_position();
    test_fdopen();
    test_freopen();
    test_freopen_memory();
    test_standard();
    test_tmpfile();
    test_output_buffers();
    test_input_buffers();
    test_shared_position();
    remove_directory();
    return finish("stdio_open");
}
