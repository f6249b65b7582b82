/* stdio_differential.c: random sequences of stdio calls with the C library and with weir/stdio.h: the results, errno of
 * failed calls, and the file at the end must be the same. Arguments: number of sequences, number of the first. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "stdio/plan.h"
#include "support/check.h"

#if defined(__GLIBC__)
#define CLOSE_AFTER_FAILED_FREOPEN true
#else
#define CLOSE_AFTER_FAILED_FREOPEN false
#endif
#define SIDE(name) libc_##name
#include "stdio/operations.h"
#undef SIDE
#undef CLOSE_AFTER_FAILED_FREOPEN

static char directory[64];

static void make_file(const char *path, const struct plan *plan)
{
    unlink(path);
    if (!plan->exists)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, plan->content, plan->length) != (ssize_t)plan->length) {
        perror(path);
        exit(2);
    }
    close(fd);
}

static ssize_t read_file(const char *path, char *to, size_t room)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -errno;
    ssize_t bytes = read(fd, to, room);
    close(fd);
    return bytes;
}

static void show_entry(const char *side, const struct log *log, int i)
{
    if (i >= log->count) {
        printf("    %s: no such call\n", side);
        return;
    }
    const struct entry *e = &log->entries[i];
    printf("    %s: step %d returns %" PRId64 ", errno %d (%s), bytes %" PRIx64 "\n", side, e->step, e->result, e->error,
           e->error ? strerror(e->error) : "", e->bytes);
}

static void show_plan(const struct plan *plan, uint64_t number)
{
    printf("  sequence %" PRIu64 ": fopen mode %s, file %s of %zu bytes\n", number, plan->mode,
           plan->exists ? "exists" : "missing", plan->length);
    for (int i = 0; i < plan->count; i++) {
        const struct step *s = &plan->steps[i];
        printf("    %2d %s %d %d %d%s%s\n", i, call_names[s->call], s->a, s->b, s->c,
               s->call == REOPEN || s->call == FREOPEN ? " mode " : "",
               s->call == REOPEN || s->call == FREOPEN ? modes[s->a % MODES] : "");
    }
}

static bool same_entries(const struct log *a, const struct log *b, int i)
{
    const struct entry *x = &a->entries[i], *y = &b->entries[i];
    return x->step == y->step && x->result == y->result && x->error == y->error && x->bytes == y->bytes;
}

static bool same_logs(const struct log *libc, const struct log *weir)
{
    int most = libc->count > weir->count ? libc->count : weir->count;
    for (int i = 0; i < most; i++) {
        if (i < libc->count && i < weir->count && same_entries(libc, weir, i))
            continue;
        printf("  entry %d differs:\n", i);
        show_entry("libc", libc, i);
        show_entry("weir", weir, i);
        return false;
    }
    return true;
}

static bool same_files(const char *a, const char *b)
{
    enum { ROOM = 4 << 20 };
    static char left[ROOM], right[ROOM];
    ssize_t n = read_file(a, left, ROOM), m = read_file(b, right, ROOM);
    if (n == m && (n <= 0 || memcmp(left, right, (size_t)n) == 0))
        return true;
    printf("  the files differ: %zd and %zd bytes\n", n, m);
    return false;
}

static int report(uint64_t passed, uint64_t failed, uint64_t calls, const uint64_t *counts)
{
    for (int i = 0; i < CALLS; i++)
        printf("%s%s %" PRIu64, i ? ", " : "calls: ", call_names[i], counts[i]);
    printf("\n%" PRIu64 " calls in %" PRIu64 " sequences\n", calls, passed + failed);
    printf("stdio_differential: %d passed, %d failed, 0 skipped\n", failed == 0, failed != 0);
    fflush(stdout);
    return failed != 0;
}

#include <weir/stdio.h>

#define CLOSE_AFTER_FAILED_FREOPEN true
#define SIDE(name) weir_side_##name
#include "stdio/operations.h"

int main(int count, char **arguments)
{
    static struct plan plan;
    static struct log libc, weir;
    static uint64_t counts[CALLS];
    char weir_path[96], libc_path[96];
    uint64_t total = count > 1 ? strtoull(arguments[1], NULL, 0) : check_quick() ? 15000 : 40000;
    uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 0) : 0;
    uint64_t failed = 0, calls = 0, i;
    snprintf(directory, sizeof directory, "%s/weir-stdio-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(directory))
        return 2;
    snprintf(weir_path, sizeof weir_path, "%s/weir", directory);
    snprintf(libc_path, sizeof libc_path, "%s/libc", directory);
    for (i = first; i < first + total && failed < 5; i++) {
        make_plan(&plan, i);
        make_file(libc_path, &plan);
        libc_run(&plan, libc_path, &libc);
        make_file(weir_path, &plan);
        weir_side_run(&plan, weir_path, &weir);
        calls += (uint64_t)libc.count;
        for (int k = 0; k < libc.count; k++)
            if (libc.entries[k].step >= 0 && libc.entries[k].step < plan.count)
                counts[plan.steps[libc.entries[k].step].call]++;
        bool same = same_logs(&libc, &weir);
        if (same && same_files(libc_path, weir_path))
            continue;
        failed++;
        show_plan(&plan, i);
    }
    unlink(weir_path);
    unlink(libc_path);
    rmdir(directory);
    return report(i - first - failed, failed, calls, counts);
}
