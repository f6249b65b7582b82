/* stdio_constant.c: stdin, stdout and stderr as variables, and calls whose bytes the compiler knows, in weir/stdio.h. */
#include <pthread.h>
#include <string.h>

#include <weir/stdio.h>

#include "stdio/check.h"

/* The library's functions: their addresses are taken at run time. */
static int (*volatile call_fputs)(const char *, FILE *) = fputs;
static int (*volatile call_puts)(const char *) = puts;
static int (*volatile call_printf)(const char *, ...) = printf;
static int (*volatile call_fprintf)(FILE *, const char *, ...) = fprintf;
static size_t (*volatile call_fwrite)(const void *, size_t, size_t, FILE *) = fwrite;

enum { RESULTS = 13 };

/* Writes to f and stdout, and stores the results, by calls that are inlined or not. */
static void write_all(FILE *f, bool constant, int results[RESULTS])
{
    static const char bytes[8] = "12345678";
    errno = 0;
    results[0] = constant ? fputs("a line\n", f) : call_fputs("a line\n", f);
    results[1] = constant ? fputs("", f) : call_fputs("", f);
    results[2] = constant ? puts("a line of puts") : call_puts("a line of puts");
    results[3] = constant ? puts("") : call_puts("");
    results[4] = constant ? printf("hello world\n") : call_printf("hello world\n");
    results[5] = constant ? fprintf(f, "one\ntwo %%\n") : call_fprintf(f, "one\ntwo %%\n");
    results[6] = (int)(constant ? fwrite(bytes, 2, 4, f) : call_fwrite(bytes, 2, 4, f));
    results[7] = (int)(constant ? fwrite(bytes, 1, 0, f) : call_fwrite(bytes, 1, 0, f));
    static char text[300];
    memset(text, 't', sizeof text - 1);
    results[8] = constant ? fprintf(f, "%s", text) : call_fprintf(f, "%s", text);
    results[9] = constant ? fprintf(f, "%s", text + 298) : call_fprintf(f, "%s", text + 298);
    results[10] = constant ? printf("%s", "") : call_printf("%s", "");
    results[11] = constant ? printf("%s", "text") : call_printf("%s", "text");
    results[12] = errno;
}

enum kind { FULL, LINE, NONE, SMALL, READ_ONLY, NO_SPACE, KINDS };

static FILE *open_kind(enum kind kind, const char *path)
{
    FILE *f = fopen(kind == NO_SPACE ? "/dev/full" : path, kind == READ_ONLY ? "r" : "w");
    int mode = kind == LINE ? _IOLBF : kind == NONE ? _IONBF : _IOFBF;
    expect(f != NULL);
    expect_equal(setvbuf(f, NULL, mode, kind == SMALL ? 5 : 0), 0);
    return f;
}

/* Returns the result of fclose. */
static int write_kind(enum kind kind, bool constant, const char *path, int results[RESULTS])
{
    FILE *f = open_kind(kind, path), *before = stdout;
    stdout = f;
    write_all(f, constant, results);
    stdout = before;
    int failed = ferror(f);
    return fclose(f) * 2 + failed;
}

static const char *expected(void)
{
    static char text[400] = "a line\na line of puts\n\nhello world\none\ntwo %\n12345678";
    if (!strstr(text, "ttt"))
        strcpy((char *)memset(text + strlen(text), 't', 300) + 300, "text");
    return text;
}

static void *do_nothing(void *unused) { return unused; }

static void test_constants(const char *test, bool threads)
{
    begin(test);
    pthread_t thread;
    if (threads) { /* glibc then never again says that the process has one thread */
        pthread_create(&thread, NULL, do_nothing, NULL);
        pthread_join(thread, NULL);
    }
    for (enum kind kind = FULL; kind < KINDS; kind++) {
        int results[2][RESULTS], closed[2];
        static char text[4096];
        for (int constant = 0; constant < 2; constant++) {
            const char *path = in_directory("constant");
            put_file(path, "");
            closed[constant] = write_kind(kind, constant, path, results[constant]);
            if (!constant)
                strcpy(text, file_text(path));
            else
                expect_text(file_text(path), text);
        }
        expect_equal(closed[0], closed[1]);
        for (int i = 0; i < RESULTS; i++)
            expect_equal(results[1][i], results[0][i]);
        if (kind <= SMALL)
            expect_text(text, expected());
        else
            expect(closed[0] != 0);
    }
}

static void test_assignment(void)
{
    begin("stdout, stderr and stdin can be assigned to");
    FILE *out = stdout, *err = stderr, *in = stdin, **address = &stdout;
    put_file(in_directory("in"), "7 line\n");
    expect((stdout = fopen(in_directory("out"), "w")) != NULL);
    stderr = fopen(in_directory("err"), "w");
    stdin = fopen(in_directory("in"), "r");
    expect(*address == stdout);
    expect(stdout != out);
    int number = 0;
    expect_equal(scanf("%d ", &number), 1);
    expect_equal(number, 7);
    expect_equal(getchar(), 'l');
    expect_equal(printf("%d\n", number), 2);
    expect_equal(puts("puts"), 1);
    expect_equal(putchar('c'), 'c');
    fputs("fputs", stdout);
    errno = ENOENT;
    perror("perror");
    fclose(stdout);
    fclose(stderr);
    fclose(stdin);
    *address = out;
    stderr = err;
    stdin = in;
    expect_text(file_text(in_directory("out")), "7\nputs\ncfputs");
    expect_text(file_text(in_directory("err")), "perror: No such file or directory\n");
    expect(stdout == out);
}

/* The streams are opened at the first use; an assignment before it stays. */
static void test_first_use(void)
{
    begin("an assignment that is the first use");
    const char *path = in_directory("first");
    pid_t child = fork();
    if (child == 0) {
        stdout = fopen(path, "w");
        printf("%s\n", "first");
        fputs("second\n", stdout);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    expect_equal(status, 0);
    expect_text(file_text(path), "first\nsecond\n");
}

int main(void)
{
    make_directory();
    test_first_use();
    test_assignment();
    test_constants("known bytes", false);
    test_constants("known bytes, after a second thread", true);
    remove_directory();
    return finish("stdio_constant");
}
