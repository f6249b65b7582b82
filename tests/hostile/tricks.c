/* tricks KIND FILE: has 7 bytes for FILE pending, plays a trick on its inspector, prints "ready" and waits for input.
 * KIND: name (a name that is no UTF-8), arguments (8 GiB of them), mapping (of a file whose name is no UTF-8), descriptors (as many
 * as the limit allows, at most 20,000, of open files of one inode). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const size_t ARGUMENTS = (size_t)8 << 30;

/* Moves the program's arguments, as the kernel sees them, to untouched memory (PR_SET_MM_MAP needs no privilege). */
static int move_arguments(void)
{
    char *memory = mmap(0, ARGUMENTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct prctl_mm_map map = {.exe_fd = (unsigned)-1};
    char line[4096], *at;
    FILE *stat = fopen("/proc/self/stat", "r");
    if (memory == MAP_FAILED || !stat || !fgets(line, sizeof line, stat) || !(at = strrchr(line, ')')))
        return -1;
    fclose(stat);
    unsigned long field[64] = {0};
    at++;
    for (int number = 3; number < 52 && *at; number++) {
        at += strspn(at, " ");
        field[number] = strtoul(at, NULL, 10);
        at += strcspn(at, " ");
    }
    map.start_code = field[26], map.end_code = field[27], map.start_stack = field[28];
    map.start_data = field[45], map.end_data = field[46], map.start_brk = field[47], map.brk = (unsigned long)sbrk(0);
    map.env_start = field[50], map.env_end = field[51];
    map.arg_start = (unsigned long)memory, map.arg_end = (unsigned long)memory + ARGUMENTS;
    return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/* Maps a file whose name is no UTF-8. */
static int map_file(void)
{
    int fd = open("\xff\xfe", O_RDWR | O_CREAT, 0600);
    return ftruncate(fd, 4096) || mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED;
}

/* Opens one file again and again. */
static int open_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return -1;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return -1;
    for (int count = 0; count < 20000 && open("/dev/null", O_RDONLY) >= 0; count++)
        ;
    return 0;
}

int main(int argc, char **argv)
{
    FILE *stream = argc > 2 ? fopen(argv[2], "w") : NULL;
    if (!stream || fputs("pending", stream) == EOF)
        return 1;
    int failed = !strcmp(argv[1], "name")        ? prctl(PR_SET_NAME, "\xff\xfe)(\n")
                 : !strcmp(argv[1], "arguments") ? move_arguments()
                 : !strcmp(argv[1], "mapping")   ? map_file()
                 : !strcmp(argv[1], "descriptors") ? open_descriptors()
                                                   : -1;
    if (failed)
        return perror(argv[1]), 77;
    if (write(1, "ready\n", 6) != 6)
        return 1;
    return getchar() == EOF;
}
