/* fork_order.c: fork(2) takes the locks of WEIR_FORK_KEEP streams before the registry's, as exit does and as programs do that
 * open a stream between weir_lock and weir_unlock. Otherwise each thread waits for the other, for 30 s. The search in
 * libweir/model found the order of exit. Each test waits until a thread is at the critical place; the
 * Makefile links this program with a wrapper for that. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/private.h"
#include "support/check.h"

enum { HANG_S = 20 }; /* the threads go on after 30 s also if they block each other */

static weir_stream *kept, *other;
static pthread_barrier_t locked;
static _Atomic bool in_fork, waited_for;
static _Thread_local bool forks; /* this thread stops in the wrapper */

static void wait_until(bool (*reached)(void))
{
    while (!reached())
        sleep_seconds(0.0005);
}

/* Stays true. */
static bool is_kept_waited_for(void)
{
    if (atomic_load(&weir__state(kept)->lock.waiters))
        waited_for = true;
    return waited_for;
}
static bool is_forking(void) { return in_fork; }
static bool is_kept_locked_by_exit(void)
{
    uintptr_t owner = atomic_load(&weir__state(kept)->lock.owner);
    return is_kept_waited_for() || (owner && owner != weir__this_thread());
}

void __real_weir__registry_lock(void);
void __wrap_weir__registry_lock(void);

/* Stops a thread in fork until exit has the lock of `kept`, or waits for it. */
void __wrap_weir__registry_lock(void)
{
    if (forks && !in_fork) {
        in_fork = true;
        wait_until(is_kept_locked_by_exit);
    }
    __real_weir__registry_lock();
}

static void open_streams(void)
{
    struct weir_options keeps = {.flags = WEIR_THREADS, .on_fork = WEIR_FORK_KEEP};
    struct weir_options locks = {.flags = WEIR_THREADS};
    if (weir_fdopen(&kept, nameless_file(), &keeps) < 0 || weir_fdopen(&other, nameless_file(), &locks) < 0)
        _exit(101);
}

static void start(void *(*work)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_detach(thread) != 0)
        _exit(102);
}

/* ---- exit ---- */

/* Makes exit wait, with the lock of `kept`, until the forking thread waits for that lock, or exit for the forking
 * thread's. */
static void *hold_other(void *unused)
{
    weir_lock(other);
    pthread_barrier_wait(&locked);
    wait_until(is_kept_waited_for);
    sleep_seconds(0.01);
    weir_unlock(other);
    return unused;
}

static void *fork_during_exit(void *unused)
{
    forks = true;
    if (fork() == 0)
        _exit(0);
    return unused;
}

/* An exit handler between the flush of the streams and the time when exit takes all locks. */
static void before_hold(void)
{
    start(hold_other);
    pthread_barrier_wait(&locked);
    start(fork_during_exit);
    wait_until(is_forking);
}

static void exit_process(void)
{
    atexit(before_hold); /* before libweir's handler, so that it runs after it */
    pthread_barrier_init(&locked, NULL, 2);
    open_streams();
    exit(weir_put_str(kept, "line\n") != 5);
}

/* ---- exit during a fork ---- */

/* Runs after libweir's hook, which has taken the locks. */
static void stop_in_fork(void)
{
    in_fork = true;
    wait_until(is_kept_waited_for);
}

static void *fork_before_exit(void *unused)
{
    if (fork() == 0)
        _exit(0);
    return unused;
}

static void wait_for_fork(void)
{
    start(fork_before_exit);
    wait_until(is_forking);
}

/* glibc removes the hooks before exit takes the locks: nobody releases those that the hook before the fork took. */
static void exit_during_fork(void)
{
    atexit(wait_for_fork);
    pthread_atfork(stop_in_fork, NULL, NULL);
    open_streams();
    exit(weir_put_str(kept, "line\n") != 5);
}

/* ---- weir_open between weir_lock and weir_unlock ---- */

static void *open_locked(void *unused)
{
    weir_stream *opened;
    struct weir_options none = {0};
    weir_lock(kept);
    pthread_barrier_wait(&locked);
    wait_until(is_kept_waited_for);
    if (weir_fdopen(&opened, nameless_file(), &none) < 0)
        _exit(103);
    weir_unlock(kept);
    return unused;
}

static void open_process(void)
{
    int status = -1;
    pthread_barrier_init(&locked, NULL, 2);
    open_streams();
    start(open_locked);
    pthread_barrier_wait(&locked);
    pid_t child = fork();
    if (child == 0)
        _exit(atomic_load(&weir__state(kept)->lock.owner) != 0);
    waitpid(child, &status, 0);
    weir_lock(kept); /* fork has released all locks */
    _exit(status != 0);
}

static void check_ends(const char *name, void (*process)(void))
{
    int status = -1;
    check_begin("%s", name);
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S);
        process();
        _exit(104);
    }
    waitpid(child, &status, 0);
    check(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "the threads wait for each other");
    check(status == 0, "the process ended with %x", (unsigned)status);
}

int main(void)
{
    check_ends("fork during an exit", exit_process);
    check_ends("exit during a fork", exit_during_fork);
    check_ends("fork while a thread opens a stream and holds another's lock", open_process);
    return check_finish("fork_order");
}
