/* Moves bytes of a file without a call that says how many: `aio`, `ring` (io_uring) or `mapping`. Exits with 77 if the kernel
 * does not permit it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_PERMITTED = 77 };
static char data[4096];

static int by_aio(int fd)
{
    aio_context_t context = 0;
    struct iocb write = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (long)data, .aio_nbytes = 4096};
    struct iocb *all[] = {&write};
    struct io_event event;
    if (syscall(SYS_io_setup, 1, &context) != 0)
        return errno == ENOSYS ? NOT_PERMITTED : 1;
    if (syscall(SYS_io_submit, context, 1, all) != 1 || syscall(SYS_io_getevents, context, 1, 1, &event, 0) != 1)
        return 1;
    return event.res != 4096;
}

static int by_ring(int fd)
{
    struct io_uring_params parameters = {0};
    int ring = syscall(SYS_io_uring_setup, 1, &parameters);
    if (ring < 0)
        return errno == ENOSYS || errno == EPERM ? NOT_PERMITTED : 1;
    char *rings = mmap(0, parameters.sq_off.array + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (rings == MAP_FAILED || entry == MAP_FAILED)
        return 1;
    entry->opcode = IORING_OP_WRITE;
    entry->fd = fd;
    entry->addr = (long)data;
    entry->len = 4096;
    *(unsigned *)(rings + parameters.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(rings + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    return syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1;
}

static int by_mapping(int fd)
{
    if (ftruncate(fd, 4096) != 0)
        return 1;
    char *file = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return 1;
    memcpy(file, data, 4096);
    return 0;
}

int main(int argc, char **argv)
{
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    memset(data, 'x', sizeof data);
    if (argc != 2 || fd < 0)
        return 1;
    return !strcmp(argv[1], "aio") ? by_aio(fd) : !strcmp(argv[1], "ring") ? by_ring(fd) : by_mapping(fd);
}
