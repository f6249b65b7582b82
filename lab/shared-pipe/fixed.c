/* The same with a pipe for each writer; what collects them takes whole records. */
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, RECORDS = 200, RECORD = 6000 };

static void write_records(int fd, char letter)
{
    char record[RECORD];
    memset(record, letter, sizeof record);
    record[RECORD - 1] = '\n';
    for (int number = 0; number < RECORDS; number++)
        if (write(fd, record, sizeof record) < 0)
            _exit(1);
    _exit(0);
}

/* A whole record, however many pieces it comes in. */
static int pass_on(int fd)
{
    char record[RECORD];
    size_t have = 0;
    while (have < sizeof record) {
        ssize_t got = read(fd, record + have, sizeof record - have);
        if (got <= 0)
            return 0;
        have += (size_t)got;
    }
    return write(STDOUT_FILENO, record, sizeof record) == sizeof record;
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
