/* mixed.c: alternates a stream and write(2) on one descriptor. The order is kept for every type of file. */
#include "example.h"

#define USAGE "[COUNT]"

static void write_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, from, bytes);
        if (written == -1 && errno == EINTR)
            continue;
        check_call(written, STDOUT_NAME);
        from += written;
        bytes -= (size_t)written;
    }
}

int main(int argc, char **argv)
{
    if (argc > 2)
        usage(USAGE, NULL, NULL);
    uint64_t count = argc > 1 ? number_argument(argv[1], UINT64_MAX, USAGE) : 3;
    static const char raw[] = "write(2), into the same descriptor\n";

    weir_stream *out = open_stdout();
    for (uint64_t i = 1; i <= count; i++) {
        check(weir_printf(out, "%llu: weir_printf\n", (unsigned long long)i), STDOUT_NAME);
        check(weir_put_u64(out, i), STDOUT_NAME);
        check(weir_put_str(out, ": "), STDOUT_NAME);
        /* Flushes before it returns the descriptor: call it before each use and do not keep the result. */
        int fd = (int)check(weir_fileno(out), STDOUT_NAME);
        write_all(fd, raw, sizeof raw - 1);
    }
    close_stdout();
    return 0;
}
