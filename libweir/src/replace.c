/* replace.c: replaces a file atomically: temporary file, sync, rename, sync of the directory. */
#include "private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };

/* Returns the absolute path of a file that does not exist, in a directory that does: the program may change its working
 * directory before the file gets its name. */
static char *new_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *given = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char *directory = given ? realpath(given, NULL) : NULL, *whole = NULL;
    size_t room = directory ? strlen(directory) + 1 + strlen(name) + 1 : 0;
    if (directory && (whole = malloc(room)) != NULL)
        snprintf(whole, room, "%s%s%s", directory, directory[1] ? "/" : "", name);
    int error = errno;
    free(given);
    free(directory);
    errno = error;
    return whole;
}

/* Resolves symbolic links: the file is replaced, the links stay. */
static char *final_path(const char *path)
{
    char *found = realpath(path, NULL);
    return found || errno != ENOENT || !*path ? found : new_path(path);
}

/* Creates a file with a hidden name, DIRECTORY/.NAME.weir-PID-N. */
static int create_hidden(const char *path, const char *name, mode_t permissions, char *temporary, size_t room)
{
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path + 1) : 0, fd = -EEXIST;
    for (int i = 0; i < ATTEMPTS && (fd == -EEXIST || fd == -EINTR); i++) {
        snprintf(temporary, room, "%.*s%s%s.weir-%d-%d", directory, path, *name ? "." : "", name,
                 (int)getpid(), i);
        fd = weir__open_repeated(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    }
    return fd;
}

/* Creates the temporary file in the same directory, for rename(2). */
static int create_temporary(const char *path, mode_t permissions, char **temporary)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t room = strlen(path) + 64;
    *temporary = malloc(room);
    if (!*temporary)
        return -ENOMEM;
    int fd = create_hidden(path, name, permissions, *temporary, room);
    if (fd == -ENAMETOOLONG) /* the name itself may be as long as the file system permits */
        fd = create_hidden(path, "", permissions, *temporary, room);
    if (fd < 0) {
        free(*temporary);
        *temporary = NULL;
    }
    return fd;
}

/* Copies the permissions of the replaced file, and its owner if permitted. */
static int copy_attributes(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode;
    if (fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)(S_ISUID | S_ISGID); /* do not grant set-user-ID rights to a different owner */
    return (int)WEIR_CALL(fchmod(fd, mode & 07777));
}

/* Returns 1 with *old set, 0 if there is no file at `path`, or -errno. */
static int find_old(const char *path, struct stat *old)
{
    if (stat(path, old) != 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISREG(old->st_mode) ? 1 : -EINVAL;
}

static void discard(int fd, char *temporary)
{
    weir__kernel.unlink(temporary);
    weir__kernel.close(fd);
    free(temporary);
}

/* Creates the temporary file with the permissions and the owner of the replaced file. Until it has both, only
 * this user may open it: a descriptor that another user got would show the new content. */
static int make_temporary(const char *path, char **temporary)
{
    struct stat old;
    int exists = find_old(path, &old);
    for (int i = 0; i < ATTEMPTS && exists >= 0; i++) {
        int fd = create_temporary(path, exists ? 0600 : 0666, temporary);
        if (fd < 0)
            return fd;
        int existed = exists;
        exists = find_old(path, &old);
        int result = exists <= 0 ? exists : existed ? copy_attributes(fd, &old) : -EAGAIN;
        if (result == 0 && existed == exists)
            return fd;
        discard(fd, *temporary); /* another program created or removed the file: repeat */
        if (result < 0 && result != -EAGAIN)
            return result;
    }
    return exists < 0 ? exists : -EBUSY;
}

static int open_temporary(weir_stream **s, const char *path, const struct weir_options *options)
{
    char *temporary;
    int fd = make_temporary(path, &temporary);
    if (fd < 0)
        return fd;
    int result = weir__open_fd(s, fd, O_WRONLY, temporary, options);
    if (result < 0) {
        discard(fd, temporary);
        return result;
    }
    weir__config(*s)->temporary = temporary;
    weir__config(*s)->temporary_pid = (int)getpid();
    return 0;
}

int weir_open_replace(weir_stream **s, const char *path, const struct weir_options *options)
{
    static const struct weir_options defaults;
    *s = NULL;
    options = options ? options : &defaults;
    int checked = weir__options_check(options);
    if (checked < 0)
        return checked;
    char *final = final_path(path);
    if (!final)
        return -errno;
    int cancel = weir__cancel_off(); /* a thread that is cancelled leaves no temporary file */
    int result = open_temporary(s, final, options);
    weir__cancel_restore(cancel);
    if (result < 0) {
        free(final);
        return result;
    }
    free(weir__config(*s)->path); /* the temporary file's */
    weir__config(*s)->path = final;
    return 0;
}

bool weir__has_temporary(const weir_stream *s)
{
    return weir__config(s)->temporary && weir__config(s)->temporary_pid == (int)getpid();
}

void weir__remove_temporary(const weir_stream *s)
{
    if (weir__has_temporary(s))
        weir__kernel.unlink(weir__config(s)->temporary);
}

static int commit(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    int result = weir__sync_held(s, WEIR_WHOLE); /* WEIR_WHOLE includes owner and permissions */
    if (result < 0)
        return result;
    result = (int)WEIR_CALL(weir__kernel.rename(config->temporary, config->path));
    if (result < 0)
        return result;
    free(config->temporary);
    config->temporary = NULL; /* from here on weir_close does not remove it */
    return weir__sync_directory(config->path);
}

static int replace_and_close(weir_stream *s)
{
    weir__enter(s);
    int result = weir__has_temporary(s) ? commit(s) : -EINVAL;
    weir__leave(s);
    if (result == -EAGAIN)
        return result;
    int closed = weir_close(s);
    return result < 0 ? result : closed;
}

/* A cancellation between the rename and the close would leave the stream locked. */
int weir_replace(weir_stream *s)
{
    int cancel = weir__cancel_off();
    int result = replace_and_close(s);
    weir__cancel_restore(cancel);
    return result;
}
