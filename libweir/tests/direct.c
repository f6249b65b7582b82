/* direct.c: WEIR_DIRECT: random calls on several types of file systems leave the file that a model predicts, with
 * unaligned positions, sizes, addresses and ends of file. --seeds=N, --seed=N. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/call_series.h"
#include "support/test_dirs.h"

enum { STEPS = 70, LARGEST = 300000, FILE_LIMIT = 3 << 20 };

static struct weir__kernel real;
static struct {
    uint64_t direct, plain;       /* writes of at least one byte */
    uint64_t direct_bytes, plain_bytes;
    uint64_t misaligned;          /* direct calls that a device of this block size refuses */
    struct random random;
    unsigned fault_interval;      /* one of that many calls gets a short count or EINTR; 0: none */
    size_t block;
} calls;

static bool is_direct(int fd) { return real.fcntl(fd, F_GETFL, NULL) & O_DIRECT; }
static bool is_misaligned(const void *memory, size_t bytes, off_t at)
{
    size_t alignment = calls.block < 4096 ? calls.block : 4096;
    return (bytes | (uint64_t)at) % calls.block != 0 || (uintptr_t)memory % alignment != 0;
}

/* Returns true for EINTR, or shortens *bytes as a kernel does: to whole blocks in a direct call. */
static bool inject_fault(int fd, size_t *bytes)
{
    if (!calls.fault_interval || random_below(&calls.random, calls.fault_interval))
        return false;
    if (random_below(&calls.random, 2)) {
        errno = EINTR;
        return true;
    }
    size_t part = *bytes / 2, unit = is_direct(fd) ? calls.block : 1;
    *bytes = part < unit ? *bytes : part - part % unit;
    return false;
}

static ssize_t count_write(int fd, ssize_t written)
{
    if (written > 0 && is_direct(fd)) {
        calls.direct++;
        calls.direct_bytes += (uint64_t)written;
    } else if (written > 0) {
        calls.plain++;
        calls.plain_bytes += (uint64_t)written;
    }
    return written;
}

static ssize_t counted_write(int fd, const void *from, size_t bytes)
{
    off_t at = real.fcntl(fd, F_GETFL, NULL) & O_APPEND ? 0 : real.lseek(fd, 0, SEEK_CUR);
    calls.misaligned += is_direct(fd) && is_misaligned(from, bytes, at);
    return inject_fault(fd, &bytes) ? -1 : count_write(fd, real.write(fd, from, bytes));
}

static ssize_t counted_writev(int fd, const struct iovec *iov, int count)
{
    for (int i = 0; i < count && is_direct(fd); i++)
        calls.misaligned += is_misaligned(iov[i].iov_base, iov[i].iov_len, 0);
    size_t bytes = iov->iov_len;
    if (inject_fault(fd, &bytes))
        return -1;
    return count_write(fd, bytes < iov->iov_len ? real.write(fd, iov->iov_base, bytes) : real.writev(fd, iov, count));
}

static ssize_t counted_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    size_t bytes = iov->iov_len;
    if (inject_fault(fd, &bytes))
        return -1;
    struct iovec first = {iov->iov_base, bytes};
    return count_write(fd, bytes < iov->iov_len ? real.pwritev2(fd, &first, 1, offset, flags)
                                                : real.pwritev2(fd, iov, count, offset, flags));
}

static ssize_t checked_read(int fd, void *to, size_t bytes)
{
    calls.misaligned += is_direct(fd) && is_misaligned(to, bytes, real.lseek(fd, 0, SEEK_CUR));
    return inject_fault(fd, &bytes) ? -1 : real.read(fd, to, bytes);
}

static ssize_t checked_pread(int fd, void *to, size_t bytes, off_t offset)
{
    calls.misaligned += is_direct(fd) && is_misaligned(to, bytes, offset);
    return inject_fault(fd, &bytes) ? -1 : real.pread(fd, to, bytes, offset);
}

/* ---- the alignment that statx(2) reports ---- */

static int reported_block; /* 0: the kernel's answer; -1: statx(2) fails */

static int faked_statx(int fd, const char *path, int flags, unsigned mask, void *status)
{
    if (reported_block < 0) {
        errno = ENOSYS;
        return -1;
    }
    int result = real.statx(fd, path, flags, mask, status);
    uint32_t *words = status;
    if (result == 0 && reported_block) {
        words[0] |= 0x2000; /* STATX_DIOALIGN */
        words[38] = reported_block < 4096 ? (uint32_t)reported_block : 4096; /* of memory */
        words[39] = (uint32_t)reported_block;
    }
    return result;
}

static int refuse_open(const char *path, int flags, mode_t permissions)
{
    if (strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return real.open(path, flags, permissions);
}

static void install_calls(void)
{
    weir__kernel = real;
    weir__kernel.write = counted_write;
    weir__kernel.writev = counted_writev;
    weir__kernel.pwritev2 = counted_pwritev2;
    weir__kernel.read = checked_read;
    weir__kernel.pread = checked_pread;
    weir__kernel.statx = faked_statx;
}

/* ---- a series of calls ---- */

struct profile {
    const char *name;
    int oflags;
    unsigned flags; /* SERIES_… */
    int reported_block; /* as the variable */
    bool no_proc;
    bool by_fdopen;     /* opened without O_DIRECT, then passed to weir_fdopen */
};

static const struct profile profiles[] = {
    {"written", O_WRONLY, 0, 0, false, false},
    {"written with seeks", O_WRONLY, SERIES_SEEKS | SERIES_SETS_MODE, 0, false, false},
    {"read and written", O_RDWR, SERIES_READS | SERIES_SEEKS, 0, false, false},
    {"read and written, all modes", O_RDWR, SERIES_READS | SERIES_SEEKS | SERIES_SETS_MODE, 0, false, false},
    {"appended", O_WRONLY | O_APPEND, SERIES_SETS_MODE, 0, false, false},
    {"appended and read", O_RDWR | O_APPEND, SERIES_READS | SERIES_SEEKS, 0, false, false},
    {"blocks of 4096", O_RDWR, SERIES_READS | SERIES_SEEKS | SERIES_SETS_MODE, 4096, false, false},
    {"blocks of 16384", O_RDWR, SERIES_READS | SERIES_SEEKS, 16384, false, false},
    {"block size unknown", O_RDWR, SERIES_READS | SERIES_SEEKS, -1, false, false},
    {"without a second descriptor", O_RDWR, SERIES_READS | SERIES_SEEKS | SERIES_SETS_MODE, 0, true, false},
    {"appended, without a second descriptor", O_WRONLY | O_APPEND, SERIES_SETS_MODE, 0, true, false},
    {"weir_fdopen without O_DIRECT", O_RDWR, SERIES_READS | SERIES_SEEKS, 0, false, true},
};
enum { PROFILES = sizeof profiles / sizeof *profiles };

static char memory[LARGEST + 3 * 4096], callers[5 * 65536 + 100];

static struct weir_options options_of(struct random *r, const struct profile *profile)
{
    static const size_t sizes[] = {0, 1, 4096, 5000, 8192, 65536, 262144};
    static const enum weir_mode modes[] = {WEIR_FULL, WEIR_FULL, WEIR_FULL, WEIR_LINE, WEIR_RECORD, WEIR_NONE};
    struct weir_options options = {.flags = WEIR_DIRECT, .buffer_bytes = sizes[random_below(r, 7)]};
    options.mode = modes[random_below(r, profile->flags & SERIES_SETS_MODE ? 6 : 3)];
    if (random_below(r, 5) == 0) {
        options.buffer = callers + random_below(r, 100);
        options.buffer_bytes = sizeof callers - 100;
    }
    return options;
}

static int open_stream(weir_stream **s, const char *path, const struct profile *profile,
                       const struct weir_options *options)
{
    if (!profile->by_fdopen)
        return weir_open(s, path, profile->oflags, options);
    int fd = open(path, profile->oflags | O_CLOEXEC), result = weir_fdopen(s, fd, options);
    if (result < 0)
        close(fd);
    return result;
}

static void start_file(struct model *m, struct random *r, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t bytes = random_below(r, 3) ? random_below(r, 30000) : 0;
    model_text(r, memory, bytes);
    check(write(fd, memory, bytes) == (ssize_t)bytes, "cannot write the file's first content");
    close(fd);
    model_write(m, memory, bytes);
    m->position = 0;
}

static void run_one_series(const char *dir, const struct profile *profile, uint64_t seed)
{
    char path[300];
    struct model m;
    struct random r = random_from(seed);
    struct weir_options options = options_of(&r, profile);
    snprintf(path, sizeof path, "%s/file", dir);
    model_init(&m, profile->oflags & O_APPEND);
    start_file(&m, &r, path);
    struct call_series series = {.model = &m, .random = r, .path = path, .flags = profile->flags};
    series.largest_write = LARGEST;
    series.position_limit = FILE_LIMIT;
    series.memory = memory;
    reported_block = profile->reported_block;
    calls.block = reported_block > 0 ? (size_t)reported_block : 512;
    calls.fault_interval = seed % 3 ? 0 : 9;
    calls.random = r;
    weir__kernel.open = profile->no_proc ? refuse_open : real.open;
    int result = open_stream(&series.s, path, profile, &options);
    if (!check(result == 0, "open returned %d", result))
        return;
    bool ok = run_series(&series, STEPS);
    result = weir_close(series.s);
    ok = check(result == 0, "close returned %d", result) && ok;
    ok = model_matches_file(&m, path) && ok;
    if (!ok)
        printf("  seed %llu, mode %d, %zu bytes\n", (unsigned long long)seed, (int)options.mode, options.buffer_bytes);
    model_free(&m);
}

static void test_series(const char *type, const char *dir, uint64_t first, uint64_t seeds)
{
    for (int i = 0; i < PROFILES; i++) {
        check_begin("%s, %s", type, profiles[i].name);
        uint64_t before = calls.misaligned, direct = calls.direct;
        for (uint64_t seed = 0; seed < seeds && check_wrong() < 3; seed++)
            run_one_series(dir, &profiles[i], first * 100000 + (uint64_t)i * 1000 + seed);
        check(calls.misaligned == before, "%d misaligned direct calls", (int)(calls.misaligned - before));
        check(calls.direct > direct || profiles[i].reported_block > 4096, "there was no direct write");
    }
}

int main(int count, char **arguments)
{
    static const struct {
        const char *type, *options;
        size_t bytes;
    } mounts[] = {{"ext4", "", 64 << 20}, {"xfs", "", 320 << 20}, {"btrfs", "", 128 << 20}};
    uint64_t seeds = check_option(count, arguments, "seeds", 12), first = check_option(count, arguments, "seed", 1);
    const char *dir = test_dir_make(), *why;
    real = weir__kernel;
    install_calls();
    if (supports_direct_io(dir)) {
        test_series("temporary directory", dir, first, seeds);
    } else {
        check_begin("temporary directory");
        check_skip("this file system does not support O_DIRECT");
    }
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        const char *mount = test_dir_mount(mounts[i].type, mounts[i].bytes, mounts[i].options, &why);
        if (mount && supports_direct_io(mount)) {
            test_series(mounts[i].type, mount, first, seeds / 2 + 1);
            continue;
        }
        check_begin("%s", mounts[i].type);
        check_skip(mount ? "the file system does not support O_DIRECT here" : why);
    }
    printf("%llu direct writes of %llu bytes, %llu other writes of %llu bytes\n", (unsigned long long)calls.direct,
           (unsigned long long)calls.direct_bytes, (unsigned long long)calls.plain, (unsigned long long)calls.plain_bytes);
    return check_finish("direct");
}
