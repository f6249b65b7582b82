/* Writes numbered lines in tiny pieces to standard output, by write(2) or an unbuffered stream, while a signal handler writes to standard
   error. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void on_alarm(int number) {
    (void)number;
    int before = errno;
    if (write(2, "h", 1) != 1) _exit(9);
    errno = before;
}

int main(int argc, char **argv) {
    int is_stream = argc > 1 && strcmp(argv[1], "stream") == 0;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 700}, {0, 700}};
    if (is_stream) setvbuf(stdout, NULL, _IONBF, 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 60000; i++) {
        char line[16];
        int length = snprintf(line, sizeof line, "%d\n", i);
        for (int at = 0; at < length; at++)
            if (is_stream ? putchar(line[at]) == EOF : write(1, line + at, 1) != 1) return 1;
    }
    return 0;
}
