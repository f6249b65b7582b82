/* buffered_writer.c: writes 100,000 bytes by weir_putc(3). Compare with unbuffered_writer. */
#include <fcntl.h>

#include "example.h"

#define USAGE "[FILE|- [COUNT]]"

static weir_stream *open_target(const char *name)
{
    weir_stream *s;
    if (strcmp(name, STDOUT_NAME) == 0)
        return open_stdout();
    check(weir_open(&s, name, O_WRONLY | O_CREAT | O_TRUNC, NULL), name);
    return s;
}

int main(int argc, char **argv)
{
    if (argc > 3)
        usage(USAGE, NULL, NULL);
    const char *name = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : STDOUT_NAME;
    uint64_t count = argc > 2 ? number_argument(argv[2], UINT64_MAX, USAGE) : 100000;
    weir_stream *s = open_target(name);
    for (uint64_t i = 0; i < count; i++)
        check(weir_putc(s, 'x'), name);
    check(weir_close(s), name);
    return 0;
}
