/* tail.c: prints the last lines of files, and with -f what is appended to them, as tail(1). */
#include <fcntl.h>
#include <sys/stat.h>

#include "tail.h"

#define USAGE "[-n [+]LINES | -c [+]BYTES] [-f] [-q | -v] [FILE|-]...\n" \
    "  prints the last LINES (10) or BYTES; with +, everything from that one on; suffixes K, M, G\n" \
    "  -f: continue with what is appended; -q, -v: never, always print the names of the files"

static void parse_count(struct request *request, const char *text, bool bytes)
{
    request->bytes = bytes;
    request->from_start = *text == '+';
    request->count = number_argument(text + (*text == '+' || *text == '-'), INT64_MAX, USAGE);
}

static struct request parse(int argc, char **argv)
{
    struct request request = { .count = 10 };
    int headers = -1;
    for (int option; (option = getopt(argc, argv, "n:c:fqv")) != -1;)
        switch (option) {
        case 'n': parse_count(&request, optarg, false); break;
        case 'c': parse_count(&request, optarg, true); break;
        case 'f': request.follow = true; break;
        case 'q': headers = 0; break;
        case 'v': headers = 1; break;
        default: usage(USAGE, NULL, NULL);
        }
    request.headers = headers >= 0 ? headers : argc - optind > 1;
    return request;
}

/* Returns 0 or -errno. Blocks for the end of a pipe are larger than the buffer, so reads bypass it. */
static int open_source(struct source *source, const char *name, const struct request *request)
{
    struct stat status;
    struct weir_options options = { .buffer_bytes = request->from_start ? 0 : 4096 };
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
        weir_close(source->in); /* opened for reading: an error would not matter */
    source->in = NULL;
}

/* Returns whether the file was printed. Files to be followed stay open. */
static bool print_source(struct source *source, const char *name, const struct request *request,
                         weir_stream *out)
{
    int result = open_source(source, name, request);
    if (result == 0)
        result = put_source(source, request, out);
    if (result < 0)
        print_error(source->name, -result);
    if (!request->follow)
        close_source(source);
    return result >= 0;
}

int main(int argc, char **argv)
{
    static char *standard[] = { "-" };
    struct request request = parse(argc, argv);
    int count = argc - optind;
    char **names = argv + optind;
    bool ok = true;
    if (request.count == 0 && !request.from_start && !request.follow)
        return 0; /* nothing is requested: do not wait for the end of a pipe */
    if (count == 0)
        names = standard, count = 1;

    struct source *sources = calloc((size_t)count, sizeof *sources);
    if (!sources)
        fail("memory", ENOMEM);
    weir_stream *out = open_stdout();
    for (int i = 0; i < count; i++)
        ok &= print_source(&sources[i], names[i], &request, out);
    if (request.follow)
        follow(sources, count, &request, out);
    for (int i = 0; i < count; i++)
        close_source(&sources[i]);
    free(sources);
    close_stdout();
    return !ok;
}
