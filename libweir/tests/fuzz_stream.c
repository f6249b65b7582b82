/* fuzz_stream.c: bytes are taken as calls of a stream, and as what goes wrong in the kernel meanwhile;
 * subject.c says whether all is as it must be. With libFuzzer (-DWEIR_LIBFUZZER -fsanitize=fuzzer) it is its
 * target; else it runs over random inputs: --count=N (20000), --seed=N; or over the files given. */
#include <stdio.h>
#include <stdlib.h>

#include "support/subject.h"

struct input {
    const uint8_t *at;
    size_t left;
};

static unsigned byte(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static const struct {
    enum fake_kind kind;
    int oflags;
} sources[] = {
    {FAKE_FILE, O_RDONLY}, {FAKE_FILE, O_WRONLY}, {FAKE_FILE, O_RDWR}, {FAKE_FILE, O_WRONLY | O_APPEND},
    {FAKE_FILE, O_RDWR | O_APPEND}, {FAKE_PIPE, O_RDONLY}, {FAKE_PIPE, O_WRONLY}, {FAKE_SOCKET, O_RDWR},
    {FAKE_TERMINAL, O_WRONLY},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static struct weir_options options_of(struct input *in, enum fake_kind kind)
{
    static const size_t sizes[] = {1, 2, 3, 5, 8, 16, 100, 4096};
    static const int separators[] = {0, 0, WEIR_SEPARATOR_NUL, 'e', WEIR_SEPARATOR_NONE};
    static const unsigned flags[] = {0, 0, WEIR_THREADS, WEIR_SHARE, WEIR_LOCK_FILE};
    unsigned first = byte(in), second = byte(in), third = byte(in);
    struct weir_options options = {.mode = (enum weir_mode)(first % 5), .buffer_bytes = sizes[first / 5 % 8]};
    options.separator = separators[second % 5];
    options.flags = flags[second / 5 % 5];
    options.durability = third % 4 == 3 && kind == FAKE_FILE ? WEIR_DATA : third % 4 == 2 ? WEIR_KERNEL : WEIR_PROCESS;
    options.max_record_bytes = third / 4 % 4 == 3 ? 30 : 0;
    options.access = (enum weir_access)(third / 16 % 3);
    return options;
}

/* Where it is locked, it is written at its end, wherever the program is: that the oracle does not follow. */
static bool is_followed(const struct weir_options *options, unsigned source)
{
    return !(options->flags & WEIR_LOCK_FILE) || (sources[source].oflags & O_APPEND && sources[source].oflags & O_WRONLY);
}

static void spoil(struct input *in, struct subject *t)
{
    static const int errors[] = {0, 0, EINTR, EAGAIN, EIO, ENOSPC, EPIPE, ENOMEM};
    unsigned which = byte(in), when = byte(in);
    struct fake_fault fault = {.at = fake_count() + 1 + when % 4, .times = when & 64 ? 1 + when % 3 : UINT64_MAX};
    fault.error = errors[which % 8];
    fault.one_byte = which & 8;
    fault.calls = fault.error == ENOMEM  ? 1u << FAKE_MMAP
                  : fault.error == EINTR ? 1u << FAKE_WRITE | 1u << FAKE_READ | 1u << FAKE_FDATASYNC
                  : which & 16           ? 1u << FAKE_READ | 1u << FAKE_LSEEK | 1u << FAKE_FDATASYNC
                                         : 1u << FAKE_WRITE;
    if (fault.error == EINTR && fault.times > 3)
        fault.times = 3; /* for ever is for ever */
    if (fault.error == EAGAIN || fault.error == 0)
        fault.calls &= 1u << FAKE_WRITE | 1u << FAKE_READ;
    if (fault.error == ENOMEM && t->sync_failed)
        return; /* no memory for the rest of a unit whose beginning met an error: unit.c says what then */
    t->spoilt = fault.error != 0 && fault.error != EINTR;
    fake_plan(&fault);
}

static void run(struct input *in)
{
    static const char content[] = "one\ntwo, longer\n\nthree\nthe fourth is the longest of all the lines there are\nend";
    unsigned source = byte(in) % SOURCES;
    struct subject t;
    fake_plan(NULL);
    fake_forget();
    struct weir_options options = options_of(in, sources[source].kind);
    if (!is_followed(&options, source))
        options.flags = 0;
    if (subject_open(&t, sources[source].kind, sources[source].oflags, &options, content, sizeof content - 1) < 0)
        abort();
    for (int steps = 0; in->left > 0 && steps < 300 && t.failures == 0; steps++) {
        unsigned what = byte(in) % (OPS + 4);
        if (what >= OPS) {
            spoil(in, &t);
            continue;
        }
        uint64_t argument = byte(in) | byte(in) << 8;
        argument |= argument << 20 | argument << 44;
        subject_step(&t, (enum op)what, what == OP_SEEK ? argument % 300 : argument);
        if (fake_hits() > 0)
            subject_heal(&t);
    }
    fake_plan(NULL);
    subject_heal(&t);
    if (subject_close(&t) == -EAGAIN)
        subject_wrong(&t, "close says again");
    check(t.failures == 0, "(the input above)");
    subject_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input in = {data, bytes};
    uint64_t wrong = check_wrong();
    fake_install();
    run(&in);
#if defined(WEIR_LIBFUZZER)
    if (check_wrong() != wrong)
        abort();
#endif
    return check_wrong() != wrong;
}

#if !defined(WEIR_LIBFUZZER)

static void run_file(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    size_t count = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    check_begin("%s", path);
    LLVMFuzzerTestOneInput(bytes, count);
}

int main(int count, char **arguments)
{
    uint64_t inputs = check_option(count, arguments, "count", 20000), first = check_option(count, arguments, "seed", 1);
    bool files = false;
    for (int i = 1; i < count; i++)
        if (arguments[i][0] != '-') {
            run_file(arguments[i]);
            files = true;
        }
    if (!files)
        check_begin("%llu random inputs from %llu on", (unsigned long long)inputs, (unsigned long long)first);
    for (uint64_t seed = first; !files && seed < first + inputs && check_wrong() < 20; seed++) {
        uint8_t bytes[400];
        struct random r = random_from(seed);
        size_t length = random_below(&r, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)random_next(&r);
        if (LLVMFuzzerTestOneInput(bytes, length))
            printf("  input %llu\n", (unsigned long long)seed);
    }
    return check_finish("fuzz_stream");
}

#endif
