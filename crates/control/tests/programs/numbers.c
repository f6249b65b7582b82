/* Prints numbered lines, with pauses if argv[2] is not 0, until it is killed. The shared file argv[1] holds the number
   of complete lines; a line is complete when the call that prints its end has returned. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    int file = open(words[1], O_RDWR);
    volatile long *complete = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || complete == MAP_FAILED) return 3;
    close(file);
    long every = atol(words[2]);
    for (long number = 0;; number++) {
        if (number % 3) {
            printf("%ld a line that ends here\n", number);
        } else {
            char line[64];
            snprintf(line, sizeof line, "%ld by its characters\n", number);
            for (char *at = line; *at; at++) putc_unlocked(*at, stdout);
        }
        *complete = number + 1;
        if (every && number % every == 0) usleep(200);
        if (every && number % (37 * every) == 0) fflush(stdout);
    }
}
