/* Has a stream whose buffer is in memory of userfaultfd(2) that no program serves, and waits. A line of input makes it
 * print "again" and end with status 7. It ignores SIGINT. With an argument it becomes a process of another user. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 1 << 16, PENDING = 100, NOT_PERMITTED = 77 };

int main(int count, char **words)
{
    char *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int handler = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(unsigned long)memory, BYTES}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (memory == MAP_FAILED || handler < 0 || ioctl(handler, UFFDIO_API, &api) ||
        ioctl(handler, UFFDIO_REGISTER, &range))
        return NOT_PERMITTED;
    FILE *stream = fopen("/dev/null", "w");
    if (!stream)
        return 1;
    fputc('x', stream);
    stream->_IO_buf_base = stream->_IO_write_base = memory;
    stream->_IO_write_ptr = memory + PENDING;
    stream->_IO_buf_end = stream->_IO_write_end = memory + BYTES;
    if (count > 1 && (setgid((gid_t)atoi(words[1])) || setuid((uid_t)atoi(words[1]))))
        return NOT_PERMITTED;
    signal(SIGINT, SIG_IGN);
    puts("ready");
    fflush(stdout);
    if (getchar() != EOF) {
        puts("again");
        fflush(stdout);
        _exit(7);
    }
    for (;;)
        pause();
}
