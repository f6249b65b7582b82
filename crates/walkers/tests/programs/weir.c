/* weir.c: leaves known bytes in libweir's streams, writes a byte to stderr, and waits. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir.h>

static weir_stream *open_as(const char *name, enum weir_mode mode, enum weir_durability durability)
{
    weir_stream *s;
    struct weir_options options = {.mode = mode, .buffer_bytes = 5000, .durability = durability};
    if (weir_open(&s, name, O_CREAT | (durability == WEIR_KILL ? O_WRONLY : O_RDWR), &options) != 0)
        abort();
    return s;
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    weir_put_str(open_as("none", WEIR_NONE, WEIR_PROCESS), "at once");
    weir_put_str(open_as("line", WEIR_LINE, WEIR_PROCESS), "a whole line\nthe rest");
    weir_stream *full = open_as("full", WEIR_FULL, WEIR_PROCESS);
    for (int i = 0; i < 300; i++)
        weir_putc(full, 'a' + i % 26);
    weir_putrec(open_as("record", WEIR_RECORD, WEIR_PROCESS), "a record", 8);
    weir_put_str(open_as("kept", WEIR_FULL, WEIR_KILL), "outlives the process");
    weir_put_str(weir_stdout(), "in stdout");

    char *line;
    weir_stream *in = open_as("input", WEIR_FULL, WEIR_PROCESS);
    weir_put_str(in, "first line\nsecond line\nthird");
    if (weir_seek(in, 0, SEEK_SET) != 0 || weir_getrec(in, &line) != 11 || write(2, ".", 1) != 1)
        return 3;
    for (;;)
        pause();
}
