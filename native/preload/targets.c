/* targets.c: reads a descriptor's properties, and decides whether its tiny calls may be gathered. */
#include "gather.h"
#include "functions.h"

#if WEIR_HAS_DISPATCH
#include <asm/ioctls.h>
#include <asm/stat.h>
#include <asm/statfs.h>

enum { TYPE_MASK = 0170000, TYPE_FILE = 0100000, TYPE_PIPE = 0010000, TYPE_CHARACTER = 0020000 };
enum { TYPE_SOCKET = 0140000 };
enum { NULL_DEVICE = 0x103, ZERO_DEVICE = 0x105, FULL_DEVICE = 0x107, URANDOM_DEVICE = 0x109 };
enum { ROOM_TERMINAL = 1024, PIECE_TERMINAL = 128, PIECE_PIPE = 4096 };
enum { SOL = 1, SO_TYPE_NAME = 3, STREAM = 1 };

/* Returns true for file systems whose regular files are plain bytes (magic numbers of statfs(2)). In /proc or /sys
   a write is a command, and a read is a snapshot. */
static int is_plain(long file_system) {
    static const uint32_t plain[] = {0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x858458f6,
                                     0x73717368, 0x9660, 0x4d44, 0x2011bab0, 0xe0f5e1e2, 0x2fc12fc1, 0xca451a4e};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if ((uint32_t)file_system == plain[i]) return 1;
    return 0;
}

static enum target_kind kind_of(int fd, const struct stat *stat) {
    struct statfs system;
    char modes[256];
    int type = 0, size = sizeof type;
    switch (stat->st_mode & TYPE_MASK) {
    case TYPE_FILE:
        return sys2(__NR_fstatfs, fd, &system) == 0 && is_plain(system.f_type) ? KIND_FILE : KIND_OTHER;
    case TYPE_PIPE:
        return KIND_PIPE;
    case TYPE_CHARACTER:
        if (stat->st_rdev == NULL_DEVICE || stat->st_rdev == ZERO_DEVICE) return KIND_NULL;
        if (stat->st_rdev == FULL_DEVICE || stat->st_rdev == URANDOM_DEVICE) return KIND_SOURCE;
        return sys3(__NR_ioctl, fd, TCGETS, modes) == 0 ? KIND_TERMINAL : KIND_OTHER;
    case TYPE_SOCKET: /* datagrams must keep their boundaries */
        sys5(__NR_getsockopt, fd, SOL, SO_TYPE_NAME, &type, &size);
        return type == STREAM ? KIND_SOCKET : KIND_OTHER;
    }
    return KIND_OTHER;
}

static uint32_t room_of(enum target_kind kind) {
    if (kind == KIND_FILE || kind == KIND_NULL) return WEIR_OUT_BYTES;
    return kind == KIND_TERMINAL ? ROOM_TERMINAL : PIECE_PIPE; /* a write of PIPE_BUF to a pipe is atomic */
}

static void read_target(struct target *target) {
    struct stat stat;
    long flags = sys3(__NR_fcntl, target->fd, F_GETFL, 0);
    target->kind = KIND_OTHER;
    if (flags < 0 || flags & (O_DIRECT | O_DSYNC | O_PATH) || sys2(__NR_fstat, target->fd, &stat) < 0) return;
    enum target_kind kind = kind_of(target->fd, &stat);
    if (kind == KIND_FILE && mmap_contains(stat.st_dev, stat.st_ino)) return;
    if (kind != KIND_FILE && (flags & O_NONBLOCK || config.coalesce != COALESCE_ALL)) return;
    target->kind = kind;
    target->access = (int)flags & O_ACCMODE;
    target->room = room_of(kind);
    target->limit = kind == KIND_TERMINAL ? PIECE_TERMINAL : target->room;
    target->dev = stat.st_dev;
    target->ino = stat.st_ino;
}

struct target *target_of(int fd) {
    struct session *s = session;
    for (int i = 0; i < s->targets_count; i++)
        if (s->targets[i].fd == fd) return &s->targets[i];
    if (s->targets_count == MAX_TARGETS) return NULL;
    struct target *target = &s->targets[s->targets_count++];
    target->fd = fd;
    read_target(target);
    return target;
}
#endif
