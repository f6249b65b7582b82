/* format_buffer_size.c: for every buffer size weir__vformat writes nothing beyond the buffer and returns the full
 * length. */
#include <limits.h>
#include <locale.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "format_check.h"

enum { LONGEST = 8192, CANARY = 0xa5 };

static char want[LONGEST];

/* Returns a block of exactly `room` bytes before a page without access, valid until the next call. */
static char *block(size_t room)
{
    static char *pages;
    static size_t page, all;
    if (!pages) {
        page = (size_t)sysconf(_SC_PAGESIZE);
        all = (LONGEST + page - 1) / page * page;
        pages = mmap(NULL, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + all, page, PROT_NONE) != 0)
            abort();
    }
    memset(pages, CANARY, all);
    return pages + all - room;
}

static bool untouched(const char *from, const char *end)
{
    while (from < end)
        if ((unsigned char)*from++ != CANARY)
            return false;
    return true;
}

/* Formats with every size, each once before an inaccessible page and once before a canary. */
#define TRY(...) \
    do { \
        ssize_t bytes = libc_format(want, sizeof want, __VA_ARGS__); \
        expect(bytes >= 0 && bytes < LONGEST, "the C library cannot print the sample"); \
        for (size_t room = 0; room <= (size_t)bytes + 1; room++) { \
            char *guarded = block(room), larger[LONGEST + 64]; \
            check_result(guarded, room, bytes, weir_format(guarded, room, __VA_ARGS__), guarded + room); \
            memset(larger, CANARY, sizeof larger); \
            check_result(larger, room, bytes, weir_format(larger, room, __VA_ARGS__), larger + sizeof larger); \
        } \
        expect(weir_format(NULL, 0, __VA_ARGS__) == bytes, "without a buffer"); \
    } while (0)

static void check_result(const char *to, size_t room, ssize_t bytes, ssize_t result, const char *end)
{
    expect(result == bytes, "room %zu: %zd instead of %zd", room, result, bytes);
    expect(untouched(to + room, end), "room %zu of %zd: written beyond it", room, bytes);
    if (result == bytes && (size_t)bytes <= room)
        expect(memcmp(to, want, (size_t)bytes) == 0, "room %zu: bytes differ from \"%s\"", room, want);
}

static void plain_conversions(void)
{
    begin("plain conversions");
    TRY("%s %d %f\n", "a string", -12345, 25.5);
    TRY("%s", "");
    TRY("%s", "one string that is alone");
    TRY("%d%u%c%%", INT_MIN, UINT_MAX, 'x');
    TRY("no conversion, but more than sixteen characters");
    TRY("short");
    TRY("%ld %lu %lld %zu %jd %td", LONG_MIN, ULONG_MAX, LLONG_MIN, SIZE_MAX, INTMAX_MIN, PTRDIFF_MIN);
    TRY("%f %f %f", 1e300, -0.0, 9.9999999);
    TRY("%f %F %f", INFINITY, -INFINITY, -NAN);
}

static void fields(void)
{
    begin("fields");
    TRY("%5d|%-5d|%05d|%+d|% d|%.5d|%8.5d|%-8.5d|", 42, 42, 42, 42, 42, 42, 42, 42);
    TRY("%#x %#X %#o %#010x %-#10o|%x", 255u, 255u, 8u, 255u, 8u, 0u);
    TRY("%10s|%-10s|%.2s|%10.2s|%-10.2s|%*.*s|", "abc", "abc", "abc", "abc", "abc", -7, 1, "abc");
    TRY("%5c|%-5c|", 'x', 'y');
    TRY("%10.3f|%-10.3f|%010.3f|%+.0f|%#.0f|% f|", 3.14159, 3.14159, -3.14159, 2.5, 2.5, 2.5);
    TRY("%+030.20f|%-+30.20f|%.40f", 1.1, -1.1, 5e-324);
    TRY("%010f|%-10f|%+f", INFINITY, -INFINITY, NAN);
    TRY("%20p|%-20p|", (void *)0x1234, (void *)0xabcd);
    TRY("%700d|%-700s|%0700.2f", 1, "x", 1.0);
}

static void library_conversions(void)
{
    begin("conversions by the C library");
    TRY("%e %g %a %Lf %LG", 12345.678, 1e-10, 1.0, 1.5L, 1e100L);
    TRY("%lc%ls|%10ls|%.2ls", (wint_t)L'w', L"wide", L"wide", L"wide");
    TRY("before %600.3e", 1.5);      /* longer than the buffer on the stack */
    TRY("%-511g|%512g|%g", 1.0, 1.0, 1.0);
    TRY("%2$s %1$d", 5, "positional");
    TRY("%2$-600s %1$600d", 5, "positional");
    errno = ENOENT;
    TRY("%m"); /* detects a changed errno */
}

/* Strings without NUL before an inaccessible page: a precision also limits what is read. */
static void strings_without_nul(void)
{
    char to[64], *string = block(3);
    begin("strings without a NUL");
    memcpy(string, "abc", 3);
    expect(weir_format(to, sizeof to, "%.3s", string) == 3 && memcmp(to, "abc", 3) == 0, "whole");
    expect(weir_format(to, sizeof to, "%.*s|", 2, string + 1) == 3 && memcmp(to, "bc|", 3) == 0, "by an argument");
    expect(weir_format(to, sizeof to, "%-5.1s|", string + 2) == 6 && memcmp(to, "c    |", 6) == 0, "padded");
    expect(weir_format(to, sizeof to, "%.0s|", string + 3) == 1 && *to == '|', "nothing");
    expect(weir_format(to, 2, "%.3s", string) == 3, "buffer too small");
}

/* Lengths near INT_MAX. */
static void lengths(void)
{
    char to[64];
    const size_t all = sizeof to;
    begin("lengths");
    expect(weir_format(to, all, "%2147483647d", 1) == INT_MAX, "width INT_MAX");
    expect(weir_format(to, all, "%-2147483647s", "a") == INT_MAX, "width INT_MAX");
    expect(weir_format(to, all, "%.2147483647d", 1) == INT_MAX, "precision INT_MAX");
    expect(weir_format(to, all, "%2147483647f", 1.0) == INT_MAX, "width INT_MAX");
    expect(weir_format(to, all, "%.2147483645f", 1.0) == INT_MAX, "precision INT_MAX - 2");
    expect(weir_format(to, all, "%.*f", INT_MAX - 2, 0x1p-1074) == INT_MAX, "precision INT_MAX - 2");
    expect(weir_format(to, all, "%.2147483646f", 1.0) == -EOVERFLOW, "one byte more than INT_MAX");
    expect(weir_format(to, all, "%.2147483647f", -1e300) == -EOVERFLOW, "precision INT_MAX");
    expect(weir_format(to, all, "%2147483647d%d", 1, 1) == -EOVERFLOW, "two conversions");
    expect(weir_format(to, all, "%2147483647d ", 1) == -EOVERFLOW, "width INT_MAX and a space");
    expect(weir_format(to, all, "%2147483640s a literal", "") == -EOVERFLOW, "a width and a literal");
    expect(weir_format(to, all, "%2147483646d%%", 1) == INT_MAX, "a width and %%%%");
    expect(weir_format(to, all, "%2147483646d%%%%", 1) == -EOVERFLOW, "a width and twice %%%%");
    expect(weir_format(to, all, "%2147483648d", 1) == -EOVERFLOW, "a width that exceeds int");
    expect(weir_format(to, all, "%99999999999999999999s", "") == -EOVERFLOW, "a width that exceeds uint64_t");
    expect(weir_format(to, all, "%.2147483648s", "") == -EOVERFLOW, "a precision that exceeds int");
    expect(weir_format(to, all, "%*d", INT_MIN, 1) == -EOVERFLOW, "width INT_MIN has no positive counterpart");
    expect(weir_format(to, all, "%*d", -INT_MAX, 1) == INT_MAX, "width -INT_MAX");
    expect(weir_format(to, all, "%.*s", INT_MIN, "abc") == 3, "a negative precision is ignored");
    expect(weir_format(to, SIZE_MAX, "%.3e", 1.0) == 9, "a buffer size that exceeds int");
    expect(weir_format(to, SIZE_MAX, "%1$d", 1) == 1, "a buffer size that exceeds int, positional");
}

/* Random sizes: the buffer ends within any part of the text. */
static void random_sizes(uint64_t rounds)
{
    static const char *const formats[] = {"%*.*f", "<%*.*f>", "%-*.*f|", "%+0*.*f", "%# *.*f\n", "%*.*e"};
    begin("random buffer sizes");
    for (uint64_t i = 0; i < rounds; i++) {
        const char *format = formats[below(sizeof formats / sizeof *formats)];
        int width = (int)below(80), precision = (int)below(60);
        double value = random_double();
        ssize_t bytes = libc_format(want, sizeof want, format, width, precision, value);
        size_t room = below((unsigned)bytes + 3);
        char *to = block(room);
        check_result(to, room, bytes, weir_format(to, room, format, width, precision, value), to + room);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 100000);
    plain_conversions();
    fields();
    library_conversions();
    strings_without_nul();
    lengths();
    random_sizes(rounds);
    return finish("format_buffer_size");
}
