/* The same with a pipe for each writer and a collector that reads whole records. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, RECORDS = 200, RECORD = 6000 };

/* Writes a whole record, also if a signal or a tracer cuts a write short. Returns 0 on an error. */
static int write_all(int fd, const char *from)
{
    for (size_t have = 0; have < RECORD;) {
        ssize_t put = write(fd, from + have, RECORD - have);
        if (put < 0 && errno != EINTR)
            return 0;
        have += put > 0 ? (size_t)put : 0;
    }
    return 1;
}

static void write_records(int fd, char letter)
{
    char record[RECORD];
    memset(record, letter, sizeof record);
    record[RECORD - 1] = '\n';
    for (int number = 0; number < RECORDS; number++)
        if (!write_all(fd, record))
            _exit(1);
    _exit(0);
}

/* Copies one whole record, in however many pieces it arrives. Returns 0 at the end of input or on an error. */
static int pass_on(int fd)
{
    char record[RECORD];
    size_t have = 0;
    while (have < sizeof record) {
        ssize_t got = read(fd, record + have, sizeof record - have);
        if (got == 0 || (got < 0 && errno != EINTR))
            return 0;
        have += got > 0 ? (size_t)got : 0;
    }
    return write_all(STDOUT_FILENO, record);
}

int main(void)
{
    struct pollfd ends[WRITERS];
    for (int writer = 0; writer < WRITERS; writer++) {
        int both[2];
        if (pipe(both) != 0)
            return 1;
        if (fork() == 0)
            write_records(both[1], (char)('a' + writer));
        close(both[1]);
        ends[writer] = (struct pollfd){.fd = both[0], .events = POLLIN};
    }
    for (int open = WRITERS; open > 0;) {
        poll(ends, WRITERS, -1);
        for (int writer = 0; writer < WRITERS; writer++)
            if (ends[writer].fd >= 0 && ends[writer].revents && !pass_on(ends[writer].fd)) {
                ends[writer].fd = -1;
                open--;
            }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
