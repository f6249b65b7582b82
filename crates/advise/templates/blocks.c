/* Appends the lines of standard input to a file: @NAME@.
%if io_uring
 * Build: cc -O2 -o log log.c -luring      Use: log FILE < records
%else
 * Build: cc -O2 -o log log.c      Use: log FILE < records
%end
 * In a program of your own, call log_open, log_record with each record and its newline, and log_close. Only one thread
 * of one process may write the file.
%if mmap
 * A kill leaves NULs at the end of the file: cut them off before the next use.
%else
 * A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
%if io_uring
#include <liburing.h>
%end
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
%if mmap
#include <sys/mman.h>
%end
#include <unistd.h>

%if mmap
enum { WINDOW_BYTES = 4 << 20 }; /* the file grows by so many bytes; a multiple of the page size */
static int log_fd = -1;
static char *log_window;
static off_t log_start, log_end; /* offset of the window, and of the end of the records */

/* Moves the window to the end of the records. */
static int map_window(void)
{
    if (log_window && munmap(log_window, WINDOW_BYTES) != 0)
        return -1;
    log_window = NULL;
    log_start = log_end - log_end % sysconf(_SC_PAGESIZE);
    /* With reserved blocks a full disk is an error here. Otherwise it is SIGBUS at a later store. */
    errno = posix_fallocate(log_fd, log_start, WINDOW_BYTES);
    if (errno != 0)
        return -1;
    void *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, log_fd, log_start);
    if (window == MAP_FAILED)
        return -1;
    log_window = window;
    return 0;
}

int log_open(const char *path)
{
    log_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log_fd < 0)
        return -1;
    log_end = lseek(log_fd, 0, SEEK_END);
    return log_end < 0 ? -1 : map_window();
}

/* Appends a record. Other processes see it at once; the kernel writes it back like a write(2). */
int log_record(const char *record, size_t bytes)
{
    while (bytes > 0) {
        size_t left = (size_t)(log_start + WINDOW_BYTES - log_end);
        if (left == 0 || !log_window) { /* no window: the last call found no room */
            if (map_window() != 0)
                return -1;
            continue;
        }
        size_t part = bytes < left ? bytes : left;
        memcpy(log_window + (log_end - log_start), record, part);
        log_end += (off_t)part;
        record += part;
        bytes -= part;
    }
    return 0;
}

int log_close(void)
{
    int result = log_window ? munmap(log_window, WINDOW_BYTES) : 0;
    if (ftruncate(log_fd, log_end) != 0) /* cuts off what was reserved */
        result = -1;
    if (close(log_fd) != 0)
        result = -1;
    return result;
}
%end
%if direct
enum { ALIGN = 4096, BLOCK_BYTES = @BUFFER@ }; /* no device has larger sectors than 4096 */
static int log_fd = -1;
static char *log_block;
static size_t log_used;
static off_t log_start; /* offset of the block; a multiple of ALIGN */

int log_open(const char *path)
{
    log_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (log_fd < 0)
        return -1;
    errno = posix_memalign((void **)&log_block, ALIGN, BLOCK_BYTES);
    off_t end = lseek(log_fd, 0, SEEK_END);
    if (errno != 0 || end < 0)
        return -1;
    /* The first block begins with the bytes after the last aligned offset. */
    log_used = (size_t)(end % ALIGN);
    log_start = end - (off_t)log_used;
    ssize_t tail = pread(log_fd, log_block, log_used, log_start);
    if (tail != (ssize_t)log_used) {
        errno = tail < 0 ? errno : EIO;
        return -1;
    }
    return fcntl(log_fd, F_SETFL, O_DIRECT); /* EINVAL: this file system has no O_DIRECT */
}

static int write_block(size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t written = pwrite(log_fd, log_block + done, bytes - done, log_start + (off_t)done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        done += (size_t)written;
    }
    return 0;
}

/* Appends a record. It is in the file when its block is full. */
int log_record(const char *record, size_t bytes)
{
    while (bytes > 0) {
        size_t left = BLOCK_BYTES - log_used;
        size_t part = bytes < left ? bytes : left;
        memcpy(log_block + log_used, record, part);
        log_used += part;
        record += part;
        bytes -= part;
        if (log_used == BLOCK_BYTES) {
            if (write_block(BLOCK_BYTES) != 0)
                return -1;
            log_start += BLOCK_BYTES;
            log_used = 0;
        }
    }
    return 0;
}

int log_close(void)
{
    int result = 0;
    if (log_used > 0) { /* the last block is padded, and the padding cut off */
        size_t padded = (log_used + ALIGN - 1) / ALIGN * ALIGN;
        memset(log_block + log_used, 0, padded - log_used);
        result = write_block(padded);
        if (result == 0)
            result = ftruncate(log_fd, log_start + (off_t)log_used);
    }
    free(log_block);
    if (close(log_fd) != 0)
        result = -1;
    return result;
}
%end
%if io_uring
enum { BLOCK_BYTES = @BUFFER@ };
static int log_fd = -1;
static struct io_uring log_ring;
static char log_blocks[2][BLOCK_BYTES]; /* one is filled while the kernel writes the other */
static int log_current;
static size_t log_used;    /* bytes in the current block */
static const char *log_at; /* bytes that the kernel writes */
static size_t log_left;

/* Returns 0 or -1 with errno, like a system call. */
static int check(int result)
{
    if (result < 0)
        errno = -result;
    return result < 0 ? -1 : 0;
}

int log_open(const char *path)
{
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    /* EPERM or ENOSYS: the kernel or a seccomp filter forbids io_uring; use write(2). */
    return log_fd < 0 ? -1 : check(io_uring_queue_init(2, &log_ring, 0));
}

static int submit(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&log_ring);
    if (!entry)
        return check(-EBUSY);
    io_uring_prep_write(entry, log_fd, log_at, (unsigned)log_left, 0); /* O_APPEND: at the end */
    return check(io_uring_submit(&log_ring));
}

/* Waits until the kernel has written the block. */
static int complete(void)
{
    while (log_left > 0) {
        struct io_uring_cqe *completion;
        int result = io_uring_wait_cqe(&log_ring, &completion);
        if (result == -EINTR)
            continue;
        if (result < 0)
            return check(result);
        result = completion->res;
        io_uring_cqe_seen(&log_ring, completion);
        if (result < 0 && result != -EINTR && result != -EAGAIN) {
            log_left = 0;
            return check(result);
        }
        if (result > 0) {
            log_at += result;
            log_left -= (size_t)result;
        }
        if (log_left > 0 && submit() != 0) /* a nearly full disk can make a write short */
            return -1;
    }
    return 0;
}

/* Begins to write the current block. The error of a write is returned by the next call. */
static int start_block(void)
{
    if (complete() != 0)
        return -1;
    log_at = log_blocks[log_current];
    log_left = log_used;
    log_current = 1 - log_current;
    log_used = 0;
    return log_left > 0 ? submit() : 0;
}

/* Appends a record. The kernel gets it when its block is full. */
int log_record(const char *record, size_t bytes)
{
    while (bytes > 0) {
        size_t left = BLOCK_BYTES - log_used;
        size_t part = bytes < left ? bytes : left;
        memcpy(log_blocks[log_current] + log_used, record, part);
        log_used += part;
        record += part;
        bytes -= part;
        if (log_used == BLOCK_BYTES && start_block() != 0)
            return -1;
    }
    return 0;
}

int log_close(void)
{
    int result = start_block();
    if (result == 0)
        result = complete();
    io_uring_queue_exit(&log_ring);
    if (close(log_fd) != 0)
        result = -1;
    return result;
}
%end

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    int result = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: log FILE\n");
        return 2;
    }
    if (log_open(argv[1]) != 0) {
        perror(argv[1]);
        return 1;
    }
    while (result == 0 && (bytes = getline(&line, &capacity, stdin)) > 0)
        result = log_record(line, (size_t)bytes);
    if (result != 0)
        perror(argv[1]);
    int read_error = ferror(stdin);
    if (read_error)
        perror("standard input");
    free(line);
    if (log_close() != 0) {
        perror(argv[1]);
        return 1;
    }
    return result != 0 || read_error;
}
