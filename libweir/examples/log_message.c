/* log_message.c: appends messages with the time to app.log, fully buffered or line by line.
 *
 * Messages lost by kill -9 (or _exit, abort, a crash):
 *   default  all messages since the buffer was last full: in a short run, all of them
 *   -l       no message that ended with its newline: it was written before log_message() returned.
 *            With -n a message has no newline; it stays in the buffer and is lost.
 * exit(3) and a return from main lose nothing in either mode. A power loss can also lose bytes that the
 * kernel has not written to the device yet (weir_sync(3)). */
#include <fcntl.h>

#include "example.h"

#define USAGE "[-l] [-n] [-o FILE] [-w SECONDS] MESSAGE...\n" \
    "  -l: line mode; -n: no newline after messages; -o: FILE (app.log); -w: wait after each message"

static int log_message(weir_stream *log, const char *message, const char *end)
{
    char time[20];
    return weir_printf(log, "[%s] %s%s", timestamp(time), message, end);
}

int main(int argc, char **argv)
{
    struct weir_options options = { .mode = WEIR_FULL };
    const char *name = "app.log", *end = "\n";
    int64_t wait = 0;
    for (int option; (option = getopt(argc, argv, "lno:w:")) != -1;)
        switch (option) {
        case 'l': options.mode = WEIR_LINE; break;
        case 'n': end = ""; break;
        case 'o': name = optarg; break;
        case 'w': wait = seconds_argument(optarg, USAGE); break;
        default: usage(USAGE, NULL, NULL);
        }
    if (optind == argc)
        usage(USAGE, NULL, NULL);

    /* O_APPEND: several programs may log to one file, and each line written by one call stays whole. */
    weir_stream *log;
    check(weir_open(&log, name, O_WRONLY | O_CREAT | O_APPEND, &options), name);
    for (; optind < argc; optind++) {
        check(log_message(log, argv[optind], end), name);
        sleep_until(now() + wait);
    }
    check(weir_close(log), name);
    return 0;
}
