/* direct_read.c: calls pread(2) once with O_DIRECT, and with a length, offset and address alignment of your
 * choice.
 *
 * If the device cannot do it, the kernel returns EINVAL without a reason. This program then uses statx(2)
 * (STATX_DIOALIGN, Linux 6.1) to find which of the three is wrong. Some file systems do not refuse: tmpfs
 * keeps its files in memory, and others fall back to the page cache. The program therefore always prints
 * the required alignment. */
#include <fcntl.h>
#include <sys/syscall.h>

#include "example.h"

#define USAGE "FILE LENGTH [OFFSET [ALIGNMENT]]\n" \
    "  ALIGNMENT (4096): a power of two; the buffer lies at a multiple of it, but not of twice as much"

enum { MAX_BYTES = 1 << 30, MAX_ALIGNMENT = 1 << 24 };

struct request {
    const char *name;
    uint64_t length, offset, alignment;
};

/* The kernel's struct statx; the C library's may be older. */
struct alignment_info {
    uint32_t mask, others[37];
    uint32_t memory, offset; /* stx_dio_mem_align, stx_dio_offset_align (also for lengths) */
    uint32_t between[5];
    uint32_t read_offset;    /* stx_dio_read_offset_align; 0: as for writes */
    uint32_t more[18];
};
_Static_assert(sizeof(struct alignment_info) == 256, "the size of the kernel's struct statx");

enum {
    STATX_DIOALIGN_MASK = 0x2000,       /* STATX_DIOALIGN */
    STATX_DIO_READ_ALIGN_MASK = 0x20000, /* STATX_DIO_READ_ALIGN, Linux 6.14 */
    EMPTY_PATH_FLAG = 0x1000     /* AT_EMPTY_PATH */
};

static struct alignment_info query_alignment(int fd)
{
    struct alignment_info info;
    memset(&info, 0, sizeof info);
    unsigned mask = STATX_DIOALIGN_MASK | STATX_DIO_READ_ALIGN_MASK;
    if (syscall(SYS_statx, fd, "", EMPTY_PATH_FLAG, mask, &info) == -1)
        info.mask = 0;
    if (info.mask & STATX_DIO_READ_ALIGN_MASK && info.read_offset)
        info.offset = info.read_offset;
    return info;
}

static void print_alignment(weir_stream *out, const struct alignment_info *info)
{
    if (!(info->mask & STATX_DIOALIGN_MASK))
        weir_put_str(out, "  the file system does not report what direct reads require\n");
    else if (info->offset == 0)
        weir_put_str(out, "  the file system does not support direct reads of this file\n");
    else
        weir_printf(out, "  required: length and offset in multiples of %u, memory at a multiple of %u\n",
                    (unsigned)info->offset, (unsigned)info->memory);
}

/* If `value` is not a multiple of `needed`: prints so, with the nearest multiple not below `least`, and
 * returns 1. */
static int explain(weir_stream *out, const char *what, uint64_t value, uint32_t needed, uint64_t least)
{
    if (needed == 0 || value % needed == 0)
        return 0;
    uint64_t below = value - value % needed, above = below + needed;
    uint64_t nearest = below >= least && value - below <= above - value ? below : above;
    weir_printf(out, "  %s %llu is not a multiple of %u: the nearest is %llu\n", what,
                (unsigned long long)value, (unsigned)needed, (unsigned long long)nearest);
    return 1;
}

static int explain_all(weir_stream *out, const struct request *request, const struct alignment_info *info)
{
    if (!(info->mask & STATX_DIOALIGN_MASK))
        return 0;
    return explain(out, "length", request->length, info->offset, 1) +
           explain(out, "offset", request->offset, info->offset, 0) +
           explain(out, "address alignment", request->alignment, info->memory, 1);
}

/* Allocates memory at a multiple of `alignment` that is not a multiple of 2 * alignment. */
static char *new_memory(const struct request *request, void **whole)
{
    size_t twice = 2 * (size_t)request->alignment;
    size_t requested = twice < sizeof(void *) ? sizeof(void *) : twice; /* the minimum of posix_memalign(3) */
    int error = posix_memalign(whole, requested, (size_t)(request->length + request->alignment));
    if (error)
        fail("memory", error);
    return (char *)*whole + request->alignment;
}

static int open_direct(const struct request *request)
{
    int fd = open(request->name, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd == -1 && errno == EINVAL)
        weir_printf(weir_stderr(), "direct_read: %s: EINVAL: the file system does not support O_DIRECT\n",
                    request->name);
    else
        check_call(fd, request->name);
    if (fd == -1)
        exit(1);
    return fd;
}

static ssize_t read_once(int fd, const struct request *request)
{
    void *whole;
    char *memory = new_memory(request, &whole);
    ssize_t got;
    do
        got = pread(fd, memory, (size_t)request->length, (off_t)request->offset);
    while (got == -1 && errno == EINTR);
    int error = errno;
    free(whole);
    return got == -1 ? -error : got;
}

static void report_error(const struct request *request, const struct alignment_info *info, int error)
{
    weir_stream *err = weir_stderr();
    if (error != EINVAL)
        fail(request->name, error);
    weir_printf(err, "direct_read: %s: EINVAL: %s\n", request->name, strerror(error));
    int wrong = explain_all(err, request, info);
    print_alignment(err, info);
    if (!wrong)
        weir_put_str(err, "  none of the three is known to be wrong; try multiples of 4096\n");
}

static void report_success(const struct request *request, const struct alignment_info *info, ssize_t got)
{
    weir_stream *out = open_stdout();
    check(weir_printf(out, "Read %zd bytes\n", got), STDOUT_NAME);
    if (explain_all(out, request, info))
        weir_put_str(out, "  the read succeeded nevertheless: by the page cache, or the device needs less\n");
    print_alignment(out, info);
    close_stdout();
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5)
        usage(USAGE, NULL, NULL);
    struct request request = { argv[1], number_argument(argv[2], MAX_BYTES, USAGE), 0, 4096 };
    if (argc > 3)
        request.offset = number_argument(argv[3], INT64_MAX, USAGE);
    if (argc > 4)
        request.alignment = number_argument(argv[4], MAX_ALIGNMENT, USAGE);
    if (request.alignment == 0 || (request.alignment & (request.alignment - 1)))
        usage(USAGE, argv[4], "not a power of two");

    int fd = open_direct(&request);
    struct alignment_info info = query_alignment(fd);
    ssize_t got = read_once(fd, &request);
    close(fd); /* opened for reading: an error would not matter */
    if (got < 0)
        report_error(&request, &info, (int)-got);
    else
        report_success(&request, &info, got);
    return got < 0;
}
