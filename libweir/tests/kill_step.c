/* kill_step.c: a kill-safe stream is stopped after every instruction of a series of calls, from before weir_open until
 * after weir_close. At each stop weir_recover runs on copies of the files that a SIGKILL would leave: all complete
 * bytes must be there once, in order. --seeds=N: series per kind of sink (2); --first=N: the first seed. */
#include "support/kill_snapshot.h"
#include "support/stepper.h"

/* The first series of each kind is stepped from before the stream is opened, the others from after it. */
struct step_through {
    struct kill_snapshot *snapshot;
    bool from_open;
};

static int child(void *context)
{
    const struct step_through *job = context;
    struct kill_snapshot *snap = job->snapshot;
    weir_stream *s = NULL;
    if (job->from_open)
        stepper_begin();
    if (plan_open(&snap->plan, &s, in_dir("sink"), snap->pipe[1]) < 0)
        return 10;
    if (!job->from_open)
        stepper_begin();
    if (plan_run(&snap->plan, s, snap->progress) < snap->plan.count)
        return 11;
    if (weir_close(s) < 0)
        return 12;
    snap->progress->done = snap->plan.total; /* weir_close has completed the last record */
    return 0;
}

static void step_through_one(struct kill_snapshot *snap, bool from_open)
{
    int status;
    struct step_through job = {snap, from_open};
    snapshot_reset(snap);
    pid_t pid = stepper_start(child, &job);
    must(pid);
    while (stepper_step(pid, &status) && check_wrong() < 5) {
        snap->steps++;
        if (snapshot_update(snap))
            snapshot_check(snap);
    }
    if (check_wrong())
        stepper_kill(pid);
    else
        check(status == 0, "the child ended with %d, step %d", status, snap->progress->failed);
    snapshot_update(snap);
    snapshot_check(snap);
    check(snap->spill_bytes == 0, "weir_close left the spill file");
    snapshot_close(snap);
}

static struct {
    uint64_t steps, states, flights, kills;
} sums;

static void step_through_all(struct kill_snapshot *snap, enum plan_sink sink, uint64_t first, uint64_t seeds)
{
    static const size_t sizes[] = {16, 33, 64, 1};
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
            // A quick campaign takes each mode with half of the sinks.
            if (check_quick() && (mode + (int)sink) % 2 != 0)
                continue;
            size_t bytes = sizes[(seed + (uint64_t)mode + 1) % 4];
            check_begin("%s, mode %d, buffer of %zu, seed %" PRIu64, plan_sink_names[sink], mode, bytes, seed);
            plan_make(&snap->plan, sink, (enum weir_mode)mode, bytes, 24,
                      seed * 100 + (uint64_t)sink * 10 + (uint64_t)mode);
            snap->plan.options.spill = strdup(in_dir("spill"));
            step_through_one(snap, seed == first && mode == WEIR_FULL);
            free((char *)(uintptr_t)snap->plan.options.spill);
            sums.steps += snap->steps, sums.states += snap->states;
            sums.flights += snap->flights, sums.kills += snap->kills;
        }
}

int main(int count, char **arguments)
{
    static struct kill_snapshot snap;
    uint64_t seeds = check_option(count, arguments, "seeds", check_quick() ? 1 : 2), first = check_option(count, arguments, "first", 1);
    kill_dir("/dev/shm");
    snap.progress = shared_memory(sizeof *snap.progress);
    for (int sink = 0; sink < PLAN_SINKS; sink++) {
        if (stepper_obstacle()) {
            check_begin("%s", plan_sink_names[sink]);
            check_skip(stepper_obstacle());
            continue;
        }
        step_through_all(&snap, (enum plan_sink)sink, first, seeds);
    }
    printf("%" PRIu64 " instructions, %" PRIu64 " different states, %" PRIu64 " of them in a write, %" PRIu64
           " recoveries\n", sums.steps, sums.states, sums.flights, sums.kills);
    kill_dir_remove();
    return check_finish("kill_step");
}
