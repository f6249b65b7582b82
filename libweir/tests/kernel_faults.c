/* kernel_faults.c: every call of the kernel in every scenario goes wrong in every way that it can, and
 * nothing is lost, doubled or put in another place. --seeds=N: scenarios of each sort (2). */
#include <stdio.h>
#include <stdlib.h>

#include "support/subject.h"

enum { STEPS = 24, CALLS_MAX = 2000 };

/* ---- what goes wrong ---- */

#define ON(call) (1u << FAKE_##call)
#define FOR_EVER UINT64_MAX

static const struct fake_fault faults[] = {
    {0, 1, 0, true, ON(WRITE) | ON(READ)},
    {0, FOR_EVER, 0, true, ON(WRITE) | ON(READ) | ON(TEE) | ON(RECV)},
    {0, 1, 0, false, ON(WRITE) | ON(READ)},
    {0, FOR_EVER, 0, false, ON(WRITE) | ON(READ)},
    {0, 1, EINTR, false, ON(WRITE) | ON(READ) | ON(FSYNC) | ON(FDATASYNC) | ON(CLOSE) | ON(OPEN)},
    {0, 20, EINTR, false, ON(WRITE) | ON(READ) | ON(FSYNC) | ON(FDATASYNC) | ON(OPEN)},
    {0, 1, EAGAIN, false, ON(WRITE) | ON(READ)},
    {0, FOR_EVER, EAGAIN, false, ON(WRITE) | ON(READ)},
    {0, 1, EIO, false, ON(WRITE) | ON(READ) | ON(LSEEK) | ON(FSTAT) | ON(FCNTL) | ON(FSYNC) | ON(FDATASYNC) | ON(CLOSE)},
    {0, FOR_EVER, EIO, false, ON(WRITE) | ON(READ) | ON(LSEEK) | ON(FSYNC) | ON(FDATASYNC)},
    {0, FOR_EVER, ENOSPC, false, ON(WRITE) | ON(FSYNC) | ON(FDATASYNC)},
    {0, FOR_EVER, EPIPE, false, ON(WRITE)},
    {0, FOR_EVER, EDQUOT, false, ON(WRITE) | ON(CLOSE)},
    {0, 1, ENOMEM, false, ON(MMAP)},
    {0, FOR_EVER, ENOMEM, false, ON(MMAP)},
    {0, 1, EMFILE, false, ON(OPEN) | ON(PIPE2)},
    {0, 1, EINVAL, false, ON(TEE) | ON(RECV)},
    {0, FOR_EVER, EAGAIN, false, ON(TEE) | ON(RECV)},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static bool is_harmless(const struct fake_fault *fault) { return fault->error == 0 || fault->error == EINTR; }

/* ---- what is done ---- */

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
    {"file with a lock", FAKE_FILE, O_RDWR, WEIR_DATA, WEIR_THREADS, 0, OPS_OF(BYTES, RECORDS, READS)},
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

/* ---- doing it ---- */

/* The error is there, and stays, until it is cleared; nothing more is accepted meanwhile. */
static void must_stick(struct subject *t, int error)
{
    if (weir_error(t->s) != -error) {
        subject_wrong(t, "a write failed with %d, and weir_error says %d", error, weir_error(t->s));
        return;
    }
    uint64_t pending = weir__pending(t->s) + t->state->record_bytes;
    int result = weir_putc(t->s, 'x');
    if (result != -error || pending != weir__pending(t->s) + t->state->record_bytes)
        subject_wrong(t, "putc after error %d returned %d", error, result);
    if (weir_flush(t->s) != -error)
        subject_wrong(t, "flush after error %d returned %d", error, weir_flush(t->s));
}

static void after_the_fault(struct subject *t, const struct fake_fault *fault, enum fake_call call)
{
    if (fault->error == EAGAIN && weir_error(t->s) != 0)
        subject_wrong(t, "EAGAIN stays as %d", weir_error(t->s));
    if (fault->error != EAGAIN && call == FAKE_WRITE)
        must_stick(t, fault->error);
    bool of_its_own = fake_note_at(fault->at)->fd != t->fd; /* a pipe for copies: look_ahead.c does without */
    if (fault->error != EAGAIN && call == FAKE_READ && !of_its_own && weir_error(t->s) != -fault->error)
        subject_wrong(t, "a read failed with %d, and weir_error says %d", fault->error, weir_error(t->s));
    subject_heal(t);
}

/* Not a lock that could not be let go, for it ends with the descriptor, nor what is not of the file. */
static bool can_be_told(const struct subject *t, const struct fake_fault *fault)
{
    const struct fake_note *note = fake_note_at(fault->at);
    return fault->error != ENOMEM && (!note || (note->call != FAKE_FCNTL && note->fd == t->fd));
}

static void end_of_run(struct subject *t, const struct fake_fault *fault)
{
    uint64_t hits = fake_hits();
    int result = subject_close(t);
    if (result == -EAGAIN) {
        if (fake_hits() == 0)
            subject_wrong(t, "close returned EAGAIN");
        subject_heal(t);
        result = subject_close(t);
    } else if (fault && fake_hits() > hits && !is_harmless(fault) && can_be_told(t, fault) && result == 0) {
        subject_wrong(t, "close met error %d and says 0", fault->error);
    }
    bool reason = t->sync_failed || (fault && fake_hits() > hits && !is_harmless(fault));
    if (result < 0 && !reason && !(t->options.durability >= WEIR_DATA && !t->seekable))
        subject_wrong(t, "close returned %d", result);
}

/* Returns how many calls there were; `kinds` (or NULL) gets what each was. */
static uint64_t run(const struct scenario *c, const struct fake_fault *fault, unsigned char *kinds)
{
    struct subject t;
    enum fake_call spoilt = FAKE_CALLS;
    fake_forget();
    fake_plan(fault);
    int result = subject_open(&t, c->profile->kind, c->profile->oflags, &c->options, content, sizeof content - 1);
    t.spoilt = fault && !is_harmless(fault);
    if (result < 0) {
        if (!subject_may_fail(&t) || result != -fault->error || !fake_is_open(t.fd))
            subject_wrong(&t, "open returned %d", result);
        fake_plan(NULL);
        weir__kernel.close(t.fd);
        subject_free(&t);
        return 0;
    }
    if (fault && fake_hits())
        fake_plan(NULL); /* something that it can do without */
    for (int i = 0; i < STEPS && t.failures == 0; i++) {
        subject_step(&t, c->op[i], c->argument[i]);
        if (spoilt != FAKE_CALLS || !fake_hits() || !t.spoilt)
            continue;
        spoilt = fake_note_at(fault->at)->call;
        after_the_fault(&t, fault, spoilt);
    }
    end_of_run(&t, fault);
    uint64_t calls = fake_count();
    for (uint64_t i = 1; kinds && i <= calls && i < CALLS_MAX; i++)
        kinds[i] = (unsigned char)fake_note_at(i)->call;
    if (t.failures && fault)
        printf("  %s, mode %d, %zu bytes, durability %d, separator %d: call %llu: error %d, %llu times\n",
               c->profile->name, (int)c->options.mode, c->options.buffer_bytes, (int)c->options.durability,
               c->options.separator, (unsigned long long)fault->at, fault->error, (unsigned long long)fault->times);
    else if (t.failures)
        printf("  %s, mode %d, %zu bytes, separator %d\n", c->profile->name, (int)c->options.mode,
               c->options.buffer_bytes, c->options.separator);
    check(t.failures == 0, "(the scenario above)");
    fake_plan(NULL);
    subject_free(&t);
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
                continue; /* modes are about writing */
            check_begin("%s, %s", profiles[p].name, modes[mode]);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (uint64_t seed = 0; seed < seeds; seed++) {
                    struct scenario c;
                    make_scenario(&c, &profiles[p], (enum weir_mode)mode, sizes[i], first * 1000 + seed * 37 + (uint64_t)(p * 100 + mode * 10) + i);
                    every_call(&c);
                }
        }
    return check_finish("kernel_faults");
}
