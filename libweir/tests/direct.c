/* direct.c: WEIR_DIRECT: random calls on file systems of several types end with the file that a model has,
 * whatever is at an odd place: positions, sizes, addresses, the file's end. --seeds=N, --seed=N. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/model.h"
#include "support/places.h"

enum { STEPS = 70, LARGEST = 300000, FILE_LIMIT = 3 << 20 };

static struct weir__kernel real;
static struct {
    uint64_t direct, plain;       /* writes that took something */
    uint64_t direct_bytes, plain_bytes;
    uint64_t askew;               /* direct calls that a device of such blocks refuses */
    struct random random;
    unsigned trouble;             /* one in so many calls is cut or interrupted; 0: none */
    size_t block;
} calls;

static bool is_direct(int fd) { return real.fcntl(fd, F_GETFL, NULL) & O_DIRECT; }
static bool is_askew(const void *memory, size_t bytes, off_t at)
{
    return (bytes | (uint64_t)at) % calls.block != 0 || (uintptr_t)memory % (calls.block < 4096 ? calls.block : 4096) != 0;
}

/* Short counts as a kernel gives them: of a direct call, whole blocks. */
static bool spoil(int fd, size_t *bytes)
{
    if (!calls.trouble || random_below(&calls.random, calls.trouble))
        return false;
    if (random_below(&calls.random, 2)) {
        errno = EINTR;
        return true;
    }
    size_t part = *bytes / 2, unit = is_direct(fd) ? calls.block : 1;
    *bytes = part < unit ? *bytes : part - part % unit;
    return false;
}

static ssize_t count_write(int fd, ssize_t taken)
{
    if (taken > 0 && is_direct(fd)) {
        calls.direct++;
        calls.direct_bytes += (uint64_t)taken;
    } else if (taken > 0) {
        calls.plain++;
        calls.plain_bytes += (uint64_t)taken;
    }
    return taken;
}

static ssize_t watch_write(int fd, const void *from, size_t bytes)
{
    off_t at = real.fcntl(fd, F_GETFL, NULL) & O_APPEND ? 0 : real.lseek(fd, 0, SEEK_CUR);
    calls.askew += is_direct(fd) && is_askew(from, bytes, at);
    return spoil(fd, &bytes) ? -1 : count_write(fd, real.write(fd, from, bytes));
}

static ssize_t watch_writev(int fd, const struct iovec *iov, int count)
{
    for (int i = 0; i < count && is_direct(fd); i++)
        calls.askew += is_askew(iov[i].iov_base, iov[i].iov_len, 0);
    size_t bytes = iov->iov_len;
    if (spoil(fd, &bytes))
        return -1;
    return count_write(fd, bytes < iov->iov_len ? real.write(fd, iov->iov_base, bytes) : real.writev(fd, iov, count));
}

static ssize_t watch_pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    size_t bytes = iov->iov_len;
    if (spoil(fd, &bytes))
        return -1;
    struct iovec first = {iov->iov_base, bytes};
    return count_write(fd, bytes < iov->iov_len ? real.pwritev2(fd, &first, 1, offset, flags)
                                                : real.pwritev2(fd, iov, count, offset, flags));
}

static ssize_t watch_read(int fd, void *to, size_t bytes)
{
    calls.askew += is_direct(fd) && is_askew(to, bytes, real.lseek(fd, 0, SEEK_CUR));
    return spoil(fd, &bytes) ? -1 : real.read(fd, to, bytes);
}

static ssize_t watch_pread(int fd, void *to, size_t bytes, off_t offset)
{
    calls.askew += is_direct(fd) && is_askew(to, bytes, offset);
    return spoil(fd, &bytes) ? -1 : real.pread(fd, to, bytes, offset);
}

/* ---- what the device is said to need ---- */

static int say_block;

static int watch_statx(int fd, const char *path, int flags, unsigned mask, void *status)
{
    if (say_block < 0) {
        errno = ENOSYS;
        return -1;
    }
    int result = real.statx(fd, path, flags, mask, status);
    uint32_t *words = status;
    if (result == 0 && say_block) {
        words[0] |= 0x2000; /* STATX_DIOALIGN */
        words[38] = say_block < 4096 ? (uint32_t)say_block : 4096; /* of memory */
        words[39] = (uint32_t)say_block;
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

static void watch(void)
{
    weir__kernel = real;
    weir__kernel.write = watch_write;
    weir__kernel.writev = watch_writev;
    weir__kernel.pwritev2 = watch_pwritev2;
    weir__kernel.read = watch_read;
    weir__kernel.pread = watch_pread;
    weir__kernel.statx = watch_statx;
}

/* ---- a ride ---- */

struct sort {
    const char *name;
    int oflags;
    unsigned does;
    int say_block; /* 0: what the kernel says; -1: nothing */
    bool no_proc;
    bool late;     /* opened without O_DIRECT, and given to weir_fdopen */
};

static const struct sort sorts[] = {
    {"written", O_WRONLY, 0, 0, false, false},
    {"written here and there", O_WRONLY, RIDE_SEEKS | RIDE_MODES, 0, false, false},
    {"both ways", O_RDWR, RIDE_READS | RIDE_SEEKS, 0, false, false},
    {"both ways, all modes", O_RDWR, RIDE_READS | RIDE_SEEKS | RIDE_MODES, 0, false, false},
    {"appended", O_WRONLY | O_APPEND, RIDE_MODES, 0, false, false},
    {"appended and read", O_RDWR | O_APPEND, RIDE_READS | RIDE_SEEKS, 0, false, false},
    {"blocks of 4096", O_RDWR, RIDE_READS | RIDE_SEEKS | RIDE_MODES, 4096, false, false},
    {"blocks of 16384", O_RDWR, RIDE_READS | RIDE_SEEKS, 16384, false, false},
    {"blocks unknown", O_RDWR, RIDE_READS | RIDE_SEEKS, -1, false, false},
    {"without a second descriptor", O_RDWR, RIDE_READS | RIDE_SEEKS | RIDE_MODES, 0, true, false},
    {"appended, without a second descriptor", O_WRONLY | O_APPEND, RIDE_MODES, 0, true, false},
    {"a descriptor that was not direct", O_RDWR, RIDE_READS | RIDE_SEEKS, 0, false, true},
};
enum { SORTS = sizeof sorts / sizeof *sorts };

static char memory[LARGEST + 3 * 4096], callers[5 * 65536 + 100];

static struct weir_options options_of(struct random *r, const struct sort *sort)
{
    static const size_t sizes[] = {0, 1, 4096, 5000, 8192, 65536, 262144};
    static const enum weir_mode modes[] = {WEIR_FULL, WEIR_FULL, WEIR_FULL, WEIR_LINE, WEIR_RECORD, WEIR_NONE};
    struct weir_options options = {.flags = WEIR_DIRECT, .buffer_bytes = sizes[random_below(r, 7)]};
    options.mode = modes[random_below(r, sort->does & RIDE_MODES ? 6 : 3)];
    if (random_below(r, 5) == 0) {
        options.buffer = callers + random_below(r, 100);
        options.buffer_bytes = sizeof callers - 100;
    }
    return options;
}

static int open_stream(weir_stream **s, const char *path, const struct sort *sort, const struct weir_options *options)
{
    if (!sort->late)
        return weir_open(s, path, sort->oflags, options);
    int fd = open(path, sort->oflags | O_CLOEXEC), result = weir_fdopen(s, fd, options);
    if (result < 0)
        close(fd);
    return result;
}

static void start_file(struct model *m, struct random *r, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t bytes = random_below(r, 3) ? random_below(r, 30000) : 0;
    model_text(r, memory, bytes);
    check(write(fd, memory, bytes) == (ssize_t)bytes, "the file at the start");
    close(fd);
    model_write(m, memory, bytes);
    m->at = 0;
}

static void one_ride(const char *place, const struct sort *sort, uint64_t seed)
{
    char path[300];
    struct model m;
    struct random r = random_from(seed);
    struct weir_options options = options_of(&r, sort);
    snprintf(path, sizeof path, "%s/file", place);
    model_make(&m, sort->oflags & O_APPEND);
    start_file(&m, &r, path);
    struct ride it = {.model = &m, .random = r, .path = path, .does = sort->does, .largest = LARGEST};
    it.file_limit = FILE_LIMIT;
    it.memory = memory;
    say_block = sort->say_block;
    calls.block = say_block > 0 ? (size_t)say_block : 512;
    calls.trouble = seed % 3 ? 0 : 9;
    calls.random = r;
    weir__kernel.open = sort->no_proc ? refuse_open : real.open;
    int result = open_stream(&it.s, path, sort, &options);
    if (!check(result == 0, "open returned %d", result))
        return;
    bool well = ride(&it, STEPS);
    result = weir_close(it.s);
    well = check(result == 0, "close returned %d", result) && well;
    well = model_is_in(&m, path) && well;
    if (!well)
        printf("  seed %llu, mode %d, %zu bytes\n", (unsigned long long)seed, (int)options.mode, options.buffer_bytes);
    model_free(&m);
}

static void rides(const char *type, const char *place, uint64_t first, uint64_t seeds)
{
    for (int i = 0; i < SORTS; i++) {
        check_begin("%s, %s", type, sorts[i].name);
        uint64_t before = calls.askew, direct = calls.direct;
        for (uint64_t seed = 0; seed < seeds && check_wrong() < 3; seed++)
            one_ride(place, &sorts[i], first * 100000 + (uint64_t)i * 1000 + seed);
        check(calls.askew == before, "%d direct calls of parts of blocks", (int)(calls.askew - before));
        check(calls.direct > direct || sorts[i].say_block > 4096, "nothing was written directly");
    }
}

int main(int count, char **arguments)
{
    static const struct {
        const char *type, *options;
        size_t bytes;
    } mounts[] = {{"ext4", "", 64 << 20}, {"xfs", "", 320 << 20}, {"btrfs", "", 128 << 20}};
    uint64_t seeds = check_option(count, arguments, "seeds", 12), first = check_option(count, arguments, "seed", 1);
    const char *place = place_make(), *why;
    real = weir__kernel;
    watch();
    if (place_takes_direct(place)) {
        rides("here", place, first, seeds);
    } else {
        check_begin("here");
        check_skip("this file system's files are not for O_DIRECT");
    }
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        const char *mount = place_mount(mounts[i].type, mounts[i].bytes, mounts[i].options, &why);
        bool takes = mount && place_takes_direct(mount);
        if (takes) {
            rides(mounts[i].type, mount, first, seeds / 2 + 1);
            continue;
        }
        check_begin("%s", mounts[i].type);
        check_skip(mount ? "its files are not for O_DIRECT here" : why);
    }
    printf("%llu direct writes of %llu bytes, %llu others of %llu bytes\n", (unsigned long long)calls.direct,
           (unsigned long long)calls.direct_bytes, (unsigned long long)calls.plain, (unsigned long long)calls.plain_bytes);
    return check_finish("direct");
}
