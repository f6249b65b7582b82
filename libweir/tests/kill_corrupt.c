/* kill_corrupt.c: weir_recover on spill files that are damaged, forged, or truncated during the recovery: an error or a
 * correct result, never a crash, and no byte in any file but the sink. --rounds=N: damaged files (20000); --seed=N. */
#include "support/kill.h"

#include <stdalign.h>

enum { SPILL_MAX = 32768, SINK = 500, PENDING = 60, READ_MAX = 1 << 20 };

static alignas(64) char base[SPILL_MAX], copy[SPILL_MAX];
static size_t base_bytes;
static char before[SINK], other[SINK];

static struct weir__spill_file *file_of(char *memory) { return (void *)memory; }

/* ---- the spill file of a killed owner, and its sink ---- */

static void write_sink(void)
{
    write_file(in_dir("sink"), before, sizeof before);
    write_file(in_dir("other"), other, sizeof other);
}

static void make_base(int oflags)
{
    write_sink();
    unlink(in_dir("base"));
    pid_t pid = fork();
    if (pid == 0) {
        weir_stream *s;
        struct weir_options options = {.durability = WEIR_KILL, .buffer_bytes = 300, .mode = WEIR_FULL};
        options.spill = in_dir("base");
        must(weir_open(&s, in_dir("sink"), O_WRONLY | oflags, &options));
        for (int i = 0; i < PENDING; i++)
            must(weir_putc(s, 'A' + i % 26));
        _exit(0);
    }
    check(wait_for(pid) == 0, "the owner failed");
    base_bytes = read_file(in_dir("base"), base, sizeof base);
}

/* Makes the spill file refer to the current sink, which write_sink may have created again. */
static void set_sink(char *memory)
{
    identify(in_dir("sink"), &file_of(memory)->sink);
    file_of(memory)->checksum = weir__spill_checksum(&file_of(memory)->sink);
}

/* ---- damage ---- */

/* Returns a value near a limit. */
static uint64_t edge_value(struct random *random)
{
    static const uint64_t values[] = {0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 1 << 12, 4095, UINT32_MAX,
                                      (uint64_t)1 << 62, SINK, PENDING, PENDING + 1, PENDING - 1, 300, 8192, 12288};
    enum { VALUES = sizeof values / sizeof *values };
    uint64_t value = values[random_below(random, VALUES)];
    return random_below(random, 4) ? value : value + random_below(random, 9) - 4;
}

static size_t damage(struct random *random)
{
    size_t bytes = base_bytes, words = offsetof(struct weir__spill_file, sink.path) / 8;
    memcpy(copy, base, base_bytes);
    set_sink(copy);
    for (uint64_t i = 1 + random_below(random, 3); i > 0; i--) {
        switch (random_below(random, 6)) {
        case 0: copy[random_below(random, sizeof(struct weir__spill_file))] ^= (char)(1 << random_below(random, 8)); break;
        case 1: case 2: case 3:
            ((uint64_t *)(void *)copy)[random_below(random, words)] = edge_value(random);
            break;
        case 4: bytes = random_below(random, base_bytes + 1); break;
        default: memset(copy + random_below(random, 4096), (int)random_below(random, 256), random_below(random, 64));
        }
    }
    if (random_below(random, 2)) /* an attacker corrects the checksum */
        file_of(copy)->checksum = weir__spill_checksum(&file_of(copy)->sink);
    return bytes;
}

/* Returns true for the results that weir_recover may have for a damaged file. */
static bool is_expected_result(int result)
{
    static const int results[] = {0, -EBADMSG, -EINVAL, -ESTALE, -ENXIO, -EFBIG, -ENOENT, -ELOOP, -EBUSY, -ENOTDIR};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (result == results[i])
            return true;
    return false;
}

static uint64_t accepted, refused;

/* Checks that no more of the sink has changed than weir_recover reports, and nothing in the other file. */
static void check_sink(const char *name, int result, const struct weir_recovered *found)
{
    static char have[READ_MAX];
    size_t bytes = read_file(in_dir("sink"), have, sizeof have), changed = 0;
    for (size_t i = 0; i < bytes && i < SINK; i++)
        changed += have[i] != before[i];
    for (size_t i = SINK; i < bytes; i++)
        changed += have[i] != 0;
    if (result == -EBADMSG || result == -ESTALE)
        check(bytes == SINK && changed == 0, "%s: refused, but %zu bytes of the sink have changed", name, changed);
    check(bytes >= SINK && changed <= found->bytes, "%s: %zu bytes have changed, %d reported", name, changed,
          (int)found->bytes);
    check(read_file(in_dir("other"), have, sizeof have) == SINK && memcmp(have, other, SINK) == 0,
          "%s: another file has changed", name);
}

/* Recovers a damaged file, to its sink or, if `to_fd`, to a descriptor. */
static void one_round(struct random *random, bool to_fd)
{
    struct weir_recovered found;
    write_sink();
    size_t bytes = damage(random);
    write_file(in_dir("copy"), copy, bytes);
    int fd = to_fd ? (int)must(open(in_dir("given"), O_WRONLY | O_CREAT | O_TRUNC, 0600)) : -1;
    int result = weir_recover(in_dir("copy"), fd, &found);
    check(is_expected_result(result), "%s", strerror(-result));
    check((result == 0) == (access(in_dir("copy"), F_OK) != 0),
          "the spill file is removed if and only if it is recovered");
    check(found.bytes <= SPILL_MAX, "%d bytes", (int)found.bytes);
    if (!to_fd)
        check_sink("damaged", result, &found);
    if (to_fd)
        close(fd);
    accepted += result == 0, refused += result != 0;
}

static void damaged(const char *name, int oflags, bool to_fd, uint64_t rounds, struct random *random)
{
    check_begin("damaged: %s", name);
    make_base(oflags);
    while (rounds-- && check_wrong() < 5)
        one_round(random, to_fd);
}

/* ---- forged files ---- */

static void expect_refusal(const char *name, const char *path, int expected)
{
    int result = weir_recover(path, -1, NULL);
    check(result == expected, "%s: %s", name, strerror(-result));
    check_sink(name, -ESTALE, &(struct weir_recovered){0});
}

static void not_a_spill_file(void)
{
    check_begin("not a spill file, or of another user");
    make_base(0);
    set_sink(base);
    write_file(in_dir("copy"), base, base_bytes);
    must(symlink(in_dir("copy"), in_dir("link")));
    expect_refusal("a symbolic link", in_dir("link"), -ELOOP);
    must(mkfifo(in_dir("fifo"), 0600));
    expect_refusal("a named pipe", in_dir("fifo"), -EINVAL);
    expect_refusal("a device", "/dev/null", -EINVAL);
    expect_refusal("a directory", in_dir("."), -EISDIR);
    expect_refusal("no file", in_dir("nothing"), -ENOENT);
    write_file(in_dir("empty"), "", 0);
    expect_refusal("an empty file", in_dir("empty"), -EBADMSG);
    must(chmod(in_dir("copy"), 0620));
    expect_refusal("a file that a group may write", in_dir("copy"), -EPERM);
    must(chmod(in_dir("copy"), 0600));
    if (geteuid() == 0) {
        must(chown(in_dir("copy"), 12345, 12345));
        expect_refusal("another user's file", in_dir("copy"), -EPERM);
        int fd = (int)must(open(in_dir("given"), O_WRONLY | O_CREAT, 0600));
        check(weir_recover(in_dir("copy"), fd, NULL) == 0, "another user's file, to the caller's descriptor");
        close(fd);
    }
}

/* Stores `path` as the sink in a copy of the spill file, and expects that weir_recover refuses it. */
static void expect_sink_refusal(const char *name, const char *path, int expected)
{
    memcpy(copy, base, base_bytes);
    set_sink(copy);
    memset(file_of(copy)->sink.path, 0, sizeof file_of(copy)->sink.path);
    strcpy(file_of(copy)->sink.path, path);
    file_of(copy)->checksum = weir__spill_checksum(&file_of(copy)->sink);
    write_file(in_dir("copy"), copy, base_bytes);
    expect_refusal(name, in_dir("copy"), expected);
}

static void another_sink(void)
{
    check_begin("the sink was replaced");
    make_base(0);
    must(symlink(in_dir("sink"), in_dir("to sink")));
    expect_sink_refusal("another file", in_dir("other"), -ESTALE);
    expect_sink_refusal("a link to the sink", in_dir("to sink"), -ESTALE);
    expect_sink_refusal("a device", "/dev/null", -ESTALE);
    expect_sink_refusal("no file", in_dir("nothing"), -ENOENT);
    expect_sink_refusal("a relative path", "sink", -EBADMSG);
    expect_sink_refusal("no path", "", -ENXIO);
    set_sink(base);
    if (file_of(base)->sink.btime) {
        memcpy(copy, base, base_bytes);
        file_of(copy)->sink.btime--;
        file_of(copy)->checksum = weir__spill_checksum(&file_of(copy)->sink);
        write_file(in_dir("copy"), copy, base_bytes);
        expect_refusal("a newer file with the same inode number", in_dir("copy"), -ESTALE);
    }
    write_file(in_dir("copy"), base, base_bytes);
    rename(in_dir("sink"), in_dir("sink.1")); /* rotated */
    write_sink();
    expect_refusal("a new file with the same name", in_dir("copy"), -ESTALE);
    int fd = (int)must(open(in_dir("sink.1"), O_WRONLY));
    struct weir_recovered found;
    check(weir_recover(in_dir("copy"), fd, &found) == 0 && found.exact && found.bytes == PENDING,
          "recovery to the renamed sink");
    char have[SINK + 1];
    check(read_file(in_dir("sink.1"), have, sizeof have) == SINK && memcmp(have, "ABCDEF", 6) == 0 &&
              memcmp(have + PENDING, before + PENDING, SINK - PENDING) == 0, "the renamed sink starts with %.10s",
          have);
    close(fd);
}

/* ---- truncated during the recovery ---- */

static void truncated(uint64_t rounds, struct random *random)
{
    check_begin("truncated during the recovery");
    make_base(0);
    while (rounds--) {
        write_sink();
        set_sink(base);
        write_file(in_dir("copy"), base, base_bytes);
        pid_t pid = fork();
        if (pid == 0)
            _exit(-weir_recover(in_dir("copy"), -1, NULL));
        for (uint64_t i = random_below(random, 1500000); i > 0; i--)
            atomic_signal_fence(memory_order_seq_cst);
        if (truncate(in_dir("copy"), (off_t)random_below(random, base_bytes)) != 0)
            check(errno == ENOENT, "truncate");
        int status = wait_for(pid);
        check(is_expected_result(-status), "status %d", status);
        accepted += status == 0, refused += status != 0;
    }
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", 20000);
    struct random random = random_from(check_option(count, arguments, "seed", 1));
    memset(before, '.', sizeof before);
    memset(other, '#', sizeof other);
    kill_dir("/dev/shm");
    damaged("plain file", 0, false, rounds / 2, &random);
    damaged("O_APPEND file", O_APPEND, false, rounds / 4, &random);
    damaged("to a descriptor", 0, true, rounds / 4, &random);
    not_a_spill_file();
    another_sink();
    truncated(rounds / 20, &random);
    printf("%" PRIu64 " damaged files recovered, %" PRIu64 " refused\n", accepted, refused);
    kill_dir_remove();
    return check_finish("kill_corrupt");
}
