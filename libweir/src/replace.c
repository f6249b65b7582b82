/* replace.c: replaces a file atomically: temporary file, sync, rename, sync of the directory. */
#include "private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };

/* Resolves symbolic links: the file is replaced, the links stay. */
static char *final_path(const char *path)
{
    char *found = realpath(path, NULL);
    return found || errno != ENOENT ? found : strdup(path);
}

/* Creates the temporary file in the same directory, for rename(2). The name is hidden and contains the
 * creator's pid. */
static int create_temporary(const char *path, char **temporary)
{
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path + 1) : 0;
    size_t room = strlen(path) + 64;
    *temporary = malloc(room);
    if (!*temporary)
        return -ENOMEM;
    int fd = -EEXIST;
    for (int i = 0; i < ATTEMPTS && (fd == -EEXIST || fd == -EINTR); i++) {
        snprintf(*temporary, room, "%.*s.%s.weir-%d-%d", directory, path, path + directory, (int)getpid(), i);
        fd = (int)WEIR_CALL(weir__kernel.open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    }
    if (fd < 0) {
        free(*temporary);
        *temporary = NULL;
    }
    return fd;
}

/* Copies the permissions of the replaced file, and its owner if permitted. */
static int copy_attributes(int fd, const char *path)
{
    struct stat old;
    if (stat(path, &old) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(old.st_mode))
        return -EINVAL;
    if (fchown(fd, old.st_uid, old.st_gid) != 0 && fchown(fd, (uid_t)-1, old.st_gid) != 0)
        old.st_mode &=
            ~(mode_t)(S_ISUID | S_ISGID); /* do not grant set-user-ID rights to a different owner */
    return (int)WEIR_CALL(fchmod(fd, old.st_mode & 07777));
}

static int open_temporary(weir_stream **s, const char *path, const struct weir_options *options)
{
    char *temporary;
    int fd = create_temporary(path, &temporary);
    if (fd < 0)
        return fd;
    int result = copy_attributes(fd, path);
    if (result == 0)
        result = weir_fdopen(s, fd, options);
    if (result < 0) {
        weir__kernel.unlink(temporary);
        weir__kernel.close(fd);
        free(temporary);
        return result;
    }
    weir__config(*s)->temporary = temporary;
    weir__config(*s)->temporary_pid = (int)getpid();
    weir__state(*s)->pos = 0;
    return 0;
}

int weir_open_replace(weir_stream **s, const char *path, const struct weir_options *options)
{
    *s = NULL;
    char *final = final_path(path);
    if (!final)
        return -errno;
    int result = open_temporary(s, final, options);
    if (result < 0)
        free(final);
    else
        weir__config(*s)->path = final;
    return result;
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

int weir_replace(weir_stream *s)
{
    weir__enter(s);
    int result = weir__has_temporary(s) ? commit(s) : -EINVAL;
    weir__leave(s);
    if (result == -EAGAIN)
        return result;
    int closed = weir_close(s);
    return result < 0 ? result : closed;
}
