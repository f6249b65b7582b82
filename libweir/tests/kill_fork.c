/* kill_fork.c: children of a process with a kill-safe stream: each has its own spill file, and no byte is lost or
 * doubled, however parent and child end. --rounds=N: forks beside a thread that writes (150). */
#include "support/kill.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>

enum { TEXT = 4 << 20, PARENT = 0, CHILD = 1, GRANDCHILD = 2, WRITERS = 3, STEPS = 30, MANY = 50000 };

static char text[TEXT];
static unsigned found_records[WRITERS];

static weir_stream *open_sink(int oflags, unsigned flags, size_t buffer_bytes)
{
    weir_stream *s = NULL;
    struct weir_options options = {.mode = WEIR_RECORD, /* so that records of several writers stay whole */
                                   .durability = WEIR_KILL, .buffer_bytes = buffer_bytes, .flags = flags};
    must(weir_open(&s, in_dir("sink"), O_WRONLY | oflags, &options));
    return s;
}

static bool check_sink(unsigned parent, unsigned child, unsigned grandchild)
{
    const unsigned expected[WRITERS] = {parent, child, grandchild};
    size_t bytes = read_file(in_dir("sink"), text, TEXT);
    bool ok = kill_check_records(text, bytes, WRITERS, found_records);
    for (int i = 0; ok && i < WRITERS; i++)
        ok = check(found_records[i] == expected[i], "writer %d: %u records of %u", i, found_records[i], expected[i]);
    return ok;
}

/* Recovers the spill file of a dead process, whose PID is in the name. If `must_exist`, its absence is an error. */
static void recover(pid_t pid, bool must_exist)
{
    char prefix[32];
    struct weir_recovered found;
    sprintf(prefix, "%d-", (int)pid);
    const char *spill = find_file(prefix, ".weir");
    if (!spill) {
        check(!must_exist, "process %d left no spill file", (int)pid);
        return;
    }
    int result = weir_recover(spill, -1, &found);
    check(result == 0, "weir_recover: %s", strerror(-result));
    check(found.pid == pid, "the owner is %d, not %d", found.pid, (int)pid);
}

/* ---- a fork between any two calls ---- */

enum end { END_CLOSE, END_EXIT, END_QUICK_EXIT, END_KILL, ENDS };

static void end(weir_stream *s, enum end how)
{
    if (how == END_CLOSE)
        _exit(weir_close(s) == 0 ? 0 : 8);
    if (how == END_EXIT)
        exit(0);
    if (how == END_QUICK_EXIT)
        _exit(0);
    kill(getpid(), SIGKILL);
}

static void fork_after(unsigned step, bool raw, enum end how, size_t buffer_bytes)
{
    write_file(in_dir("sink"), "", 0);
    fflush(stdout);
    pid_t parent = fork();
    if (parent == 0) { /* a child of the test, so that it can be killed, too */
        weir_stream *s = open_sink(O_APPEND, 0, buffer_bytes);
        kill_write(s, PARENT, 0, step);
        pid_t child = raw ? raw_clone() : fork();
        if (child == 0) {
            kill_write(s, CHILD, 0, STEPS);
            end(s, how);
        }
        kill_write(s, PARENT, step, STEPS);
        int status = wait_for(child);
        if (status != (how == END_KILL ? 137 : 0))
            _exit(7);
        recover(child, how == END_QUICK_EXIT || how == END_KILL);
        end(s, (enum end)((step + how) % ENDS));
    }
    int status = wait_for(parent);
    check(status == ((step + how) % ENDS == END_KILL ? 137 : 0), "status %d", status);
    recover(parent, (step + how) % ENDS >= END_QUICK_EXIT);
    check_sink(STEPS, STEPS, 0);
    check(count_files("weir") == 0, "a spill file is left");
}

static void fork_between_calls(void)
{
    static const size_t sizes[] = {1, 20, 300, 70000};
    for (int raw = 0; raw <= 1; raw++) {
        check_begin("%s after each call", raw ? "clone(2)" : "fork(3)");
        if (raw && raw_clone_obstacle()) {
            check_skip(raw_clone_obstacle());
            continue;
        }
        for (unsigned step = 0; step <= STEPS; step++)
            for (int how = 0; how < ENDS; how++)
                fork_after(step, raw, (enum end)how, sizes[(step + (unsigned)how) % 4]);
    }
}

/* ---- a fork while another thread is in the middle of a call ---- */

struct writer {
    weir_stream *s;
    _Atomic unsigned written;
    _Atomic bool stop;
};

static void *write_records(void *context)
{
    struct writer *w = context;
    for (unsigned number = 0; !w->stop && number < MANY; number++) {
        kill_write(w->s, PARENT, number, number + 1);
        w->written = number + 1;
    }
    return NULL;
}

static void fork_beside_thread(bool raw, unsigned flags, uint64_t rounds)
{
    pthread_t thread;
    unsigned children = 0;
    check_begin("%s beside a thread that writes%s", raw ? "clone(2)" : "fork(3)", flags ? ", with a lock" : "");
    if (raw && raw_clone_obstacle()) {
        check_skip(raw_clone_obstacle());
        return;
    }
    write_file(in_dir("sink"), "", 0);
    struct writer w = {.s = open_sink(O_APPEND, flags, 50)};
    must(-pthread_create(&thread, NULL, write_records, &w));
    while (rounds--) {
        pid_t child = raw ? raw_clone() : fork();
        if (child == 0) {
            kill_write(w.s, CHILD, children, children + 4);
            end(w.s, rounds % 2 ? END_KILL : END_CLOSE);
        }
        wait_for(child);
        recover(child, rounds % 2);
        children += 4;
    }
    w.stop = true;
    pthread_join(thread, NULL);
    check(weir_close(w.s) == 0, "close");
    check_sink(w.written, children, 0);
    check(count_files("weir") == 0, "a spill file is left");
}

/* ---- a shared file position ---- */

static void share_position(bool kill_parent)
{
    check_begin("a plain file whose position parent and child share, parent %s", kill_parent ? "killed" : "closes");
    write_file(in_dir("sink"), "", 0);
    pid_t parent = fork();
    if (parent == 0) {
        weir_stream *s = open_sink(0, 0, 200);
        kill_write(s, PARENT, 0, 21); /* leaves pending bytes */
        pid_t child = fork();
        if (child == 0) {
            kill_write(s, CHILD, 0, 33);
            end(s, END_CLOSE);
        }
        wait_for(child);
        end(s, kill_parent ? END_KILL : END_CLOSE);
    }
    wait_for(parent);
    struct weir_recovered found;
    const char *spill = find_file("", ".weir");
    if (check((spill != NULL) == kill_parent, "the spill file: %s", spill ? spill : "none") && spill) {
        check(weir_recover(spill, -1, &found) == 0 && found.bytes > 0 && !found.exact && !found.repeated,
              "%d bytes, exact %d, repeated %d", (int)found.bytes, found.exact, (int)found.repeated);
    }
    check_sink(21, 33, 0); /* also detects torn records */
}

/* ---- grandchildren, and children that outlive their parent ---- */

static void grandchild(bool used)
{
    check_begin("a grandchild of a child that %s the stream", used ? "used" : "never used");
    write_file(in_dir("sink"), "", 0);
    weir_stream *s = open_sink(O_APPEND, 0, 5000);
    kill_write(s, PARENT, 0, 10);
    pid_t child = fork();
    if (child == 0) {
        if (used)
            kill_write(s, CHILD, 0, 20);
        pid_t second = raw_clone_obstacle() ? fork() : raw_clone();
        if (second == 0) {
            kill_write(s, GRANDCHILD, 0, 30);
            end(s, END_KILL);
        }
        wait_for(second);
        recover(second, true);
        end(s, END_CLOSE);
    }
    check(wait_for(child) == 0, "the child failed");
    check(count_files("weir") == 1, "%d spill files", count_files("weir"));
    check(weir_close(s) == 0, "close");
    check_sink(10, used ? 20 : 0, 30);
}

static void child_outlives_parent(void)
{
    int go[2];
    check_begin("weir_recover works although a child outlives the owner");
    write_file(in_dir("sink"), "", 0);
    must(pipe(go));
    pid_t parent = fork();
    if (parent == 0) {
        weir_stream *s = open_sink(O_APPEND, 0, 5000);
        kill_write(s, PARENT, 0, 10);
        if (fork() == 0) {
            char byte;
            close(go[1]);
            must(read(go[0], &byte, 1));
            kill_write(s, CHILD, 0, 10);
            end(s, END_CLOSE);
        }
        end(s, END_KILL);
    }
    wait_for(parent);
    recover(parent, true);
    check_sink(10, 0, 0);
    close(go[1]); /* lets the child write */
    for (int i = 0; i < 500 && (read_file(in_dir("sink"), text, TEXT) == 0 || count_files("weir")); i++)
        sleep_seconds(0.01);
    sleep_seconds(0.05);
    check_sink(10, 10, 0);
    close(go[0]);
}

/* The child's first use of the stream must not close a file that got the number of the spill file's descriptor. */
static void child_reuses_numbers(void)
{
    check_begin("a child that closed all descriptors and opened others");
    write_file(in_dir("sink"), "", 0);
    weir_stream *s = open_sink(O_APPEND, 0, 5000);
    pid_t child = fork();
    if (child == 0) {
        int sink = weir_fd(s), fds[16];
        for (int fd = 3; fd < 64; fd++)
            if (fd != sink)
                close(fd);
        for (int i = 0; i < 16; i++)
            fds[i] = (int)must(open("/dev/null", O_WRONLY));
        kill_write(s, CHILD, 0, 10);
        must(weir_close(s));
        for (int i = 0; i < 16; i++)
            must(write(fds[i], "", 1));
        _exit(0);
    }
    check(wait_for(child) == 0, "the child failed");
    check(weir_close(s) == 0, "close");
    check_sink(0, 10, 0);
}

/* ---- exec, exit ---- */

static void exec_and_exit(void)
{
    char *const arguments[] = {"true", NULL}, *const wrong[] = {"no-such-program", NULL};
    check_begin("exec, exit and _exit");
    enum { EXEC, EXIT, FAILED_EXEC, RAW_EXEC, QUICK_EXIT, CASES };
    for (int end = 0; end < CASES; end++) {
        write_file(in_dir("sink"), "", 0);
        pid_t pid = fork();
        if (pid == 0) {
            weir_stream *s = open_sink(0, 0, 5000);
            kill_write(s, PARENT, 0, 10);
            if (end == EXEC)
                execvp("true", arguments);
            if (end == EXIT)
                exit(0);
            if (end == FAILED_EXEC) { /* the stream works after a failed exec */
                execvp("no-such-program", wrong);
                kill_write(s, PARENT, 10, 20);
                kill(getpid(), SIGKILL);
            }
            if (end == RAW_EXEC) /* not through the C library: no flush, but as safe as a kill */
                syscall(SYS_execve, "/bin/true", arguments, NULL);
            weir_flush(s);
            _exit(0);
        }
        wait_for(pid);
        check(count_files("weir") == (end >= FAILED_EXEC), "case %d: %d spill files", end, count_files("weir"));
        recover(pid, end >= FAILED_EXEC);
        check_sink(end == FAILED_EXEC ? 20 : 10, 0, 0);
    }
}

static void spawned(void)
{
    char *const arguments[] = {"true", NULL};
    check_begin("posix_spawn(3) and a child that calls execvp(3) leave the stream alone");
    write_file(in_dir("sink"), "", 0);
    weir_stream *s = open_sink(0, 0, 5000);
    pid_t pid;
    kill_write(s, PARENT, 0, 10);
    check(posix_spawnp(&pid, "true", NULL, NULL, arguments, NULL) == 0 && wait_for(pid) == 0, "posix_spawn");
    if ((pid = fork()) == 0) {
        execvp("true", arguments);
        _exit(1);
    }
    check(wait_for(pid) == 0 && count_files("weir") == 1, "%d spill files", count_files("weir"));
    kill_write(s, PARENT, 10, 20);
    check(weir_close(s) == 0 && count_files("weir") == 0, "%d spill files", count_files("weir"));
    check_sink(20, 0, 0);
}

/* ---- a living owner ---- */

static void owner_lives(void)
{
    struct weir_recovered found;
    check_begin("the file of a living owner is busy");
    write_file(in_dir("sink"), "", 0);
    weir_stream *s = open_sink(0, 0, 5000);
    const char *spill = strdup(find_file("", ".weir"));
    kill_write(s, PARENT, 0, 10);
    check(weir_recover(spill, -1, &found) == -EBUSY, "recovery by the owner");
    for (int closed = 0; closed < 2; closed++) {
        pid_t child = fork();
        if (child == 0)
            _exit(weir_recover(spill, -1, NULL) == -EBUSY ? 0 : 1);
        check(wait_for(child) == 0, "recovery by a child, descriptors closed: %d", closed);
        for (int fd = 3; !closed && fd < 64; fd++) /* which releases the lock */
            if (fd != weir_fd(s))
                close(fd);
    }
    kill_write(s, PARENT, 10, 20);
    check(weir_close(s) == 0 && access(spill, F_OK) != 0, "close");
    check_sink(20, 0, 0);
    free((char *)(uintptr_t)spill);
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", 150);
    kill_dir("/dev/shm");
    fork_between_calls();
    for (int raw = 0; raw <= 1; raw++) {
        fork_beside_thread(raw, 0, rounds);
        fork_beside_thread(raw, WEIR_THREADS, rounds);
    }
    share_position(false);
    share_position(true);
    grandchild(false);
    grandchild(true);
    child_outlives_parent();
    child_reuses_numbers();
    exec_and_exit();
    spawned();
    owner_lives();
    kill_dir_remove();
    return check_finish("kill_fork");
}
