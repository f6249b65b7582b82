/* tail.c: the last lines of files, and with -f what is added to them, as tail(1). */
#include <fcntl.h>
#include <sys/stat.h>

#include "tail.h"

#define USAGE "[-n [+]LINES | -c [+]BYTES] [-f] [-q | -v] [FILE|-]...\n" \
    "  the last LINES (10) or BYTES, or with + everything from that one on; K, M, G: times 1024, ...\n" \
    "  -f: go on with what is added later; -q, -v: never, always with the names of the files"

static void parse_count(struct order *order, const char *text, bool bytes)
{
    order->bytes = bytes;
    order->from_start = *text == '+';
    order->count = number_argument(text + (*text == '+' || *text == '-'), INT64_MAX, USAGE);
}

static struct order parse(int argc, char **argv)
{
    struct order order = { .count = 10 };
    int headers = -1;
    for (int option; (option = getopt(argc, argv, "n:c:fqv")) != -1;)
        switch (option) {
        case 'n': parse_count(&order, optarg, false); break;
        case 'c': parse_count(&order, optarg, true); break;
        case 'f': order.follow = true; break;
        case 'q': headers = 0; break;
        case 'v': headers = 1; break;
        default: usage(USAGE, NULL, NULL);
        }
    order.headers = headers >= 0 ? headers : argc - optind > 1;
    return order;
}

/* 0 or -errno. The end of a pipe is collected in blocks larger than the buffer: these go past it. */
static int open_source(struct source *source, const char *name, const struct order *order)
{
    struct stat status;
    struct weir_options options = { .buffer_bytes = order->from_start ? 0 : 4096 };
    bool standard = strcmp(name, "-") == 0;
    source->name = standard ? "standard input" : name;
    if (standard)
        options.flags = WEIR_KEEP_OPEN;
    int result = standard ? weir_fdopen(&source->in, STDIN_FILENO, &options)
                          : weir_open(&source->in, name, O_RDONLY, &options);
    if (result < 0)
        return result;
    source->regular = fstat(weir_fd(source->in), &status) == 0 && S_ISREG(status.st_mode);
    return 0;
}

static void close_source(struct source *source)
{
    if (source->in)
        weir_close(source->in); /* was read only: nothing can be lost */
    source->in = NULL;
}

/* Returns whether all is well. What will be followed stays open. */
static bool do_source(struct source *source, const char *name, const struct order *order, weir_stream *out)
{
    int result = open_source(source, name, order);
    if (result == 0)
        result = put_source(source, order, out);
    if (result < 0)
        complain(source->name, -result);
    if (!order->follow)
        close_source(source);
    return result >= 0;
}

int main(int argc, char **argv)
{
    static char *standard[] = { "-" };
    struct order order = parse(argc, argv);
    int count = argc - optind;
    char **names = argv + optind;
    bool well = true;
    if (order.count == 0 && !order.from_start && !order.follow)
        return 0; /* nothing is asked for: not to wait for the end of a pipe */
    if (count == 0)
        names = standard, count = 1;

    struct source *sources = calloc((size_t)count, sizeof *sources);
    if (!sources)
        give_up("memory", ENOMEM);
    weir_stream *out = open_stdout();
    for (int i = 0; i < count; i++)
        well &= do_source(&sources[i], names[i], &order, out);
    if (order.follow)
        follow(sources, count, &order, out);
    for (int i = 0; i < count; i++)
        close_source(&sources[i]);
    free(sources);
    close_stdout();
    return !well;
}
