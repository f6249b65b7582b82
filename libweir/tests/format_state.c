/* format_state.c: weir__vformat follows the locale and the rounding mode as the C library does, passes the C library's
 * extensions and errors on, and leaves errno unchanged. */
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "format_check.h"

static char want[4096], have[4096];

#define SAME(...) \
    do { \
        ssize_t expected = libc_format(want, sizeof want, __VA_ARGS__); \
        ssize_t bytes = weir_format(have, sizeof have, __VA_ARGS__); \
        bool equal = bytes == expected && (bytes < 0 || memcmp(want, have, (size_t)bytes) == 0); \
        expect(equal, "%zd \"%.*s\" instead of %zd \"%.*s\"", bytes, bytes < 0 ? 0 : (int)bytes, have, \
               expected, expected < 0 ? 0 : (int)expected, want); \
    } while (0)

/* ---- locales -------------------------------------------------------------------------------------- */

static void compare_in_locale(uint64_t rounds)
{
    SAME("%f|%.0f|%#.0f|%e|%g|%a|%Lf", 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5L);
    SAME("%12f|%-12f|%012f|%+f|% .3f", 1.5, 1.5, -1.5, 1.5, 1.5);
    SAME("%s %d %f %s %f %s\n", "a", 1, 2.5, "b", -3.25, "c");
    SAME("%f %F", INFINITY, -NAN);
#ifdef __GLIBC__
    SAME("%'d %'.2f", 1234567, 1234567.891);
#endif
    for (uint64_t i = 0; i < rounds; i++) {
        int width = (int)below(60) - 30, precision = (int)below(40) - 1;
        double value = random_double();
        SAME("%*.*f", width, precision, value);
        SAME("%0*.*f|%f", width, precision, value, value);
    }
}

/* Makes a locale for the test. Returns false if localedef(1) or its sources are missing. */
static bool make_locale(const char *directory, const char *name, const char *source)
{
    char command[256];
    snprintf(command, sizeof command, "localedef -i %s -f UTF-8 %s/%s >%s/log 2>&1", source, directory, name,
             directory);
    return system(command) == 0;
}

static void with_locale(const char *test, const char *directory, const char *name, const char *source,
                        const char *radix, uint64_t rounds)
{
    make_locale(directory, name, source); /* setlocale detects a failure */
    if (!setlocale(LC_ALL, name) || strcmp(localeconv()->decimal_point, radix) != 0) { /* musl accepts any name */
        skip(test, "the locale does not exist, and localedef cannot make it");
    } else {
        begin(test);
        compare_in_locale(rounds);
    }
    setlocale(LC_ALL, "C");
}

/* uselocale(3) sets the locale of the thread only. Not newlocale(3), which leaks a copy of LOCPATH. */
static void thread_locale(const char *name)
{
    setlocale(LC_ALL, name);
    locale_t locale = duplocale(LC_GLOBAL_LOCALE);
    setlocale(LC_ALL, "C");
    locale_t before = uselocale(locale); /* changes nothing if locale is 0 */
    if (!locale || strcmp(localeconv()->decimal_point, ",") != 0) {
        skip("the locale of a thread", "no locale has a decimal comma");
    } else {
        begin("the locale of a thread");
        compare_in_locale(100);
        expect(weir_format(have, sizeof have, "%.1f", 2.5) == 3 && memcmp(have, "2,5", 3) == 0, "no decimal comma");
    }
    uselocale(before);
    if (locale)
        freelocale(locale);
}

static void locales(uint64_t rounds)
{
    char directory[] = "/tmp/weir-locales-XXXXXX", command[64];
    if (!mkdtemp(directory)) {
        skip("locales", "cannot make a directory in /tmp");
        return;
    }
    setenv("LOCPATH", directory, 1);
    with_locale("a decimal comma", directory, "de_DE.UTF-8", "de_DE", ",", rounds);
    with_locale("a decimal point of two bytes", directory, "ps_AF.UTF-8", "ps_AF", "\xd9\xab", rounds);
    thread_locale("de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -rf %s", directory);
    expect(system(command) == 0, "%s is left", directory);
}

/* ---- rounding ------------------------------------------------------------------------------------- */

static void rounding(uint64_t rounds)
{
    static const struct {
        int mode;
        const char *test, *text;
    } modes[] = {{FE_UPWARD, "upward", "0.13 -0.12 1.1"},
                 {FE_DOWNWARD, "downward", "0.12 -0.13 1.0"},
                 {FE_TOWARDZERO, "toward zero", "0.12 -0.12 1.0"},
                 {FE_TONEAREST, "to nearest", "0.12 -0.12 1.0"}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        begin(modes[i].test);
        for (uint64_t j = 0; j < rounds; j++) {
            int precision = (int)below(30);
            double value = below(2) ? random_double() : random_tie(precision);
            fesetround(modes[i].mode); /* for this comparison only: the test's own code expects FE_TONEAREST */
            SAME("%.*f %f %e", precision, value, value, value);
            fesetround(FE_TONEAREST);
        }
#ifdef __GLIBC__
        fesetround(modes[i].mode);
        ssize_t bytes = weir_format(have, sizeof have, "%.2f %.2f %.1f", 0.125, -0.125, 1.01);
        fesetround(FE_TONEAREST);
        const char *text = modes[i].text;
        bool right = bytes == (ssize_t)strlen(text) && memcmp(have, text, (size_t)bytes) == 0;
        expect(right, "\"%.*s\" instead of \"%s\"", (int)bytes, have, text);
#endif
    }
}

/* ---- extensions, errors, errno -------------------------------------------------------------------- */

static void extensions(void)
{
    begin("extensions");
    SAME("%2$s %1$d", 5, "positional");
    SAME("%2$*1$d|%3$.*1$f", 5, 42, 1.5);
    SAME("%1$s %1$s", "twice");
    SAME("%2$*1$d and %3$.*1$f: 100%% now", 5, 42, 1.5); /* no %n */
    SAME("%2$s %1$f %2$s", 1.5, "mixed");
    SAME("%C %S", (wint_t)L'c', L"wide");
    for (int error = 0; error < 135; error++) {
        errno = error;
        SAME("%m");
        errno = error;
        SAME("%d %s %e %lc: %m %m", 1, "failed", 2.5, (wint_t)L'x');
    }
#ifdef __GLIBC__
    SAME("%'d %Id %qd %Zu %Lx", 5, 6, 7LL, (size_t)8, 9LL);
    SAME("%d %y %d", 1, 2, 3);
    SAME("%5%|%-%|%hhs", "text");
    /* Not compared: with _FORTIFY_SOURCE the C library's function ends the program. */
    expect(weir_format(have, sizeof have, "%2$d", 1, 2) == 1 && *have == '2', "the second argument alone");
#endif
}

static void errors(void)
{
    begin("errors");
    SAME("%d%", 1);
    SAME("%");
    SAME("%5");
    SAME("%.*", 1);
    SAME("%l");
    expect(weir_format(have, sizeof have, "%") == -EINVAL, "a lone %%");
    SAME("%lc", (wint_t)0x110000);
    SAME("%s %ls %d", "text", L"\u20ac", 1);
    expect(weir_format(have, sizeof have, "%ls", L"\u20ac") == -EILSEQ, "no euro sign in the C locale");
    SAME("%1$ls", L"\u20ac");
}

#define LEAVES_ERRNO(...) \
    do { \
        errno = 4711; \
        weir_format(have, room, __VA_ARGS__); \
        expect(errno == 4711, "errno is %d", errno); \
    } while (0)

static void errno_is_unchanged(size_t room)
{
    LEAVES_ERRNO("%s %d %f %e", "text", 1, 2.5, 2.5);
    LEAVES_ERRNO("%");
    LEAVES_ERRNO("%n", (int *)NULL);
    LEAVES_ERRNO("%1$n", (int *)NULL);
    LEAVES_ERRNO("%ls", L"\u20ac");
    LEAVES_ERRNO("%1$ls", L"\u20ac");
    LEAVES_ERRNO("%2147483647d%2147483647d", 1, 1);
    LEAVES_ERRNO("%1$99999999999d", 1);
    LEAVES_ERRNO("%.2147483647f", 1.0);
    LEAVES_ERRNO("%700e", 1.0);
    LEAVES_ERRNO("%1$700d", 1);
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 40000);
    locales(rounds);
    rounding(rounds);
    extensions();
    errors();
    begin("errno is unchanged");
    errno_is_unchanged(0);
    errno_is_unchanged(10);
    errno_is_unchanged(700);
    errno_is_unchanged(sizeof have);
    return finish("format_state");
}
