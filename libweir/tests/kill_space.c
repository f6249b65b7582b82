/* kill_space.c: kill-safe streams and weir_recover without space on the file system: they return ENOSPC, lose nothing,
 * and continue when there is space again. */
#include "support/kill.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>

enum { SMALL = 256 << 10, DATA = 150000, TEXT = 1 << 20 };

static char text[TEXT], data[DATA];

/* ---- a small file system ---- */

/* Mounts a small file system in a new mount namespace, which ends with the test. Returns NULL, or the reason why that
 * is impossible. */
static const char *mount_small(void)
{
    char options[32];
    unsigned uid = geteuid();
    if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "this process may not make a mount namespace";
    snprintf(options, sizeof options, "size=%d", SMALL);
    must(mkdir(in_dir("small"), 0700));
    if (mount("small", in_dir("small"), "tmpfs", 0, options) != 0)
        return "no file system can be mounted here";
    return NULL;
}

/* Fills the file system up to `leave` free bytes. */
static void fill(uint64_t leave)
{
    struct statfs status;
    int fd = (int)must(open(in_dir("small/ballast"), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    must(statfs(in_dir("small"), &status));
    uint64_t space = status.f_bavail * (uint64_t)status.f_bsize;
    if (space > leave)
        must(fallocate(fd, 0, 0, (off_t)(space - leave)));
    close(fd);
}

static void empty(void) { unlink(in_dir("small/ballast")); }

static int count_small(void)
{
    FILE *list = popen("ls $WEIR_SPILL_DIR/small | grep -c 'weir$'", "r");
    int count = -1;
    if (!list || fscanf(list, "%d", &count) != 1)
        count = -1;
    if (list)
        pclose(list);
    return count;
}

static struct weir_options options_of(size_t buffer_bytes, const char *spill)
{
    return (struct weir_options){.mode = WEIR_FULL, .durability = WEIR_KILL, .buffer_bytes = buffer_bytes, .spill = spill};
}

static bool has_data(const char *path, size_t bytes)
{
    return read_file(path, text, TEXT) == bytes && memcmp(text, data, bytes) == 0;
}

/* ---- the stream's own file ---- */

static void no_space_to_open(void)
{
    weir_stream *s = NULL;
    struct weir_options options = options_of(1 << 20, in_dir("small/a.weir"));
    check_begin("no space for the buffer: weir_open returns ENOSPC");
    int next = dup(0);
    close(next);
    check(weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT, &options) == -ENOSPC, "a buffer of 1 MiB");
    check(count_small() == 0, "a spill file is left");
    int after = dup(0);
    check(after == next, "a descriptor is left open");
    close(after);
    options.buffer_bytes = 100000;
    check(weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT, &options) == 0, "a smaller buffer");
    fill(0); /* the spill file's blocks are allocated: no SIGBUS */
    for (int i = 0; i < 100000; i++)
        check(weir_putc(s, data[i]) >= 0, "byte %d", i);
    empty();
    check(weir_close(s) == 0 && has_data(in_dir("sink"), 100000), "close");
}

static void no_space_to_grow(void)
{
    weir_stream *s = NULL;
    char *to;
    struct weir_options options = options_of(5000, in_dir("small/a.weir"));
    check_begin("no space for a larger buffer: the stream keeps its old one");
    must(weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT | O_TRUNC, &options));
    fill(0);
    check(weir_write(s, data, 3000) == 3000, "write");
    check(weir_reserve(s, &to, 100000) == -ENOSPC, "reserve");
    check(weir_set_mode(s, WEIR_FULL, 100000) == -ENOSPC, "set_mode");
    check(weir_write(s, data + 3000, 4000) == 4000, "write");
    empty();
    check(weir_set_mode(s, WEIR_FULL, 100000) == 0, "set_mode with space");
    check(weir_write(s, data + 7000, 90000) == 90000, "write");
    check(weir_close(s) == 0 && has_data(in_dir("sink"), 97000), "close");
}

static void no_space_in_child(void)
{
    weir_stream *s = NULL;
    struct weir_options options = options_of(50000, in_dir("small/a.weir"));
    check_begin("no space for a child's spill file: its calls return ENOSPC until there is space");
    must(weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT | O_TRUNC, &options));
    fill(0);
    pid_t pid = fork();
    if (pid == 0) {
        if (weir_putc(s, 'x') != -ENOSPC || weir_write(s, data, 10) != -ENOSPC || weir_printf(s, "x") != -ENOSPC)
            _exit(1);
        empty();
        if (weir_write(s, data, 60000) != 60000)
            _exit(2);
        _exit(weir_close(s) == 0 ? 0 : 3);
    }
    int status = wait_for(pid);
    check(status == 0, "status %d", status);
    check(weir_close(s) == 0 && has_data(in_dir("sink"), 60000), "close");
    check(count_small() == 0, "a spill file is left");
}

/* ---- the sink ---- */

/* Kills an owner with pending bytes that exceed the space left on the sink's file system. */
static void kill_owner(int oflags, bool holder)
{
    struct weir_options options = options_of(DATA + 1, in_dir("a.weir"));
    empty();
    unlink(in_dir("small/sink"));
    options.flags = holder ? WEIR_HOLDER : 0;
    pid_t pid = fork();
    if (pid == 0) {
        weir_stream *s;
        must(weir_open(&s, in_dir("small/sink"), O_WRONLY | O_CREAT | oflags, &options));
        must(weir_write(s, data, DATA));
        fill(40000);
        kill(getpid(), SIGKILL);
    }
    check(wait_for(pid) == 137, "the owner failed");
}

static void no_space_to_recover(int oflags, const char *name)
{
    struct weir_recovered found;
    check_begin("no space to recover to %s: the next recovery continues", name);
    kill_owner(oflags, false);
    int result = weir_recover(in_dir("a.weir"), -1, &found);
    check(result == -ENOSPC && found.bytes == DATA, "%s, %d bytes", strerror(-result), (int)found.bytes);
    result = weir_recover(in_dir("a.weir"), -1, &found);
    check(result == -ENOSPC && found.bytes < DATA && found.exact, "again: %s, %d", strerror(-result), (int)found.bytes);
    fill(9000); /* first a little space, then enough */
    result = weir_recover(in_dir("a.weir"), -1, &found);
    check(result == -ENOSPC && found.exact, "a third time: %s", strerror(-result));
    empty();
    result = weir_recover(in_dir("a.weir"), -1, &found);
    check(result == 0 && found.bytes < DATA && found.exact, "with space: %s, %d", strerror(-result), (int)found.bytes);
    check(has_data(in_dir("small/sink"), DATA), "the sink");
    check(count_files("weir") == 0, "a spill file is left");
}

static void no_space_for_holder(void)
{
    check_begin("no space for the holder: the spill file is kept");
    if (holder_obstacle()) {
        check_skip(holder_obstacle());
        return;
    }
    kill_owner(0, true);
    struct stat status;
    int fd, result = -EBUSY;
    for (int i = 0; i < 400 && result == -EBUSY; i++) { /* until the holder has ended */
        usleep(5000);
        result = weir_recover(in_dir("a.weir"), -1, NULL);
    }
    check(result == -ENOSPC, "%s", strerror(-result));
    /* The holder gives up its lock some time before it closes the sink, whose blocks the next test needs. */
    check(waitpid(-1, NULL, __WALL) > 0, "the holder is no child of this process");
    check(stat(in_dir("small/sink"), &status) == 0 && status.st_size > 0, "the holder has written nothing");
    empty();
    fd = (int)must(open(in_dir("small/sink"), O_WRONLY));
    check(weir_recover(in_dir("a.weir"), fd, NULL) == 0 && has_data(in_dir("small/sink"), DATA), "the sink");
    close(fd);
}

static void close_without_space(void)
{
    weir_stream *s = NULL;
    uint64_t lost;
    struct weir_options options = options_of(DATA + 1, in_dir("a.weir"));
    struct weir_recovered found;
    check_begin("a close without space keeps the unwritten bytes for weir_recover");
    unlink(in_dir("small/sink"));
    must(weir_open(&s, in_dir("small/sink"), O_WRONLY | O_CREAT, &options));
    fill(50000);
    check(weir_write(s, data, DATA) == DATA, "write");
    check(weir_close_lost(s, &lost) == -ENOSPC && lost > 0, "close");
    empty();
    int result = weir_recover(in_dir("a.weir"), -1, &found);
    check(result == 0 && found.bytes == lost && found.exact, "%s, %d bytes, not %d", strerror(-result), (int)found.bytes,
          (int)lost);
    check(has_data(in_dir("small/sink"), DATA), "the sink");
}

/* Fails as on a file system without O_TMPFILE. */
static int open_without_tmpfile(const char *path, int flags, mode_t permissions)
{
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return open(path, flags, permissions);
}

static void simple_file_system(void)
{
    weir_stream *s = NULL;
    check_begin("a file system without fallocate(2) and O_TMPFILE");
    must(mkdir(in_dir("plain"), 0700));
    if (mount("plain", in_dir("plain"), "ramfs", 0, "") != 0) {
        check_skip("no ramfs can be mounted here");
        return;
    }
    struct weir_options options = options_of(50000, in_dir("plain/a.weir"));
    int (*was)(const char *, int, mode_t) = weir__kernel.open;
    for (int no_tmpfile = 0; no_tmpfile < 2; no_tmpfile++) {
        weir__kernel.open = no_tmpfile ? open_without_tmpfile : was;
        pid_t pid = fork();
        if (pid == 0) {
            must(weir_open(&s, in_dir("sink"), O_WRONLY | O_CREAT | O_TRUNC, &options));
            must(weir_write(s, data, 40000));
            must(weir_set_mode(s, WEIR_FULL, 100000));
            must(weir_write(s, data + 40000, 90000));
            _exit(weir_open(&s, in_dir("sink"), O_WRONLY, &options) == -EEXIST ? 0 : 1);
        }
        check(wait_for(pid) == 0, "the owner failed");
        check(weir_recover(in_dir("plain/a.weir"), -1, NULL) == 0 && has_data(in_dir("sink"), 130000), "the sink");
        check(access(in_dir("plain/a.weir"), F_OK) != 0, "a spill file is left");
    }
    weir__kernel.open = was;
    must(umount(in_dir("plain")));
    rmdir(in_dir("plain"));
}

int main(void)
{
    struct random random = random_from(1);
    for (int i = 0; i < DATA; i++)
        data[i] = (char)random_next(&random);
    kill_dir("/dev/shm");
    check_begin("mount of a small file system");
    const char *obstacle = mount_small();
    if (obstacle) {
        check_skip(obstacle);
        kill_dir_remove();
        return check_finish("kill_space");
    }
    struct statfs status;
    check(statfs(in_dir("small"), &status) == 0 && status.f_blocks * (uint64_t)status.f_bsize == SMALL, "its size");
    no_space_to_open();
    no_space_to_grow();
    no_space_in_child();
    no_space_to_recover(0, "a plain file");
    no_space_to_recover(O_APPEND, "an O_APPEND file");
    no_space_for_holder();
    close_without_space();
    simple_file_system();
    umount(in_dir("small"));
    rmdir(in_dir("small"));
    kill_dir_remove();
    return check_finish("kill_space");
}
