/* 25 processes send 100 records of 9,999 bytes each, every process its own letter, through one stream socket. The parent
 * writes the bytes that arrive to standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 25, RECORDS = 100, RECORD = 9999, BUFFER = 8192 };

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

int main(void)
{
    int ends[2];
    static char block[65536];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    for (int writer = 0; writer < WRITERS; writer++)
        if (fork() == 0) {
            close(ends[0]);
            send_records(ends[1], (char)('a' + writer));
        }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], block, sizeof block)) > 0;)
        if (write(STDOUT_FILENO, block, (size_t)got) != got)
            return 1;
    while (wait(NULL) > 0)
        ;
    return 0;
}
