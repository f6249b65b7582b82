/* kill_holder.c: WEIR_HOLDER: after any end of the owner, the holder writes its pending bytes and closes the pipe; a
 * clean close leaves no process and no file. --rounds=N: kills at random times (60); --seed=N. */
#include "support/kill.h"

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>

enum { TEXT = 4 << 20, TIMEOUT_MS = 10000 };

static char text[TEXT];

struct shared {
    _Atomic int holder;
    _Atomic unsigned done; /* records */
    _Atomic int ready;
};
static struct shared *shared;

static const struct weir_options with_holder = {
    .mode = WEIR_FULL, .durability = WEIR_KILL, .flags = WEIR_HOLDER, .buffer_bytes = 20000};

static weir_stream *open_pipe(int fd)
{
    weir_stream *s = NULL;
    must(weir_fdopen(&s, fd, &with_holder));
    shared->holder = weir__config(s)->spill->holder;
    return s;
}

static weir_stream *open_sink(int oflags)
{
    weir_stream *s = NULL;
    must(weir_open(&s, in_dir("sink"), O_WRONLY | oflags, &with_holder));
    shared->holder = weir__config(s)->spill->holder;
    return s;
}

/* Reads until the last writer has closed the pipe. Returns the number of bytes, or -1 after the timeout. */
static ssize_t read_to_end(int fd)
{
    size_t length = 0;
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, TIMEOUT_MS) <= 0)
            return -1;
        ssize_t got = read(fd, text + length, TEXT - length);
        if (got <= 0)
            return (ssize_t)length;
        length += (size_t)got;
    }
}

/* Waits for the holder, which has become a child of this process. Returns false after the timeout. */
static bool holder_ends(int pid)
{
    for (int ms = 0; ms < TIMEOUT_MS; ms += 5) {
        int result = waitpid(pid, NULL, WNOHANG | __WALL);
        if (result == pid || (result < 0 && errno == ECHILD))
            return true;
        usleep(5000);
    }
    return false;
}

static void start_test(const char *name)
{
    check_begin("%s", name);
    memset(shared, 0, sizeof *shared);
    write_file(in_dir("sink"), "", 0);
}

static void check_records(ssize_t bytes, unsigned records)
{
    unsigned count[1] = {0};
    check(bytes >= 0, "the pipe has no end of file");
    if (bytes >= 0 && kill_check_records(text, (size_t)bytes, 1, count))
        check(count[0] == records, "%u records of %u", count[0], records);
}

static void check_clean(void)
{
    check(holder_ends(shared->holder), "the holder is still running");
    check(count_files("weir") == 0, "a spill file is left");
}

/* ---- ends of an owner with records in its buffer ---- */

static void end_by_kill(void) { kill(getpid(), SIGKILL); }
static void end_by_group_kill(void) { kill(0, SIGKILL); }
static void end_by_quick_exit(void) { _exit(0); }
static void end_by_abort(void) { abort(); }
static void end_by_term(void) { raise(SIGTERM); }
static void end_by_exec(void) /* not through the C library; the new program runs on */
{
    char *const arguments[] = {"sleep", "0.3", NULL};
    syscall(SYS_execve, "/bin/sleep", arguments, NULL);
}
static void end_with_child(void) /* that outlives the owner and has no descriptor of the stream */
{
    if (fork() == 0) {
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        usleep(300000);
        _exit(0);
    }
    end_by_kill();
}
static void end_after_closing_all(void) /* the lock is lost, but the owner lives: the holder must not write yet */
{
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    usleep(300000);
    shared->ready = 1;
    end_by_kill();
}

struct owner_end {
    const char *name;
    void (*end)(void);
};
static const struct owner_end owner_ends[] = {
    {"SIGKILL", end_by_kill},
    {"SIGKILL to the process group", end_by_group_kill},
    {"_exit", end_by_quick_exit},
    {"abort", end_by_abort},
    {"SIGTERM", end_by_term},
    {"execve(2)", end_by_exec},
    {"SIGKILL, with a child that outlives the owner", end_with_child},
    {"SIGKILL after the owner closed all descriptors", end_after_closing_all},
};

static pid_t start_owner(int fd, int oflags, unsigned records, void (*end)(void))
{
    pid_t pid = fork();
    if (pid)
        return pid;
    setpgid(0, 0);
    weir_stream *s = fd >= 0 ? open_pipe(fd) : open_sink(oflags);
    kill_write(s, 0, 0, records);
    end();
    _exit(0);
}

static void test_end(const struct owner_end *end)
{
    static const struct {
        const char *name;
        int oflags;
    } sinks[] = {{"a pipe", -1}, {"a plain file", 0}, {"an O_APPEND file", O_APPEND}};
    for (int i = 0; i < 3; i++) {
        char name[128];
        int p[2];
        snprintf(name, sizeof name, "%s: %s", sinks[i].name, end->name);
        start_test(name);
        must(pipe2(p, O_CLOEXEC));
        pid_t pid = start_owner(i == 0 ? p[1] : -1, sinks[i].oflags, 300, end->end);
        close(p[1]);
        ssize_t bytes = i == 0 ? read_to_end(p[0]) : 0;
        if (end->end == end_after_closing_all)
            check(i > 0 || shared->ready, "the holder wrote while the owner lived");
        wait_for(pid);
        check_clean();
        if (i > 0)
            bytes = (ssize_t)read_file(in_dir("sink"), text, TEXT);
        check_records(bytes, 300);
        close(p[0]);
    }
}

/* ---- kills at random times ---- */

static void write_until_killed(weir_stream *s)
{
    for (unsigned number = 0; number < 40000; number++) {
        kill_write(s, 0, number, number + 1);
        shared->done = number + 1;
    }
    for (;;)
        pause();
}

static void random_kill(bool is_pipe, struct random *random)
{
    int p[2];
    memset(shared, 0, sizeof *shared);
    write_file(in_dir("sink"), "", 0);
    must(pipe2(p, O_CLOEXEC));
    pid_t pid = fork();
    if (pid == 0) {
        weir_stream *s = is_pipe ? open_pipe(p[1]) : open_sink(0);
        shared->ready = 1;
        write_until_killed(s);
    }
    close(p[1]);
    for (int i = 0; !shared->ready && i < TIMEOUT_MS; i++)
        usleep(1000);
    check(shared->ready, "the owner has not opened its stream");
    usleep((useconds_t)random_below(random, 3000));
    kill(pid, SIGKILL);
    ssize_t bytes = is_pipe ? read_to_end(p[0]) : 0;
    wait_for(pid);
    check_clean();
    if (!is_pipe)
        bytes = (ssize_t)read_file(in_dir("sink"), text, TEXT);
    close(p[0]);
    /* A pipe may get one write twice, the first time in part: then one record at the seam is torn. */
    char record[KILL_RECORD];
    unsigned seams = 0, number = 0;
    for (ssize_t at = 0; at < bytes;) {
        size_t length = kill_record(record, 0, number);
        if ((size_t)(bytes - at) >= length && memcmp(text + at, record, length) == 0) {
            at += (ssize_t)length;
            number++;
            continue;
        }
        const char *line = memchr(text + at, '\n', (size_t)(bytes - at));
        if (!line || seams++ > 0 || !is_pipe)
            break;
        at = line + 1 - text;
        if (at < bytes) /* continue with the first whole record of the repeated write */
            number = (unsigned)strtoul(text + at + 2, NULL, 10);
    }
    check(number >= shared->done, "%u records of %u", number, shared->done);
}

/* ---- clean ends ---- */

static void clean_close(void)
{
    int p[2];
    char byte;
    start_test("a clean close");
    while (waitpid(-1, NULL, 0) > 0) /* orphans of earlier tests */
        ;
    must(pipe2(p, O_CLOEXEC));
    weir_stream *s = open_pipe(p[1]);
    kill_write(s, 0, 0, 100);
    check(kill(shared->holder, 0) == 0, "there is no holder");
    check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "the program's wait(2) sees the holder");
    check(weir_close(s) == 0, "close");
    check(kill(shared->holder, 0) != 0, "the holder outlives weir_close");
    fcntl(p[0], F_SETFL, O_NONBLOCK); /* the end of file needs no wait */
    ssize_t bytes = read(p[0], text, TEXT);
    check(read(p[0], &byte, 1) == 0, "the pipe has no end of file");
    check_records(bytes, 100);
    check(count_files("weir") == 0, "a spill file is left");
    close(p[0]);
}

static void clean_exit(void)
{
    int p[2];
    start_test("exit(3)");
    must(pipe2(p, O_CLOEXEC));
    pid_t pid = fork();
    if (pid == 0) {
        kill_write(open_pipe(p[1]), 0, 0, 100);
        exit(0);
    }
    close(p[1]);
    check_records(read_to_end(p[0]), 100);
    wait_for(pid);
    check_clean();
    close(p[0]);
}

/* ---- the holder process ---- */

static bool first_line_is(int pid, const char *file, const char *expected)
{
    char path[64], have[64] = "";
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    size_t length = read_file(path, have, sizeof have - 1);
    have[length] = 0;
    have[strcspn(have, "\n")] = 0;
    return strcmp(have, expected) == 0;
}

static int count_descriptors(int pid)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        count += isdigit((unsigned char)entry->d_name[0]) != 0;
    if (dir)
        closedir(dir);
    return count;
}

static void holder_process(void)
{
    int p[2];
    start_test("the holder's name, descriptors, session and signals");
    must(pipe2(p, O_CLOEXEC));
    weir_stream *s = open_pipe(p[1]);
    int holder = shared->holder;
    check(first_line_is(holder, "comm", "weir-holder"), "the holder's name");
    check(first_line_is(holder, "cmdline", "weir-holder"), "the holder's arguments");
    check(!first_line_is(getpid(), "cmdline", "weir-holder"), "the owner's arguments");
    check(count_descriptors(holder) == 2, "the holder has %d descriptors", count_descriptors(holder));
    check(getsid(holder) == holder, "the holder is in session %d", (int)getsid(holder));
    kill(holder, SIGTERM);
    kill(holder, SIGHUP);
    usleep(20000);
    check(waitpid(holder, NULL, WNOHANG | __WALL) == 0, "a signal has ended the holder");
    kill(holder, SIGKILL); /* the owner continues without it */
    kill_write(s, 0, 0, 100);
    check(weir_close(s) == 0 && count_files("weir") == 0, "close");
    close(p[0]);
}

static void in_a_child(void)
{
    int p[2];
    start_test("a child has its own holder");
    must(pipe2(p, O_CLOEXEC));
    weir_stream *s = open_pipe(p[1]);
    int first = shared->holder;
    pid_t pid = fork();
    if (pid == 0) {
        kill_write(s, 0, 0, 50);
        shared->holder = weir__config(s)->spill->holder;
        end_by_kill();
    }
    wait_for(pid);
    check(shared->holder != first && holder_ends(shared->holder), "the child's holder");
    check(waitpid(first, NULL, WNOHANG | __WALL) == 0, "the parent's holder has ended, too");
    check(weir_close(s) == 0, "close");
    check_records(read_to_end(p[0]), 50);
    check(count_files("weir") == 0, "a spill file is left");
    close(p[0]);
}

/* ---- the holder cannot write ---- */

static void reader_is_gone(void)
{
    int p[2];
    start_test("the reader has closed the pipe: the spill file is kept");
    must(pipe2(p, O_CLOEXEC));
    close(p[0]); /* before the owner starts, because the holder may be fast */
    pid_t pid = start_owner(p[1], 0, 100, end_by_kill);
    close(p[1]);
    wait_for(pid);
    check(holder_ends(shared->holder), "the holder is still running");
    int fd = (int)must(open(in_dir("sink"), O_WRONLY));
    const char *spill = find_file("", ".weir");
    check(spill && weir_recover(spill, fd, NULL) == 0, "weir_recover");
    check_records((ssize_t)read_file(in_dir("sink"), text, TEXT), 100);
    close(fd);
}

static void failed_close(void)
{
    int p[2];
    uint64_t lost;
    start_test("a failed close keeps the spill file, but no holder");
    signal(SIGPIPE, SIG_IGN);
    must(pipe2(p, O_CLOEXEC));
    weir_stream *s = open_pipe(p[1]);
    kill_write(s, 0, 0, 100);
    close(p[0]);
    check(weir_close_lost(s, &lost) == -EPIPE && lost > 0, "close");
    check(kill(shared->holder, 0) != 0, "the holder is still running");
    int fd = (int)must(open(in_dir("sink"), O_WRONLY));
    const char *spill = find_file("", ".weir");
    struct weir_recovered found;
    check(spill && weir_recover(spill, fd, &found) == 0 && found.bytes == lost, "weir_recover");
    check_records((ssize_t)read_file(in_dir("sink"), text, TEXT), 100);
    close(fd);
    signal(SIGPIPE, SIG_DFL);
}

static void full_pipe(void)
{
    int p[2];
    start_test("a full non-blocking pipe: the holder waits for the reader");
    must(pipe2(p, O_CLOEXEC | O_NONBLOCK));
    fcntl(p[1], F_SETPIPE_SZ, 4096);
    pid_t pid = start_owner(p[1], 0, 200, end_by_kill); /* exceeds the pipe's capacity */
    close(p[1]);
    wait_for(pid);
    usleep(50000);
    check(waitpid(shared->holder, NULL, WNOHANG | __WALL) == 0, "the holder has ended");
    check_records(read_to_end(p[0]), 200);
    check_clean();
    close(p[0]);
}

/* As in the shell's { program; echo done; } >file */
static void next_writer(void)
{
    start_test("another writer with the same open file description continues after the holder's bytes");
    int fd = (int)must(open(in_dir("sink"), O_WRONLY | O_TRUNC));
    pid_t pid = fork();
    if (pid == 0) {
        weir_stream *s;
        must(weir_fdopen(&s, fd, &with_holder));
        shared->holder = weir__config(s)->spill->holder;
        kill_write(s, 0, 0, 500);
        end_by_kill();
    }
    wait_for(pid);
    check_clean();
    char record[KILL_RECORD];
    size_t length = kill_record(record, 0, 500);
    must(write(fd, record, length));
    check_records((ssize_t)read_file(in_dir("sink"), text, TEXT), 501);
    close(fd);
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", 60);
    struct random random = random_from(check_option(count, arguments, "seed", 1));
    kill_dir("/dev/shm");
    shared = shared_memory(sizeof *shared);
    if (holder_obstacle()) { /* holder_obstacle also makes this process the parent of orphans */
        check_begin("holder");
        check_skip(holder_obstacle());
        kill_dir_remove();
        return check_finish("kill_holder");
    }
    for (size_t i = 0; i < sizeof owner_ends / sizeof *owner_ends; i++)
        test_end(&owner_ends[i]);
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        start_test(is_pipe ? "a pipe: kills at random times" : "a plain file: kills at random times");
        for (uint64_t round = 0; round < rounds; round++)
            random_kill(is_pipe, &random);
    }
    clean_close();
    clean_exit();
    holder_process();
    in_a_child();
    reader_is_gone();
    failed_close();
    full_pipe();
    next_writer();
    kill_dir_remove();
    return check_finish("kill_holder");
}
