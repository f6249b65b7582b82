/* popen.c: streams to and from a command. pclose is in fclose.c. */
#include "stdio_private.h"

#include <paths.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

/* Starts the command with `end` as descriptor `number`. All other ends are close-on-exec. */
static int spawn(int *child, const char *command, int end, int number)
{
    char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return -error;
    error = posix_spawn_file_actions_adddup2(&actions, end, number);
    if (!error)
        error = posix_spawn(&pid, _PATH_BSHELL, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    *child = (int)pid;
    return -error;
}

/* ends[0] is this process's end. */
static int make_pipe(int ends[2], bool reads)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    ends[0] = fds[reads ? 0 : 1];
    ends[1] = fds[reads ? 1 : 0];
    return 0;
}

static int open_and_spawn(weir_stream **s, const char *command, const int ends[2], const struct weir__stdio_mode *mode)
{
    int result = weir__stdio_stream(s, ends[0], mode);
    if (result < 0) {
        weir__kernel.close(ends[0]);
        return result;
    }
    result = spawn(&weir__config(*s)->child, command, ends[1], mode->reads ? STDOUT_FILENO : STDIN_FILENO);
    if (result < 0)
        weir_close(*s);
    else
        weir__config(*s)->stdio_wide = -1; /* as POSIX says */
    return result;
}

/* As glibc: r or w, and perhaps e. */
static int parse_mode(struct weir__stdio_mode *mode, const char *string)
{
    bool reads = strchr(string, 'r'), writes = strchr(string, 'w');
    if (reads == writes || string[strspn(string, "rwe")] != '\0')
        return -EINVAL;
    *mode = (struct weir__stdio_mode){.oflags = (reads ? O_RDONLY : O_WRONLY), .reads = reads, .writes = writes};
    return 0;
}

weir_stream *weir_stdio_popen(const char *command, const char *string)
{
    struct weir__stdio_mode mode;
    weir_stream *s = NULL;
    int ends[2] = {-1, -1};
    int result = parse_mode(&mode, string);
    if (result == 0)
        result = make_pipe(ends, mode.reads);
    if (result < 0)
        return weir__stdio_result(NULL, result);
    result = open_and_spawn(&s, command, ends, &mode);
    weir__kernel.close(ends[1]);
    return weir__stdio_result(s, result);
}
