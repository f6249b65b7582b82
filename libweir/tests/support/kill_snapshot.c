/* kill_snapshot.c: see kill_snapshot.h. */
#include "kill_snapshot.h"

/* ---- the current files ---- */

/* Maps the spill file, or reuses the mapping if it is still the same file: this runs after every instruction. */
static const char *map_spill(struct kill_snapshot *snap, size_t *bytes)
{
    struct stat is;
    *bytes = 0;
    bool there = stat(snap->spill_path, &is) == 0;
    if (snap->mapped && !(there && is.st_ino == snap->mapped_ino && (size_t)is.st_size == snap->mapped_bytes)) {
        munmap(snap->mapped, snap->mapped_bytes); /* the mapping kept the inode number from being reused */
        snap->mapped = NULL;
    }
    if (!there || is.st_size == 0)
        return NULL;
    if (!snap->mapped) {
        int fd = (int)must(open(snap->spill_path, O_RDONLY | O_CLOEXEC));
        snap->mapped = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_SHARED, fd, 0);
        must(snap->mapped == MAP_FAILED ? -errno : 0);
        snap->mapped_bytes = (size_t)is.st_size, snap->mapped_ino = is.st_ino;
        close(fd);
    }
    *bytes = snap->mapped_bytes < sizeof snap->spill ? snap->mapped_bytes : sizeof snap->spill;
    return snap->mapped;
}

static bool read_sink(struct kill_snapshot *snap)
{
    static char now[sizeof snap->sink];
    size_t before = snap->sink_bytes;
    if (snap->plan.sink == PLAN_PIPE) {
        ssize_t got = read(snap->pipe[0], snap->sink + before, sizeof snap->sink - before);
        snap->sink_bytes += got > 0 ? (size_t)got : 0;
        return got > 0;
    }
    snap->sink_bytes = (size_t)must(pread(snap->sink_fd, now, sizeof now, 0));
    bool changed = snap->sink_bytes != before || memcmp(now, snap->sink, before) != 0;
    if (changed)
        memcpy(snap->sink, now, snap->sink_bytes);
    return changed;
}

bool snapshot_update(struct kill_snapshot *snap)
{
    size_t begun = snap->progress->begun, done = snap->progress->done, bytes;
    bool changed = begun != snap->begun || done != snap->done;
    snap->begun = begun, snap->done = done;
    changed |= read_sink(snap);
    const char *now = map_spill(snap, &bytes);
    if (bytes == snap->spill_bytes && (bytes == 0 || memcmp(now, snap->spill, bytes) == 0))
        return changed;
    if (bytes)
        memcpy(snap->spill, now, bytes);
    snap->spill_bytes = bytes;
    return true;
}

/* ---- recovery of the copies ---- */

/* Writes a copy of the spill file that refers to the copy of the sink. */
static void copy_spill(const struct kill_snapshot *snap, const char *sink)
{
    static char copy[sizeof snap->spill];
    struct weir__spill_file *file = (void *)copy;
    memcpy(copy, snap->spill, snap->spill_bytes);
    identify(sink, &file->sink);
    memset(file->sink.path, 0, sizeof file->sink.path);
    strcpy(file->sink.path, sink);
    file->checksum = weir__spill_checksum(&file->sink);
    write_file(in_dir("copy"), copy, snap->spill_bytes);
}

/* Recovers the copy of the spill file. weir_recover takes the owner for alive if the owner maps any file with the
 * copy's inode number, also on another file system: then recovers a copy with another number. */
static int recover_copy(int fd, struct weir_recovered *found)
{
    enum { ATTEMPTS = 4 };
    static char copy[sizeof ((struct kill_snapshot *)0)->spill];
    const char *path = in_dir("copy"), *new_path = in_dir("copy.new");
    int result = weir_recover(path, fd, found);
    for (int i = 1; i < ATTEMPTS && result == -EBUSY; i++) {
        write_file(new_path, copy, read_file(path, copy, sizeof copy));
        must(rename(new_path, path));
        result = weir_recover(path, fd, found);
    }
    return result;
}

static void check_file(struct kill_snapshot *snap, const char *have, size_t bytes, size_t least)
{
    char after[PLAN_IMAGE];
    struct weir_recovered found = {0};
    const char *sink = in_dir("sink.copy");
    snap->kills++;
    if (snap->spill_bytes) {
        write_file(sink, have, bytes);
        copy_spill(snap, sink);
        int result = recover_copy(-1, &found);
        check(result == 0, "weir_recover: %s", strerror(-result));
        check(found.exact && found.repeated == 0, "instruction %" PRIu64 ": exact %d, repeated %d", snap->steps,
              found.exact, (int)found.repeated);
        check(access(in_dir("copy"), F_OK) != 0, "the recovery left the spill file");
        bytes = read_file(sink, after, sizeof after);
        have = after;
    }
    int64_t count = plan_matches(&snap->plan, least, snap->begun, have, bytes);
    check(count >= 0, "instruction %" PRIu64 ": not the file after %zu to %zu bytes (%zu bytes)", snap->steps, least,
          snap->begun, bytes);
}

/* Recovers the copy of the spill file of a pipe. Returns the bytes that the reader of the pipe would get. */
static size_t recover_rest(struct kill_snapshot *snap, char *rest, struct weir_recovered *found)
{
    *found = (struct weir_recovered){.exact = 1};
    snap->kills++;
    if (snap->spill_bytes == 0)
        return 0;
    write_file(in_dir("copy"), snap->spill, snap->spill_bytes);
    int fd = (int)must(open(in_dir("rest"), O_RDWR | O_CREAT | O_TRUNC, 0600));
    int result = recover_copy(fd, found);
    check(result == 0, "weir_recover: %s", strerror(-result));
    size_t bytes = (size_t)pread(fd, rest, PLAN_IMAGE, 0);
    close(fd);
    check(found->bytes == bytes, "weir_recover reports %d bytes, and wrote %zu", (int)found->bytes, bytes);
    check(found->exact == (found->repeated == 0), "exact %d, repeated %d", found->exact, (int)found->repeated);
    return bytes;
}

/* Returns true if `text` continues the plan's bytes at `at`, or before it with at most `repeated` bytes repeated. Sets
 * *next to the end of the text in the plan's bytes, which may exceed `at` by new bytes of the repeated write. */
static bool continues_at(const struct kill_snapshot *snap, size_t at, const char *text, size_t bytes,
                         uint64_t repeated, size_t *next)
{
    for (size_t from = at + 1; from-- > 0 && (bytes < at - from ? bytes : at - from) <= repeated;) {
        *next = from + bytes;
        if (*next <= snap->begun && memcmp(text, snap->plan.bytes + from, bytes) == 0)
            return true;
    }
    return false;
}

static bool is_complete(const struct kill_snapshot *snap, size_t had, size_t next)
{
    size_t all = next > had ? next : had;
    return all >= snap->done && all <= snap->begun;
}

static void check_pipe(struct kill_snapshot *snap, size_t had)
{
    char rest[PLAN_IMAGE];
    struct weir_recovered found;
    size_t next, bytes = recover_rest(snap, rest, &found), known = had < snap->sink_bytes ? had : snap->sink_bytes;
    check(memcmp(snap->sink, snap->plan.bytes, known) == 0, "the pipe delivered wrong bytes");
    check(continues_at(snap, had, rest, bytes, found.repeated, &next) && is_complete(snap, had, next),
          "instruction %" PRIu64 ": %zu bytes and then %zu, %d of them repeated, are not %zu to %zu", snap->steps, had,
          bytes, (int)found.repeated, snap->done, snap->begun);
}

/* Checks a pipe whose first recovery was killed, too: it may have repeated bytes of the owner, and the next recovery
 * may repeat bytes of the first. */
static void check_pipe_after_recovery(struct kill_snapshot *snap)
{
    char rest[PLAN_IMAGE];
    struct weir_recovered found;
    size_t had = snap->before_recovery, part = snap->sink_bytes - had, at, next;
    size_t bytes = recover_rest(snap, rest, &found);
    bool ok = continues_at(snap, had, snap->sink + had, part, snap->repeat_max, &at) &&
              continues_at(snap, at, rest, bytes, part ? found.repeated : snap->repeat_max, &next) &&
              is_complete(snap, had, next);
    check(ok, "instruction %" PRIu64 " of the recovery: %zu bytes, then %zu, then %zu", snap->steps, had, part, bytes);
}

/* Checks every partial result of a write(2) that is about to begin: a kill may interrupt it. */
static void check_partial_writes(struct kill_snapshot *snap)
{
    const struct weir__spill_file *file = (void *)snap->spill;
    const struct weir_head *head = &file->head;
    char image[PLAN_IMAGE];
    bool before = !snap->write_in_flight;
    snap->write_in_flight = snap->spill_bytes && file->inflight.from == head->drained && head->drained < head->written;
    if (!snap->write_in_flight)
        return;
    snap->flights++;
    size_t pending = (size_t)(head->written - head->drained), positions = 0;
    for (size_t from = snap->done > pending ? snap->done - pending : 0; from + pending <= snap->begun; from++) {
        if (memcmp(snap->plan.bytes + from, snap->spill + file->buffer_at + head->drained, pending) != 0)
            continue;
        size_t bytes = plan_image(&snap->plan, from, image);
        bool here = snap->plan.sink == PLAN_PIPE
                        ? snap->sink_bytes == from
                        : bytes == snap->sink_bytes && memcmp(image, snap->sink, bytes) == 0;
        positions += here;
        for (size_t part = 1; before && here && part <= file->inflight.total; part++) {
            bytes = plan_image(&snap->plan, from + part, image);
            if (snap->plan.sink == PLAN_PIPE)
                check_pipe(snap, from + part);
            else
                check_file(snap, image, bytes, from + part > snap->done ? from + part : snap->done);
        }
    }
    check(!before || positions, "instruction %" PRIu64 ": the bytes to write are not the plan's", snap->steps);
}

void snapshot_check(struct kill_snapshot *snap)
{
    snap->states++;
    if (snap->plan.sink != PLAN_PIPE)
        check_file(snap, snap->sink, snap->sink_bytes, snap->done);
    else if (snap->recovering)
        check_pipe_after_recovery(snap);
    else
        check_pipe(snap, snap->sink_bytes);
    if (!snap->recovering)
        check_partial_writes(snap);
}

void snapshot_reset(struct kill_snapshot *snap)
{
    memset(snap->progress, 0, sizeof *snap->progress);
    snap->steps = snap->states = snap->flights = snap->kills = 0;
    snap->sink_bytes = snap->spill_bytes = snap->begun = snap->done = snap->before_recovery = snap->repeat_max = 0;
    snap->write_in_flight = snap->recovering = false;
    write_file(in_dir("sink"), snap->plan.before, snap->plan.before_bytes);
    snap->sink_fd = (int)must(open(in_dir("sink"), O_RDONLY | O_CLOEXEC));
    snprintf(snap->spill_path, sizeof snap->spill_path, "%s", in_dir("spill"));
    unlink(in_dir("spill"));
    must(pipe2(snap->pipe, O_CLOEXEC));
    fcntl(snap->pipe[0], F_SETFL, O_NONBLOCK);
}

void snapshot_close(struct kill_snapshot *snap)
{
    if (snap->mapped)
        munmap(snap->mapped, snap->mapped_bytes);
    snap->mapped = NULL;
    close(snap->sink_fd);
    close(snap->pipe[0]);
    close(snap->pipe[1]);
}
