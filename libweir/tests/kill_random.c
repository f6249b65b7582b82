/* kill_random.c: SIGKILL at random times, then weir_recover. --rounds=N: kills per kind of sink (250); --seed=N. */
#include "support/kill.h"

#include <pthread.h>

enum { WRITERS = 3, TEXT = 8 << 20 };

struct progress {
    _Atomic uint64_t begun, done; /* bytes */
    _Atomic unsigned opened;
};

/* `functions` is less than KILL_FUNCTIONS for several threads: one of them makes a record with several calls. */
static void write_until_killed(weir_stream *s, unsigned writer, struct progress *progress, unsigned functions)
{
    char record[KILL_RECORD];
    progress->opened = 1;
    for (unsigned number = 0; progress->begun < TEXT - KILL_RECORD; number++) {
        size_t length = kill_record(record, writer, number);
        progress->begun += length;
        if (!kill_put(s, record, length, number % functions))
            _exit(9);
        progress->done = progress->begun;
    }
    for (;;)
        pause();
}

/* ---- the child and its end ---- */

struct sink_kind {
    const char *name;
    int oflags;
    unsigned flags;
    bool fifo, pipe, threads;
};

static const struct sink_kind sink_kinds[] = {
    {"plain file", 0, 0, false, false, false},
    {"O_APPEND file", O_APPEND, 0, false, false, false},
    {"locked file", 0, WEIR_LOCK_FILE, false, false, false},
    {"named pipe", 0, 0, true, false, false},
    {"pipe", 0, 0, false, true, false},
    {"plain file, threads and a delay", 0, WEIR_THREADS, false, false, true},
    {"O_APPEND file, threads and a delay", O_APPEND, WEIR_THREADS, false, false, true},
};
enum { SINK_KINDS = sizeof sink_kinds / sizeof *sink_kinds };

struct round {
    const struct sink_kind *kind;
    struct weir_options options;
    struct progress *progress; /* [WRITERS] */
    int pipe[2];
    char *text, *expected;
};

struct writer {
    weir_stream *s;
    unsigned number;
    struct progress *progress;
};

static void *thread(void *context)
{
    struct writer *w = context;
    write_until_killed(w->s, w->number, w->progress, 3);
    return NULL;
}

static void child(const struct round *r)
{
    weir_stream *s = NULL;
    must(r->kind->pipe ? weir_fdopen(&s, r->pipe[1], &r->options)
                       : weir_open(&s, in_dir("sink"), O_WRONLY | r->kind->oflags, &r->options));
    struct writer others[WRITERS];
    for (unsigned i = 1; r->kind->threads && i < WRITERS; i++) {
        pthread_t id;
        others[i] = (struct writer){s, i, &r->progress[i]};
        must(-pthread_create(&id, NULL, thread, &others[i]));
    }
    write_until_killed(s, 0, &r->progress[0], r->kind->threads ? 3 : 4);
}

static void kill_after(pid_t pid, const struct progress *progress, struct random *random)
{
    struct timespec moment = {0, (long)random_below(random, 3000000)};
    if (random_below(random, 8)) /* else the kill may come while the child opens the stream */
        while (!progress->opened && kill(pid, 0) == 0 && waitpid(pid, NULL, WNOHANG) == 0)
            usleep(50);
    nanosleep(&moment, NULL);
    kill(pid, SIGKILL);
    wait_for(pid);
}

static void random_options(struct round *r, struct random *random)
{
    memset(&r->options, 0, sizeof r->options);
    r->options.durability = WEIR_KILL;
    r->options.flags = r->kind->flags;
    r->options.stale_ms = r->kind->threads ? 1 : 0;
    /* Bytes of several threads may interleave, except in record mode. */
    r->options.mode = r->kind->threads ? WEIR_RECORD : WEIR_NONE + random_below(random, 4);
    r->options.buffer_bytes = (size_t)1 << random_below(random, 16);
}

static size_t drain_pipe(int fd, char *to)
{
    size_t length = 0;
    for (ssize_t got; (got = read(fd, to + length, TEXT - length)) > 0;)
        length += (size_t)got;
    return length;
}

/* ---- the expected bytes ---- */

static size_t make_text(const struct round *r, unsigned writer)
{
    size_t length = 0;
    for (unsigned number = 0; length < r->progress[writer].begun; number++)
        length += kill_record(r->expected + length, writer, number);
    return length;
}

static uint64_t bytes_recovered, kills, repeats;

static void check_pipe(const struct round *r, size_t had, size_t bytes, const struct weir_recovered *found)
{
    size_t length = make_text(r, 0), from = had + 1;
    bool ok = had <= length && memcmp(r->text, r->expected, had) == 0;
    check(ok, "the reader has %zu bytes, not those of the writer", had);
    while (ok && from-- > 0 && (bytes < had - from ? bytes : had - from) <= found->repeated) {
        size_t end = from + bytes > had ? from + bytes : had;
        if (from + bytes <= length && end >= r->progress->done && memcmp(r->text + had, r->expected + from, bytes) == 0)
            return;
    }
    check(!ok, "%zu bytes, then %zu with up to %d repeated; calls for %d bytes had returned", had, bytes,
          (int)found->repeated, (int)r->progress->done);
}

/* Checks that the writer's records are there in order, each once. A torn record may follow the complete ones. */
static void check_writer(const struct round *r, unsigned writer, const char *have, size_t bytes)
{
    char prefix[16];
    size_t length = make_text(r, writer), at = 0;
    int prefix_bytes = sprintf(prefix, "%u.", writer);
    for (const char *line = have; line < have + bytes;) {
        const char *end = memchr(line, '\n', (size_t)(have + bytes - line));
        size_t part = (size_t)((end ? end + 1 : have + bytes) - line);
        if (part >= (size_t)prefix_bytes && memcmp(line, prefix, (size_t)prefix_bytes) == 0) {
            if (!check(at + part <= length && memcmp(r->expected + at, line, part) == 0,
                       "writer %u, byte %zu: %.*s", writer, at, (int)part, line))
                return;
            at += part;
        }
        line += part;
    }
    check(at >= r->progress[writer].done && at <= r->progress[writer].begun, "writer %u: %zu bytes, %d to %d", writer,
          at, (int)r->progress[writer].done, (int)r->progress[writer].begun);
}

static void check_file(const struct round *r, size_t bytes, const struct weir_recovered *found)
{
    check(found->exact == 1 && found->repeated == 0, "exact %d, repeated %d", found->exact, (int)found->repeated);
    if (!r->kind->threads) {
        size_t length = make_text(r, 0);
        check(bytes >= r->progress->done && bytes <= length && memcmp(r->text, r->expected, bytes) == 0,
              "the file has %zu bytes; calls for %d bytes had returned", bytes, (int)r->progress->done);
    }
    for (unsigned i = 0; r->kind->threads && i < WRITERS; i++)
        check_writer(r, i, r->text, bytes);
}

static void one_round(struct round *r, struct random *random)
{
    bool is_pipe = r->kind->fifo || r->kind->pipe;
    struct weir_recovered found = {.exact = 1};
    memset(r->progress, 0, WRITERS * sizeof *r->progress);
    random_options(r, random);
    r->options.spill = in_dir("a.weir");
    unlink(in_dir("sink"));
    if (r->kind->fifo)
        must(mkfifo(in_dir("sink"), 0600));
    else
        write_file(in_dir("sink"), "", 0);
    must(pipe(r->pipe));
    int reader = r->kind->fifo ? (int)must(open(in_dir("sink"), O_RDONLY | O_NONBLOCK)) : r->pipe[0];
    fcntl(reader, F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0)
        child(r);
    kill_after(pid, r->progress, random);
    size_t had = is_pipe ? drain_pipe(reader, r->text) : 0, bytes = 0;
    int result = weir_recover(in_dir("a.weir"), r->kind->pipe ? r->pipe[1] : -1, &found);
    check(result == 0 || (result == -ENOENT && r->progress->done == 0), "weir_recover: %s", strerror(-result));
    found.exact |= result == -ENOENT; /* killed before it made a spill file */
    check(count_files("weir") == 0, "a spill file is left");
    if (is_pipe)
        bytes = drain_pipe(reader, r->text + had);
    else
        bytes = read_file(in_dir("sink"), r->text, 4 * TEXT - 1);
    if (is_pipe)
        check_pipe(r, had, bytes, &found);
    else
        check_file(r, bytes, &found);
    bytes_recovered += found.bytes, kills++, repeats += found.repeated > 0;
    if (r->kind->fifo)
        close(reader);
    close(r->pipe[0]);
    close(r->pipe[1]);
}

/* ---- several processes, one file: each record at least once, and weir_recover counts the repeated bytes ---- */

struct tally {
    unsigned next[WRITERS];
    uint64_t done[WRITERS], repeated;
    unsigned torn;
    size_t begun[WRITERS]; /* bytes of a torn record that may go on behind another writer's bytes */
};

/* Counts a whole record, new or repeated. Returns its length, or 0. */
static size_t match_record(struct tally *t, const char *line, size_t left)
{
    char record[KILL_RECORD], *end;
    unsigned writer = (unsigned)strtoul(line, &end, 10), number = *end == '.' ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
    if (writer >= WRITERS || number > t->next[writer])
        return 0;
    size_t length = kill_record(record, writer, number);
    if (length > left || memcmp(line, record, length) != 0)
        return 0;
    *(number < t->next[writer] ? &t->repeated : &t->done[writer]) += length;
    if (number == t->next[writer])
        t->next[writer]++, t->begun[writer] = 0;
    return length;
}

/* Counts the rest of a torn record: weir_recover writes only what the file does not have, and another writer may append
 * between its look at the file and its write(2). Returns the length of the rest, or 0. */
static size_t match_rest(struct tally *t, const char *line, size_t left)
{
    for (unsigned writer = 0; writer < WRITERS; writer++) {
        char record[KILL_RECORD];
        size_t begun = t->begun[writer], length = kill_record(record, writer, t->next[writer]) - begun;
        if (begun == 0 || length > left || memcmp(line, record + begun, length) != 0)
            continue;
        t->repeated -= begun;
        t->done[writer] += begun + length;
        t->next[writer]++, t->begun[writer] = 0;
        return length;
    }
    return 0;
}

static bool is_record(const struct tally *t, const char *line, size_t left)
{
    struct tally copy = *t;
    return left == 0 || match_record(&copy, line, left) > 0;
}

/* Counts a torn record: the kill of a writer may end its write(2) in the middle of a record, once per writer. Returns
 * its length, or 0. The first bytes of the next record may equal the torn one's next bytes: ends where a record begins. */
static size_t match_torn_record(struct tally *t, const char *line, size_t left)
{
    size_t best = 0;
    unsigned of = 0;
    for (unsigned writer = 0; writer < WRITERS; writer++) {
        char record[KILL_RECORD];
        size_t length = kill_record(record, writer, t->next[writer]), same = 0;
        while (same < length && same < left && line[same] == record[same])
            same++;
        if (same > best)
            best = same, of = writer;
    }
    size_t end = best;
    while (end > 0 && !is_record(t, line + end, left - end))
        end--;
    best = end > 0 ? end : best;
    t->begun[of] = best;
    t->repeated += best;
    return ++t->torn <= WRITERS ? best : 0;
}

static void check_shared(const struct round *r, size_t bytes, uint64_t repeated)
{
    struct tally t = {0};
    r->text[bytes] = 0;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = match_record(&t, r->text + at, bytes - at);
        if (length == 0)
            length = match_rest(&t, r->text + at, bytes - at);
        if (length == 0)
            length = match_torn_record(&t, r->text + at, bytes - at);
        if (!check(length > 0, "byte %zu of %zu: %.*s", at, bytes, 80, r->text + at))
            return;
    }
    for (unsigned i = 0; i < WRITERS; i++)
        check(t.done[i] >= r->progress[i].done, "writer %u: %d of %d bytes", i, (int)t.done[i], (int)r->progress[i].done);
    check(t.repeated <= repeated, "%d bytes are repeated, weir_recover reported %d", (int)t.repeated, (int)repeated);
    repeats += t.repeated > 0;
}

static void shared_round(struct round *r, struct random *random)
{
    pid_t pids[WRITERS];
    uint64_t repeated = 0;
    memset(r->progress, 0, WRITERS * sizeof *r->progress);
    write_file(in_dir("sink"), "", 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        random_options(r, random);
        r->options.mode = WEIR_RECORD;
        r->options.spill = in_dir("%u.weir", i);
        if ((pids[i] = fork()) == 0) {
            weir_stream *s;
            must(weir_open(&s, in_dir("sink"), O_WRONLY | r->kind->oflags, &r->options));
            write_until_killed(s, i, &r->progress[i], 4);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) { /* each is recovered while the others still write */
        struct weir_recovered found;
        kill_after(pids[i], &r->progress[i], random);
        int result = weir_recover(in_dir("%u.weir", i), -1, &found);
        check(result == 0 || (result == -ENOENT && r->progress[i].done == 0), "weir_recover: %s", strerror(-result));
        repeated += found.repeated;
        bytes_recovered += found.bytes, kills++;
    }
    check_shared(r, read_file(in_dir("sink"), r->text, 4 * TEXT - 1), repeated);
}

int main(int count, char **arguments)
{
    uint64_t rounds = check_option(count, arguments, "rounds", check_quick() ? 125 : 250);
    struct random random = random_from(check_option(count, arguments, "seed", 1));
    struct round r = {.progress = shared_memory(WRITERS * sizeof(struct progress))};
    r.text = malloc(4 * TEXT);
    r.expected = malloc(2 * TEXT);
    kill_dir("/dev/shm");
    for (int i = 0; i < SINK_KINDS; i++) {
        r.kind = &sink_kinds[i];
        check_begin("%s", r.kind->name);
        for (uint64_t round = 0; round < rounds && check_wrong() < 5; round++)
            one_round(&r, &random);
    }
    for (int i = 1; i < 3; i++) {
        r.kind = &sink_kinds[i];
        check_begin("%s, %d processes", r.kind->name, WRITERS);
        for (uint64_t round = 0; round < rounds / 3 && check_wrong() < 5; round++)
            shared_round(&r, &random);
    }
    printf("%" PRIu64 " kills, %" PRIu64 " bytes recovered, %" PRIu64 " runs with repeated bytes\n", kills,
           bytes_recovered, repeats);
    kill_dir_remove();
    free(r.text);
    free(r.expected);
    return check_finish("kill_random");
}
