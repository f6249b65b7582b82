/* holder.c: the holder process (WEIR_HOLDER). It waits for the owner's death and writes the bytes that the
 * owner left. It is a copy of the owner made by clone(2), so it must not allocate memory or take locks. */
#include "spill.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(SYS_close_range) /* the numbers are the same on all architectures that libweir supports */
#define SYS_close_range 436
#endif
#if !defined(SYS_pidfd_open)
#define SYS_pidfd_open 434
#endif

enum { POLL_MS = 100, MAX_FD = 65536, START_POLLS = 100000, START_POLL_NS = 50000 };

/* ---- in the holder ---- */

static uint64_t number_at(const char **at)
{
    uint64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number * 10 + (uint64_t)(**at - '0');
    return number;
}

/* Finds the memory of the process's arguments, which ps(1) shows: fields 48 and 49 of /proc/self/stat. */
static void find_arguments(uint64_t *begin, uint64_t *end)
{
    char text[1024];
    *begin = *end = 0;
    int fd = weir__kernel.open("/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
    ssize_t length = fd < 0 ? 0 : weir__kernel.read(fd, text, sizeof text - 1);
    if (fd >= 0)
        weir__kernel.close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *at =
        strrchr(text, ')'); /* the end of field 2, the command, which may contain any character */
    for (int field = 2; at && field < 48; field++)
        at = strchr(at + 1, ' ');
    if (!at || *++at < '0')
        return;
    *begin = number_at(&at);
    *end = *at == ' ' ? (++at, number_at(&at)) : *begin;
}

/* Changes the name that ps(1) and top(1) show. The arguments are in a private copy of the owner's memory. */
static void set_process_name(void)
{
    static const char name[] = "weir-holder";
    uint64_t begin, end;
    prctl(PR_SET_NAME, name);
    find_arguments(&begin, &end);
    if (end <= begin || end - begin < sizeof name)
        return;
    memset((void *)(uintptr_t)begin, 0, end - begin);
    memcpy((void *)(uintptr_t)begin, name, sizeof name);
}

static void close_fds(unsigned first, unsigned last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && fd < MAX_FD; fd++)
        close((int)fd);
}

static void close_all_except(unsigned a, unsigned b)
{
    unsigned low = a < b ? a : b, high = a < b ? b : a;
    if (low > 0)
        close_fds(0, low - 1);
    close_fds(low + 1, high - 1);
    close_fds(high + 1, ~0u);
}

static void wait_for_lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (weir__kernel.fcntl(fd, F_OFD_SETLKW, &whole) != 0 && errno == EINTR)
        ;
}

/* Waits for the owner's death if the owner lost its lock: it closed descriptors that were not its own. */
static void wait_for_death(struct weir__spill_image *image, uint64_t ino)
{
    int owner_pidfd = (int)syscall(SYS_pidfd_open, image->file.head.pid, 0);
    struct pollfd dead = {.fd = owner_pidfd, .events = POLLIN};
    while (weir__spill_load(image, image->fd) == 0 && !image->file.released && weir__owner_maps(image, ino))
        weir__kernel.poll(&dead, 1, POLL_MS);
}

static int write_out(struct weir__spill_image *image, int sink)
{
    struct weir_recovered found;
    struct weir__target target = {.fd = sink, .read_fd = -1, .same_file = true, .same_description = true};
    if (image->file.sink.type == S_IFREG)
        target.read_fd = weir__reopen(sink, O_RDONLY);
    weir__spill_describe(image, &found);
    int result;
    while ((result = weir__replay(image, &target, &found)) == -EAGAIN) {
        struct pollfd ready = {.fd = sink, .events = POLLOUT};
        weir__kernel.poll(&ready, 1, -1);
    }
    return result;
}

/* Runs in the holder. Bytes that cannot be written stay in the file, for weir_recover. */
static void run_holder(int sink, const struct weir__spill *spill)
{
    static const uint16_t yes = 1;
    struct weir__spill_image image;
    set_process_name();
    setsid(); /* protects it from signals to the owner's process group and terminal */
    close_all_except((unsigned)sink, (unsigned)spill->fd);
    if (chdir("/") != 0 || weir__kernel.pwrite(spill->fd, &yes, sizeof yes,
                                               offsetof(struct weir__spill_file, holder_ready)) != sizeof yes)
        return;
    wait_for_lock(spill->fd);
    if (weir__spill_load(&image, spill->fd) < 0 || image.file.released)
        return;
    wait_for_death(&image, spill->ino);
    if (weir__spill_load(&image, spill->fd) == 0 && !image.file.released && write_out(&image, sink) == 0)
        weir__spill_unlink(spill->path, spill->dev, spill->ino);
}

/* ---- in the owner ---- */

/* Waits until the holder has left the owner's session. From then on it survives signals to the owner's
 * group. */
static int wait_until_ready(const struct weir__spill *spill)
{
    struct timespec interval = {0, START_POLL_NS};
    for (int i = 0; i < START_POLLS; i++) {
        siginfo_t ended = {0};
        if (WEIR_LOAD(&spill->file->holder_ready))
            return 0;
        if (waitid(P_PID, (id_t)spill->holder, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 || ended.si_pid)
            return -ECHILD;
        nanosleep(&interval, NULL);
    }
    return -ETIMEDOUT;
}

/* Starts the holder. clone(2) without an exit signal hides it from the program's own wait(2). All signals
 * stay blocked in it, including those that end the owner at a shutdown: its work begins after the owner's
 * death. */
int weir__holder_start(weir_stream *s)
{
    struct weir__spill *spill = weir__config(s)->spill;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    long pid = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    if (pid == 0) {
        run_holder(weir__config(s)->fd, spill);
        for (;;)
            syscall(SYS_exit_group, 0);
    }
    int result = pid < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    spill->holder = pid < 0 ? 0 : (int)pid;
    return result < 0 ? result : wait_until_ready(spill);
}

void weir__holder_wait(struct weir__spill *spill)
{
    if (spill->holder)
        while (waitpid(spill->holder, NULL, __WALL) < 0 && errno == EINTR)
            ;
    spill->holder = 0;
}
