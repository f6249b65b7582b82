/* plan.h: random sequences of stdio calls that C11 and POSIX allow, and the log of their results. */
#ifndef WEIR_TEST_PLAN_H
#define WEIR_TEST_PLAN_H

#include "random.h"

/* ---- the calls -------------------------------------------------------------------------------------- */

enum call {
    FPUTC, PUTC, FPUTS, FWRITE, FPRINTF, PUTW,
    FGETC, GETC, FGETS, FREAD, FSCANF, GETLINE, GETDELIM, GETW,
    UNGETC, FSEEK, FSEEKO, REWIND, FGETPOS, FSETPOS, FTELL, FTELLO,
    FEOF, FERROR, CLEARERR, FFLUSH, FFLUSH_ALL, SETVBUF, REOPEN, FREOPEN, LOCK, CALLS
};
static const char *const call_names[CALLS] = {
    "fputc", "putc", "fputs", "fwrite", "fprintf", "putw",
    "fgetc", "getc", "fgets", "fread", "fscanf", "getline", "getdelim", "getw",
    "ungetc", "fseek", "fseeko", "rewind", "fgetpos", "fsetpos", "ftell", "ftello",
    "feof", "ferror", "clearerr", "fflush", "fflush(NULL)", "setvbuf", "fclose+fopen", "freopen", "flockfile",
};

struct step {
    enum call call;
    int a, b, c;
};

static const char *const modes[] = {
    "r", "w", "r+", "w+", "a+", "rb", "wb", "rb+", "w+b", "a+b", "re", "wx", "w+x", "r+e",
#if defined(__GLIBC__) /* musl's ftell returns 0 after these */
    "a", "ab", "ae",
#endif
};
enum { MODES = sizeof modes / sizeof *modes, STEPS = 48 };

struct plan {
    char content[400 * 1024]; /* the file at the start */
    size_t length;
    bool exists;
    const char *mode;
    struct step steps[STEPS];
    int count;
};

/* ---- the order of calls ------------------------------------------------------------------------------ */

enum last { FRESH, DID_READ, DID_WRITE };

static bool is_write(enum call call) { return call <= PUTW; }
static bool is_read(enum call call) { return call >= FGETC && call <= GETW; }

/* Makes text with numbers, words and lines, and some random bytes. Returns its length. */
static size_t make_content(char *to, size_t limit)
{
    static const char *const words[] = {"12", "-7 ", "0x1f,", "abc", " ", "\n", "\n\n", "3.25e2", "1e+", "nan", "q", ",",
                                        "%", "zzz zzz", "\t", "99999999999999999999", "-", "+5", "0", "0x", "inf"};
    size_t length = 0;
    while (length + 32 < limit) {
        const char *word = words[below(sizeof words / sizeof *words)];
        if (one_in(40)) {
            to[length++] = (char)below(256);
            continue;
        }
        length += (size_t)sprintf(to + length, "%s", word);
    }
    return length;
}

static size_t pick_size(void)
{
    static const size_t sizes[] = {0, 1, 2, 7, 64, 300, 1000, 4095, 4096, 4097, 9000};
    if (one_in(150))
        return 120000 + below(250000); /* exceeds the default buffers */
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

static struct step make_step(enum call call)
{
    struct step step = {call, (int)below(1 << 20), (int)below(1 << 20), (int)below(1 << 20)};
    return step;
}

#if defined(__GLIBC__)
static const bool misuse = true;
#else /* musl does not set errno */
static const bool misuse = false;
#endif

static enum call pick_call(bool reads, bool writes, enum last last)
{
    for (;;) {
        enum call call = (enum call)below(CALLS);
        if ((call == REOPEN || call == FREOPEN || call == FFLUSH_ALL) && !one_in(6))
            continue;
        if (call == SETVBUF)
            continue;
        if ((is_read(call) || call == UNGETC) && !reads && (!misuse || !one_in(30)))
            continue; /* one in 30 is allowed, to compare EBADF */
        if (is_read(call) && !reads && last == DID_WRITE)
            continue; /* glibc loses pending bytes */
        if (is_write(call) && !writes && (!misuse || !one_in(30)))
            continue;
        if ((call == UNGETC || call == FSCANF) && !reads)
            continue; /* POSIX requires the error indicator, which glibc's fscanf does not set */
        return call;
    }
}

static void add_step(struct plan *plan, struct step step)
{
    if (plan->count < STEPS)
        plan->steps[plan->count++] = step;
}

/* Adds the positioning call that C11 requires between reading and writing. */
static void add_positioning(struct plan *plan, enum last last, enum call call, bool both)
{
    bool is_read_next = is_read(call) || call == UNGETC;
    if (!both || !((last == DID_READ && is_write(call)) || (last == DID_WRITE && is_read_next)))
        return;
    static const enum call positioning[] = {FSEEK, FSEEKO, REWIND, FSETPOS, FFLUSH};
    struct step step = make_step(positioning[below(last == DID_WRITE ? 5 : 4)]);
    step.a = 0, step.c = 1; /* SEEK_SET with an offset that cannot fail */
    add_step(plan, step);
}

static void make_plan(struct plan *plan, uint64_t number)
{
    seed(number);
    plan->exists = !one_in(12);
    plan->length = plan->exists ? make_content(plan->content, pick_size()) : 0;
    plan->mode = modes[below(MODES)];
    plan->count = 0;
    const char *mode = plan->mode;
    enum last last = FRESH;
    int wanted = 4 + (int)below(STEPS - 12);
    if (one_in(2))
        add_step(plan, make_step(SETVBUF));
    while (plan->count < wanted) {
        enum call call = pick_call(can_read(mode), can_write(mode), last);
        add_positioning(plan, last, call, can_read(mode) && can_write(mode));
        struct step step = make_step(call);
        add_step(plan, step);
        if (is_read(call) || call == UNGETC)
            last = DID_READ;
        if (is_write(call))
            last = DID_WRITE;
        if (call == REOPEN || call == FREOPEN) {
            mode = modes[step.a % MODES];
            last = FRESH;
            if (one_in(2))
                add_step(plan, make_step(SETVBUF));
        }
    }
}

/* ---- the log ---------------------------------------------------------------------------------------- */

struct entry {
    int step;
    int64_t result;
    int error;
    uint64_t bytes; /* hash of the bytes read */
};
struct log {
    struct entry entries[STEPS + 4];
    int count;
};

static void add_entry(struct log *log, int step, int64_t result, bool failed, uint64_t bytes)
{
    log->entries[log->count++] = (struct entry){step, result, failed ? errno : 0, bytes};
}

#endif
