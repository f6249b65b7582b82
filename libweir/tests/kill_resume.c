/* kill_resume.c: weir_recover is itself killed after every instruction, while each of its writes takes only a few
 * bytes: another recovery continues. --seeds=N: owners per kind of sink (1). */
#include "support/kill_snapshot.h"
#include "support/stepper.h"

enum { KILLS = 5, FEW = 7 };

/* ---- the owner, until it is killed ---- */

static int owner(void *context)
{
    struct kill_snapshot *snap = context;
    weir_stream *s = NULL;
    if (plan_open(&snap->plan, &s, in_dir("sink"), snap->pipe[1]) < 0)
        return 10;
    stepper_begin();
    plan_run(&snap->plan, s, snap->progress);
    return 11;
}

static uint64_t pending(const struct kill_snapshot *snap)
{
    const struct weir_head *head = &((const struct weir__spill_file *)(const void *)snap->spill)->head;
    return head->written > head->drained ? head->written - head->drained : 0;
}

static bool is_in_flight(const struct kill_snapshot *snap)
{
    const struct weir__spill_file *file = (const void *)snap->spill;
    return pending(snap) && file->inflight.from == file->head.drained;
}

/* Kills the owner in the `kill`th state with pending bytes or, if `kill` is odd, with a write in flight. Returns false
 * if the owner ended before. */
static bool kill_owner(struct kill_snapshot *snap, int kill)
{
    int status, passed = 0;
    snapshot_reset(snap);
    pid_t pid = stepper_start(owner, snap);
    must(pid);
    bool runs;
    while ((runs = stepper_step(pid, &status))) {
        if (!snapshot_update(snap) || !(kill % 2 ? is_in_flight(snap) : pending(snap) > 10) || passed++ < kill * 3)
            continue;
        stepper_kill(pid);
        break;
    }
    snap->repeat_max = is_in_flight(snap) ? pending(snap) : 0;
    return runs;
}

/* ---- the recovering process ---- */

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

static int recover(void *context)
{
    struct kill_snapshot *snap = context;
    struct stat status = {0};
    if (snap->plan.sink != PLAN_PIPE && stat(in_dir("sink"), &status) != 0)
        return 10;
    sink_ino = status.st_ino;
    weir__kernel.write = write_few;
    weir__kernel.pwrite = pwrite_few;
    stepper_begin();
    return weir_recover(in_dir("spill"), snap->plan.sink == PLAN_PIPE ? snap->pipe[1] : -1, NULL) == 0 ? 0 : 11;
}

static void step_through_recovery(struct kill_snapshot *snap)
{
    int status;
    snap->recovering = true;
    snap->before_recovery = snap->sink_bytes;
    snap->steps = 0;
    pid_t pid = stepper_start(recover, snap);
    must(pid);
    while (stepper_step(pid, &status) && check_wrong() < 5) {
        snap->steps++;
        if (snapshot_update(snap))
            snapshot_check(snap);
    }
    if (check_wrong())
        stepper_kill(pid);
    else
        check(status == 0, "the recovery ended with %d", status);
    snapshot_update(snap);
    snapshot_check(snap);
    check(snap->spill_bytes == 0, "the recovery left the spill file");
}

static uint64_t steps, states;

static void test_sink(struct kill_snapshot *snap, enum plan_sink sink, uint64_t seed)
{
    static const enum weir_mode modes[] = {WEIR_FULL, WEIR_RECORD};
    for (int kill = 0; kill < KILLS; kill += check_quick() ? 5 : 1) {
        enum weir_mode mode = modes[kill % 2];
        check_begin("%s, mode %d, kill %d, seed %" PRIu64, plan_sink_names[sink], mode, kill, seed);
        plan_make(&snap->plan, sink, mode, 90, 60, seed * 1000 + (uint64_t)sink * 100 + (uint64_t)kill);
        snap->plan.options.spill = strdup(in_dir("spill"));
        if (check(kill_owner(snap, kill), "the owner ended too early"))
            step_through_recovery(snap);
        steps += snap->steps, states += snap->states;
        snapshot_close(snap);
        free((char *)(uintptr_t)snap->plan.options.spill);
    }
}

int main(int count, char **arguments)
{
    static struct kill_snapshot snap;
    uint64_t seeds = check_option(count, arguments, "seeds", 1);
    kill_dir("/dev/shm");
    snap.progress = shared_memory(sizeof *snap.progress);
    for (int sink = 0; sink < PLAN_SINKS; sink++)
        for (uint64_t seed = 1; seed <= seeds; seed++) {
            if (!stepper_obstacle()) {
                test_sink(&snap, (enum plan_sink)sink, seed);
                continue;
            }
            check_begin("%s", plan_sink_names[sink]);
            check_skip(stepper_obstacle());
        }
    printf("%" PRIu64 " instructions of weir_recover, %" PRIu64 " different states\n", steps, states);
    kill_dir_remove();
    return check_finish("kill_resume");
}
