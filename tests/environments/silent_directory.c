/* silent_directory MOUNT BACKING COMMAND…: mounts a FUSE file system at MOUNT, whose files are those of BACKING, in own namespaces,
 * writes the number of its server to the file "server", and executes the command. The end of the command ends the server.
 *
 * After SIGUSR1 the server accepts requests and never answers: no signal ends a thread that waits for one. After SIGUSR2 it does so
 * with those that close(2) makes. After SIGSTOP it does not even accept them; SIGKILL ends a thread that waits then. */
#define _GNU_SOURCE
#include "../peek_flush/silent_fuse.h"

#include <dirent.h>
#include <limits.h>

enum { NODES = 4096 };

static char *paths[NODES] = {[FUSE_ROOT_ID] = "."};
static unsigned long used = FUSE_ROOT_ID + 1;
static volatile sig_atomic_t silent; /* the signal that was received */

static void fall_silent(int signal)
{
    silent = signal;
}

static int is_answered(const struct fuse_in_header *head)
{
    return silent == 0 || (silent == SIGUSR2 && head->opcode != FUSE_FLUSH);
}

static const char *path_in(unsigned long node, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", paths[node], name);
    return path;
}

static unsigned long node_of(const char *path)
{
    for (unsigned long node = FUSE_ROOT_ID; node < used; node++)
        if (paths[node] && strcmp(paths[node], path) == 0)
            return node;
    if (used == NODES)
        _exit(1);
    paths[used] = strdup(path);
    return used++;
}

static int attributes_of(const char *path, struct fuse_attr *attr)
{
    struct stat about;
    if (lstat(path, &about) != 0)
        return -errno;
    *attr = (struct fuse_attr){.ino = about.st_ino, .size = (size_t)about.st_size, .mode = about.st_mode,
                               .nlink = (unsigned)about.st_nlink, .blocks = (size_t)about.st_blocks, .blksize = 4096};
    return 0;
}

static void answer_entry(int fd, unsigned long unique, const char *path, int failed, int opens)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out opened;
    } out = {0};
    int error = failed ? -errno : attributes_of(path, &out.entry.attr);
    out.entry.nodeid = error ? 0 : node_of(path);
    answer(fd, unique, error, &out, error ? 0 : opens ? sizeof out : sizeof out.entry);
}

static void answer_attributes(int fd, unsigned long unique, const char *path)
{
    struct fuse_attr_out out = {0};
    int error = attributes_of(path, &out.attr);
    answer(fd, unique, error, &out, error ? 0 : sizeof out);
}

static void answer_list(int fd, const struct fuse_in_header *head, const struct fuse_read_in *in)
{
    static char list[1 << 16];
    size_t length = 0, most = in->size < sizeof list ? in->size : sizeof list;
    DIR *directory = opendir(paths[head->nodeid]);
    struct dirent *one;
    for (unsigned long at = 1; directory && (one = readdir(directory)); at++) {
        struct fuse_dirent entry = {.ino = one->d_ino, .off = at, .namelen = (unsigned)strlen(one->d_name), .type = one->d_type};
        size_t bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
        if (at <= in->offset)
            continue;
        if (length + bytes > most)
            break;
        memset(list + length, 0, bytes);
        memcpy(list + length, &entry, FUSE_NAME_OFFSET);
        memcpy(list + length + FUSE_NAME_OFFSET, one->d_name, entry.namelen);
        length += bytes;
    }
    if (directory)
        closedir(directory);
    answer(fd, head->unique, 0, list, length);
}

static void answer_data(int fd, const struct fuse_in_header *head, const void *body)
{
    const struct fuse_write_in *in = body; /* begins as struct fuse_read_in */
    int reads = head->opcode == FUSE_READ, file = open(paths[head->nodeid], reads ? O_RDONLY : O_WRONLY);
    if (reads) {
        answer_read(fd, head, file);
    } else {
        ssize_t put = pwrite(file, in + 1, in->size, (off_t)in->offset);
        struct fuse_write_out out = {.size = put > 0 ? (unsigned)put : 0};
        answer(fd, head->unique, put < 0 ? -EIO : 0, &out, put < 0 ? 0 : sizeof out);
    }
    close(file);
}

static void answer_rename(int fd, const struct fuse_in_header *head, unsigned long directory, const char *names)
{
    char *from = strdup(path_in(head->nodeid, names));
    const char *to = path_in(directory, names + strlen(names) + 1);
    int error = rename(from, to) ? -errno : 0;
    for (unsigned long node = 0; node < used && !error; node++)
        if (paths[node] && strcmp(paths[node], to) == 0)
            paths[node] = "gone";
    for (unsigned long node = 0; node < used && !error; node++)
        if (paths[node] && strcmp(paths[node], from) == 0)
            paths[node] = strdup(to);
    free(from);
    answer(fd, head->unique, error, NULL, 0);
}

static void answer_request(int fd, const struct fuse_in_header *head)
{
    const void *body = head + 1;
    const char *name = body, *path = paths[head->nodeid < used ? head->nodeid : 0];
    unsigned long unique = head->unique;
    struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 1 << 16};
    struct fuse_open_out opened = {0};
    struct fuse_statfs_out about = {.st = {.blocks = 1 << 30, .bfree = 1 << 29, .bavail = 1 << 29, .files = 1 << 20,
                                           .ffree = 1 << 19, .bsize = 4096, .namelen = 255, .frsize = 4096}};
    const struct fuse_setattr_in *set = body;
    const struct fuse_create_in *create = body;
    switch (head->opcode) {
    case FUSE_INIT:
        return answer(fd, unique, 0, &init, sizeof init);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    case FUSE_LOOKUP:
        return answer_entry(fd, unique, path_in(head->nodeid, name), 0, 0);
    case FUSE_GETATTR:
        return answer_attributes(fd, unique, path);
    case FUSE_SETATTR:
        if (set->valid & FATTR_SIZE && truncate(path, (off_t)set->size) != 0)
            return answer(fd, unique, -errno, NULL, 0);
        return answer_attributes(fd, unique, path);
    case FUSE_MKDIR:
        path = path_in(head->nodeid, (const char *)body + sizeof(struct fuse_mkdir_in));
        return answer_entry(fd, unique, path, mkdir(path, 0777), 0);
    case FUSE_CREATE: {
        path = path_in(head->nodeid, (const char *)(create + 1));
        int file = open(path, (int)(create->flags & ~(unsigned)O_DIRECT), 0666);
        answer_entry(fd, unique, path, file < 0, 1);
        close(file);
        return;
    }
    case FUSE_READ:
    case FUSE_WRITE:
        return answer_data(fd, head, body);
    case FUSE_UNLINK:
        return answer(fd, unique, unlink(path_in(head->nodeid, name)) ? -errno : 0, NULL, 0);
    case FUSE_RMDIR:
        return answer(fd, unique, rmdir(path_in(head->nodeid, name)) ? -errno : 0, NULL, 0);
    case FUSE_RENAME:
        return answer_rename(fd, head, *(const unsigned long *)body, (const char *)body + sizeof(struct fuse_rename_in));
    case FUSE_RENAME2:
        return answer_rename(fd, head, *(const unsigned long *)body, (const char *)body + sizeof(struct fuse_rename2_in));
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        return answer(fd, unique, 0, &opened, sizeof opened);
    case FUSE_READDIR:
        return answer_list(fd, head, body);
    case FUSE_STATFS:
        return answer(fd, unique, 0, &about, sizeof about);
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FSYNC:
        return answer(fd, unique, 0, NULL, 0);
    default:
        return answer(fd, unique, -ENOSYS, NULL, 0);
    }
}

static void serve_directory(int fd, const char *backing)
{
    static char request[1 << 18];
    struct sigaction action = {.sa_handler = fall_silent};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    if (chdir(backing))
        _exit(1);
    for (;;) {
        ssize_t got = read(fd, request, sizeof request);
        if (got < 0 && errno != EINTR)
            _exit(0);
        if (got > 0 && is_answered((void *)request))
            answer_request(fd, (void *)request);
    }
}

int main(int count, char **words)
{
    if (count < 4)
        return 1;
    int fd = mount_fuse(words[1]);
    if (fd < 0)
        return NOT_PERMITTED;
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid(); /* the signals of the terminal do not end the server */
        for (int standard = 0; standard < 3; standard++)
            close(standard);
        serve_directory(fd, words[2]);
    }
    close(fd);
    FILE *number = fopen("server", "w");
    if (!number || fprintf(number, "%d\n", server) < 0 || fclose(number) != 0)
        return 1;
    execvp(words[3], words + 3);
    return NOT_PERMITTED;
}
