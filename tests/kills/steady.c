/* Writes 60 lines to standard output through stdio, some of them late, with calls, a thread, a fork and an exec between
 * them, and ends with status 7. Its PID goes to the file `pid` first. With the argument `wait` it fills its buffer, writes
 * "ready" to the file `ready` and waits for the end of its input. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void note(const char *name, long number)
{
    char text[32];
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int length = snprintf(text, sizeof text, "%ld\n", number);
    if (fd < 0 || write(fd, text, (size_t)length) != length || close(fd))
        _exit(2);
}

static void *writes(void *unused)
{
    for (int i = 0; i < 20; i++) {
        if (write(9, "t\n", 2) != 2)
            _exit(3);
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    return unused;
}

static void children(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        _exit(4);
}

int main(int count, char **words)
{
    pthread_t thread;
    note("pid", getpid());
    if (count > 1 && !strcmp(words[1], "wait")) {
        for (int line = 0; line < 60; line++)
            printf("line %d of steady\n", line);
        note("ready", 1);
        while (getchar() != EOF)
            ;
        return 7;
    }
    if (dup3(open("thread.out", O_WRONLY | O_CREAT | O_TRUNC, 0600), 9, O_CLOEXEC) != 9 ||
        pthread_create(&thread, NULL, writes, NULL))
        return 5;
    for (int line = 0; line < 60; line++) {
        printf("line %d of steady\n", line);
        if (line % 20 == 10)
            children();
        if (line % 16 == 15)
            fflush(stdout);
        nanosleep(&(struct timespec){0, 800000}, NULL);
    }
    pthread_join(thread, NULL);
    return 7;
}
