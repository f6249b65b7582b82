/* dots.c: prints a dot per second. A dot has no newline, so only weir_flush(3) makes it visible; -n shows
 * the effect. */
#include "example.h"

#define USAGE "[-n] [COUNT [SECONDS]]\n" \
    "  prints COUNT (10) dots, one every SECONDS (1); -n: no flush, so all dots appear at the end"

int main(int argc, char **argv)
{
    int flush = 1;
    for (int option; (option = getopt(argc, argv, "n")) != -1; flush = 0)
        if (option != 'n')
            usage(USAGE, NULL, NULL);
    argv += optind, argc -= optind;
    if (argc > 2)
        usage(USAGE, NULL, NULL);
    uint64_t count = argc > 0 ? number_argument(argv[0], UINT64_MAX, USAGE) : 10;
    int64_t interval = argc > 1 ? seconds_argument(argv[1], USAGE) : SECOND;

    weir_stream *out = open_stdout();
    int64_t next = now();
    for (uint64_t i = 0; i < count; i++) {
        check(weir_putc(out, '.'), STDOUT_NAME);
        if (flush)
            check(weir_flush(out), STDOUT_NAME);
        sleep_until(next += interval);
    }
    check(weir_putc(out, '\n'), STDOUT_NAME);
    close_stdout();
    return 0;
}
