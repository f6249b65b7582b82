/* exec_functions.c: what waits goes out before any of the exec functions replaces the program, in order; if
 * it fails, it fails as exec(3) says and the stream goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

extern char **environ;

static char directory[] = "/tmp/weir-exec-XXXXXX", script[64], bare[64], plain[64], empty[64];

enum how { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLP, EXECLE, FEXECVE, HOWS };
static const char *const names[] = {"execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve"};

/* Runs `file` (a path, or a name for those that search) with two arguments. */
static int run(enum how how, const char *file)
{
    char *const arguments[] = {"zero", "one", "two words", NULL};
    char *const environment[] = {"WEIR_GIVEN=yes", "PATH=/bin:/usr/bin", NULL};
    int fd;
    switch (how) {
    case EXECVE: return execve(file, arguments, environment);
    case EXECV: return execv(file, arguments);
    case EXECVP: return execvp(file, arguments);
    case EXECVPE: return execvpe(file, arguments, environment);
    case EXECL: return execl(file, "zero", "one", "two words", (char *)NULL);
    case EXECLP: return execlp(file, "zero", "one", "two words", (char *)NULL);
    case EXECLE: return execle(file, "zero", "one", "two words", (char *)NULL, environment);
    default:
        fd = open(file, O_RDONLY); /* a script is read through it, so it stays open */
        return fexecve(fd, arguments, environment);
    }
}

/* In a child whose standard output is a file: some bytes wait, the program is replaced. Returns what is in
 * the file; *error is errno if it came back. */
static char *output_of(enum how how, const char *file, const char *path, unsigned flags, int *error)
{
    static char is[500];
    char name[] = "/tmp/weir-exec-out-XXXXXX";
    int fd = mkstemp(name), status = -1;
    unlink(name);
    pid_t child = fork();
    if (child == 0) {
        struct weir_options options = {.flags = flags, .mode = WEIR_FULL};
        weir_stream *s;
        dup2(fd, STDOUT_FILENO);
        setenv("PATH", path, 1);
        weir_fdopen(&s, STDOUT_FILENO, &options);
        weir_put_str(s, "before\n");
        run(how, file);
        int was = errno;
        weir_printf(s, "after\n");
        weir_close(s);
        _exit(was);
    }
    waitpid(child, &status, 0);
    *error = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ssize_t got = pread(fd, is, sizeof is - 1, 0);
    is[got < 0 ? 0 : got] = '\0';
    close(fd);
    return is;
}

static void writes_first(void)
{
    for (int how = 0; how < HOWS; how++) {
        bool searches = how == EXECVP || how == EXECVPE || how == EXECLP;
        bool gives = how == EXECVE || how == EXECVPE || how == EXECLE || how == FEXECVE;
        char expected[100];
        int error;
        check_begin("%s", names[how]);
        snprintf(expected, sizeof expected, "before\nran one|two words|%s\n", gives ? "yes" : "");
        for (unsigned flags = 0; flags <= WEIR_THREADS; flags += WEIR_THREADS) {
            char *is = output_of((enum how)how, script, "/bin:/usr/bin", flags, &error);
            check(error == 0 && strcmp(is, expected) == 0, "by path: %d, %s", error, is);
            is = output_of((enum how)how, searches ? "weir-script" : script, directory, flags, &error);
            check(error == 0 && strcmp(is, expected) == 0, "by name: %d, %s", error, is);
        }
        char *is = output_of((enum how)how, bare, "/bin:/usr/bin", 0, &error);
        if (searches) /* only these give it to the shell */
            check(error == 0 && strcmp(is, expected) == 0, "without #!: %d, %s", error, is);
        else
            check(error == ENOEXEC && strcmp(is, "before\nafter\n") == 0, "without #!: %d, %s", error, is);
    }
}

static void fails_as_it_should(enum how how, const char *file, const char *path, int expected)
{
    int error;
    char *is = output_of(how, file, path, 0, &error);
    check(error == expected && strcmp(is, "before\nafter\n") == 0, "%s %s in %s: %s, not %s; %s", names[how], file, path,
          strerror(error), strerror(expected), is);
}

static void failures(void)
{
    char two[200];
    check_begin("exec that fails");
    fails_as_it_should(EXECV, "/no/such/program", "", ENOENT);
    fails_as_it_should(EXECV, plain, "", EACCES);
    fails_as_it_should(EXECV, directory, "", EACCES);
    fails_as_it_should(EXECVP, "no-such-program", "/bin:/usr/bin", ENOENT);
    fails_as_it_should(EXECVP, "", "/bin", ENOENT);
    snprintf(two, sizeof two, "%s:/bin", directory);
    fails_as_it_should(EXECVP, "plain", two, EACCES);
    fails_as_it_should(EXECLP, "plain", two, EACCES);
    fails_as_it_should(EXECVP, "weir-script", plain, ENOTDIR);
    fails_as_it_should(FEXECVE, "/no/such/program", "", EBADF);
}

static void searches(void)
{
    int error;
    char list[300];
    check_begin("the search of PATH");
    snprintf(list, sizeof list, "/no/such/directory:%s:%s", empty, directory);
    check(strstr(output_of(EXECVP, "weir-script", list, 0, &error), "ran one"), "the third entry");
    snprintf(list, sizeof list, "%s:%s", empty, directory);
    check(strstr(output_of(EXECVP, "plain", list, 0, &error), "after") && error == EACCES, "found, but may not be run");
    check(chdir(directory) == 0, "there");
    check(strstr(output_of(EXECVP, "weir-script", "/bin:", 0, &error), "ran one"), "an empty entry is the working directory");
    check(strstr(output_of(EXECVP, "./bare", "/bin", 0, &error), "ran one"), "with a slash it is a path");
    check(chdir("/") == 0, "back");
    snprintf(list, sizeof list, "%s:/bin:%s", empty, directory);
    check(strstr(output_of(EXECLP, "bare", list, 0, &error), "ran one"), "a script for the shell");
}

/* What is given back before exec: the next program reads on where this one stopped. */
static void input_goes_on(void)
{
    check_begin("the next program reads on");
    char name[] = "/tmp/weir-exec-in-XXXXXX", is[100] = "";
    int fd = mkstemp(name), out[2], status;
    unlink(name);
    check(pipe(out) == 0 && write(fd, "one\ntwo\nthree\n", 14) == 14 && lseek(fd, 0, SEEK_SET) == 0, "set up");
    pid_t child = fork();
    if (child == 0) {
        char *record;
        dup2(fd, STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        weir_getrec(weir_stdin(), &record);
        weir_printf(weir_stdout(), "%.3s ", record);
        execlp("cat", "cat", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    check(read(out[0], is, sizeof is - 1) > 0 && strcmp(is, "one two\nthree\n") == 0, "%s", is);
    close(fd);
    close(out[0]);
    close(out[1]);
}

static void make(char *path, const char *name, const char *text, mode_t mode)
{
    snprintf(path, 64, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    chmod(path, mode);
}

int main(void)
{
    if (!mkdtemp(directory))
        return 1;
    make(script, "weir-script", "#!/bin/sh\necho \"ran $1|$2|$WEIR_GIVEN\"\n", 0755);
    make(bare, "bare", "echo \"ran $1|$2|$WEIR_GIVEN\"\n", 0755);
    make(plain, "plain", "not to be run", 0644);
    snprintf(empty, sizeof empty, "%s/empty", directory);
    mkdir(empty, 0755);
    writes_first();
    failures();
    searches();
    input_goes_on();
    unlink(script);
    unlink(bare);
    unlink(plain);
    rmdir(empty);
    rmdir(directory);
    return check_finish("exec_functions");
}
