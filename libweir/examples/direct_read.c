/* direct_read.c: one read(2) around the page cache (O_DIRECT), with length, offset and address as you choose.
 *
 * What the device cannot do the kernel refuses with EINVAL, and says no more. This program then says which
 * of the three is wrong, from what statx(2) tells about the file (STATX_DIOALIGN, Linux 6.1 and later). Not
 * every file system refuses: tmpfs reads anything, as its files are nowhere but in memory; others quietly go
 * through the page cache. So what is needed is said in any case.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "example.h"

#define USAGE "FILE LENGTH [OFFSET [ALIGNMENT]]\n" \
    "  ALIGNMENT (4096) is a power of two: the memory lies at a multiple of it, and not of more"

enum { MOST_BYTES = 1 << 30, MOST_ALIGNMENT = 1 << 24 };

struct request {
    const char *name;
    uint64_t length, offset, alignment;
};

/* struct statx as the kernel fills it in; the C library's may be older. */
struct needs {
    uint32_t mask, others[37];
    uint32_t memory, offset; /* stx_dio_mem_align; stx_dio_offset_align, which is the length's as well */
    uint32_t between[5];
    uint32_t read_offset;    /* stx_dio_read_offset_align: of reading, where writing needs more */
    uint32_t more[18];
};
_Static_assert(sizeof(struct needs) == 256, "as the kernel has it");

enum {
    ASK_DIRECT = 0x2000,       /* STATX_DIOALIGN */
    ASK_DIRECT_READ = 0x20000, /* STATX_DIO_READ_ALIGN, Linux 6.14 */
    ASK_THIS_FILE = 0x1000     /* AT_EMPTY_PATH */
};

static struct needs ask_needs(int fd)
{
    struct needs needs;
    memset(&needs, 0, sizeof needs);
    if (syscall(SYS_statx, fd, "", ASK_THIS_FILE, ASK_DIRECT | ASK_DIRECT_READ, &needs) == -1)
        needs.mask = 0;
    if (needs.mask & ASK_DIRECT_READ && needs.read_offset)
        needs.offset = needs.read_offset;
    return needs;
}

static void put_needs(weir_stream *out, const struct needs *needs)
{
    if (!(needs->mask & ASK_DIRECT))
        weir_put_str(out, "  its file system does not say what direct reading needs, nor whether this was\n");
    else if (needs->offset == 0)
        weir_put_str(out, "  its file system says that it cannot be read directly\n");
    else
        weir_printf(out, "  it needs length and offset in multiples of %u, memory at a multiple of %u\n",
                    (unsigned)needs->offset, (unsigned)needs->memory);
}

/* Whether `value` is wrong; then says so, with the nearest that is right and not below `least`. */
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

static int explain_all(weir_stream *out, const struct request *request, const struct needs *needs)
{
    if (!(needs->mask & ASK_DIRECT))
        return 0;
    return explain(out, "length", request->length, needs->offset, 1) +
           explain(out, "offset", request->offset, needs->offset, 0) +
           explain(out, "address alignment", request->alignment, needs->memory, 1);
}

/* At a multiple of `alignment` that is not one of twice as much. */
static char *new_memory(const struct request *request, void **whole)
{
    size_t twice = 2 * (size_t)request->alignment;
    size_t asked = twice < sizeof(void *) ? sizeof(void *) : twice; /* posix_memalign knows no less */
    int error = posix_memalign(whole, asked, (size_t)(request->length + request->alignment));
    if (error)
        give_up("memory", error);
    return (char *)*whole + request->alignment;
}

static int open_direct(const struct request *request)
{
    int fd = open(request->name, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd == -1 && errno == EINVAL)
        weir_printf(weir_stderr(), "direct_read: %s: EINVAL: its file system has no O_DIRECT\n",
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

static void report_error(const struct request *request, const struct needs *needs, int error)
{
    weir_stream *err = weir_stderr();
    if (error != EINVAL)
        give_up(request->name, error);
    weir_printf(err, "direct_read: %s: EINVAL: %s\n", request->name, strerror(error));
    int wrong = explain_all(err, request, needs);
    put_needs(err, needs);
    if (!wrong)
        weir_put_str(err, "  and none of the three is known to be wrong; try multiples of 4096\n");
}

static void report_success(const struct request *request, const struct needs *needs, ssize_t got)
{
    weir_stream *out = open_stdout();
    check(weir_printf(out, "Read %zd bytes\n", got), STDOUT_NAME);
    if (explain_all(out, request, needs))
        weir_put_str(out, "  and yet it was read: through the page cache, or the device needs less\n");
    put_needs(out, needs);
    close_stdout();
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5)
        usage(USAGE, NULL, NULL);
    struct request request = { argv[1], number_argument(argv[2], MOST_BYTES, USAGE), 0, 4096 };
    if (argc > 3)
        request.offset = number_argument(argv[3], INT64_MAX, USAGE);
    if (argc > 4)
        request.alignment = number_argument(argv[4], MOST_ALIGNMENT, USAGE);
    if (request.alignment == 0 || (request.alignment & (request.alignment - 1)))
        usage(USAGE, argv[4], "not a power of two");

    int fd = open_direct(&request);
    struct needs needs = ask_needs(fd);
    ssize_t got = read_once(fd, &request);
    close(fd); /* was read only: nothing can be lost */
    if (got < 0)
        report_error(&request, &needs, (int)-got);
    else
        report_success(&request, &needs, got);
    return got < 0;
}
