/* Makes COUNT tiny writes through stdio, or by writev(2), in the way that argv[1] names. Some ways kill the process,
   fork or execute another program after half of the writes. The exit status is 1 if a call failed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *how = argv[1];
    int count = atoi(argv[2]), failed = -1;
    if (is(how, "unbuffered")) setvbuf(stdout, NULL, _IONBF, 0);
    if (is(how, "lines")) setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < count; i++) {
        int bad = 0;
        if (is(how, "unbuffered")) bad = putchar('a' + i % 26) == EOF;
        else if (is(how, "lines")) bad = printf("line %d\n", i) < 0;
        else if (is(how, "wide")) bad = wprintf(L"line %d \u20ac\n", i) < 0 || fflush(stdout);
        else if (is(how, "vector")) {
            char line[16];
            struct iovec parts[2] = {{line, (size_t)sprintf(line, "%d", i)}, {"\n", 1}};
            bad = writev(1, parts, 2) < 0;
        } else bad = printf("line %d\n", i) < 0 || fflush(stdout);
        if (bad && failed < 0) failed = i;
        if (i == count / 2 && is(how, "killed")) kill(getpid(), SIGKILL);
        if (i == count / 2 && is(how, "forks") && fork() == 0) return 0;
        if (i == count / 2 && is(how, "vforks") && vfork() == 0) {
            ssize_t done = write(1, "child\n", 6);
            _exit(done != 6);
        }
        if (i == count / 2 && is(how, "execs")) execlp("echo", "echo", "exec", (char *)0);
        if (i % 100 == 0 && is(how, "mixed")) bad = write(1, "own\n", 4) != 4;
        if (i % 100 == 0 && is(how, "seeks")) bad = fseek(stdout, -3, SEEK_CUR) != 0;
        if (i % 100 == 0 && is(how, "tells") && ftell(stdout) < i) return 3;
    }
    while (wait(NULL) > 0) {}
    if (fclose(stdout) && failed < 0) failed = count;
    if (failed >= 0) fputs("failed\n", stderr);
    return failed >= 0;
}
