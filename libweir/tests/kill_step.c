/* kill_step.c: a kill-safe stream is stopped after every instruction of a series of calls, from before it is
 * opened until after it is closed. What a SIGKILL there would leave is recovered from copies: all complete
 * bytes, none twice, none in another place. --seeds=N: series of each sort (2); --first=N: the first seed. */
#include "support/kill_plan.h"
#include "support/stepper.h"

struct watch {
    struct plan plan;
    struct plan_progress *progress;
    int pipe[2];
    uint64_t steps, states, in_flight, kills; /* instructions; different states; recoveries */
    /* As it was at the last stop: */
    size_t begun, done;
    bool flies; /* a write was about to begin, or had ended */
    char sink[PLAN_IMAGE];
    size_t sink_bytes;
    char spill[65536];
    size_t spill_bytes;
};

static int child(void *context)
{
    struct watch *w = context;
    weir_stream *s;
    if (plan_open(&w->plan, &s, in_dir("sink"), w->pipe[1]) < 0)
        return 10;
    if (plan_run(&w->plan, s, w->progress) < w->plan.count)
        return 11;
    if (weir_close(s) < 0)
        return 12;
    w->progress->done = w->plan.total; /* a record that was begun is complete now */
    return 0;
}

/* ---- what is there now ---- */

static bool look(struct watch *w)
{
    static char now[sizeof w->spill];
    size_t before = w->sink_bytes, begun = w->progress->begun, done = w->progress->done;
    bool changed = begun != w->begun || done != w->done;
    w->begun = begun, w->done = done;
    if (w->plan.sink == PLAN_PIPE) {
        ssize_t got = read(w->pipe[0], w->sink + before, sizeof w->sink - before);
        w->sink_bytes += got > 0 ? (size_t)got : 0;
        changed |= got > 0;
    } else {
        static char sink[sizeof w->sink];
        w->sink_bytes = read_file(in_dir("sink"), sink, sizeof sink);
        changed |= w->sink_bytes != before || memcmp(sink, w->sink, before) != 0;
        memcpy(w->sink, sink, w->sink_bytes);
    }
    size_t bytes = read_file(in_dir("spill"), now, sizeof now);
    changed |= bytes != w->spill_bytes || memcmp(now, w->spill, bytes) != 0;
    memcpy(w->spill, now, bytes);
    w->spill_bytes = bytes;
    return changed;
}

/* ---- what a kill would leave ---- */

/* The copy's sink is the copy of the sink. */
static void copy_spill(const struct watch *w, const char *sink)
{
    static char copy[sizeof w->spill];
    struct weir__spill_file *file = (void *)copy;
    struct stat status;
    memcpy(copy, w->spill, w->spill_bytes);
    must(stat(sink, &status));
    file->sink.dev = status.st_dev;
    file->sink.ino = status.st_ino;
    memset(file->sink.path, 0, sizeof file->sink.path);
    strcpy(file->sink.path, sink);
    file->seal = weir__spill_seal(&file->sink);
    write_file(in_dir("copy"), copy, w->spill_bytes);
}

static void judge_file(struct watch *w, const char *have, size_t bytes, size_t least)
{
    char after[PLAN_IMAGE];
    struct weir_recovered found = {0};
    const char *sink = in_dir("sink.copy");
    w->kills++;
    if (w->spill_bytes) {
        write_file(sink, have, bytes);
        copy_spill(w, sink);
        int result = weir_recover(in_dir("copy"), -1, &found);
        check(result == 0, "weir_recover: %s", strerror(-result));
        check(found.exact && found.repeated == 0, "instruction %" PRIu64 ": exact %d, repeated %d", w->steps, found.exact, (int)found.repeated);
        check(access(in_dir("copy"), F_OK) != 0, "the spill file is still there");
        bytes = read_file(sink, after, sizeof after);
        have = after;
    }
    int64_t count = plan_matches(&w->plan, least, w->begun, have, bytes);
    check(count >= 0, "instruction %" PRIu64 ": not the file after %zu to %zu bytes (it has %zu)", w->steps, least,
          w->begun, bytes);
}

/* What a pipe's reader has, and what recovery would give him. */
static void judge_pipe(struct watch *w, size_t had)
{
    char rest[PLAN_IMAGE];
    struct weir_recovered found = {.exact = 1};
    size_t bytes = 0;
    w->kills++;
    if (w->spill_bytes) {
        write_file(in_dir("copy"), w->spill, w->spill_bytes);
        int fd = (int)must(open(in_dir("rest"), O_RDWR | O_CREAT | O_TRUNC, 0600));
        int result = weir_recover(in_dir("copy"), fd, &found);
        check(result == 0, "weir_recover: %s", strerror(-result));
        bytes = (size_t)pread(fd, rest, sizeof rest, 0);
        close(fd);
        check(found.bytes == bytes, "%d bytes are %zu", (int)found.bytes, bytes);
        check(found.exact == (found.repeated == 0), "exact %d, repeated %d", found.exact, (int)found.repeated);
    }
    check(memcmp(w->sink, w->plan.bytes, had < w->sink_bytes ? had : w->sink_bytes) == 0, "the pipe has other bytes");
    /* What went out with the repeated bytes in one write lies behind them. */
    for (size_t from = had + 1; from-- > 0 && (bytes < had - from ? bytes : had - from) <= found.repeated;) {
        size_t end = from + bytes > had ? from + bytes : had;
        if (end >= w->done && end <= w->begun && memcmp(rest, w->plan.bytes + from, bytes) == 0)
            return;
    }
    check(false, "instruction %" PRIu64 ": %zu bytes and then %zu, %d of them repeated, are not %zu to %zu", w->steps, had,
          bytes, (int)found.repeated, w->done, w->begun);
}

/* A write(2) that is about to begin may also be killed in the middle: then it has done a part. */
static void judge_parts(struct watch *w)
{
    const struct weir__spill_file *file = (void *)w->spill;
    const struct weir_head *head = &file->head;
    char image[PLAN_IMAGE];
    bool before = !w->flies;
    w->flies = w->spill_bytes && file->flight.from == head->drained && head->drained < head->written;
    if (!w->flies)
        return;
    w->in_flight++;
    size_t waiting = (size_t)(head->written - head->drained);
    for (size_t from = w->done > waiting ? w->done - waiting : 0; from + waiting <= w->begun; from++) {
        if (memcmp(w->plan.bytes + from, w->spill + file->buffer_at + head->drained, waiting) != 0)
            continue;
        size_t bytes = plan_image(&w->plan, from, image);
        bool here = w->plan.sink == PLAN_PIPE ? w->sink_bytes == from
                                              : bytes == w->sink_bytes && memcmp(image, w->sink, bytes) == 0;
        for (size_t part = 1; before && here && part <= file->flight.total; part++) {
            bytes = plan_image(&w->plan, from + part, image);
            if (w->plan.sink == PLAN_PIPE)
                judge_pipe(w, from + part);
            else
                judge_file(w, image, bytes, from + part > w->done ? from + part : w->done);
        }
    }
}

static void judge(struct watch *w)
{
    w->states++;
    if (w->plan.sink == PLAN_PIPE)
        judge_pipe(w, w->sink_bytes);
    else
        judge_file(w, w->sink, w->sink_bytes, w->done);
    judge_parts(w);
}

/* ---- the walk ---- */

static void walk(struct watch *w)
{
    int status;
    memset(w->progress, 0, sizeof *w->progress);
    w->steps = w->states = w->in_flight = w->kills = 0;
    w->sink_bytes = w->spill_bytes = w->begun = w->done = 0;
    w->flies = false;
    write_file(in_dir("sink"), w->plan.before, w->plan.before_bytes);
    must(pipe2(w->pipe, O_CLOEXEC));
    fcntl(w->pipe[0], F_SETFL, O_NONBLOCK);
    unlink(in_dir("spill"));
    pid_t pid = stepper_start(child, w);
    must(pid);
    while (stepper_step(pid, &status) && check_wrong() < 5) {
        w->steps++;
        if (look(w))
            judge(w);
    }
    if (check_wrong())
        stepper_kill(pid);
    else
        check(status == 0, "the child ended with %d, step %d", status, w->progress->failed);
    look(w);
    judge(w);
    check(w->spill_bytes == 0, "the spill file is left behind");
    close(w->pipe[0]);
    close(w->pipe[1]);
}

static struct {
    uint64_t steps, states, in_flight, kills;
} sums;

static void walk_all(struct watch *w, enum plan_sink sink, uint64_t first, uint64_t seeds)
{
    static const size_t sizes[] = {16, 33, 64, 1};
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
            size_t bytes = sizes[(seed + (uint64_t)mode) % 4];
            check_begin("%s, mode %d, buffer of %zu, seed %" PRIu64, plan_sink_names[sink], mode, bytes, seed);
            plan_make(&w->plan, sink, (enum weir_mode)mode, bytes, 24, seed * 100 + (uint64_t)sink * 10 + (uint64_t)mode);
            w->plan.options.spill = strdup(in_dir("spill"));
            walk(w);
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
