/* Forks with a pending line. After a pause the child calls _exit, executes another program, or prints a line of its own
   and so writes both lines. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 2) return 2;
    printf("of the parent\n");
    if (fork() == 0) {
        usleep(200000);
        if (strcmp(words[1], "exec") == 0) execlp("true", "true", NULL);
        if (strcmp(words[1], "print") == 0) {
            printf("of the child\n");
            fflush(stdout);
            usleep(100000);
        }
        _exit(0);
    }
    wait(NULL);
    return 0;
}
