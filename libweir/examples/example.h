/* example.h: helpers of the examples: errors, results, numbers, time. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

/* ---- errors ---- */

static inline void print_error(const char *what, int error)
{
    weir_stream *err = weir_stderr();
    if (err)
        weir_printf(err, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error));
}

_Noreturn static inline void fail(const char *what, int error)
{
    print_error(what, error);
    exit(1);
}

/* Prints what is wrong with an argument (`why` may be NULL) and the usage, and exits with status 2. */
_Noreturn static inline void usage(const char *arguments, const char *argument, const char *why)
{
    weir_stream *err = weir_stderr();
    if (err && why)
        weir_printf(err, "%s: '%s': %s\n", program_invocation_short_name, argument, why);
    if (err)
        weir_printf(err, "usage: %s %s\n", program_invocation_short_name, arguments);
    exit(2);
}

/* ---- results ---- */

/* Returns the result of a libweir call, or exits if it is an error. */
static inline int64_t check(int64_t result, const char *what)
{
    if (result < 0)
        fail(what, (int)-result);
    return result;
}

/* As check, for a system call, which sets errno. */
static inline int64_t check_call(int64_t result, const char *what)
{
    return check(result == -1 ? -errno : result, what);
}

#define STDOUT_NAME "standard output"

static inline weir_stream *open_stdout(void)
{
    weir_stream *out = weir_stdout();
    if (!out)
        fail(STDOUT_NAME, ENOMEM);
    return out;
}

/* Writes all bytes. A short count from weir_write means that the next call returns the error. */
static inline void put(weir_stream *out, const void *from, size_t bytes, const char *what)
{
    if (check(weir_write(out, from, bytes), what) < (int64_t)bytes)
        check(weir_flush(out), what);
}

/* Closes standard output and exits on failure. A full disk may show only at the last write, on a network
 * file system only at close(2), which weir_close does not call for a standard stream. */
static inline void close_stdout(void)
{
    check(weir_close(open_stdout()), STDOUT_NAME);
    check_call(close(STDOUT_FILENO), STDOUT_NAME);
}

/* ---- numbers ---- */

/* Parses an integer of at most `most`, with an optional suffix K, M or G for 1024, 1024² or 1024³. Returns
 * 0 or -EINVAL. */
static inline int parse_number(const char *text, uint64_t most, uint64_t *number)
{
    static const char units[] = "KMG";
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (errno || end[unit != NULL] || value > most >> shift)
        return -EINVAL;
    *number = (uint64_t)value << shift;
    return 0;
}

static inline uint64_t number_argument(const char *text, uint64_t most, const char *arguments)
{
    uint64_t number;
    if (parse_number(text, most, &number))
        usage(arguments, text, "not a number, or too large");
    return number;
}

/* Parses seconds, with an optional fraction, up to one year. Returns nanoseconds. */
static inline int64_t seconds_argument(const char *text, const char *arguments)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0 && seconds <= 366.0 * 24 * 3600))
        usage(arguments, text, "not a number of seconds");
    return (int64_t)(seconds * 1e9);
}

/* ---- time ---- */

#define SECOND INT64_C(1000000000) /* nanoseconds */

static inline int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

/* Sleeps until an absolute time, so that the caller's own run time does not accumulate. */
static inline void sleep_until(int64_t moment)
{
    struct timespec t = { moment / SECOND, moment % SECOND };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* Formats the local time as 2025-07-22T10:30:00. */
static inline const char *timestamp(char to[static 20])
{
    time_t t = time(NULL);
    struct tm fields;
    if (!localtime_r(&t, &fields) || !strftime(to, 20, "%Y-%m-%dT%H:%M:%S", &fields))
        return "0000-00-00T00:00:00";
    return to;
}

#endif /* EXAMPLE_H */
