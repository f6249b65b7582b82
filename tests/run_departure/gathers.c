/* Tiny writes under `weir run --coalesce`. Its calls are noted in the bytes of the shared file "note", by no system call.

   gathers        Writes 100 bytes one by one, notes 1 in the first byte, and computes until the second is 1. Then it writes 50 more
                  bytes, notes 1 in the third, and computes until it is killed.
   gathers count  Writes one byte after the other until it is killed. The note is their number. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static void write_each(const char *byte, int count) {
    for (int i = 0; i < count; i++)
        if (write(1, byte, 1) != 1) _exit(1);
}

int main(int count, char **words) {
    (void)words;
    int fd = open("note", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, 4096)) return 1;
    volatile char *note = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (note == MAP_FAILED || close(fd)) return 1;
    while (count > 1) {
        write_each("c", 1);
        ++*(volatile uint64_t *)(volatile void *)note;
    }
    write_each("x", 100);
    note[0] = 1;
    while (!note[1]) continue;
    write_each("y", 50);
    note[2] = 1;
    for (;;) note[3] = 1;
}
