/* kernel_faults.c: every fault at every system call of every scenario: no byte is lost, doubled or reordered.
 * --seeds=N: scenarios per profile, mode and buffer size (1); --seed=N: the first (1). */
#include <stdio.h>
#include <stdlib.h>

#include "support/checked_stream.h"

enum { STEPS = 24, CALLS_MAX = 2000 };

/* ---- the faults ---- */

#define ON(call) (1u << FAKE_##call)
#define ALWAYS UINT64_MAX

static const struct fake_fault faults[] = {
    {0, 1, 0, true, ON(WRITE) | ON(READ)},
    {0, ALWAYS, 0, true, ON(WRITE) | ON(READ) | ON(TEE) | ON(RECV)},
    {0, 1, 0, false, ON(WRITE) | ON(READ)},
    {0, ALWAYS, 0, false, ON(WRITE) | ON(READ)},
    {0, 1, EINTR, false, ON(WRITE) | ON(READ) | ON(FSYNC) | ON(FDATASYNC) | ON(CLOSE) | ON(OPEN)},
    {0, 20, EINTR, false, ON(WRITE) | ON(READ) | ON(FSYNC) | ON(FDATASYNC) | ON(OPEN)},
    {0, 1, EAGAIN, false, ON(WRITE) | ON(READ)},
    {0, ALWAYS, EAGAIN, false, ON(WRITE) | ON(READ)},
    {0, 1, EIO, false, ON(WRITE) | ON(READ) | ON(LSEEK) | ON(FSTAT) | ON(FCNTL) | ON(FSYNC) | ON(FDATASYNC) | ON(CLOSE)},
    {0, ALWAYS, EIO, false, ON(WRITE) | ON(READ) | ON(LSEEK) | ON(FSYNC) | ON(FDATASYNC)},
    {0, ALWAYS, ENOSPC, false, ON(WRITE) | ON(FSYNC) | ON(FDATASYNC) | ON(FTRUNCATE)},
    {0, ALWAYS, EPIPE, false, ON(WRITE)},
    {0, ALWAYS, EDQUOT, false, ON(WRITE) | ON(CLOSE)},
    {0, 1, ENOMEM, false, ON(MMAP)},
    {0, ALWAYS, ENOMEM, false, ON(MMAP)},
    {0, 1, EMFILE, false, ON(OPEN) | ON(PIPE2)},
    {0, 1, EINVAL, false, ON(TEE) | ON(RECV)},
    {0, ALWAYS, EAGAIN, false, ON(TEE) | ON(RECV)},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static bool is_harmless(const struct fake_fault *fault) { return fault->error == 0 || fault->error == EINTR; }

/* ---- the scenarios ---- */

struct profile {
    const char *name;
    enum fake_kind kind;
    int oflags;
    enum weir_durability durability;
    unsigned flags;
    size_t max_record_bytes;
    enum op ops[20];
    int op_count;
};

#define BYTES OP_PUTC, OP_PUTC, OP_NEWLINE, OP_WRITE, OP_WRITEV, OP_PUT_STR, OP_PRINTF, OP_PUT_NUMBER
#define RECORDS OP_PUTREC, OP_PUTREC, OP_ENDREC, OP_RESERVE
#define READS OP_GETC, OP_READ, OP_READ_SOME, OP_GETREC, OP_PEEK, OP_SKIP, OP_UNGETC
#define SEEKS OP_SEEK, OP_SEEK_BY, OP_SEEK_END, OP_TELL
#define OPS_OF(...) {__VA_ARGS__}, sizeof((enum op[]){__VA_ARGS__}) / sizeof(enum op)

static const struct profile profiles[] = {
    {"file", FAKE_FILE, O_WRONLY, 0, 0, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH, OP_SET_MODE, SEEKS)},
    {"file, synced", FAKE_FILE, O_WRONLY, 0, 0, 0, OPS_OF(BYTES, RECORDS, OP_SYNC, OP_SYNC_WHOLE)},
    {"file, kernel", FAKE_FILE, O_WRONLY, WEIR_KERNEL, 0, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH)},
    {"file, data", FAKE_FILE, O_WRONLY, WEIR_DATA, 0, 0, OPS_OF(BYTES, RECORDS, OP_SET_MODE)},
    {"appended file", FAKE_FILE, O_WRONLY | O_APPEND, 0, 0, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH, OP_TELL)},
    {"locked file", FAKE_FILE, O_WRONLY | O_APPEND, 0, WEIR_LOCK_FILE, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH)},
    {"pipe", FAKE_PIPE, O_WRONLY, 0, 0, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH, OP_SET_MODE, OP_TELL)},
    {"terminal", FAKE_TERMINAL, O_WRONLY, 0, 0, 0, OPS_OF(BYTES, RECORDS, OP_FLUSH)},
    {"file, WEIR_THREADS", FAKE_FILE, O_RDWR, WEIR_DATA, WEIR_THREADS, 0, OPS_OF(BYTES, RECORDS, READS)},
    {"reading a file", FAKE_FILE, O_RDONLY, 0, 0, 0, OPS_OF(READS, SEEKS, OP_SET_MODE)},
    {"reading a shared file", FAKE_FILE, O_RDONLY, 0, WEIR_SHARE, 0, OPS_OF(READS, SEEKS, OP_FLUSH, OP_FILENO)},
    {"reading a pipe", FAKE_PIPE, O_RDONLY, 0, 0, 20, OPS_OF(READS, OP_TELL, OP_PUTC)},
    {"reading a shared pipe", FAKE_PIPE, O_RDONLY, 0, WEIR_SHARE, 0, OPS_OF(READS)},
    {"both ways", FAKE_FILE, O_RDWR, 0, 0, 0, OPS_OF(BYTES, READS, OP_RESERVE, OP_SEEK, OP_SEEK_BY, OP_TELL)},
    {"both ways, shared", FAKE_FILE, O_RDWR, 0, WEIR_SHARE, 0, OPS_OF(OP_WRITE, OP_PUTREC, READS, SEEKS, OP_FILENO)},
    {"both ways, appended", FAKE_FILE, O_RDWR | O_APPEND, 0, 0, 0, OPS_OF(BYTES, READS, OP_SEEK, OP_TELL)},
    {"reading a shared socket", FAKE_SOCKET, O_RDONLY, 0, WEIR_SHARE, 0, OPS_OF(READS)},
    {"socket", FAKE_SOCKET, O_RDWR, 0, 0, 0, OPS_OF(BYTES, READS, OP_FLUSH, OP_PUTREC, OP_SHARE)},
};
enum { PROFILES = sizeof profiles / sizeof *profiles };

struct scenario {
    const struct profile *profile;
    struct weir_options options;
    enum op op[STEPS];
    uint64_t argument[STEPS];
};

static const char content[] = "one\ntwo, which is longer\n\nthree\nand the fourth line of it, longer than all of the "
                              "others together, or nearly so\nfive\nsix\nseven\n\n\nthe last has no end";

static void make_scenario(struct scenario *c, const struct profile *p, enum weir_mode mode, size_t bytes, uint64_t seed)
{
    static const int separators[] = {0, 0, 0, WEIR_SEPARATOR_NUL, 'e', WEIR_SEPARATOR_NONE};
    struct random r = random_from(seed);
    memset(c, 0, sizeof *c);
    c->profile = p;
    c->options.mode = mode;
    c->options.buffer_bytes = bytes;
    c->options.durability = p->durability;
    c->options.flags = p->flags;
    c->options.max_record_bytes = p->max_record_bytes;
    c->options.separator = separators[random_below(&r, 6)];
    for (int i = 0; i < STEPS; i++) {
        c->op[i] = p->ops[random_below(&r, (uint64_t)p->op_count)];
        c->argument[i] = c->op[i] == OP_SEEK ? random_below(&r, 250) : random_next(&r) >> 8;
    }
}

/* ---- running a scenario ---- */

/* Checks that the error is sticky: no call accepts more bytes before weir_clear. */
static void check_sticky_error(struct checked_stream *t, int error)
{
    if (weir_error(t->s) != -error) {
        checked_fail(t, "a write failed with %d, but weir_error returned %d", error, weir_error(t->s));
        return;
    }
    uint64_t pending = weir__pending(t->s) + t->state->record_bytes;
    int result = weir_putc(t->s, 'x');
    if (result != -error || pending != weir__pending(t->s) + t->state->record_bytes)
        checked_fail(t, "putc after error %d returned %d", error, result);
    if (weir_flush(t->s) != -error)
        checked_fail(t, "flush after error %d returned %d", error, weir_flush(t->s));
}

static void check_after_fault(struct checked_stream *t, const struct fake_fault *fault, enum fake_call call)
{
    if (fault->error == EAGAIN && weir_error(t->s) != 0)
        checked_fail(t, "EAGAIN is sticky: weir_error returned %d", weir_error(t->s));
    if (fault->error != EAGAIN && call == FAKE_WRITE)
        check_sticky_error(t, fault->error);
    /* Faults of the library's own pipe are no errors: peek_source.c works without the pipe. */
    bool is_own_pipe = fake_first_hit()->fd != t->fd;
    if (fault->error != EAGAIN && call == FAKE_READ && !is_own_pipe && weir_error(t->s) != -fault->error)
        checked_fail(t, "a read failed with %d, but weir_error returned %d", fault->error, weir_error(t->s));
    checked_remove_faults(t);
}

/* Returns true if weir_close must report the fault: not if unlocking failed, because close(2) unlocks, too, and not if
 * the call was on another descriptor. */
static bool close_must_report(const struct checked_stream *t, const struct fake_fault *fault)
{
    const struct fake_note *note = fake_first_hit();
    return fault->error != ENOMEM && (!note || (note->call != FAKE_FCNTL && note->fd == t->fd));
}

static void close_and_check(struct checked_stream *t, const struct fake_fault *fault)
{
    uint64_t hits = fake_hits();
    int result = checked_close(t);
    if (result == -EAGAIN) {
        if (fake_hits() == 0)
            checked_fail(t, "close returned EAGAIN");
        checked_remove_faults(t);
        result = checked_close(t);
    } else if (fault && fake_hits() > hits && !is_harmless(fault) && close_must_report(t, fault) && result == 0) {
        checked_fail(t, "close returned 0 after error %d", fault->error);
    }
    bool may_fail = t->sync_failed || (fault && fake_hits() > hits && !is_harmless(fault));
    if (result < 0 && !may_fail && !(t->options.durability >= WEIR_DATA && !t->seekable))
        checked_fail(t, "close returned %d", result);
}

/* Runs the scenario. Returns the number of system calls; stores the kind of each in `kinds`, if not NULL. */
static uint64_t run(const struct scenario *c, const struct fake_fault *fault, unsigned char *kinds)
{
    struct checked_stream t;
    enum fake_call failed = FAKE_CALLS;
    fake_forget();
    fake_plan(fault);
    int result = checked_open(&t, c->profile->kind, c->profile->oflags, &c->options, content, sizeof content - 1);
    t.fault_is_visible = fault && !is_harmless(fault);
    if (result < 0) {
        if (!checked_may_fail(&t) || result != -fault->error || !fake_is_open(t.fd))
            checked_fail(&t, "open returned %d", result);
        fake_plan(NULL);
        weir__kernel.close(t.fd);
        checked_free(&t);
        return 0;
    }
    if (fault && fake_hits())
        fake_plan(NULL); /* opening succeeds without the failed call */
    for (int i = 0; i < STEPS && t.failures == 0; i++) {
        checked_step(&t, c->op[i], c->argument[i]);
        if (failed != FAKE_CALLS || !fake_hits() || !t.fault_is_visible)
            continue;
        failed = fake_first_hit()->call;
        check_after_fault(&t, fault, failed);
    }
    close_and_check(&t, fault);
    uint64_t calls = fake_count();
    for (uint64_t i = 1; kinds && i <= calls && i < CALLS_MAX; i++) {
        const struct fake_note *note = fake_note_at(i);
        kinds[i] = (unsigned char)(note ? note->call : FAKE_CALLS);
    }
    if (t.failures && fault)
        printf("  %s, mode %d, %zu bytes, durability %d, separator %d: call %llu: error %d, %llu times\n",
               c->profile->name, (int)c->options.mode, c->options.buffer_bytes, (int)c->options.durability,
               c->options.separator, (unsigned long long)fault->at, fault->error, (unsigned long long)fault->times);
    else if (t.failures)
        printf("  %s, mode %d, %zu bytes, separator %d\n", c->profile->name, (int)c->options.mode,
               c->options.buffer_bytes, c->options.separator);
    check(t.failures == 0, "(the scenario above)");
    fake_plan(NULL);
    checked_free(&t);
    return calls;
}

static void every_call(const struct scenario *c)
{
    static unsigned char kinds[CALLS_MAX];
    uint64_t calls = run(c, NULL, kinds);
    for (uint64_t k = 1; k <= calls && k < CALLS_MAX && check_wrong() < 3; k++)
        for (int i = 0; i < FAULTS; i++)
            if (faults[i].calls & 1u << kinds[k]) {
                struct fake_fault fault = faults[i];
                fault.at = k;
                run(c, &fault, NULL);
            }
}

int main(int count, char **arguments)
{
    static const size_t sizes[] = {1, 2, 3, 7, 16, 4096};
    static const char *const modes[] = {"auto", "none", "line", "full", "record"};
    uint64_t seeds = check_option(count, arguments, "seeds", 1);
    uint64_t first = check_option(count, arguments, "seed", 1);
    fake_install();
    for (int p = 0; p < PROFILES; p++)
        for (int mode = WEIR_NONE; mode <= WEIR_RECORD; mode++) {
            if (!(profiles[p].oflags & O_ACCMODE) && mode != WEIR_FULL)
                continue; /* modes concern writing only */
            check_begin("%s, %s", profiles[p].name, modes[mode]);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (uint64_t seed = 0; seed < seeds; seed++) {
                    struct scenario c;
                    make_scenario(&c, &profiles[p], (enum weir_mode)mode, sizes[i],
                                  first * 1000 + seed * 37 + (uint64_t)(p * 100 + mode * 10) + i);
                    every_call(&c);
                }
        }
    return check_finish("kernel_faults");
}
