/* As broken.c, but each process has a connection of its own, and weir log takes whole records from it. The collector
 * writes to standard output. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 25, RECORDS = 100, RECORD = 9999, BUFFER = 8192 };

static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "collector"};

static void send_records(int fd, char letter)
{
    static char record[RECORD], buffer[BUFFER];
    FILE *stream = fdopen(fd, "w");
    setvbuf(stream, buffer, _IOFBF, sizeof buffer);
    memset(record, letter, sizeof record);
    for (int number = 0; number < RECORDS; number++)
        for (int at = 0; at < RECORD; at++)
            putc_unlocked(record[at], stream);
    exit(fclose(stream) != 0);
}

/* Returns a connection to the collector, which may still be starting. */
static int connection(void)
{
    for (int tries = 0; tries < 1000; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        usleep(10000);
    }
    exit(1);
}

int main(void)
{
    unlink(address.sun_path);
    pid_t collector = fork();
    if (collector == 0) {
        const char *weir = getenv("WEIR");
        execlp(weir ? weir : "weir", "weir", "log", "--quiet", "-o", "-", "--listen", "unix:collector", "--record",
               "len:9999", (char *)NULL);
        _exit(127);
    }
    pid_t writers[WRITERS];
    for (int writer = 0; writer < WRITERS; writer++)
        if ((writers[writer] = fork()) == 0)
            send_records(connection(), (char)('a' + writer));
    int failed = 0, status;
    for (int writer = 0; writer < WRITERS; writer++)
        failed |= waitpid(writers[writer], &status, 0) < 0 || status != 0;
    kill(collector, SIGTERM); /* it reads what was sent before it ends */
    failed |= waitpid(collector, &status, 0) < 0 || status != 0;
    return failed;
}
