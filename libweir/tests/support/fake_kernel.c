/* fake_kernel.c: a table of system calls that work on files in memory, and in which a fault makes calls fail. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/kernel.h"
#include "fake_files.h"

enum { NOTES = 65536 }; /* a scenario that reads a file of some KiB byte by byte makes thousands of calls */

static struct weir__kernel real;
static bool installed;
static struct fake_fault plan;
static uint64_t calls, hits, first_hit, calls_of[FAKE_CALLS];
static struct fake_note notes[NOTES];
static int failed_sync;

const char *fake_call_name(enum fake_call call)
{
    static const char *const names[FAKE_CALLS] = {
        "write", "read",   "lseek",  "fstat", "fcntl", "fsync", "fdatasync", "close",
        "open",  "rename", "unlink", "poll",  "mmap",  "pipe2", "tee",       "recv",
        "ftruncate",
    };
    return names[call];
}

void fake_plan(const struct fake_fault *fault)
{
    plan = fault ? *fault : (struct fake_fault){0};
    hits = 0;
}
uint64_t fake_hits(void) { return hits; }

void fake_forget(void)
{
    calls = 0;
    failed_sync = 0;
    memset(calls_of, 0, sizeof calls_of);
}

int fake_failed_sync(void) { return failed_sync; }
uint64_t fake_count(void) { return calls; }
uint64_t fake_count_of(enum fake_call call) { return calls_of[call]; }

const struct fake_note *fake_note_at(uint64_t number)
{
    if (number == 0 || number > calls || calls - number >= NOTES)
        return NULL;
    return &notes[number % NOTES];
}

const struct fake_note *fake_first_hit(void) { return hits ? fake_note_at(first_hit) : NULL; }

/* Records a call and applies the fault, which may reduce *bytes. Returns false if the call fails, with errno set. */
static bool begin(enum fake_call call, int fd, size_t *bytes)
{
    calls++;
    calls_of[call]++;
    notes[calls % NOTES] = (struct fake_note){call, fd, bytes ? *bytes : 0, 0};
    if (!(plan.calls & 1u << call) || calls < plan.at || hits >= plan.times)
        return true;
    if (plan.error == 0 && (!bytes || *bytes < 2))
        return true; /* a count of one byte cannot be shortened */
    if (hits++ == 0)
        first_hit = calls;
    if (plan.error == 0) {
        *bytes = plan.one_byte ? 1 : *bytes / 2;
        return true;
    }
    notes[calls % NOTES].result = -plan.error;
    errno = plan.error;
    return false;
}

/* Records the result of the call that began last. Returns it. */
static int64_t end(int64_t result)
{
    notes[calls % NOTES].result = result < 0 ? -errno : result;
    return result;
}

static size_t length_of(const struct iovec *iov, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

static ssize_t fake_writev(int fd, const struct iovec *iov, int count)
{
    size_t bytes = length_of(iov, count);
    if (!begin(FAKE_WRITE, fd, &bytes))
        return -1;
    if (!fake_file_of(fd))
        return end(real.writev(fd, iov, count));
    return end(fake_put(fd, iov, count, bytes, NULL));
}

static ssize_t fake_write(int fd, const void *from, size_t bytes)
{
    if (!begin(FAKE_WRITE, fd, &bytes))
        return -1;
    if (!fake_file_of(fd))
        return end(real.write(fd, from, bytes));
    struct iovec all = {(void *)(uintptr_t)from, bytes};
    return end(fake_put(fd, &all, 1, bytes, NULL));
}

static ssize_t fake_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    if (!begin(FAKE_WRITE, fd, &bytes))
        return -1;
    if (!fake_file_of(fd))
        return end(real.pwrite(fd, from, bytes, offset));
    struct iovec all = {(void *)(uintptr_t)from, bytes};
    return end(fake_put(fd, &all, 1, bytes, &offset));
}

/* Of a pipe or socket, which take everything. */
static ssize_t fake_write_now(int fd, const struct iovec *iov, int count, ssize_t (*call)(int, const struct iovec *, int))
{
    size_t bytes = length_of(iov, count);
    if (!begin(FAKE_WRITE, fd, &bytes))
        return -1;
    return end(fake_file_of(fd) ? fake_put(fd, iov, count, bytes, NULL) : call(fd, iov, count));
}

static ssize_t real_nowait(int fd, const struct iovec *iov, int count) { return real.pwritev2(fd, iov, count, -1, 8); }

static ssize_t fake_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    if (offset >= 0)
        return real.pwritev2(fd, iov, count, offset, flags);
    return fake_write_now(fd, iov, count, real_nowait);
}

static ssize_t real_send(int fd, const struct iovec *iov, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (unsigned)count};
    return real.sendmsg(fd, &message, MSG_DONTWAIT);
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *message, int flags)
{
    (void)flags;
    return fake_write_now(fd, message->msg_iov, (int)message->msg_iovlen, real_send);
}

static ssize_t fake_read(int fd, void *to, size_t bytes)
{
    if (!begin(FAKE_READ, fd, &bytes))
        return -1;
    if (!fake_file_of(fd))
        return end(real.read(fd, to, bytes));
    return end(fake_get(fd, to, bytes, NULL));
}

static ssize_t fake_pread(int fd, void *to, size_t bytes, off_t offset)
{
    if (!begin(FAKE_READ, fd, &bytes))
        return -1;
    if (!fake_file_of(fd))
        return end(real.pread(fd, to, bytes, offset));
    return end(fake_get(fd, to, bytes, &offset));
}

static off_t fake_lseek(int fd, off_t offset, int whence)
{
    if (!begin(FAKE_LSEEK, fd, NULL))
        return -1;
    return end(fake_file_of(fd) ? fake_move(fd, offset, whence) : real.lseek(fd, offset, whence));
}

static int fake_fstat(int fd, struct stat *status)
{
    static const mode_t modes[] = {S_IFREG | 0644, S_IFIFO | 0600, S_IFCHR | 0600, S_IFSOCK | 0600};
    if (!begin(FAKE_FSTAT, fd, NULL))
        return -1;
    struct fake_file *f = fake_file_of(fd);
    if (!f)
        return (int)end(real.fstat(fd, status));
    memset(status, 0, sizeof *status);
    status->st_mode = modes[f->kind];
    status->st_size = (off_t)f->size;
    status->st_blksize = 4096;
    return 0;
}

static int fake_fcntl(int fd, int command, void *argument)
{
    if (!begin(FAKE_FCNTL, fd, NULL))
        return -1;
    struct fake_file *f = fake_file_of(fd);
    if (!f)
        return (int)end(real.fcntl(fd, command, argument));
    if (command == F_GETFL)
        return fake_oflags(fd);
    if (command == F_SETFL)
        fake_set_oflags(fd, (int)(intptr_t)argument);
    if (command == F_OFD_SETLKW || command == F_OFD_SETLK) {
        f->locked = ((struct flock *)argument)->l_type != F_UNLCK;
        f->locks++;
    }
    return 0;
}

static int sync_call(enum fake_call call, int fd, int (*real_call)(int fd))
{
    if (!begin(call, fd, NULL)) {
        failed_sync = errno == EINTR ? failed_sync : errno;
        return -1;
    }
    struct fake_file *f = fake_file_of(fd);
    if (!f)
        return (int)end(real_call(fd));
    if (f->kind != FAKE_FILE) {
        errno = EINVAL;
        return (int)end(-1);
    }
    f->syncs++;
    f->synced = f->written;
    return 0;
}

static int fake_fsync(int fd) { return sync_call(FAKE_FSYNC, fd, real.fsync); }
static int fake_fdatasync(int fd) { return sync_call(FAKE_FDATASYNC, fd, real.fdatasync); }

static int fake_ftruncate(int fd, off_t bytes)
{
    if (!begin(FAKE_FTRUNCATE, fd, NULL))
        return -1;
    struct fake_file *f = fake_file_of(fd);
    if (!f)
        return (int)end(real.ftruncate(fd, bytes));
    if (f->kind != FAKE_FILE || bytes < 0 || (size_t)bytes > f->size) {
        errno = EINVAL;
        return (int)end(-1);
    }
    f->size = (size_t)bytes;
    return (int)end(0);
}

/* As close(2): releases the descriptor even if it fails. */
static int fake_close(int fd)
{
    bool ok = begin(FAKE_CLOSE, fd, NULL);
    if (fake_file_of(fd))
        fake_release(fd);
    int result = real.close(fd);
    if (!ok) {
        errno = plan.error;
        return -1;
    }
    return (int)end(result);
}

/* Opens a path. That of a fake descriptor in /proc gives a new descriptor for the same file. */
static int fake_open_path(const char *path, int flags, mode_t permissions)
{
    int fd = -1;
    if (!begin(FAKE_OPEN, -1, NULL))
        return -1;
    if (sscanf(path, "/proc/self/fd/%d", &fd) == 1 && fake_file_of(fd))
        return (int)end(fake_open(fake_file_of(fd), flags & (O_ACCMODE | O_APPEND)));
    return (int)end(real.open(path, flags, permissions));
}

static int fake_rename(const char *from, const char *to)
{
    return begin(FAKE_RENAME, -1, NULL) ? (int)end(real.rename(from, to)) : -1;
}

static int fake_unlink(const char *path) { return begin(FAKE_UNLINK, -1, NULL) ? (int)end(real.unlink(path)) : -1; }

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!begin(FAKE_POLL, fds->fd, NULL))
        return -1;
    struct fake_file *f = fake_file_of(fds->fd);
    if (!f)
        return (int)end(real.poll(fds, count, timeout_ms));
    fds->revents = f->not_writable ? 0 : fds->events;
    return (int)end(fds->revents != 0);
}

static int fake_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
    return fake_file_of(fd) ? 0 : real.fadvise(fd, offset, bytes, advice);
}

static void *fake_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return begin(FAKE_MMAP, fd, NULL) ? real.mmap(address, bytes, protection, flags, fd, offset) : MAP_FAILED;
}

static int fake_pipe2(int fds[2], int flags) { return begin(FAKE_PIPE2, -1, NULL) ? real.pipe2(fds, flags) : -1; }

/* Copies from a fake pipe to a real one, at most 4096 bytes. */
static ssize_t fake_tee(int from, int to, size_t bytes, unsigned flags)
{
    char copy[4096];
    bytes = bytes < sizeof copy ? bytes : sizeof copy;
    if (!begin(FAKE_TEE, from, &bytes))
        return -1;
    struct fake_file *f = fake_file_of(from);
    if (!f)
        return end(real.tee(from, to, bytes, flags));
    size_t before = f->begin;
    ssize_t got = fake_get(from, copy, bytes, NULL);
    f->begin = before;
    return end(got > 0 ? real.write(to, copy, (size_t)got) : got);
}

static ssize_t fake_recv(int fd, void *to, size_t bytes, int flags)
{
    if (!begin(FAKE_RECV, fd, &bytes))
        return -1;
    struct fake_file *f = fake_file_of(fd);
    if (!f)
        return end(real.recv(fd, to, bytes, flags));
    size_t before = f->begin;
    ssize_t got = fake_get(fd, to, bytes, NULL);
    if (flags & MSG_PEEK)
        f->begin = before;
    return end(got);
}

void fake_install(void)
{
    if (installed)
        return;
    real = weir__kernel;
    weir__kernel.open = fake_open_path;
    weir__kernel.close = fake_close;
    weir__kernel.read = fake_read;
    weir__kernel.pread = fake_pread;
    weir__kernel.write = fake_write;
    weir__kernel.writev = fake_writev;
    weir__kernel.pwrite = fake_pwrite;
    weir__kernel.pwritev2 = fake_pwritev2;
    weir__kernel.sendmsg = fake_sendmsg;
    weir__kernel.lseek = fake_lseek;
    weir__kernel.fstat = fake_fstat;
    weir__kernel.fcntl = fake_fcntl;
    weir__kernel.fsync = fake_fsync;
    weir__kernel.fdatasync = fake_fdatasync;
    weir__kernel.ftruncate = fake_ftruncate;
    weir__kernel.fadvise = fake_fadvise;
    weir__kernel.rename = fake_rename;
    weir__kernel.unlink = fake_unlink;
    weir__kernel.poll = fake_poll;
    weir__kernel.mmap = fake_mmap;
    weir__kernel.pipe2 = fake_pipe2;
    weir__kernel.tee = fake_tee;
    weir__kernel.recv = fake_recv;
    installed = true;
}

void fake_remove(void)
{
    if (installed)
        weir__kernel = real;
    installed = false;
}
