/* exec.c: replaces the exec functions of the C library. They flush all streams before the program is
 * replaced, then call execve(2) or execveat(2). They hold the streams' locks meanwhile (ending.c). */
#include "private.h"

#include <paths.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

/* Calls the kernel directly, because execve is the public function below. */
static int exec_path(const char *path, char *const arguments[], char *const environment[])
{
    return (int)syscall(SYS_execve, path, arguments, environment);
}

static size_t count_of(char *const strings[])
{
    size_t count = 0;
    while (strings[count])
        count++;
    return count;
}

/* Runs a script without #! by the shell, as execvp(3). */
static int exec_shell(const char *path, char *const arguments[], char *const environment[])
{
    size_t count = count_of(arguments);
    const char **shell = malloc((count + 3) * sizeof *shell); /* an empty list gets two arguments and NULL */
    if (!shell)
        return -1;
    shell[0] = _PATH_BSHELL;
    shell[1] = path;
    for (size_t i = 1; i <= count; i++) /* including the final NULL; argument 0 was the script's name */
        shell[i + 1] = arguments[i];
    if (count == 0)
        shell[2] = NULL;
    exec_path(_PATH_BSHELL, (char *const *)(uintptr_t)shell, environment);
    free(shell);
    return -1;
}

static int exec_or_shell(const char *path, char *const arguments[], char *const environment[])
{
    exec_path(path, arguments, environment);
    return errno == ENOEXEC ? exec_shell(path, arguments, environment) : -1;
}

/* Tries the file in each directory of `list`, separated by colons. Returns only on failure. EACCES wins
 * over ENOENT: it says that a file exists. */
static int search_path(const char *list, const char *file, char *const arguments[], char *const environment[])
{
    char path[4096];
    bool denied = false;
    errno = ENOENT;
    for (const char *entry = list; entry; entry = strchr(entry, ':') ? strchr(entry, ':') + 1 : NULL) {
        size_t length = strcspn(entry, ":");
        if (length + 1 + strlen(file) + 1 > sizeof path)
            continue;
        memcpy(path, entry, length);
        path[length] = '/';
        strcpy(path + length + (length > 0), file); /* an empty entry is the working directory */
        exec_or_shell(path, arguments, environment);
        if (errno == EACCES)
            denied = true;
        else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT)
            return -1;
    }
    if (denied)
        errno = EACCES;
    return -1;
}

static int exec_search(const char *file, char *const arguments[], char *const environment[])
{
    const char *list = getenv("PATH");
    if (!*file) {
        errno = ENOENT;
        return -1;
    }
    if (strchr(file, '/'))
        return exec_or_shell(file, arguments, environment);
    return search_path(list ? list : "/bin:/usr/bin", file, arguments, environment);
}

/* Calls the kernel as exec_path does. */
static int exec_descriptor(int fd, char *const arguments[], char *const environment[])
{
    char path[32];
    int result = (int)syscall(SYS_execveat, fd, "", arguments, environment, AT_EMPTY_PATH);
    if (errno != ENOSYS || fcntl(fd, F_GETFD) < 0)
        return result;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd); /* Linux before 3.19 and some emulators */
    return exec_path(path, arguments, environment);
}

/* The function that musl's posix_spawnp(3) calls in its child. Without this definition a static program
 * would link musl's object, whose execvp(3) conflicts with the one below. The child flushes nothing. */
#if !defined(__GLIBC__)
int __execvpe(const char *file, char *const arguments[], char *const environment[]);
int __execvpe(const char *file, char *const arguments[], char *const environment[])
{
    return exec_search(file, arguments, environment);
}
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

int execve(const char *path, char *const arguments[], char *const environment[])
{
    weir__before_exec();
    int result = exec_path(path, arguments, environment);
    weir__after_exec();
    return result;
}

int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

int fexecve(int fd, char *const arguments[], char *const environment[])
{
    weir__before_exec();
    int result = exec_descriptor(fd, arguments, environment);
    weir__after_exec();
    return result;
}

int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    weir__before_exec();
    int result = exec_search(file, arguments, environment);
    weir__after_exec();
    return result;
}

int execvp(const char *file, char *const arguments[]) { return execvpe(file, arguments, environ); }

/* Collects the arguments of the execl functions on the stack: nothing to free after a failure, and no
 * malloc lock in the child of a multithreaded process. */
#define COLLECT_ARGUMENTS(first, read_last, array) \
    va_list list;                                  \
    size_t count = 1;                              \
    va_start(list, first);                         \
    while (va_arg(list, const char *))             \
        count++;                                   \
    va_end(list);                                  \
    char *array[count + 1];                        \
    va_start(list, first);                         \
    array[0] = (char *)(uintptr_t)first;           \
    for (size_t i = 1; i <= count; i++)            \
        array[i] = va_arg(list, char *);           \
    read_last;                                     \
    va_end(list)

int execl(const char *path, const char *argument, ...)
{
    COLLECT_ARGUMENTS(argument, (void)0, arguments);
    return execve(path, arguments, environ);
}

int execlp(const char *file, const char *argument, ...)
{
    COLLECT_ARGUMENTS(argument, (void)0, arguments);
    return execvpe(file, arguments, environ);
}

int execle(const char *path, const char *argument, ...)
{
    char **environment;
    COLLECT_ARGUMENTS(argument, environment = va_arg(list, char **), arguments);
    return execve(path, arguments, environment);
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
