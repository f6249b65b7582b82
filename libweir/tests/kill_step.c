/* kill_step.c: a kill-safe stream is stopped after every instruction of a series of calls, from before it is
 * opened until after it is closed. What a SIGKILL there would leave is recovered from copies: all complete
 * bytes, none twice, none in another place. --seeds=N: series of each sort (2); --first=N: the first seed. */
#include "support/kill_watch.h"
#include "support/stepper.h"

/* The first of each sort is walked through from before it is opened, the others from there on. */
struct walk {
    struct watch *watch;
    bool from_open;
};

static int child(void *context)
{
    const struct walk *walk = context;
    struct watch *w = walk->watch;
    weir_stream *s = NULL;
    if (walk->from_open)
        stepper_here();
    if (plan_open(&w->plan, &s, in_dir("sink"), w->pipe[1]) < 0)
        return 10;
    if (!walk->from_open)
        stepper_here();
    if (plan_run(&w->plan, s, w->progress) < w->plan.count)
        return 11;
    if (weir_close(s) < 0)
        return 12;
    w->progress->done = w->plan.total; /* a record that was begun is complete now */
    return 0;
}

static void walk_one(struct watch *w, bool from_open)
{
    int status;
    struct walk walk = {w, from_open};
    watch_forget(w);
    pid_t pid = stepper_start(child, &walk);
    must(pid);
    while (stepper_step(pid, &status) && check_wrong() < 5) {
        w->steps++;
        if (watch_look(w))
            watch_judge(w);
    }
    if (check_wrong())
        stepper_kill(pid);
    else
        check(status == 0, "the child ended with %d, step %d", status, w->progress->failed);
    watch_look(w);
    watch_judge(w);
    check(w->spill_bytes == 0, "the spill file is left behind");
    watch_end(w);
}

static struct {
    uint64_t steps, states, in_flight, kills;
} sums;

static void walk_all(struct watch *w, enum plan_sink sink, uint64_t first, uint64_t seeds)
{
    static const size_t sizes[] = {16, 33, 64, 1};
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
            size_t bytes = sizes[(seed + (uint64_t)mode + 1) % 4];
            check_begin("%s, mode %d, buffer of %zu, seed %" PRIu64, plan_sink_names[sink], mode, bytes, seed);
            plan_make(&w->plan, sink, (enum weir_mode)mode, bytes, 24, seed * 100 + (uint64_t)sink * 10 + (uint64_t)mode);
            w->plan.options.spill = strdup(in_dir("spill"));
            walk_one(w, seed == first && mode == WEIR_FULL);
            free((char *)(uintptr_t)w->plan.options.spill);
            sums.steps += w->steps, sums.states += w->states;
            sums.in_flight += w->in_flight, sums.kills += w->kills;
        }
}

int main(int count, char **arguments)
{
    static struct watch w;
    uint64_t seeds = check_option(count, arguments, "seeds", 2), first = check_option(count, arguments, "first", 1);
    kill_dir("/dev/shm");
    w.progress = shared_memory(sizeof *w.progress);
    for (int sink = 0; sink < PLAN_SINKS; sink++) {
        if (stepper_obstacle()) {
            check_begin("%s", plan_sink_names[sink]);
            check_skip(stepper_obstacle());
            continue;
        }
        walk_all(&w, (enum plan_sink)sink, first, seeds);
    }
    printf("%" PRIu64 " instructions, %" PRIu64 " different states, %" PRIu64 " of them in a write, %" PRIu64
           " kills recovered from\n", sums.steps, sums.states, sums.in_flight, sums.kills);
    kill_dir_remove();
    return check_finish("kill_step");
}
