/* fopen.c: fopen, fdopen, tmpfile, and the interpretation of modes. */
#include "stdio_private.h"

#include <unistd.h>

int weir__stdio_parse_mode(struct weir__stdio_mode *mode, const char *string)
{
    char first = string[0];
    if (first != 'r' && first != 'w' && first != 'a')
        return -EINVAL;
    size_t length = strcspn(string, ","); /* ,ccs= applies to wide streams */
    bool both = memchr(string, '+', length);
    mode->reads = both || first == 'r';
    mode->writes = both || first != 'r';
    mode->oflags = both ? O_RDWR : first == 'r' ? O_RDONLY : O_WRONLY;
    if (first != 'r')
        mode->oflags |= O_CREAT | (first == 'w' ? O_TRUNC : O_APPEND) | (memchr(string, 'x', length) ? O_EXCL : 0);
    if (memchr(string, 'e', length))
        mode->oflags |= O_CLOEXEC;
    mode->to_end = first == 'a' && !both;
    return 0;
}

int weir__stdio_open(const char *path, const struct weir__stdio_mode *mode)
{
    return (int)WEIR_CALL(weir__kernel.open(path, mode->oflags, 0666));
}

struct weir_options weir__stdio_options(const struct weir__stdio_mode *mode)
{
    return (struct weir_options){
        .flags = WEIR_THREADS,
        .on_fork = mode->writes ? WEIR_FORK_EMPTY : WEIR_FORK_KEEP,
    };
}

/* Ties a stream that reads a terminal to stdout, so that prompts are visible. */
static void tie_terminal(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    weir_stream *out = config->terminal && config->can_read ? weir_stdio_standard(STDOUT_FILENO) : NULL;
    if (out && weir__config(out)->terminal)
        weir_tie(s, out);
}

int weir__stdio_stream(weir_stream **s, int fd, const struct weir__stdio_mode *mode)
{
    struct weir_options options = weir__stdio_options(mode);
    int result = weir__open_fd(s, fd, mode->oflags, NULL, &options);
    if (result < 0)
        return result;
    if (mode->to_end)
        weir__kernel.lseek(fd, 0, SEEK_END); /* ftell(3) must be right before the first write */
    tie_terminal(*s);
    return 0;
}

weir_stream *weir__stdio_result(weir_stream *s, int64_t result)
{
    if (result >= 0)
        return s;
    errno = (int)-result;
    return NULL;
}

weir_stream *weir_stdio_fopen(const char *path, const char *string)
{
    struct weir__stdio_mode mode;
    weir_stream *s = NULL;
    int before = errno;
    int result = weir__stdio_parse_mode(&mode, string);
    int fd = result < 0 ? result : weir__stdio_open(path, &mode);
    if (fd < 0)
        return weir__stdio_result(NULL, fd);
    result = weir__stdio_stream(&s, fd, &mode);
    if (result < 0) {
        weir__kernel.close(fd);
        return weir__stdio_result(NULL, result);
    }
    errno = before;
    return s;
}

/* Requires that the descriptor allows the mode. Sets O_APPEND and FD_CLOEXEC. A descriptor that has O_APPEND already
 * is not moved. */
static int check_fd_mode(int fd, struct weir__stdio_mode *mode)
{
    int64_t flags = WEIR_CALL(weir__kernel.fcntl(fd, F_GETFL, NULL));
    if (flags < 0)
        return (int)flags;
    if ((mode->reads && (flags & O_ACCMODE) == O_WRONLY) || (mode->writes && (flags & O_ACCMODE) == O_RDONLY))
        return -EINVAL;
    int64_t result = 0;
    if (mode->oflags & O_APPEND && !(flags & O_APPEND))
        result = WEIR_CALL(weir__kernel.fcntl(fd, F_SETFL, (void *)(uintptr_t)(flags | O_APPEND)));
    if (result >= 0 && mode->oflags & O_CLOEXEC)
        result = WEIR_CALL(weir__kernel.fcntl(fd, F_SETFD, (void *)(uintptr_t)FD_CLOEXEC));
    mode->oflags |= (int)flags & O_APPEND;
    mode->to_end = mode->to_end && !(flags & O_APPEND);
    return result < 0 ? (int)result : 0;
}

weir_stream *weir_stdio_fdopen(int fd, const char *string)
{
    struct weir__stdio_mode mode;
    weir_stream *s = NULL;
    int before = errno;
    int result = weir__stdio_parse_mode(&mode, string);
    if (result == 0)
        result = check_fd_mode(fd, &mode);
    if (result == 0)
        result = weir__stdio_stream(&s, fd, &mode);
    if (result == 0)
        errno = before;
    return weir__stdio_result(s, result);
}

/* Opens an unnamed file, or one whose name is removed at once. */
static int open_temporary(void)
{
    char path[] = P_tmpdir "/weirXXXXXX";
    int fd = (int)WEIR_CALL(weir__kernel.open(P_tmpdir, O_TMPFILE | O_RDWR | O_EXCL, 0600));
    if (fd >= 0)
        return fd;
    fd = (int)WEIR_CALL(mkostemp(path, 0));
    if (fd >= 0)
        weir__kernel.unlink(path);
    return fd;
}

weir_stream *weir_stdio_tmpfile(void)
{
    struct weir__stdio_mode mode = {.oflags = O_RDWR, .reads = true, .writes = true};
    weir_stream *s = NULL;
    int fd = open_temporary();
    int result = fd < 0 ? fd : weir__stdio_stream(&s, fd, &mode);
    if (result < 0 && fd >= 0)
        weir__kernel.close(fd);
    return weir__stdio_result(s, result);
}
