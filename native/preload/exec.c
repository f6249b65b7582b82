/* exec.c: the calls that start a program. Each passes the library on to it (environment.c). The exec calls first write
   the process's own stdio bytes. */
#include <stdarg.h>

#include "functions.h"
#include "libc.h"
#include "streams.h"

typedef char *const *vector;

static vector own_environment(void) { return &__environ ? (vector)__environ : NULL; }
#define CHILD_ENVIRONMENT(environment, loads) \
    environment_child(environment, loads, __builtin_alloca(environment_room(environment)))

EXPORT int execve(const char *path, vector arguments, vector environment);
EXPORT int execve(const char *path, vector arguments, vector environment) {
    int (*call)(const char *, vector, vector) = NEXT("execve");
    exec_flush(AT_FDCWD, path);
    vector passed = CHILD_ENVIRONMENT(environment, environment_loads(AT_FDCWD, path));
    int saved = private_stdin_exec();
    int failed = call ? call(path, arguments, passed) : (int)result(sys3(__NR_execve, path, arguments, passed));
    private_stdin_restore(saved);
    return failed;
}

EXPORT int execv(const char *path, vector arguments);
EXPORT int execv(const char *path, vector arguments) { return execve(path, arguments, own_environment()); }

EXPORT int fexecve(int fd, vector arguments, vector environment);
EXPORT int fexecve(int fd, vector arguments, vector environment) {
    int (*call)(int, vector, vector) = NEXT("fexecve");
    exec_flush(fd, "");
    int saved = private_stdin_exec();
    int failed = call ? call(fd, arguments, CHILD_ENVIRONMENT(environment, 1)) : fail(-38);
    private_stdin_restore(saved);
    return failed;
}

EXPORT int execveat(int dirfd, const char *path, vector arguments, vector environment, int flags);
EXPORT int execveat(int dirfd, const char *path, vector arguments, vector environment, int flags) {
    exec_flush(dirfd, path);
    vector passed = CHILD_ENVIRONMENT(environment, environment_loads(dirfd, path));
    int saved = private_stdin_exec();
    int failed = (int)result(sys5(__NR_execveat, dirfd, path, arguments, passed, flags));
    private_stdin_restore(saved);
    return failed;
}

EXPORT int execvpe(const char *name, vector arguments, vector environment);
EXPORT int execvpe(const char *name, vector arguments, vector environment) {
    int (*call)(const char *, vector, vector) = NEXT("execvpe");
    char room[FOUND_BYTES];
    const char *file = environment_find(name, room, sizeof room);
    exec_flush(AT_FDCWD, file);
    vector passed = CHILD_ENVIRONMENT(environment, !file || environment_loads(AT_FDCWD, file));
    int saved = private_stdin_exec();
    int failed = call ? call(name, arguments, passed) : fail(-38);
    private_stdin_restore(saved);
    return failed;
}

EXPORT int execvp(const char *name, vector arguments);
EXPORT int execvp(const char *name, vector arguments) { return execvpe(name, arguments, own_environment()); }

/* Collects the arguments of a call such as execl in an array. `list` is then after the null, where execle has the environment. */
#define COLLECT(vector_name, first, list) \
    size_t count = 1; \
    va_list counted; \
    va_start(list, first); \
    va_copy(counted, list); \
    while (va_arg(counted, char *)) count++; \
    va_end(counted); \
    char **vector_name = __builtin_alloca((count + 1) * sizeof(char *)); \
    vector_name[0] = (char *)(uintptr_t)first; \
    for (size_t i = 1; i <= count; i++) vector_name[i] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...);
EXPORT int execl(const char *path, const char *first, ...) {
    va_list list;
    COLLECT(arguments, first, list);
    va_end(list);
    return execv(path, arguments);
}

EXPORT int execlp(const char *name, const char *first, ...);
EXPORT int execlp(const char *name, const char *first, ...) {
    va_list list;
    COLLECT(arguments, first, list);
    va_end(list);
    return execvp(name, arguments);
}

EXPORT int execle(const char *path, const char *first, ...);
EXPORT int execle(const char *path, const char *first, ...) {
    va_list list;
    COLLECT(arguments, first, list);
    vector environment = va_arg(list, vector);
    va_end(list);
    return execve(path, arguments, environment);
}

typedef int spawn_call(int *, const char *, const void *, const void *, vector, vector);

EXPORT spawn_call posix_spawn;
EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes, vector arguments,
                       vector environment) {
    spawn_call *call = NEXT("posix_spawn");
    vector passed = CHILD_ENVIRONMENT(environment, environment_loads(AT_FDCWD, path));
    int saved = private_stdin_spawn();
    int failed = call ? call(pid, path, actions, attributes, arguments, passed) : 38;
    private_stdin_restore(saved);
    return failed;
}

EXPORT spawn_call posix_spawnp;
EXPORT int posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes, vector arguments,
                        vector environment) {
    spawn_call *call = NEXT("posix_spawnp");
    vector passed = CHILD_ENVIRONMENT(environment, environment_loads_in_path(name));
    int saved = private_stdin_spawn();
    int failed = call ? call(pid, name, actions, attributes, arguments, passed) : 38;
    private_stdin_restore(saved);
    return failed;
}

/* Replaces __environ, which system and popen read, if the program has removed the variables. */
static void set_environment(vector passed) {
    if (passed != own_environment()) __environ = (char **)passed;
}

EXPORT int system(const char *command);
EXPORT int system(const char *command) {
    int (*call)(const char *) = NEXT("system");
    vector before = own_environment(), passed = CHILD_ENVIRONMENT(before, 1);
    if (!call) return fail(-38);
    set_environment(passed);
    int saved = private_stdin_spawn();
    int status = call(command);
    private_stdin_restore(saved);
    set_environment(before);
    return status;
}

EXPORT struct file *popen(const char *command, const char *how);
EXPORT struct file *popen(const char *command, const char *how) {
    struct file *(*call)(const char *, const char *) = NEXT("popen");
    vector before = own_environment(), passed = CHILD_ENVIRONMENT(before, 1);
    if (!call) return NULL;
    set_environment(passed);
    int saved = private_stdin_spawn();
    struct file *stream = call(command, how);
    private_stdin_restore(saved);
    set_environment(before);
    return stream;
}
