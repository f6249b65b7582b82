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

enum { SET_ID_BITS = S_ISUID | S_ISGID };

/* Copies the permissions of the replaced file, and its owner if permitted. set_id_bits_again adds the set-user-ID bits. */
static int copy_attributes(int fd, const struct stat *old)
{
    if (fchown(fd, old->st_uid, old->st_gid) != 0)
        (void)!fchown(fd, (uid_t)-1, old->st_gid);
    return (int)WEIR_CALL(fchmod(fd, old->st_mode & 07777 & ~(mode_t)SET_ID_BITS));
}

/* Gives the new file the set-user-ID and set-group-ID bits of the replaced one, but grants no rights to a different owner or
 * group. A write by an ordinary user clears the bits: this comes after the last one. */
static int set_id_bits_again(weir_stream *s)
{
    struct weir__config *config = weir__config(s);
    struct stat new;
    if (!config->set_id_bits)
        return 0;
    int result = weir__flush_held(s);
    if (result == 0)
        result = (int)WEIR_CALL(weir__kernel.fstat(config->fd, &new));
    if (result < 0 || new.st_uid != config->old_owner || new.st_gid != config->old_group)
        return result;
    weir__state(s)->synced = weir__state(s)->synced_whole = 0; /* the sync must cover the bits */
    return (int)WEIR_CALL(fchmod(config->fd, (new.st_mode & 07777) | config->set_id_bits));
}

/* Returns 1 with *old set, 0 with *old zeroed if there is no file at `path`, or -errno. */
static int find_old(const char *path, struct stat *old)
{
    if (stat(path, old) != 0) {
        memset(old, 0, sizeof *old);
        return errno == ENOENT ? 0 : -errno;
    }
    return S_ISREG(old->st_mode) ? 1 : -EINVAL;
}

static void discard(int fd, char *temporary)
{
    weir__kernel.unlink(temporary);
    weir__kernel.close(fd);
    free(temporary);
}

/* Creates the temporary file with the permissions and the owner of the replaced file, *old if there is one. Until it has
 * both, only this user may open it: a descriptor that another user got would show the new content. */
static int make_temporary(const char *path, char **temporary, struct stat *old)
{
    int exists = find_old(path, old);
    for (int i = 0; i < ATTEMPTS && exists >= 0; i++) {
        int fd = create_temporary(path, exists ? 0600 : 0666, temporary);
        if (fd < 0)
            return fd;
        int existed = exists;
        exists = find_old(path, old);
        int result = exists <= 0 ? exists : existed ? copy_attributes(fd, old) : -EAGAIN;
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
    struct stat old;
    int fd = make_temporary(path, &temporary, &old);
    if (fd < 0)
        return fd;
    int result = weir__open_fd(s, fd, O_WRONLY, temporary, options);
    if (result < 0) {
        discard(fd, temporary);
        return result;
    }
    struct weir__config *config = weir__config(*s);
    config->temporary = temporary;
    config->temporary_pid = (int)getpid();
    config->set_id_bits = old.st_mode & SET_ID_BITS;
    config->old_owner = old.st_uid;
    config->old_group = old.st_gid;
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
    int result = set_id_bits_again(s);
    if (result == 0)
        result = weir__sync_held(s, WEIR_WHOLE); /* WEIR_WHOLE includes owner and permissions */
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
