/* Writes numbered lines byte by byte until it is killed. The shared file argv[1] holds the number of accepted bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    int fd = count > 1 ? open(words[1], O_RDWR) : -1;
    int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    volatile uint64_t *accepted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
    close(fd);
    for (unsigned line = 0;; line++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%u\n", line);
        for (int i = 0; i < n; i++) {
            if (write(1, &text[i], 1) != 1) return 1;
            ++*accepted;
        }
    }
}
