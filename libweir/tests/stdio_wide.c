/* stdio_wide.c: wide characters with weir/stdio.h: random calls give the same results and files as the C library's, in the
 * locales C.UTF-8 and C; positions, errors, and streams in memory. */
#include <limits.h>
#include <locale.h>
#include <wctype.h>

#define WEIR_STDIO_NO_NAMES
#include <weir/stdio.h>

#include "stdio/check.h"
#include "stdio/random.h"

enum { SEQUENCES = 300, CALLS = 40 };
#if defined(__GLIBC__)
enum { LIKE_GLIBC = 1 };
#else
enum { LIKE_GLIBC = 0 }; /* musl's scanf accepts less of "0x", "1e+" and "(nil)" */
#endif

static const wchar_t alphabet[] = {L'a', L'Z', L'7', L' ', L'\n', 0xe9, 0x20ac, 0x1f600, 0x7ff, 0xfffd};

static const wchar_t *random_text(wchar_t *to, unsigned most, bool ascii)
{
    unsigned length = below(most);
    for (unsigned i = 0; i < length; i++)
        to[i] = alphabet[below(ascii ? 5 : sizeof alphabet / sizeof *alphabet)];
    to[length] = L'\0';
    return to;
}

/* ---- writing ---- */

static void write_one(FILE *f, weir_stream *s, bool ascii)
{
    wchar_t text[700], other[20];
    random_text(text, one_in(4) ? 600 : 12, ascii);
    random_text(other, 12, ascii);
    int number = (int)below(100000);
    switch (below(6)) {
    case 0: expect_equal(weir_stdio_fputwc(text[0], s), fputwc(text[0], f)); break;
    case 1: expect_equal(weir_stdio_fputws(text, s) >= 0, fputws(text, f) >= 0); break;
    case 2:
        expect_equal(weir_stdio_fwprintf(s, L"%d %8ls|%.3f", number, other, number / 7.0),
                     fwprintf(f, L"%d %8ls|%.3f", number, other, number / 7.0));
        break;
    case 3: expect_equal(weir_stdio_fwprintf(s, L"%ls%lc", text, L'x'), fwprintf(f, L"%ls%lc", text, L'x')); break;
    case 4: expect_equal(weir_stdio_fflush(s), fflush(f)); break;
    default: expect_equal(weir_stdio_ftell(s), ftell(f));
    }
}

static void writes_as_the_c_library(const char *locale)
{
    const char *ours = in_directory("ours"), *libc = in_directory("libc");
    for (unsigned i = 0; i < SEQUENCES; i++) {
        seed(i);
        FILE *f = fopen(libc, "w");
        weir_stream *s = weir_stdio_fopen(ours, "w");
        int mode = one_in(3) ? _IONBF : one_in(2) ? _IOLBF : _IOFBF;
        setvbuf(f, NULL, mode, 64);
        weir_stdio_setvbuf(s, NULL, mode, 64);
        for (int call = 0; call < CALLS; call++)
            write_one(f, s, strcmp(locale, "C") == 0);
        expect_equal(weir_stdio_fclose(s), fclose(f));
        char *is = strdup(file_text(ours));
        if (!expect_text(is, file_text(libc)))
            i = SEQUENCES;
        free(is);
    }
}

/* ---- reading ---- */

static void read_one(FILE *f, weir_stream *s)
{
    wchar_t text[40] = L"", libc[40] = L"";
    int number = -1, libc_number = -1;
    unsigned room = 1 + below(38);
    switch (below(6)) {
    case 0: expect_equal(weir_stdio_fgetwc(s), fgetwc(f)); break;
    case 1:
        expect_equal(weir_stdio_fgetws(text, (int)room, s) != NULL, fgetws(libc, (int)room, f) != NULL);
        break;
    case 2: {
        wint_t c = weir_stdio_fgetwc(s); /* glibc 2.36 sometimes loses another character that is put back */
        expect_equal(c, fgetwc(f));
        expect_equal(weir_stdio_ungetwc(c, s), ungetwc(c, f));
        break;
    }
    case 3: expect_equal(weir_stdio_fwscanf(s, L"%d", &number), fwscanf(f, L"%d", &libc_number)); break;
    case 4: expect_equal(weir_stdio_fwscanf(s, L" %30ls", text), fwscanf(f, L" %30ls", libc)); break;
    default: expect_equal(weir_stdio_fwscanf(s, L"%30l[^\n]", text), fwscanf(f, L"%30l[^\n]", libc));
    }
    expect(wcscmp(text, libc) == 0 && number == libc_number);
    expect_equal(weir_stdio_feof(s) != 0, feof(f) != 0);
    expect_equal(weir_stdio_ferror(s) != 0, ferror(f) != 0);
}

static void reads_as_the_c_library(const char *locale)
{
    const char *path = in_directory("input");
    wchar_t text[40];
    for (unsigned i = 0; i < SEQUENCES && counts.wrong == 0; i++) {
        seed(i);
        FILE *f = fopen(path, "w");
        for (int part = 0; part < 30; part++)
            fwprintf(f, L"%ls%d ", random_text(text, 30, strcmp(locale, "C") == 0), (int)below(1000));
        fclose(f);
        f = fopen(path, "r");
        weir_stream *s = weir_stdio_fopen(path, "r");
        weir_stdio_setvbuf(s, NULL, _IOFBF, 1 + below(100));
        for (int call = 0; call < CALLS && counts.wrong == 0; call++)
            read_one(f, s);
        expect_equal(weir_stdio_fclose(s), fclose(f));
    }
}

/* ---- wscanf: formats and inputs of which many do not fit ---- */

static const wchar_t *const formats[] = {
    L"%d", L"%i", L"%3d", L"%u", L"%x", L"%o", L"%hhd", L"%hd", L"%ld", L"%lld", L"%jd", L"%zu", L"%td", L"%*d%d", L"%f", L"%lf",
    L"%Lf", L"%5lf", L"%s", L"%ls", L"%3s", L"%S", L"%c", L"%3c", L"%lc", L"%2lc", L"%[a-f]", L"%l[^ \n]", L"%[]x]", L"%[^]x]",
    L"%2l[\x20ac-\x20af]", L"%d%n", L"%d %d", L"%d,%d", L"a%d", L" a %d", L"%%%d", L"%*s%n", L"%2$d %1$d", L"%i%ls", L"%p",
    L"%x%c", L"%le%lc", L"%y", L"",
};
static const wchar_t *const inputs[] = {
    L"12", L"  -7x", L"0x1fz", L"0x", L"0xg", L"010 9", L"12,34", L"12 34", L"a5", L" a 5", L"%5", L"1.5e3", L"1e", L"1e+", L"-.5",
    L".", L"inf", L"INFINITY", L"nan", L"infin", L"0x1.8p3", L"0x.p1", L"+", L"-", L"", L" ", L"abcdefgh", L"]x]y", L"\x20ac\x20ad\xe9z",
    L"99999999999999999999", L"-99999999999999999999", L"300", L"(nil)", L"0x7fff1234", L"word another", L"\xe9t\xe9 1",
};

/* Memory for the results of any format: the bytes are compared. */
union result {
    long long number;
    long double real; /* only its first ten bytes are stored */
    wchar_t text[64];
    char bytes[256];
};

static void scans_as_the_c_library(void)
{
    begin("wscanf");
    const char *path = in_directory("scan");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        FILE *out = fopen(path, "w");
        fputws(inputs[i], out);
        fclose(out);
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            union result ours[2], libc[2];
            memset(ours, 0, sizeof ours);
            memset(libc, 0, sizeof libc);
            FILE *f = fopen(path, "r");
            weir_stream *s = weir_stdio_fopen(path, "r");
            int is = weir_stdio_fwscanf(s, formats[k], &ours[0], &ours[1]), should = fwscanf(f, formats[k], &libc[0], &libc[1]);
            bool same = is == should && memcmp(ours, libc, sizeof ours) == 0 && weir_stdio_fgetwc(s) == fgetwc(f);
            if (!expect(same))
                dprintf(counts.out, "  format \"%ls\", input \"%ls\": %d, not %d\n", formats[k], inputs[i], is, should);
            weir_stdio_fclose(s);
            fclose(f);
        }
    }
}

static void scans_allocated(void)
{
    begin("wscanf, %m");
    const char *path = in_directory("scan");
    char *text = NULL;
    wchar_t *wide = NULL;
    put_file(path, "\xc3\xa9t\xc3\xa9 wide");
    weir_stream *s = weir_stdio_fopen(path, "r");
    expect_equal(weir_stdio_fwscanf(s, L"%ms%mls", &text, &wide), 2);
    expect_text(text, "\xc3\xa9t\xc3\xa9");
    expect(wide && wcscmp(wide, L"wide") == 0);
    free(text);
    free(wide);
    weir_stdio_fclose(s);
}

/* ---- what random calls do not reach ---- */

static void orientation(void)
{
    begin("fwide");
    const char *path = in_directory("orientation");
    weir_stream *s = weir_stdio_fopen(path, "w");
    expect_equal(weir_stdio_fwide(s, 0), 0);
    expect(weir_stdio_fwide(s, 1) > 0);
    expect(weir_stdio_fwide(s, -1) > 0);
    weir_stdio_fputwc(L'\x20ac', s);
    weir_stdio_fprintf(s, "%s", " and bytes"); /* allowed here */
    s = weir_stdio_freopen(path, "r", s);
    expect_equal(weir_stdio_fwide(s, 0), 0);
    expect_equal(weir_stdio_getc(s), 0xe2);
    expect(weir_stdio_fwide(s, 1) < 0);
    weir_stdio_fclose(s);
    expect_text(file_text(path), "\xe2\x82\xac and bytes");
    s = weir_stdio_popen("exit 3", "r");
    expect(weir_stdio_fwide(s, 0) < 0);
    expect_equal(weir_stdio_pclose(s), 3 << 8);
}

static void put_back(void)
{
    begin("ungetwc of other characters, and of many");
    const char *path = in_directory("input");
    put_file(path, "ab");
    weir_stream *s = weir_stdio_fopen(path, "r");
    expect_equal(weir_stdio_fgetwc(s), L'a');
    for (wint_t c = 0x20ac; c < 0x20ac + 3000; c++)
        expect_equal(weir_stdio_ungetwc(c, s), c);
    for (wint_t c = 0x20ac + 3000; c-- > 0x20ac;)
        expect_equal(weir_stdio_fgetwc(s), c);
    expect_equal(weir_stdio_fgetwc(s), L'b');
    expect_equal(weir_stdio_ftell(s), 2);
    expect_equal(weir_stdio_fgetwc(s), WEOF);
    expect_equal(weir_stdio_ungetwc(WEOF, s), WEOF);
    expect_equal(weir_stdio_ungetwc((wint_t)0xd800, s), WEOF);
    expect_equal(errno, EILSEQ);
    weir_stdio_fclose(s);
}

/* No byte of an invalid or incomplete character is lost. */
static void invalid_input(void)
{
    begin("invalid and incomplete characters");
    const char *path = in_directory("invalid");
    wchar_t text[9];
    put_file(path, "a\xff" "b\xe2\x82");
    weir_stream *s = weir_stdio_fopen(path, "r");
    expect_equal(weir_stdio_fgetwc(s), L'a');
    errno = 0;
    expect_equal(weir_stdio_fgetwc(s), WEOF);
    expect_equal(errno, EILSEQ);
    expect(weir_stdio_ferror(s) && !weir_stdio_feof(s));
    expect(weir_stdio_fgetws(text, 9, s) == NULL);
    expect_equal(weir_stdio_ftell(s), 1);
    expect_equal(weir_stdio_getc(s), 0xff);
    weir_stdio_clearerr(s);
    expect_equal(weir_stdio_fgetwc(s), L'b');
    errno = 0;
    expect_equal(weir_stdio_fgetwc(s), WEOF);
    expect_equal(errno, EILSEQ);
    expect_equal(weir_stdio_getc(s), 0xe2);
    expect_equal(weir_stdio_getc(s), 0x82);
    expect_equal(weir_stdio_getc(s), EOF);
    weir_stdio_rewind(s);
    expect_equal(weir_stdio_fwscanf(s, L"%8ls", text), 1);
    expect(wcscmp(text, L"a") == 0);
    expect_equal(weir_stdio_getc(s), 0xff);
    weir_stdio_fclose(s);
}

static void invalid_output(void)
{
    begin("a character that the locale cannot encode");
    const char *path = in_directory("invalid");
    weir_stream *s = weir_stdio_fopen(path, "w");
    errno = 0;
    expect_equal(weir_stdio_fputwc((wchar_t)0xd800, s), WEOF);
    expect_equal(errno, EILSEQ);
    expect(weir_stdio_ferror(s));
    const wchar_t text[] = {L'x', (wchar_t)0xd800, 0};
    expect_equal(weir_stdio_fputws(text, s), EOF);
    weir_stdio_fclose(s);
    s = weir_stdio_fopen("/dev/full", "w");
    weir_stdio_setvbuf(s, NULL, _IONBF, 0);
    errno = 0;
    expect_equal(weir_stdio_fputws(L"\x20ac", s), EOF);
    expect_equal(errno, ENOSPC);
    expect_equal(weir_stdio_fwprintf(s, L"%d", 1), -1);
    weir_stdio_fclose(s);
    s = weir_stdio_fopen("/dev/null", "r");
    errno = 0;
    expect_equal(weir_stdio_fwprintf(s, L"x"), -1);
    expect_equal(errno, EBADF);
    expect_equal(weir_stdio_fputwc(L'x', s), WEOF);
    weir_stdio_fclose(s);
}

static void wide_memory(void)
{
    begin("open_wmemstream");
    wchar_t *text = NULL;
    size_t length = 99;
    weir_stream *s = weir_stdio_open_wmemstream(&text, &length);
    expect(s != NULL && weir_stdio_fwide(s, 0) > 0);
    expect_equal(weir_stdio_fputws(L"\x20ac""12", s) >= 0, 1);
    expect_equal(weir_stdio_fwprintf(s, L"%d", 34), 2);
    expect_equal(weir_stdio_ftell(s), 5);
    expect_equal(weir_stdio_fflush(s), 0);
    expect(length == 5 && wcscmp(text, L"\x20ac""1234") == 0);
    expect_equal(weir_stdio_fseek(s, 7, SEEK_SET), 0);
    weir_stdio_fputwc((wchar_t)0xd800, s); /* stored as it is, without an encoding */
    weir_stdio_fflush(s);
    expect(length == 8 && text[6] == 0 && text[7] == (wchar_t)0xd800 && text[8] == 0);
    weir_stdio_fseek(s, 1, SEEK_SET);
    weir_stdio_fputwc(L'!', s);
    expect_equal(weir_stdio_fclose(s), 0);
    expect(length == 2 && wcsncmp(text, L"\x20ac!234", 5) == 0);
    free(text);
}

int main(void)
{
    static const char *const locales[] = {"C.UTF-8", "C"};
    make_directory();
    for (int i = 0; i < 2; i++) {
        if (!setlocale(LC_ALL, locales[i])) {
            skip(locales[i], "this C library has no such locale");
            continue;
        }
        begin(i ? "writes in the locale C" : "writes in the locale C.UTF-8");
        writes_as_the_c_library(locales[i]);
        if (LIKE_GLIBC) {
            begin(i ? "reads in the locale C" : "reads in the locale C.UTF-8");
            reads_as_the_c_library(locales[i]);
        }
    }
    if (setlocale(LC_ALL, "C.UTF-8")) {
        if (LIKE_GLIBC)
            scans_as_the_c_library();
        else
            skip("wscanf and reads as the C library's", "the C library is not glibc");
        scans_allocated();
        orientation();
        put_back();
        invalid_input();
        invalid_output();
        wide_memory();
    }
    remove_directory();
    return finish("stdio_wide");
}
