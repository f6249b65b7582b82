/* fails from-the-end: keeps the last lines in a ring buffer, and reads the whole file for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int give_up(const char *what)
{
    fprintf(stderr, "tail: %s: %s\n", what, strerror(errno));
    return 1;
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
    FILE *file = fopen(argv[optind], "r");
    if (!file)
        return give_up(argv[optind]);
    long slots = wanted + 1, lines = 0;
    char **ring = calloc((size_t)slots, sizeof *ring);
    size_t *room = calloc((size_t)slots, sizeof *room), *bytes = calloc((size_t)slots, sizeof *bytes);
    for (ssize_t got; (got = getline(&ring[lines % slots], &room[lines % slots], file)) > 0; lines++)
        bytes[lines % slots] = (size_t)got;
    for (long line = lines > wanted ? lines - wanted : 0; line < lines; line++)
        fwrite(ring[line % slots], 1, bytes[line % slots], stdout);
    return fclose(stdout) == EOF ? give_up("standard output") : 0;
}
