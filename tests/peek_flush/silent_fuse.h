/* The FUSE server of test programs, in their own namespaces. It accepts each read and never answers. */
#ifndef SILENT_FUSE_H
#define SILENT_FUSE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 1 << 16, PENDING = 100, NOT_PERMITTED = 77, FILE_NODE = 2 };

/* Far more than the 20 ms in which weir looks for new mounts and new mappings. */
enum { PAUSE_US = 200000 };

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    int failed = fd < 0 || write(fd, text, strlen(text)) < 0;
    close(fd);
    return failed;
}

/* Mounts a FUSE file system at `directory` as the root of an own user namespace; returns its descriptor. */
static int mount_fuse(const char *directory)
{
    char map[64], options[96];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return -1;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_text("/proc/self/setgroups", "deny") || write_text("/proc/self/uid_map", map))
        return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0 || write_text("/proc/self/gid_map", map))
        return -1;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    return mount("fuse", directory, "fuse", MS_NOSUID | MS_NODEV, options) ? -1 : fd;
}

static void answer(int fd, unsigned long unique, int error, const void *data, size_t bytes)
{
    struct fuse_out_header head = {.len = (unsigned)(sizeof head + bytes), .error = error, .unique = unique};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)data, bytes}};
    if (writev(fd, parts, bytes ? 2 : 1) < 0 && errno != ENOENT)
        _exit(1);
}

static void answer_read(int fd, const struct fuse_in_header *head, int image)
{
    static char data[1 << 17];
    const struct fuse_read_in *read_in = (const void *)(head + 1);
    size_t most = read_in->size < sizeof data ? read_in->size : sizeof data;
    ssize_t got = pread(image, data, most, (off_t)read_in->offset);
    answer(fd, head->unique, got < 0 ? -EIO : 0, data, got > 0 ? (size_t)got : 0);
}

/* A descriptor to which the server writes "ready" when it has accepted a read; -1: none. */
static int announced = -1;

/* Answers all requests but reads, and these from `image` if it is a descriptor. The kernel may use the answers for `seconds`. */
__attribute__((unused)) static void serve(int fd, unsigned seconds, int image)
{
    static char request[1 << 17];
    struct stat about = {.st_size = BYTES};
    if (image >= 0)
        fstat(image, &about);
    struct fuse_attr attr = {
        .ino = FILE_NODE, .size = (size_t)about.st_size, .mode = S_IFREG | 0777, .nlink = 1, .blksize = 4096};
    for (;;) {
        if (read(fd, request, sizeof request) < 0)
            _exit(0);
        struct fuse_in_header *head = (void *)request;
        struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
        struct fuse_entry_out entry = {.nodeid = FILE_NODE, .entry_valid = seconds, .attr_valid = seconds, .attr = attr};
        struct fuse_attr_out attributes = {.attr_valid = seconds, .attr = attr};
        /* Without the flag each open drops the pages on which a program of the mount runs. */
        struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};
        if (head->nodeid == FUSE_ROOT_ID) {
            attributes.attr.ino = FUSE_ROOT_ID;
            attributes.attr.mode = S_IFDIR | 0777;
        }
        if (head->opcode == FUSE_INIT)
            answer(fd, head->unique, 0, &init, sizeof init);
        else if (head->opcode == FUSE_LOOKUP)
            answer(fd, head->unique, 0, &entry, sizeof entry);
        else if (head->opcode == FUSE_GETATTR)
            answer(fd, head->unique, 0, &attributes, sizeof attributes);
        else if (head->opcode == FUSE_OPEN)
            answer(fd, head->unique, 0, &opened, sizeof opened);
        else if (head->opcode == FUSE_READ && image >= 0)
            answer_read(fd, head, image);
        else if (head->opcode == FUSE_READ && announced >= 0 && write(announced, "ready\n", 6) == 6)
            announced = -1;
        else if (head->opcode != FUSE_READ && head->opcode != FUSE_FORGET && head->opcode != FUSE_INTERRUPT)
            answer(fd, head->unique, -ENOSYS, NULL, 0);
    }
}

#endif
