/* A child of a parent with pending bytes prints, fails to execute programs, and ends in the way that argv[1] names. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(int failed, int error) {
    if (failed != -1 || errno != error) _exit(3);
}

/* Fails to execute files that are missing, and one that is no program (argv[2], empty and executable). */
static void fail(char *file) {
    char *words[] = {"x", NULL}, *none[] = {NULL};
    expect(execve("/missing/x", words, none), ENOENT);
    expect(execvp("missing-x", words), ENOENT);
    expect(execv("/", words), EACCES);
    for (int i = 0; i < 2; i++) expect(execve(file, words, none), ENOEXEC);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    printf("parent ");
    fflush(stdout);
    printf("inherited ");
    if (!fork()) {
        printf("own ");
        if (!strcmp(words[1], "missing")) {
            expect(execve("/missing/x", words, words), ENOENT);
            exit(0);
        }
        fail(words[2]);
        printf("later ");
        if (!strcmp(words[1], "exec")) execl("/bin/true", "true", (char *)NULL);
        if (!strcmp(words[1], "exit")) exit(0);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
