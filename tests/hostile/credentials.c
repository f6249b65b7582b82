/* credentials KIND MICROSECONDS PATH: leaves "payload" pending in a stream over the file PATH, prints "ready", and computes for a
 * time, or mostly sleeps if KIND is "sleep". Its next system call then changes its credentials:
 * KIND drop: setuid(2) to the user nobody. Then prints "unwritten" if the file is empty, else "written".
 * KIND execute or sleep: executes ./privileged, a set-user-ID copy of this program, which prints its effective user ID.
 * A line of input ends it, without a flush. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time); /* no system call: in the vDSO */
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static int say(const char *text)
{
    char byte;
    if (write(1, text, strlen(text)) != (ssize_t)strlen(text))
        return 1;
    return read(0, &byte, 1) < 0;
}

int main(int argc, char **argv)
{
    struct stat about;
    char text[32];
    if (argc == 1) {
        snprintf(text, sizeof text, "%d\n", (int)geteuid());
        return say(text);
    }
    if (argc != 4)
        return 2;
    int fd = open(argv[3], O_WRONLY | O_CLOEXEC);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (!stream)
        return 1;
    fputs("payload", stream);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    int sleeps = !strcmp(argv[1], "sleep");
    for (long long end = now_us() + atoll(argv[2]); now_us() < end;)
        if (sleeps)
            usleep(200);
    if (sleeps || !strcmp(argv[1], "execute")) {
        execl("./privileged", "privileged", (char *)NULL);
        return 3;
    }
    if (setuid(65534) || fstat(fd, &about))
        return 4;
    _exit(say(about.st_size == 0 ? "unwritten\n" : "written\n"));
}
