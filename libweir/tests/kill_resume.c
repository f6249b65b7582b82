/* kill_resume.c: the recovery of what a killed owner left is itself stopped after every instruction, while its
 * writes take a few bytes each: another recovery goes on from there. --seeds=N: owners of each sort (1). */
#include "support/kill_watch.h"
#include "support/stepper.h"

enum { KILLS = 5, FEW = 7 };

/* ---- the owner, up to the moment that is asked for ---- */

static int owner(void *context)
{
    struct watch *w = context;
    weir_stream *s = NULL;
    if (plan_open(&w->plan, &s, in_dir("sink"), w->pipe[1]) < 0)
        return 10;
    stepper_here();
    plan_run(&w->plan, s, w->progress);
    return 11;
}

static uint64_t waiting(const struct watch *w)
{
    const struct weir_head *head = &((const struct weir__spill_file *)(const void *)w->spill)->head;
    return head->written > head->drained ? head->written - head->drained : 0;
}

static bool flies(const struct watch *w)
{
    const struct weir__spill_file *file = (const void *)w->spill;
    return waiting(w) && file->inflight.from == file->head.drained;
}

/* Kills the owner in the `kill`th moment in which bytes wait or, for odd numbers, a write is in flight. */
static bool leave_something(struct watch *w, int kill)
{
    int status, seen = 0;
    watch_forget(w);
    pid_t pid = stepper_start(owner, w);
    must(pid);
    bool runs;
    while ((runs = stepper_step(pid, &status))) {
        if (!watch_look(w) || !(kill % 2 ? flies(w) : waiting(w) > 10) || seen++ < kill * 3)
            continue;
        stepper_kill(pid);
        break;
    }
    w->may_repeat = flies(w) ? waiting(w) : 0;
    return runs;
}

/* ---- who recovers ---- */

static ino_t sink_ino;
static bool is_sink(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (status.st_ino == sink_ino || S_ISFIFO(status.st_mode));
}

static ssize_t write_few(int fd, const void *from, size_t bytes)
{
    return write(fd, from, bytes > FEW && is_sink(fd) ? FEW : bytes);
}

static ssize_t pwrite_few(int fd, const void *from, size_t bytes, off_t at)
{
    return pwrite(fd, from, bytes > FEW && is_sink(fd) ? FEW : bytes, at);
}

static int recoverer(void *context)
{
    struct watch *w = context;
    struct stat status = {0};
    if (w->plan.sink != PLAN_PIPE && stat(in_dir("sink"), &status) != 0)
        return 10;
    sink_ino = status.st_ino;
    weir__kernel.write = write_few;
    weir__kernel.pwrite = pwrite_few;
    stepper_here();
    return weir_recover(in_dir("spill"), w->plan.sink == PLAN_PIPE ? w->pipe[1] : -1, NULL) == 0 ? 0 : 11;
}

static void walk_through_recovery(struct watch *w)
{
    int status;
    w->recovering = true;
    w->before_recovery = w->sink_bytes;
    w->steps = 0;
    pid_t pid = stepper_start(recoverer, w);
    must(pid);
    while (stepper_step(pid, &status) && check_wrong() < 5) {
        w->steps++;
        if (watch_look(w))
            watch_judge(w);
    }
    if (check_wrong())
        stepper_kill(pid);
    else
        check(status == 0, "the recovery ended with %d", status);
    watch_look(w);
    watch_judge(w);
    check(w->spill_bytes == 0, "the spill file is left behind");
}

static uint64_t steps, states;

static void try_sink(struct watch *w, enum plan_sink sink, uint64_t seed)
{
    static const enum weir_mode modes[] = {WEIR_FULL, WEIR_RECORD};
    for (int kill = 0; kill < KILLS; kill++) {
        enum weir_mode mode = modes[kill % 2];
        check_begin("%s, mode %d, kill %d, seed %" PRIu64, plan_sink_names[sink], mode, kill, seed);
        plan_make(&w->plan, sink, mode, 90, 60, seed * 1000 + (uint64_t)sink * 100 + (uint64_t)kill);
        w->plan.options.spill = strdup(in_dir("spill"));
        if (check(leave_something(w, kill), "the owner ended too early"))
            walk_through_recovery(w);
        steps += w->steps, states += w->states;
        watch_end(w);
        free((char *)(uintptr_t)w->plan.options.spill);
    }
}

int main(int count, char **arguments)
{
    static struct watch w;
    uint64_t seeds = check_option(count, arguments, "seeds", 1);
    kill_dir("/dev/shm");
    w.progress = shared_memory(sizeof *w.progress);
    for (int sink = 0; sink < PLAN_SINKS; sink++)
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            if (!stepper_obstacle()) {
                try_sink(&w, (enum plan_sink)sink, seed);
                continue;
            }
            check_begin("%s", plan_sink_names[sink]);
            check_skip(stepper_obstacle());
        }
    printf("%" PRIu64 " instructions of weir_recover, %" PRIu64 " different states\n", steps, states);
    kill_dir_remove();
    return check_finish("kill_resume");
}
