/* open_failures.c: a weir_open that fails because of its options leaves the file as it is: not truncated, and not created. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"
#include "support/test_dirs.h"

static char path[300];
static char small[100];

static const struct failing {
    const char *what;
    int oflags;
    struct weir_options options;
    int error; /* 0: depends on the system */
} all_failing[] = {
    {"a spill file in no directory", O_WRONLY, {.durability = WEIR_KILL, .spill = "/no/such/directory/spill"}, ENOENT},
    {"WEIR_KILL for reading", O_RDWR, {.durability = WEIR_KILL}, EINVAL},
    {"WEIR_URING for reading", O_RDWR, {.flags = WEIR_URING}, EINVAL},
    {"WEIR_DIRECT with a small buffer", O_WRONLY, {.flags = WEIR_DIRECT, .buffer = small, .buffer_bytes = sizeof small}, 0},
    {"options that cannot be combined", O_WRONLY, {.flags = WEIR_URING | WEIR_LOCK_FILE}, EINVAL},
};

static off_t length(void)
{
    int fd = open(path, O_RDONLY);
    off_t bytes = fd < 0 ? -1 : size_of(fd);
    close(fd);
    return bytes;
}

static void make_file(void)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(write(fd, "precious\n", 9) == 9, "write");
    close(fd);
}

static void leaves_the_file(const struct failing *f)
{
    weir_stream *s;
    check_begin("%s", f->what);
    for (int flags = 0; flags < 3; flags++) {
        int create = flags == 0 ? 0 : O_CREAT, exclude = flags == 2 ? O_EXCL : 0;
        make_file();
        int result = weir_open(&s, path, f->oflags | O_TRUNC | create, &f->options);
        check(result < 0 && !s && (!f->error || result == -f->error), "an old file: %d", result);
        check(length() == 9, "it has %d bytes", (int)length());
        if (!create)
            continue;
        unlink(path);
        result = weir_open(&s, path, f->oflags | O_TRUNC | create | exclude, &f->options);
        check(result < 0 && !s, "a new file: %d", result);
        check(length() == -1, "it was left");
        unlink(path);
    }
}

static int refuse_direct(int fd, int command, void *argument)
{
    bool refused = command == F_SETFL && (intptr_t)argument & O_DIRECT;
    errno = EINVAL;
    return refused ? -1 : fcntl(fd, command, argument);
}

/* As ramfs: open(2) creates a file, and then refuses O_DIRECT. */
static int create_and_refuse(const char *name, int oflags, mode_t permissions)
{
    int fd = open(name, oflags & ~O_DIRECT, permissions);
    if (fd < 0 || !(oflags & O_DIRECT))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static void a_file_system_without_direct_io(void)
{
    struct weir__kernel real = weir__kernel;
    weir_stream *s;
    check_begin("WEIR_DIRECT on a file system that refuses O_DIRECT after it has created the file");
    weir__kernel.open = create_and_refuse;
    weir__kernel.fcntl = refuse_direct;
    unlink(path);
    int result = weir_open(&s, path, O_WRONLY | O_CREAT | O_TRUNC, &(struct weir_options){.flags = WEIR_DIRECT});
    check(result == -EINVAL && !s && length() == -1, "%d, %d bytes", result, (int)length());
    weir__kernel = real;
}

/* With the same options, an opening that succeeds does what open(2) does. */
static void truncates(const char *what, const struct weir_options *options)
{
    weir_stream *s;
    check_begin("%s truncates and creates", what);
    make_file();
    int result = weir_open(&s, path, O_WRONLY | O_CREAT | O_EXCL | O_TRUNC, options);
    if (result == -ENOSYS || result == -EPERM || result == -EINVAL) {
        check_skip("not supported here");
        return;
    }
    check(result == -EEXIST && length() == 9, "O_EXCL of an old file: %d", result);
    for (int old = 0; old < 2; old++) {
        unlink(path);
        if (old)
            make_file();
        result = weir_open(&s, path, O_WRONLY | O_CREAT | O_TRUNC, options);
        check(result == 0 && length() == 0, "old %d: %d, %d bytes", old, result, (int)length());
        check(result == 0 && weir_put_str(s, "new\n") == 4 && weir_close(s) == 0 && length() == 4, "%d bytes", (int)length());
    }
    make_file();
    result = weir_open(&s, path, O_WRONLY | O_CREAT | O_APPEND, options);
    check(result == 0 && weir_put_str(s, "new\n") == 4 && weir_close(s) == 0 && length() == 13, "append: %d bytes", (int)length());
    char link[320];
    unlink(path);
    snprintf(link, sizeof link, "%s.link", path);
    check(symlink(path, link) == 0, "symlink");
    result = weir_open(&s, link, O_WRONLY | O_CREAT | O_TRUNC, options);
    check(result == 0 && weir_close(s) == 0 && length() == 0, "a dangling link: %d", result);
    unlink(link);
}

int main(void)
{
    const char *dir = test_dir_make();
    snprintf(path, sizeof path, "%s/file", dir);
    for (size_t i = 0; i < sizeof all_failing / sizeof *all_failing; i++)
        leaves_the_file(&all_failing[i]);
    a_file_system_without_direct_io();
    truncates("the default", NULL);
    truncates("WEIR_KILL", &(struct weir_options){.durability = WEIR_KILL});
    truncates("WEIR_WHOLE", &(struct weir_options){.durability = WEIR_WHOLE});
    truncates("WEIR_URING", &(struct weir_options){.flags = WEIR_URING});
    if (supports_direct_io(dir))
        truncates("WEIR_DIRECT", &(struct weir_options){.flags = WEIR_DIRECT});
    unlink(path);
    return check_finish("open_failures");
}
