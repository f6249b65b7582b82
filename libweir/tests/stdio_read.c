/* stdio_read.c: reading and positions with weir/stdio.h in cases where the C library differs or is wrong, so that a
 * comparison is impossible. */
#include <wchar.h>

#include <weir/stdio.h>

#include "stdio/check.h"

static FILE *open_with(const char *name, const char *mode, const char *text)
{
    const char *path = in_directory(name);
    put_file(path, text);
    FILE *f = fopen(path, mode);
    expect(f != NULL);
    return f;
}

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";

static void test_ungetc(void)
{
    begin("ungetc");
    FILE *f = open_with("ungetc", "r", alphabet);
    expect_equal(ungetc(EOF, f), EOF);
    for (int i = 0; i < 300; i++) /* at position 0, more bytes than the file has */
        expect_equal(ungetc('0' + i % 10, f), '0' + i % 10);
    expect_equal(ftell(f), 0);
    for (int i = 299; i >= 0; i--)
        expect_equal(getc(f), '0' + i % 10);
    expect_equal(getc(f), 'a');
    expect_equal(getc(f), 'b');
    ungetc('b', f); /* the byte just read */
    ungetc('#', f); /* a different byte */
    expect_equal(ftell(f), 0);
    char text[8] = "";
    expect_equal(fread(text, 1, 4, f), 4);
    expect_text(text, "#bcd");
    expect_equal(ungetc(0xff, f), 0xff);
    expect_equal(getc(f), 0xff);
    rewind(f);
    expect_equal(getc(f), 'a'); /* the file is unchanged */
    fclose(f);
}

static void test_seek_after_ungetc(void)
{
    begin("fseek after ungetc");
    FILE *f = open_with("seek", "r", alphabet);
    fseek(f, 10, SEEK_SET);
    expect_equal(getc(f), 'k');
    ungetc('#', f);
    expect_equal(ftell(f), 10);
    expect_equal(fseek(f, 2, SEEK_CUR), 0);
    expect_equal(getc(f), 'm');
    ungetc('#', f);
    errno = 0;
    expect_equal(fseek(f, -100, SEEK_CUR), -1);
    expect_equal(errno, EINVAL);
    expect_equal(getc(f), '#'); /* a failed seek changes nothing */
    expect_equal(getc(f), 'n');
    ungetc('#', f);
    fpos_t here;
    expect_equal(fgetpos(f, &here), 0);
    expect_equal(fsetpos(f, &here), 0);
    expect_equal(getc(f), 'n');
    ungetc('#', f);
    expect_equal(fflush(f), 0);
    expect_equal(getc(f), 'n');
    fclose(f);
}

static void test_ungetc_after_block(void)
{
    begin("ungetc after fread and fflush");
    for (int mode = 0; mode < 3; mode++) {
        char text[8] = "";
        FILE *f = open_with("block", "r+", alphabet);
        setvbuf(f, NULL, mode == 0 ? _IOFBF : mode == 1 ? _IOLBF : _IONBF, mode == 1 ? 2 : 0);
        expect_equal(fread(text, 1, 5, f), 5);
        expect_text(text, "abcde");
        fflush(f);
        expect_equal(ungetc('#', f), '#');
        expect_equal(ftell(f), 4);
        expect_equal(getc(f), '#');
        expect_equal(getc(f), 'f');
        expect_equal(fputc('!', f), '!');
        expect_equal(getc(f), 'h');
        expect_equal(fclose(f), 0);
        expect_text(file_text(in_directory("block")), "abcdef!hijklmnopqrstuvwxyz");
    }
}

static void test_seeking(void)
{
    begin("fseek, ftell, rewind");
    FILE *f = open_with("positions", "r+", alphabet);
    errno = 0;
    expect_equal(fseek(f, 0, 9), -1);
    expect_equal(errno, EINVAL);
    errno = 0;
    expect_equal(fseek(f, -1, SEEK_SET), -1);
    expect_equal(errno, EINVAL);
    expect_equal(fseek(f, -1, SEEK_END), 0);
    expect_equal(getc(f), 'z');
    expect_equal(ftello(f), 26);
    expect_equal(fseeko(f, 4, SEEK_END), 0);
    expect_equal(getc(f), EOF);
    expect(feof(f));
    expect_equal(fseek(f, 30, SEEK_SET), 0);
    expect(!feof(f));
    fputs("x", f);
    expect_equal(ftell(f), 31);
    expect_equal(fclose(f), 0);
    expect_equal(file_bytes(in_directory("positions")), 31);

    int ends[2];
    expect_equal(pipe(ends), 0);
    f = fdopen(ends[0], "r");
    errno = 0;
    expect_equal(ftell(f), -1);
    expect_equal(errno, ESPIPE);
    expect_equal(fseek(f, 0, SEEK_CUR), -1);
    rewind(f);
    expect(!ferror(f));
    fclose(f);
    close(ends[1]);
    f = fopen("/dev/null", "w"); /* lseek succeeds here */
    fputs("gone", f);
    expect_equal(fseek(f, 0, SEEK_SET), 0);
    expect(ftell(f) >= 0);
    expect_equal(fclose(f), 0);
}

static void test_lines(void)
{
    begin("fgets, getline, getdelim");
    FILE *f = open_with("lines", "r", "one\ntwo;three\n\nlast");
    char text[6] = "?????", *line = NULL;
    size_t room = 0;
    expect(fgets(text, 0, f) == NULL);
    expect(fgets(text, -3, f) == NULL);
    expect(fgets(text, 1, f) == text && text[0] == '\0');
    expect(fgets(text, 3, f) == text);
    expect_text(text, "on");
    expect(fgets(text, 6, f) == text);
    expect_text(text, "e\n");
    expect_equal(getdelim(&line, &room, ';', f), 4);
    expect_text(line, "two;");
    expect_equal(getline(&line, &room, f), 6);
    expect_text(line, "three\n");
    expect_equal(getline(&line, &room, f), 1);
    expect_equal(getline(&line, &room, f), 4);
    expect_text(line, "last");
    expect(feof(f));
    expect_equal(getline(&line, &room, f), -1);
    errno = 0;
    expect_equal(getline(NULL, &room, f), -1);
    expect_equal(errno, EINVAL);
    errno = 0;
    expect_equal(getline(&line, NULL, f), -1);
    expect_equal(errno, EINVAL);
    rewind(f);
    free(line);
    line = malloc(1);
    room = 1;
    expect_equal(getline(&line, &room, f), 4);
    expect_text(line, "one\n");
    expect(room >= 5);
    free(line);
    fclose(f);
}

static void test_long_line(void)
{
    begin("a line longer than many buffers");
    enum { BYTES = 700001 };
    char *text = malloc(BYTES + 1), *line = NULL;
    size_t room = 0;
    for (int i = 0; i < BYTES; i++)
        text[i] = (char)('a' + i % 23);
    text[BYTES - 1] = '\n';
    text[BYTES] = '\0';
    FILE *f = open_with("long", "r", text);
    setvbuf(f, NULL, _IOFBF, 64);
    expect_equal(getline(&line, &room, f), BYTES);
    expect_text(line, text);
    expect_equal(getc(f), EOF);
    free(line);
    free(text);
    fclose(f);
}

static void test_binary(void)
{
    begin("binary data");
    const char *path = in_directory("binary");
    FILE *f = fopen(path, "w+");
    for (int i = 0; i < 1024; i++)
        expect_equal(putc(i, f), i & 255);
    rewind(f);
    for (int i = 0; i < 1024; i++)
        expect_equal(getc(f), i & 255);
    expect_equal(getc(f), EOF);
    rewind(f);
    uint64_t words[130] = {0};
    expect_equal(fread(words, sizeof *words, 130, f), 128);
    expect(feof(f) && !ferror(f));
    rewind(f);
    expect_equal(fread(words, 1000, 2, f), 1); /* the rest of the second element is consumed */
    expect_equal(ftell(f), 1024);
    expect_equal(fread(words, 0, 5, f), 0);
    expect_equal(fread(words, 5, 0, f), 0);
    expect_equal(fwrite(words, 0, 5, f), 0);
    rewind(f);
    expect_equal(fputs("", f), 1);
    volatile size_t huge = SIZE_MAX / 2; /* volatile, because the compiler would warn */
    errno = 0;
    expect_equal(fwrite(words, huge, 3, f), 0);
    expect_equal(errno, EOVERFLOW);
    expect_equal(fread(words, huge, 3, f), 0);
    clearerr(f);
    expect_equal(putw(-77, f), 0);
    rewind(f);
    expect_equal(getw(f), -77);
    expect_equal(fclose(f), 0);
    expect_equal(file_bytes(path), 1024);
}

/* After each fscanf the next byte of the stream must be the one that ended the conversion. */
static const struct {
    const char *text, *format;
    int result, next;
} scans[] = {
    {"12x", "%d", 1, 'x'},        {"12", "%d", 1, EOF},           {"x", "%d", 0, 'x'},
    {"", "%d", EOF, EOF},         {"  \n ", "%d", EOF, EOF},      {"-x", "%d", 0, 'x'},
    {"ab,c", "%*[ab]%*c", 0, 'c'}, {"0x12g", "%*i", 0, 'g'},      {"3.5e+7q", "%*f", 0, 'q'},
    {"a b", "%*s", 0, ' '},       {"a b", "%*s ", 0, 'b'},        {"abc", "abd", 0, 'c'},
    {"%5", "%%%*d", 0, EOF},      {"nanx", "%*f", 0, 'x'},        {"infinityx", "%*f", 0, 'x'},
    {"12345", "%*3d", 0, '4'},    {"abcdef", "%*4c", 0, 'e'},
};

static void test_scanf(void)
{
    begin("the position after scanf");
    int value;
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++) {
        FILE *f = open_with("scan", "r", scans[i].text);
        long consumed;
        expect_equal(fscanf(f, scans[i].format, &value), scans[i].result);
        consumed = ftell(f);
        expect_equal(getc(f), scans[i].next);
        expect(consumed <= (long)strlen(scans[i].text));
        if (scans[i].next != EOF)
            expect_equal(scans[i].text[consumed], scans[i].next);
        else
            expect(feof(f));
        fclose(f);
    }
}

static void test_scanf_mixed(void)
{
    begin("scanf between other calls");
    FILE *f = open_with("mixed", "r", "7 8\nline\n9 word 1.5 x\xc3\xa4");
    int a = 0, n = 0;
    char c = 0, *made = NULL, text[16];
    double d = 0;
    expect_equal(fscanf(f, "%d", &a), 1);
    ungetc('3', f);
    expect_equal(fscanf(f, "%d%n", &a, &n), 1);
    expect(a == 3 && n == 1);
    expect_equal(fscanf(f, "%d%c", &a, &c), 2);
    expect(a == 8 && c == '\n');
    expect(fgets(text, sizeof text, f) == text);
    expect_text(text, "line\n");
    expect_equal(fscanf(f, "%*d %ms %lf", &made, &d), 2);
    expect_text(made, "word");
    expect(d == 1.5);
    free(made);
    expect_equal(ftell(f), 19);
    expect_equal(fseek(f, 0, SEEK_SET), 0);
    expect_equal(fscanf(f, "%d", &a), 1);
    expect_equal(a, 7);
    expect_equal(fscanf(f, "nothing"), 0);
    expect_equal(getc(f), ' ');
    fclose(f);
}

/* Reads for a stream that fscanf scans, by fscanf of another stream. */
static ssize_t source_read(void *cookie, char *to, size_t bytes)
{
    int value;
    if (fscanf(cookie, "%d", &value) != 1 || bytes < 8)
        return 0;
    return snprintf(to, 8, "%d ", value * 2);
}

static void test_scanf_nested(void)
{
    begin("nested scanf");
    FILE *inner = open_with("inner", "r", "1 2 3 4");
    cookie_io_functions_t functions = {.read = source_read};
    FILE *outer = fopencookie(inner, "r", functions);
    int value;
    for (int i = 1; i <= 4; i++) {
        expect_equal(fscanf(outer, "%d", &value), 1);
        expect_equal(value, 2 * i);
    }
    expect_equal(fscanf(outer, "%d", &value), EOF);
    expect(feof(outer));
    fclose(outer);
    fclose(inner);
}

static void test_lock(void)
{
    begin("flockfile");
    FILE *f = open_with("lock", "r", alphabet);
    flockfile(f);
    expect_equal(ftrylockfile(f), 0);
    expect_equal(getc_unlocked(f), 'a');
    expect_equal(getc(f), 'b');
    funlockfile(f);
    funlockfile(f);
    expect_equal(fgetc_unlocked(f), 'c');
    expect(!feof_unlocked(f) && !ferror_unlocked(f));
    fclose(f);
}

/* Calls functions of weir.h on a FILE. */
static void test_both(void)
{
    begin("a FILE is a weir_stream");
    FILE *f = open_with("both", "r+", "first\nsecond\n");
    char *record;
    expect_equal(weir_getrec(f, &record), 6);
    expect(memcmp(record, "first\n", 6) == 0);
    expect_equal(getc(f), 's');
    expect_equal(weir_putc(f, 'E'), 'E');
    expect_equal(weir_sync(f, WEIR_KERNEL), 0);
    expect_text(file_text(in_directory("both")), "first\nsEcond\n");
    expect_equal(getc(f), 'c');
    expect_equal(weir_tell(f), 9);
    expect_equal(weir_close(f), 0);
}

int main(void)
{
    make_directory();
    test_ungetc();
    test_seek_after_ungetc();
    test_ungetc_after_block();
    test_seeking();
    test_lines();
    test_long_line();
    test_binary();
    test_scanf();
    test_scanf_mixed();
    test_scanf_nested();
    test_lock();
    test_both();
    remove_directory();
    return finish("stdio_read");
}
