/* Prints through stdio in the way that argv[1] names. Each write(2) to the socket is one packet. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void lines(FILE *to) {
    for (int i = 0; i < 3; i++) fprintf(to, "line %d\n", i);
}

int main(int count, char **words) {
    static char own[4096];
    const char *how = count > 1 ? words[1] : "lines";
    char *self = words[0], command[4096];
    snprintf(command, sizeof command, "%s lines", self);
    if (!strcmp(how, "lines")) lines(stdout);
    if (!strcmp(how, "errors")) lines(stderr);
    if (!strcmp(how, "setvbuf")) setvbuf(stdout, own, _IOFBF, sizeof own), lines(stdout);
    if (!strcmp(how, "fdopen")) lines(fdopen(1, "w"));
    if (!strcmp(how, "long"))
        for (int i = 0; i < 1000; i++) lines(stdout);
    if (!strcmp(how, "clean")) clearenv(), execl(self, self, "lines", (char *)NULL);
    if (!strcmp(how, "system")) clearenv(), count = system(command);
    if (!strcmp(how, "own-preload")) {
        clearenv();
        setenv("LD_PRELOAD", "/nonexistent.so", 1);
        execlp("env", "env", (char *)NULL);
    }
    if (!strcmp(how, "order"))
        for (int i = 0; i < 3; i++) printf("a%d ", i), count = (int)write(1, "b ", 2);
    if (!strcmp(how, "exec")) printf("pending "), execl(self, self, "lines", (char *)NULL);
    if (!strcmp(how, "fork-exec")) {
        printf("inherited ");
        if (!fork()) printf("own "), execl("/bin/true", "true", (char *)NULL);
        wait(NULL);
    }
    if (!strncmp(how, "flush ", 6) || !strncmp(how, "purge ", 6)) {
        printf("abc ");
        if (!fork()) {
            if (*how == 'f') fflush(NULL);
            else __fpurge(stdout);
            printf("%s", how + 6);
            execl("/bin/true", "true", (char *)NULL);
        }
        wait(NULL);
    }
    if (!strcmp(how, "vfork-exec")) {
        printf("parent's ");
        if (!vfork()) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        wait(NULL);
        count = (int)write(1, "between ", 8);
    }
    if (!strcmp(how, "input")) {
        int byte;
        while ((byte = getchar()) != EOF) putchar(byte);
    }
    if (!strcmp(how, "child-input")) {
        snprintf(command, sizeof command, "%s input", self);
        count = system(command);
        puts("then");
    }
    return 0;
}
