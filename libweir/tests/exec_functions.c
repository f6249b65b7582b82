/* exec_functions.c: each exec function writes pending bytes before it replaces the program; if it fails, errno is as
 * exec(3) documents and the stream works on. */
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

enum function { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLP, EXECLE, FEXECVE, FUNCTIONS };
static const char *const names[] = {"execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve"};

/* Calls an exec function for `file`, a path or a name to search, with two arguments. */
static int call_exec(enum function function, const char *file)
{
    char *const arguments[] = {"zero", "one", "two words", NULL};
    char *const environment[] = {"WEIR_GIVEN=yes", "PATH=/bin:/usr/bin", NULL};
    int fd;
    switch (function) {
    case EXECVE: return execve(file, arguments, environment);
    case EXECV: return execv(file, arguments);
    case EXECVP: return execvp(file, arguments);
    case EXECVPE: return execvpe(file, arguments, environment);
    case EXECL: return execl(file, "zero", "one", "two words", (char *)NULL);
    case EXECLP: return execlp(file, "zero", "one", "two words", (char *)NULL);
    case EXECLE: return execle(file, "zero", "one", "two words", (char *)NULL, environment);
    default:
        fd = open(file, O_RDONLY); /* without O_CLOEXEC: the interpreter reads the script through it */
        return fexecve(fd, arguments, environment);
    }
}

/* Calls an exec function in a child with pending bytes and with a file as standard output. Returns the content of the
 * file; *error is the exit status, which is errno if the exec function failed. */
static char *output_of(enum function function, const char *file, const char *path, unsigned flags, int *error)
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
        call_exec(function, file);
        int error_number = errno;
        weir_printf(s, "after\n");
        weir_close(s);
        _exit(error_number);
    }
    waitpid(child, &status, 0);
    *error = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ssize_t got = pread(fd, is, sizeof is - 1, 0);
    is[got < 0 ? 0 : got] = '\0';
    close(fd);
    return is;
}

static void pending_bytes_are_written(void)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        enum function function = (enum function)i;
        bool searches = function == EXECVP || function == EXECVPE || function == EXECLP;
        bool sets_environment = function == EXECVE || function == EXECVPE || function == EXECLE || function == FEXECVE;
        char expected[100];
        int error;
        check_begin("%s", names[function]);
        snprintf(expected, sizeof expected, "before\nran one|two words|%s\n", sets_environment ? "yes" : "");
        for (unsigned flags = 0; flags <= WEIR_THREADS; flags += WEIR_THREADS) {
            char *is = output_of(function, script, "/bin:/usr/bin", flags, &error);
            check(error == 0 && strcmp(is, expected) == 0, "by path: %d, %s", error, is);
            is = output_of(function, searches ? "weir-script" : script, directory, flags, &error);
            check(error == 0 && strcmp(is, expected) == 0, "by name: %d, %s", error, is);
        }
        char *is = output_of(function, bare, "/bin:/usr/bin", 0, &error);
        if (searches) /* only these functions run the shell for it */
            check(error == 0 && strcmp(is, expected) == 0, "without #!: %d, %s", error, is);
        else
            check(error == ENOEXEC && strcmp(is, "before\nafter\n") == 0, "without #!: %d, %s", error, is);
    }
}

static void expect_error(enum function function, const char *file, const char *path, int expected)
{
    int error;
    char *is = output_of(function, file, path, 0, &error);
    check(error == expected && strcmp(is, "before\nafter\n") == 0, "%s %s in %s: %s, not %s; %s", names[function], file,
          path, strerror(error), strerror(expected), is);
}

static void failures(void)
{
    char two[200];
    check_begin("a failed exec");
    expect_error(EXECV, "/no/such/program", "", ENOENT);
    expect_error(EXECV, plain, "", EACCES);
    expect_error(EXECV, directory, "", EACCES);
    expect_error(EXECVP, "no-such-program", "/bin:/usr/bin", ENOENT);
    expect_error(EXECVP, "", "/bin", ENOENT);
    snprintf(two, sizeof two, "%s:/bin", directory);
    expect_error(EXECVP, "plain", two, EACCES);
    expect_error(EXECLP, "plain", two, EACCES);
    expect_error(EXECVP, "weir-script", plain, ENOTDIR);
    expect_error(FEXECVE, "/no/such/program", "", EBADF);
}

static void searches(void)
{
    int error;
    char list[300];
    check_begin("the search of PATH");
    snprintf(list, sizeof list, "/no/such/directory:%s:%s", empty, directory);
    check(strstr(output_of(EXECVP, "weir-script", list, 0, &error), "ran one"), "the third entry");
    snprintf(list, sizeof list, "%s:%s", empty, directory);
    check(strstr(output_of(EXECVP, "plain", list, 0, &error), "after") && error == EACCES, "found, but not executable");
    check(chdir(directory) == 0, "chdir");
    check(strstr(output_of(EXECVP, "weir-script", "/bin:", 0, &error), "ran one"),
          "an empty entry means the working directory");
    check(strstr(output_of(EXECVP, "./bare", "/bin", 0, &error), "ran one"), "a name with a slash is a path");
    check(chdir("/") == 0, "chdir /");
    snprintf(list, sizeof list, "%s:/bin:%s", empty, directory);
    check(strstr(output_of(EXECLP, "bare", list, 0, &error), "ran one"), "a script for the shell");
}

/* A sanitizer finds a list of the shell's arguments that is too short. */
static void a_script_without_arguments(void)
{
    char *const arguments[] = {NULL};
    char name[] = "/tmp/weir-exec-none-XXXXXX", is[100] = "";
    int fd = mkstemp(name), status = -1;
    check_begin("a script for the shell, with an empty list of arguments");
    unlink(name);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDOUT_FILENO);
        execvp(bare, arguments);
        _exit(1);
    }
    waitpid(child, &status, 0);
    check(pread(fd, is, sizeof is - 1, 0) > 0 && strcmp(is, "ran ||\n") == 0 && status == 0, "%x, %s", (unsigned)status, is);
    close(fd);
}

/* An exec function gives read-ahead bytes back: the next program continues where this one stopped. */
static void next_program_continues(void)
{
    check_begin("the next program continues to read");
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

static void make_file(char *path, const char *name, const char *text, mode_t mode)
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
    make_file(script, "weir-script", "#!/bin/sh\necho \"ran $1|$2|$WEIR_GIVEN\"\n", 0755);
    make_file(bare, "bare", "echo \"ran $1|$2|$WEIR_GIVEN\"\n", 0755);
    make_file(plain, "plain", "not to be run", 0644);
    snprintf(empty, sizeof empty, "%s/empty", directory);
    mkdir(empty, 0755);
    pending_bytes_are_written();
    failures();
    searches();
    a_script_without_arguments();
    next_program_continues();
    unlink(script);
    unlink(bare);
    unlink(plain);
    rmdir(empty);
    rmdir(directory);
    return check_finish("exec_functions");
}
