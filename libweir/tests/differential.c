/* differential.c: the same random sequences of calls on a libweir stream and on stdio's FILE: all results and, at the
 * end, the two files must be equal. --count=N sequences (100000), --seed=N the first.
 *
 * It compares only what C11 defines; stdio also gets the repositioning that C11 requires between reading and writing.
 * Left out because C11 does not define it: the position before the first output of an appending stream, ungetc at
 * position 0, more than one pushed-back byte (glibc allows some), and a failing fseek while a byte is pushed back.
 * Different on purpose: error numbers, sticky errors, and weir_eof after weir_peek has reached the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir.h>

#include "support/check.h"

enum op {
    PUTC, WRITE, PUTS, PRINTF, NUMBER, RECORD, PARTS, RESERVE,
    FIRST_READ, GETC = FIRST_READ, READ, LINE, SKIP, UNGETC,
    FIRST_OTHER, SEEK = FIRST_OTHER, SEEK_BY, SEEK_FROM_END, TELL, AT_END, FLUSH, CLEAR, NEW_MODE,
    OPS
};

static const char *const op_names[OPS] = {"putc", "write", "puts", "printf", "number", "record", "parts", "reserve",
                                          "getc", "read", "line", "skip", "ungetc", "seek", "seek_by", "seek_end",
                                          "tell", "eof", "flush", "clear", "new_mode"};

static const struct kind {
    const char *mode;
    int oflags;
    bool reads, writes, appends;
} kinds[] = {
    {"r", O_RDONLY, true, false, false},
    {"w", O_WRONLY | O_CREAT | O_TRUNC, false, true, false},
    {"a", O_WRONLY | O_CREAT | O_APPEND, false, true, true},
    {"r+", O_RDWR, true, true, false},
    {"w+", O_RDWR | O_CREAT | O_TRUNC, true, true, false},
    {"a+", O_RDWR | O_CREAT | O_APPEND, true, true, true},
};

enum { TEXT_MAX = 3000, CONTENT_MAX = 700 };

struct pair {
    FILE *f;
    weir_stream *s;
    const struct kind *kind;
    enum { NOTHING_YET, READING, WRITING } last;
    unsigned pushed;
    bool was_pushed; /* since the last seek */
    struct random r;
    char text[TEXT_MAX + 1], stdio_data[2 * TEXT_MAX], weir_data[2 * TEXT_MAX];
    int64_t stdio_result, weir_result;
    bool verbose;
};

static int file_fds[2];
static char paths[2][64];

/* ---- a call on both ---- */

static size_t make_text(struct pair *p, size_t most)
{
    size_t bytes = random_below(&p->r, 16) ? random_below(&p->r, 40) : random_below(&p->r, most + 1);
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0)
            bits = random_next(&p->r);
        unsigned char c = (unsigned char)(bits >> i % 8 * 8);
        p->text[i] = c < 30 ? '\n' : (char)(' ' + c % 90);
    }
    p->text[bytes] = '\0';
    return bytes;
}

static void print_both(struct pair *p)
{
    int number = (int)random_next(&p->r);
    double real = (double)number / 1024;
    switch (random_below(&p->r, 4)) {
    case 0:
        p->stdio_result = fprintf(p->f, "%d %s|", number, p->text);
        p->weir_result = weir_printf(p->s, "%d %s|", number, p->text);
        break;
    case 1:
        p->stdio_result = fprintf(p->f, "%-12x%.3f\n", (unsigned)number, real);
        p->weir_result = weir_printf(p->s, "%-12x%.3f\n", (unsigned)number, real);
        break;
    case 2:
        p->stdio_result = fprintf(p->f, "%c%*d%%", 'x', number & 15, number & 255);
        p->weir_result = weir_printf(p->s, "%c%*d%%", 'x', number & 15, number & 255);
        break;
    default:
        p->stdio_result = fprintf(p->f, "%g\n%5.2s", real, p->text);
        p->weir_result = weir_printf(p->s, "%g\n%5.2s", real, p->text);
    }
}

static void number_both(struct pair *p)
{
    uint64_t number = random_next(&p->r) >> random_below(&p->r, 64);
    switch (random_below(&p->r, 3)) {
    case 0:
        p->stdio_result = fprintf(p->f, "%llu", (unsigned long long)number);
        p->weir_result = weir_put_u64(p->s, number);
        break;
    case 1:
        p->stdio_result = fprintf(p->f, "%lld", (long long)number);
        p->weir_result = weir_put_i64(p->s, (int64_t)number);
        break;
    default:
        p->stdio_result = fprintf(p->f, "%.2f", (double)number / 64);
        p->weir_result = weir_put_f64(p->s, (double)number / 64, 2);
    }
}

static void parts_both(struct pair *p, size_t bytes)
{
    size_t first = random_below(&p->r, bytes + 1), second = random_below(&p->r, bytes - first + 1);
    struct iovec parts[3] = {
        {p->text, first}, {p->text + first, second}, {p->text + first + second, bytes - first - second}};
    p->stdio_result = 0;
    for (int i = 0; i < 3; i++)
        p->stdio_result += (int64_t)fwrite(parts[i].iov_base, 1, parts[i].iov_len, p->f);
    p->weir_result = weir_writev(p->s, parts, 3);
}

static void reserve_both(struct pair *p, size_t bytes)
{
    char *to;
    p->stdio_result = (int64_t)fwrite(p->text, 1, bytes, p->f);
    p->weir_result = weir_reserve(p->s, &to, bytes);
    if (p->weir_result < (int64_t)bytes)
        return;
    memcpy(to, p->text, bytes);
    p->weir_result = weir_commit(p->s, bytes) == 0 ? (int64_t)bytes : -1;
}

static void write_both(struct pair *p, enum op op)
{
    size_t bytes = make_text(p, TEXT_MAX);
    switch (op) {
    case PUTC:
        p->stdio_result = putc(p->text[0], p->f);
        p->weir_result = weir_putc(p->s, p->text[0]);
        break;
    case WRITE:
        p->stdio_result = (int64_t)fwrite(p->text, 1, bytes, p->f);
        p->weir_result = weir_write(p->s, p->text, bytes);
        break;
    case PUTS:
        p->stdio_result = fputs(p->text, p->f) < 0 ? -1 : (int64_t)bytes;
        p->weir_result = weir_put_str(p->s, p->text);
        break;
    case RECORD:
        p->stdio_result = fwrite(p->text, 1, bytes, p->f) == bytes && putc('\n', p->f) == '\n' ? (int64_t)bytes : -1;
        p->weir_result = weir_putrec(p->s, p->text, bytes);
        break;
    case PRINTF: print_both(p); break;
    case NUMBER: number_both(p); break;
    case PARTS: parts_both(p, bytes); break;
    default: reserve_both(p, bytes);
    }
}

static void line_both(struct pair *p)
{
    static char *line;
    static size_t room;
    char *record = p->weir_data;
    ssize_t theirs = getline(&line, &room, p->f), ours = weir_getrec(p->s, &record);
    p->stdio_result = theirs < 0 ? 0 : theirs;
    p->weir_result = ours;
    if (theirs > 0 && ours == theirs && memcmp(line, record, (size_t)ours) != 0)
        p->weir_result = -1;
}

/* Pushes a random byte back: once, as C11 guarantees, or up to four times with glibc. */
static void unget_both(struct pair *p, uint64_t argument)
{
    p->stdio_result = p->weir_result = 0;
#if defined(__GLIBC__)
    unsigned most = 1 + (argument >> 20) % 8 / 7 * 3;
#else
    unsigned most = 1;
#endif
    if (p->pushed >= most || ftell(p->f) <= 0)
        return;
    int c = (int)(argument % 256);
    p->stdio_result = ungetc(c, p->f);
    p->weir_result = weir_ungetc(p->s, c);
    p->pushed++;
    p->was_pushed = true;
}

static void read_both(struct pair *p, enum op op)
{
    uint64_t argument = random_next(&p->r);
    size_t bytes = argument % 16 ? argument / 16 % 40 : argument / 16 % TEXT_MAX;
    int ours;
    switch (op) {
    case GETC:
        p->stdio_result = getc(p->f);
        ours = weir_getc(p->s);
        p->weir_result = ours == WEIR_EOF ? EOF : ours;
        break;
    case READ:
    case SKIP:
        p->stdio_result = (int64_t)fread(p->stdio_data, 1, bytes, p->f);
        p->weir_result = op == READ ? weir_read(p->s, p->weir_data, bytes) : weir_skip(p->s, bytes);
        if (op == READ && p->stdio_result == p->weir_result &&
            memcmp(p->stdio_data, p->weir_data, (size_t)p->weir_result) != 0)
            p->weir_result = -1;
        break;
    case LINE: line_both(p); break;
    default: unget_both(p, argument); return;
    }
    int64_t consumed = op == GETC ? p->weir_result >= 0 : p->weir_result;
    p->pushed = consumed < (int64_t)p->pushed ? p->pushed - (unsigned)consumed : 0;
}

static void seek_both(struct pair *p, enum op op)
{
    int64_t offset = op == SEEK ? (int64_t)random_below(&p->r, CONTENT_MAX + 200) : (int64_t)random_below(&p->r, 200) - 120;
    int whence = op == SEEK ? SEEK_SET : op == SEEK_BY ? SEEK_CUR : SEEK_END;
    if (op == SEEK_BY && p->pushed && ftell(p->f) + offset < 0)
        offset = 0;
    if (op == SEEK_FROM_END && p->pushed)
        offset = 0;
    /* After ungetc, glibc's SEEK_CUR is not relative to the position that its ftell returns. */
    bool from_tell = whence == SEEK_CUR && p->was_pushed;
    int sought = from_tell ? fseek(p->f, ftell(p->f) + (long)offset, SEEK_SET) : fseek(p->f, (long)offset, whence);
    p->stdio_result = sought == 0 ? ftell(p->f) : -1;
    p->weir_result = weir_seek(p->s, offset, whence);
    p->weir_result = p->weir_result < 0 ? -1 : p->weir_result;
    if (p->stdio_result >= 0) {
        p->pushed = 0;
        p->was_pushed = false;
        p->last = NOTHING_YET;
    }
}

static void other_both(struct pair *p, enum op op)
{
    static const size_t sizes[] = {0, 0, 1, 5, 100, 4096};
    p->stdio_result = p->weir_result = 0;
    switch (op) {
    case TELL:
        p->stdio_result = ftell(p->f);
        p->weir_result = weir_tell(p->s);
        break;
    case AT_END:
        p->stdio_result = feof(p->f) != 0;
        p->weir_result = weir_eof(p->s);
        break;
    case FLUSH:
        if (p->last != READING) { /* C11 does not define fflush of input */
            p->stdio_result = fflush(p->f);
            p->weir_result = weir_flush(p->s);
        }
        break;
    case CLEAR:
        clearerr(p->f);
        weir_clear(p->s);
        break;
    case NEW_MODE: /* has no visible effect */
        p->weir_result = weir_set_mode(p->s, (enum weir_mode)random_below(&p->r, 5), sizes[random_below(&p->r, 6)]);
        break;
    default: seek_both(p, op);
    }
}

/* ---- a sequence ---- */

/* Repositions stdio's stream where C11 requires it between reading and writing. */
static void set_direction(struct pair *p, int to)
{
    if (p->last != NOTHING_YET && (int)p->last != to)
        fseek(p->f, ftell(p->f), SEEK_SET);
    if (p->last == READING && to == WRITING)
        p->pushed = p->was_pushed = 0;
    p->last = to;
}

static enum op choose(struct pair *p)
{
    for (;;) {
        enum op op = (enum op)random_below(&p->r, OPS);
        bool writes = op < FIRST_READ, reads = op >= FIRST_READ && op < FIRST_OTHER;
        if ((writes && !p->kind->writes) || (reads && !p->kind->reads) || (op >= CLEAR && random_below(&p->r, 4)))
            continue;
        if (writes || reads)
            set_direction(p, writes ? WRITING : READING);
        return op;
    }
}

static bool step(struct pair *p, int number)
{
    enum op op = choose(p);
    if (op < FIRST_READ)
        write_both(p, op);
    else if (op < FIRST_OTHER)
        read_both(p, op);
    else
        other_both(p, op);
    if (p->verbose)
        printf("    %d %s: %lld, %lld\n", number, op_names[op], (long long)p->stdio_result, (long long)p->weir_result);
    return p->stdio_result == p->weir_result;
}

static bool files_are_equal(void)
{
    static char a[1 << 18], b[1 << 18];
    ssize_t bytes = pread(file_fds[0], a, sizeof a, 0);
    return bytes == pread(file_fds[1], b, sizeof b, 0) && memcmp(a, b, (size_t)bytes) == 0;
}

static bool open_both(struct pair *p, char *buffer)
{
    static const size_t sizes[] = {1, 2, 3, 7, 16, 64, 500, 4096, 65536};
    static const int stdio_modes[] = {_IONBF, _IOLBF, _IOFBF, _IOFBF};
    size_t content = random_below(&p->r, CONTENT_MAX), size = sizes[random_below(&p->r, 9)];
    unsigned mode = (unsigned)random_below(&p->r, 4);
    memset(p->text, 'c', content);
    for (size_t i = 0; i < content; i += 1 + random_below(&p->r, 30))
        p->text[i] = '\n';
    for (int i = 0; i < 2; i++)
        if (ftruncate(file_fds[i], 0) != 0 || pwrite(file_fds[i], p->text, content, 0) != (ssize_t)content)
            abort();
    p->f = fopen(paths[0], p->kind->mode);
    struct weir_options options = {.mode = (enum weir_mode)(mode + 1), .buffer_bytes = size};
    if (random_below(&p->r, 4) == 0)
        options.access = WEIR_ACCESS_RANDOM;
    if (!p->f || weir_open(&p->s, paths[1], p->kind->oflags, &options) < 0)
        return false;
    setvbuf(p->f, buffer, stdio_modes[mode], size);
    if (p->kind->appends) {
        fseek(p->f, 0, SEEK_SET);
        weir_seek(p->s, 0, SEEK_SET);
    }
    return true;
}

static bool sequence(uint64_t seed, bool verbose)
{
    static char buffer[65536];
    static struct pair p;
    p.r = random_from(seed);
    p.kind = &kinds[random_below(&p.r, 6)];
    p.last = NOTHING_YET;
    p.pushed = 0;
    p.was_pushed = false;
    p.verbose = verbose;
    if (!open_both(&p, buffer))
        return false;
    int steps = 1 + (int)random_below(&p.r, 30);
    if (verbose)
        printf("  sequence %llu, mode %s\n", (unsigned long long)seed, p.kind->mode);
    bool equal = true;
    for (int i = 0; i < steps && equal; i++)
        equal = step(&p, i);
    bool closed = fclose(p.f) == 0;
    closed = weir_close(p.s) == 0 && closed;
    if (verbose)
        printf("    results %s, files %s, closed %d\n", equal ? "equal" : "differ",
               files_are_equal() ? "equal" : "differ", closed);
    return equal && closed && files_are_equal();
}

int main(int count, char **arguments)
{
    uint64_t sequences = check_option(count, arguments, "count", CHECK_SANITIZED ? 10000 : 100000);
    uint64_t first = check_option(count, arguments, "seed", 1);
    const char *directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/weir-differential-XXXXXX", directory);
        file_fds[i] = mkstemp(paths[i]);
    }
    double start = seconds_now();
    check_begin("%llu sequences from %llu on", (unsigned long long)sequences, (unsigned long long)first);
    for (uint64_t seed = first; seed < first + sequences && check_wrong() < 5; seed++)
        if (!check(sequence(seed, false), "sequence %llu", (unsigned long long)seed))
            sequence(seed, true);
    printf("  %.1f s\n", seconds_now() - start);
    for (int i = 0; i < 2; i++)
        unlink(paths[i]);
    return check_finish("differential");
}
