/* kill_plan.c: see kill_plan.h. */
#include "kill_plan.h"

const char *const plan_sink_names[PLAN_SINKS] = {"plain file", "O_APPEND file", "locked file", "pipe"};

/* ---- making a plan ---- */

static void add_bytes(struct plan *plan, const char *text, size_t bytes)
{
    memcpy(plan->bytes + plan->total, text, bytes);
    for (size_t i = 0; i < bytes; i++)
        plan->at[plan->total + i] = plan->position++;
    plan->total += bytes;
}

static size_t add_random(struct plan *plan, size_t bytes)
{
    char text[512];
    for (size_t i = 0; i < bytes; i++)
        text[i] = random_below(&plan->random, 7) ? (char)('a' + random_below(&plan->random, 26)) : '\n';
    add_bytes(plan, text, bytes);
    return bytes;
}

/* Returns the number of bytes that must survive a kill after `op`: in record mode those up to the last separator, in
 * other modes all. */
static size_t done_after(const struct plan *plan, enum plan_op op)
{
    if (plan->mode != WEIR_RECORD || (op >= PLAN_PUTREC && op != PLAN_MODE))
        return plan->total;
    for (size_t done = plan->total; done > plan->done; done--)
        if (plan->bytes[done - 1] == '\n')
            return done;
    return plan->done;
}

static void add_step(struct plan *plan, enum plan_op op)
{
    struct plan_step *step = &plan->steps[plan->count++];
    size_t room = plan->options.buffer_bytes, some = 1 + random_below(&plan->random, room + room / 2);
    char text[64];
    *step = (struct plan_step){op, plan->total, 0, 0, 0};
    some = some > 400 ? 400 : some;
    switch (op) {
    case PLAN_PUTC: add_random(plan, 1); break;
    case PLAN_PRINTF:
        step->argument = (int64_t)random_below(&plan->random, 100000);
        step->bytes = add_random(plan, some);
        add_bytes(plan, text, (size_t)snprintf(text, sizeof text, "%d", (int)step->argument));
        break;
    case PLAN_NUMBER:
        step->argument = (int64_t)(random_next(&plan->random) >> 1);
        add_bytes(plan, text, (size_t)snprintf(text, sizeof text, "%" PRId64, step->argument));
        break;
    case PLAN_WRITE: case PLAN_WRITEV: case PLAN_COMMIT: add_random(plan, some); break;
    case PLAN_PUTREC: add_random(plan, some); add_bytes(plan, "\n", 1); break;
    case PLAN_ENDREC: add_bytes(plan, "\n", 1); break;
    case PLAN_SEEK: plan->position = step->argument = (int64_t)random_below(&plan->random, 300); break;
    case PLAN_FILENO: add_random(plan, 5); break;
    case PLAN_MODE:
        plan->mode = WEIR_NONE + random_below(&plan->random, 4);
        step->argument = (int64_t)plan->mode << 32 | (int64_t)(random_below(&plan->random, 2) * (8 + some));
        break;
    default: break;
    }
    step->bytes = op == PLAN_PRINTF ? step->bytes : plan->total - step->from;
    plan->done = step->done = done_after(plan, op);
}

static bool is_possible(const struct plan *plan, enum plan_op op)
{
    return op != PLAN_SEEK || plan->sink == PLAN_PLAIN;
}

void plan_make(struct plan *plan, enum plan_sink sink, enum weir_mode mode, size_t buffer_bytes, int steps,
               uint64_t seed)
{
    memset(plan, 0, sizeof *plan);
    plan->sink = sink;
    plan->mode = mode;
    plan->random = random_from(seed);
    plan->options.mode = mode;
    plan->options.buffer_bytes = buffer_bytes;
    plan->options.durability = WEIR_KILL;
    plan->options.flags = sink == PLAN_LOCKED ? WEIR_LOCK_FILE : 0;
    plan->before_bytes = sink == PLAN_PIPE ? 0 : 150;
    memset(plan->before, '.', plan->before_bytes);
    plan->position = sink == PLAN_PLAIN ? 0 : (int64_t)plan->before_bytes;
    while (plan->count < steps && plan->count < PLAN_STEPS && plan->total < PLAN_BYTES - 1000) {
        enum plan_op op = (enum plan_op)random_below(&plan->random, PLAN_OPS);
        /* Mostly appends: programs call the other functions rarely, too. */
        if (is_possible(plan, op) && (op < PLAN_FLUSH || random_below(&plan->random, 3) == 0))
            add_step(plan, op);
    }
}

/* ---- running a plan ---- */

int plan_open(const struct plan *plan, weir_stream **s, const char *path, int fd)
{
    if (plan->sink == PLAN_PIPE)
        return weir_fdopen(s, fd, &plan->options);
    return weir_open(s, path, O_WRONLY | (plan->sink == PLAN_APPEND ? O_APPEND : 0), &plan->options);
}

static bool put_in_reserve(weir_stream *s, const char *from, size_t bytes)
{
    char *to;
    size_t room = bytes % 4 ? bytes : 5000; /* more than the smallest buffer, which is one page */
    if (weir_reserve(s, &to, room) < (ssize_t)room)
        return false;
    memcpy(to, from, bytes);
    return weir_commit(s, bytes) == 0;
}

/* Writes to the descriptor at the stream's position, not through the stream. */
static bool write_descriptor(weir_stream *s, const struct plan *plan, const char *from, size_t bytes)
{
    int fd = weir_fileno(s);
    if (fd >= 0 && plan->sink == PLAN_LOCKED)
        lseek(fd, 0, SEEK_END);
    return fd >= 0 && write(fd, from, bytes) == (ssize_t)bytes;
}

static bool run_step(const struct plan *plan, const struct plan_step *step, weir_stream *s)
{
    const char *from = plan->bytes + step->from;
    size_t bytes = step->bytes;
    char *first = (char *)(uintptr_t)from;
    struct iovec iov[2] = {{first, bytes / 3}, {first + bytes / 3, bytes - bytes / 3}};
    switch (step->op) {
    case PLAN_PUTC: return weir_putc(s, *from) == (unsigned char)*from;
    case PLAN_WRITE: return weir_write(s, from, bytes) == (ssize_t)bytes;
    case PLAN_WRITEV: return weir_writev(s, iov, 2) == (ssize_t)bytes;
    case PLAN_PRINTF: return weir_printf(s, "%.*s%d", (int)bytes, from, (int)step->argument) > (int)bytes;
    case PLAN_NUMBER: return weir_put_i64(s, step->argument) == (int)bytes;
    case PLAN_COMMIT: return put_in_reserve(s, from, bytes);
    case PLAN_PUTREC: return weir_putrec(s, from, bytes - 1) == (ssize_t)bytes - 1;
    case PLAN_ENDREC: return weir_endrec(s) == 0;
    case PLAN_FLUSH: return weir_flush(s) == 0;
    case PLAN_SEEK: return weir_seek(s, step->argument, SEEK_SET) == step->argument;
    case PLAN_FILENO: return write_descriptor(s, plan, from, bytes);
    case PLAN_MODE: return weir_set_mode(s, (enum weir_mode)(step->argument >> 32), (uint32_t)step->argument) == 0;
    default: return false;
    }
}

int plan_run(const struct plan *plan, weir_stream *s, struct plan_progress *progress)
{
    for (int i = 0; i < plan->count; i++) {
        size_t next = i + 1 < plan->count ? plan->steps[i + 1].from : plan->total;
        progress->begun = next;
        if (!run_step(plan, &plan->steps[i], s)) {
            progress->failed = i + 1;
            return i;
        }
        progress->done = plan->steps[i].done;
    }
    return plan->count;
}

/* ---- the expected sink ---- */

static size_t put_byte(const struct plan *plan, size_t i, char *image, size_t size)
{
    size_t at = (size_t)plan->at[i];
    if (at > size)
        memset(image + size, 0, at - size);
    image[at] = plan->bytes[i];
    return at + 1 > size ? at + 1 : size;
}

size_t plan_image(const struct plan *plan, size_t count, char *image)
{
    size_t size = plan->before_bytes;
    memcpy(image, plan->before, size);
    for (size_t i = 0; i < count; i++)
        size = put_byte(plan, i, image, size);
    return size;
}

int64_t plan_matches(const struct plan *plan, size_t least, size_t most, const char *have, size_t bytes)
{
    char image[PLAN_IMAGE];
    size_t size = plan_image(plan, least, image);
    for (size_t count = least;; count++) {
        if (size == bytes && memcmp(image, have, bytes) == 0)
            return (int64_t)count;
        if (count >= most)
            return -1;
        size = put_byte(plan, count, image, size);
    }
}
