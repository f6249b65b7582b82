/* Prints lines by each stdio call that can flush. The shared file argv[1] holds the number of complete lines. SIGWINCH,
   which is ignored, marks the beginning and end of the part that the test steps through. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long *complete;
static int same;

static void lines(int count, int longer) {
    static char line[4096], xs[1024];
    memset(xs, 'x', sizeof xs - 1);
    for (int each = 0; each < count; each++) {
        long number = *complete;
        int length = same ? sprintf(line, "a line") : sprintf(line, "%ld ", number);
        if (!same) length += sprintf(line + length, "%.*s", longer, xs);
        strcpy(line + length, "\n");
        if (number % 4 == 0) {
            printf("%s", line);
        } else if (number % 4 == 1) {
            for (char *at = line; *at; at++) putc_unlocked(*at, stdout);
        } else if (number % 4 == 2) {
            fwrite(line, 1, strlen(line), stdout);
        } else {
            for (char *at = line; *at; at++) putchar(*at);
        }
        *complete = number + 1;
    }
}

int main(int count, char **words) {
    if (count < 4) return 2;
    int file = open(words[1], O_RDWR);
    complete = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || complete == MAP_FAILED) return 3;
    close(file);
    same = strcmp(words[2], "same") == 0;
    size_t buffered = strtoul(words[3], 0, 10);
    setvbuf(stdout, 0, words[4][0] == 'l' ? _IOLBF : _IOFBF, buffered);
    lines(50, 0);
    kill(getpid(), SIGWINCH);
    lines(60, 0);
    fflush(stdout);
    lines(4, 0);
    for (int each = 0; each < 8; each++) lines(1, 3 * (int)buffered + each);
    lines(2, 0);
    fflush(stdout);
    fflush(stdout);
    kill(getpid(), SIGWINCH);
    return 0;
}
