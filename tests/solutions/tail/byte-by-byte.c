/* fails calls, pipe: reads single bytes backwards from the end. */
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
    int fd = fileno(file);
    off_t end = lseek(fd, 0, SEEK_END), at = wanted > 0 && end > 0 ? end - 1 : end;
    char c, block[4096];
    if (end == -1)
        return give_up("lseek");
    while (wanted > 0 && at > 0 && !(pread(fd, &c, 1, at - 1) == 1 && c == '\n' && --wanted == 0))
        at--;
    for (ssize_t got; (got = pread(fd, block, sizeof block, at)) > 0; at += got)
        fwrite(block, 1, (size_t)got, stdout);
    return fclose(stdout) == EOF ? give_up("standard output") : 0;
}
