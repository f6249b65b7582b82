/* As program.py. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
    (void)arguments;
    FILE *log = fopen("log", "w");
    if (!log) return 1;
    for (int i = 0; i < 2; i++) {
        printf("out %d\n", i);
        fprintf(log, "log %d\n", i);
    }
    close(creat("ready", 0666));
    if (count > 1) raise(SIGKILL);
    sleep(60);
    return 0;
}
