/* fuzz_stream.c: decodes an input as calls of a stream and as faults of system calls; checked_stream.c checks the
 * results. With -DWEIR_LIBFUZZER -fsanitize=fuzzer it is a libFuzzer target; else it runs random inputs, --count=N
 * (20000), --seed=N, or the files that are its arguments. */
#include <stdio.h>
#include <stdlib.h>

#include "support/checked_stream.h"

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

/* Returns true if the model supports the combination. With WEIR_LOCK_FILE each write goes to the end of the file, which
 * the model follows only for write-only files with O_APPEND. */
static bool is_supported(const struct weir_options *options, unsigned source)
{
    return !(options->flags & WEIR_LOCK_FILE) || (sources[source].oflags & O_APPEND && sources[source].oflags & O_WRONLY);
}

static void set_fault(struct input *in, struct checked_stream *t)
{
    static const int errors[] = {0, 0, EINTR, EAGAIN, EIO, ENOSPC, EPIPE, ENOMEM};
    unsigned kind = byte(in), when = byte(in);
    struct fake_fault fault = {.at = fake_count() + 1 + when % 4, .times = when & 64 ? 1 + when % 3 : UINT64_MAX};
    fault.error = errors[kind % 8];
    fault.one_byte = kind & 8;
    fault.calls = fault.error == ENOMEM  ? 1u << FAKE_MMAP
                  : fault.error == EINTR ? 1u << FAKE_WRITE | 1u << FAKE_READ | 1u << FAKE_FDATASYNC
                  : kind & 16            ? 1u << FAKE_READ | 1u << FAKE_LSEEK | 1u << FAKE_FDATASYNC
                                         : 1u << FAKE_WRITE;
    if (fault.error == EINTR && fault.times > 3)
        fault.times = 3; /* libweir retries after EINTR, without a limit */
    if (fault.error == EAGAIN || fault.error == 0)
        fault.calls &= 1u << FAKE_WRITE | 1u << FAKE_READ;
    if (fault.error == ENOMEM && t->sync_failed)
        return; /* write_whole.c then cuts a unit of output: the model does not follow that */
    t->fault_is_visible = fault.error != 0 && fault.error != EINTR;
    fake_plan(&fault);
}

static void run(struct input *in)
{
    static const char content[] = "one\ntwo, longer\n\nthree\nthe fourth is the longest of all the lines there are\nend";
    unsigned source = byte(in) % SOURCES;
    struct checked_stream t;
    fake_plan(NULL);
    fake_forget();
    struct weir_options options = options_of(in, sources[source].kind);
    if (!is_supported(&options, source))
        options.flags = 0;
    if (checked_open(&t, sources[source].kind, sources[source].oflags, &options, content, sizeof content - 1) < 0)
        abort();
    for (int steps = 0; in->left > 0 && steps < 300 && t.failures == 0; steps++) {
        unsigned op = byte(in) % (OPS + 4);
        if (op >= OPS) {
            set_fault(in, &t);
            continue;
        }
        uint64_t argument = byte(in) | byte(in) << 8;
        argument |= argument << 20 | argument << 44;
        checked_step(&t, (enum op)op, op == OP_SEEK ? argument % 300 : argument);
        if (fake_hits() > 0)
            checked_remove_faults(&t);
    }
    fake_plan(NULL);
    checked_remove_faults(&t);
    if (checked_close(&t) == -EAGAIN)
        checked_fail(&t, "close returned EAGAIN without a fault");
    check(t.failures == 0, "(the input above)");
    checked_free(&t);
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
