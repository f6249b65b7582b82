/* kill_watch.c: see kill_watch.h. */
#include "kill_watch.h"

/* ---- what is there now ---- */

/* Looked at after every instruction, so it stays mapped for as long as it is the same one. */
static const char *map_spill(struct watch *w, size_t *bytes)
{
    struct stat is;
    *bytes = 0;
    bool there = stat(w->spill_path, &is) == 0;
    if (w->mapped && !(there && is.st_ino == w->mapped_ino && (size_t)is.st_size == w->mapped_bytes)) {
        munmap(w->mapped, w->mapped_bytes); /* which kept the number of the file from being given again */
        w->mapped = NULL;
    }
    if (!there || is.st_size == 0)
        return NULL;
    if (!w->mapped) {
        int fd = (int)must(open(w->spill_path, O_RDONLY | O_CLOEXEC));
        w->mapped = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_SHARED, fd, 0);
        must(w->mapped == MAP_FAILED ? -errno : 0);
        w->mapped_bytes = (size_t)is.st_size, w->mapped_ino = is.st_ino;
        close(fd);
    }
    *bytes = w->mapped_bytes < sizeof w->spill ? w->mapped_bytes : sizeof w->spill;
    return w->mapped;
}

static bool look_at_sink(struct watch *w)
{
    static char now[sizeof w->sink];
    size_t before = w->sink_bytes;
    if (w->plan.sink == PLAN_PIPE) {
        ssize_t got = read(w->pipe[0], w->sink + before, sizeof w->sink - before);
        w->sink_bytes += got > 0 ? (size_t)got : 0;
        return got > 0;
    }
    w->sink_bytes = (size_t)must(pread(w->sink_fd, now, sizeof now, 0));
    bool changed = w->sink_bytes != before || memcmp(now, w->sink, before) != 0;
    if (changed)
        memcpy(w->sink, now, w->sink_bytes);
    return changed;
}

bool watch_look(struct watch *w)
{
    size_t begun = w->progress->begun, done = w->progress->done, bytes;
    bool changed = begun != w->begun || done != w->done;
    w->begun = begun, w->done = done;
    changed |= look_at_sink(w);
    const char *now = map_spill(w, &bytes);
    if (bytes == w->spill_bytes && (bytes == 0 || memcmp(now, w->spill, bytes) == 0))
        return changed;
    if (bytes)
        memcpy(w->spill, now, bytes);
    w->spill_bytes = bytes;
    return true;
}

/* ---- what a kill would leave ---- */

/* The copy's sink is the copy of the sink. */
static void copy_spill(const struct watch *w, const char *sink)
{
    static char copy[sizeof w->spill];
    struct weir__spill_file *file = (void *)copy;
    memcpy(copy, w->spill, w->spill_bytes);
    identify(sink, &file->sink);
    memset(file->sink.path, 0, sizeof file->sink.path);
    strcpy(file->sink.path, sink);
    file->checksum = weir__spill_checksum(&file->sink);
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

/* What recovery gives the reader of a pipe. */
static size_t recover_rest(struct watch *w, char *rest, struct weir_recovered *found)
{
    *found = (struct weir_recovered){.exact = 1};
    w->kills++;
    if (w->spill_bytes == 0)
        return 0;
    write_file(in_dir("copy"), w->spill, w->spill_bytes);
    int fd = (int)must(open(in_dir("rest"), O_RDWR | O_CREAT | O_TRUNC, 0600));
    int result = weir_recover(in_dir("copy"), fd, found);
    check(result == 0, "weir_recover: %s", strerror(-result));
    size_t bytes = (size_t)pread(fd, rest, PLAN_IMAGE, 0);
    close(fd);
    check(found->bytes == bytes, "%d bytes are %zu", (int)found->bytes, bytes);
    check(found->exact == (found->repeated == 0), "exact %d, repeated %d", found->exact, (int)found->repeated);
    return bytes;
}

/* Do `bytes` at `text` go on at `at`, or with no more than `repeated` of them before it? Sets *next to where
 * they end. What went out with repeated bytes in one write may lie behind that. */
static bool goes_on(const struct watch *w, size_t at, const char *text, size_t bytes, uint64_t repeated, size_t *next)
{
    for (size_t from = at + 1; from-- > 0 && (bytes < at - from ? bytes : at - from) <= repeated;) {
        *next = from + bytes;
        if (*next <= w->begun && memcmp(text, w->plan.bytes + from, bytes) == 0)
            return true;
    }
    return false;
}

static bool is_all(const struct watch *w, size_t had, size_t next)
{
    size_t all = next > had ? next : had;
    return all >= w->done && all <= w->begun;
}

static void judge_pipe(struct watch *w, size_t had)
{
    char rest[PLAN_IMAGE];
    struct weir_recovered found;
    size_t next, bytes = recover_rest(w, rest, &found), known = had < w->sink_bytes ? had : w->sink_bytes;
    check(memcmp(w->sink, w->plan.bytes, known) == 0, "the pipe has other bytes");
    check(goes_on(w, had, rest, bytes, found.repeated, &next) && is_all(w, had, next),
          "instruction %" PRIu64 ": %zu bytes and then %zu, %d of them repeated, are not %zu to %zu", w->steps, had,
          bytes, (int)found.repeated, w->done, w->begun);
}

/* A recovery was killed as well: its part may repeat, and the next one's may repeat of that. */
static void judge_pipe_again(struct watch *w)
{
    char rest[PLAN_IMAGE];
    struct weir_recovered found;
    size_t had = w->before_recovery, part = w->sink_bytes - had, at, next, bytes = recover_rest(w, rest, &found);
    bool well = goes_on(w, had, w->sink + had, part, w->may_repeat, &at) &&
                goes_on(w, at, rest, bytes, part ? found.repeated : w->may_repeat, &next) && is_all(w, had, next);
    check(well, "instruction %" PRIu64 " of the recovery: %zu bytes, then %zu, then %zu", w->steps, had, part, bytes);
}

/* A write(2) that is about to begin may also be killed in the middle: then it has done a part. */
static void judge_parts(struct watch *w)
{
    const struct weir__spill_file *file = (void *)w->spill;
    const struct weir_head *head = &file->head;
    char image[PLAN_IMAGE];
    bool before = !w->flies;
    w->flies = w->spill_bytes && file->inflight.from == head->drained && head->drained < head->written;
    if (!w->flies)
        return;
    w->in_flight++;
    size_t waiting = (size_t)(head->written - head->drained), places = 0;
    for (size_t from = w->done > waiting ? w->done - waiting : 0; from + waiting <= w->begun; from++) {
        if (memcmp(w->plan.bytes + from, w->spill + file->buffer_at + head->drained, waiting) != 0)
            continue;
        size_t bytes = plan_image(&w->plan, from, image);
        bool here = w->plan.sink == PLAN_PIPE ? w->sink_bytes == from
                                              : bytes == w->sink_bytes && memcmp(image, w->sink, bytes) == 0;
        places += here;
        for (size_t part = 1; before && here && part <= file->inflight.total; part++) {
            bytes = plan_image(&w->plan, from + part, image);
            if (w->plan.sink == PLAN_PIPE)
                judge_pipe(w, from + part);
            else
                judge_file(w, image, bytes, from + part > w->done ? from + part : w->done);
        }
    }
    check(!before || places, "instruction %" PRIu64 ": what is about to be written is not known", w->steps);
}

void watch_judge(struct watch *w)
{
    w->states++;
    if (w->plan.sink != PLAN_PIPE)
        judge_file(w, w->sink, w->sink_bytes, w->done);
    else if (w->recovering)
        judge_pipe_again(w);
    else
        judge_pipe(w, w->sink_bytes);
    if (!w->recovering)
        judge_parts(w);
}

void watch_forget(struct watch *w)
{
    memset(w->progress, 0, sizeof *w->progress);
    w->steps = w->states = w->in_flight = w->kills = 0;
    w->sink_bytes = w->spill_bytes = w->begun = w->done = w->before_recovery = w->may_repeat = 0;
    w->flies = w->recovering = false;
    write_file(in_dir("sink"), w->plan.before, w->plan.before_bytes);
    w->sink_fd = (int)must(open(in_dir("sink"), O_RDONLY | O_CLOEXEC));
    snprintf(w->spill_path, sizeof w->spill_path, "%s", in_dir("spill"));
    unlink(in_dir("spill"));
    must(pipe2(w->pipe, O_CLOEXEC));
    fcntl(w->pipe[0], F_SETFL, O_NONBLOCK);
}

void watch_end(struct watch *w)
{
    if (w->mapped)
        munmap(w->mapped, w->mapped_bytes);
    w->mapped = NULL;
    close(w->sink_fd);
    close(w->pipe[0]);
    close(w->pipe[1]);
}
