/* log_message.c: messages with the time, appended to app.log; in the default mode or line by line.
 *
 * What a kill -9 (or _exit, abort, a crash) takes along:
 *   default  every message since the last full buffer: of a short run, all of them
 *   -l       nothing of a message that ended with its newline: it was written before log_message() returned.
 *            One that -n left without newline still waits in the buffer, and is lost.
 * exit(3) and a return from main lose nothing in either mode. A power cut is another matter: what the kernel
 * has is not yet on the device (weir_sync(3)).
 */
#include <fcntl.h>

#include "example.h"

#define USAGE "[-l] [-n] [-o FILE] [-w SECONDS] MESSAGE...\n" \
    "  -l: line mode; -n: messages end without newline; -o: not app.log; -w: wait behind each message"

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

    /* O_APPEND: several programs may log to one file, and each line written at once stays whole. */
    weir_stream *log;
    check(weir_open(&log, name, O_WRONLY | O_CREAT | O_APPEND, &options), name);
    for (; optind < argc; optind++) {
        check(log_message(log, argv[optind], end), name);
        sleep_until(now() + wait);
    }
    check(weir_close(log), name);
    return 0;
}
