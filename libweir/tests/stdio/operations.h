/* operations.h: makes the calls of a plan. Included twice, for the C library's <stdio.h> and for weir/stdio.h; SIDE(x)
 * gives the functions different names. CLOSE_AFTER_FAILED_FREOPEN is true if the stream still exists then. */

struct SIDE(state) {
    FILE *file;
    const char *path, *mode;
    fpos_t position;
    bool has_position, pushed, after_read;
    char *line;
    size_t room;
    char *memory;
};

static const char *SIDE(text)(int a)
{
    static const char *const texts[] = {"", "a", "line\n", "two\nlines\n", "no end", "0123456789012345678901234567890123456789\n",
                                        "x\ny", "\n"};
    return texts[a % 8];
}

static int SIDE(print)(FILE *file, int a, int b, int c)
{
    int count = 0, result;
    switch (a % 10) {
    case 0: return fprintf(file, "%d", b);
    case 1: return fprintf(file, "%s|%5d\n", SIDE(text)(b), c);
    case 2: return fprintf(file, "%-12s%x %lu\n", SIDE(text)(b), c, (unsigned long)b * 4000000000u);
    case 3: return fprintf(file, "%.3f %g %e\n", b / 7.0, c / 3.0, b * 1e10);
    case 4: return fprintf(file, "%c%%%c", b % 256, c % 256);
    case 5: return fprintf(file, "%*d%.*s", b % 300, c, c % 5, "precise");
    case 6:
        result = fprintf(file, "abc%nxyz\n", &count);
        return result * 100 + count;
    case 7: return fprintf(file, "%ls %lc\n", L"wide", (wint_t)L'w');
    case 8: return fprintf(file, "%2$d %1$d\n", b, c);
    default: return fprintf(file, "plain\n");
    }
}

/* Calls fscanf. Returns its result; *values is a hash of all variables, also of those not assigned. */
static int SIDE(scan)(FILE *file, int a, uint64_t *values)
{
    int i = -1, j = -1, n = -1, result;
    long l = -1;
    unsigned u = 7;
    float f = -1;
    double d = -1;
    char word[64] = "", *made = NULL;
    wchar_t wide[64] = L"";
    switch (a % 18) {
    case 0: result = fscanf(file, "%d", &i); break;
    case 1: result = fscanf(file, "%60s", word); break;
    case 2: result = fscanf(file, "%3c", word); break;
    case 3: result = fscanf(file, "%*s%d%n", &i, &n); break;
    case 4: result = fscanf(file, "%3d%n%2d", &i, &n, &j); break;
    case 5: result = fscanf(file, "%60[a-z]%n", word, &n); break;
    case 6: result = fscanf(file, "%x,%60s", &u, word); break;
    case 7: result = fscanf(file, "%f%n", &f, &n); break;
    case 8: result = fscanf(file, "%d,%d", &i, &j); break;
    case 9: result = fscanf(file, "%n %c", &n, word); break;
    case 10: result = fscanf(file, "%m[^\n]", &made); break;
    case 11: result = fscanf(file, "%60ls%n", wide, &n); break;
    case 12: result = fscanf(file, "%lc", wide); break;
    case 13: result = fscanf(file, "%ld %lf", &l, &d); break;
    case 14: result = fscanf(file, "abc%n", &n); break;
    case 15: result = fscanf(file, "%%%n", &n); break;
    case 16: result = fscanf(file, "%i %n", &i, &n); break;
    default: result = fscanf(file, "%60[^,]%*c", word); break;
    }
    struct {
        int64_t i, j, n, l, u;
        double f, d;
        uint64_t text;
    } all = {i, j, n, l, u, f, d, hash(word, sizeof word) ^ hash(wide, wcslen(wide)) ^ (made ? hash(made, strlen(made)) : 0)};
    if (all.f != all.f) /* sign and payload of a NaN are not compared */
        all.f = 0.5;
    if (all.d != all.d)
        all.d = 0.5;
    *values = hash(&all, sizeof all);
    free(made);
    return result;
}

static void SIDE(read)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    int got;
    ssize_t length;
    size_t count = 0, size = 1;
    uint64_t values = 0;
    char *line;
    errno = 0;
    switch (step->call) {
    case FGETC:
    case GETC:
        got = step->call == FGETC ? fgetc(at->file) : getc(at->file);
        add_entry(log, number, got, got == EOF, 0);
        at->after_read = got != EOF;
        break;
    case FGETS:
        memset(at->memory, 0, 600);
        line = fgets(at->memory, 1 + at->pushed + step->a % (step->b % 4 ? 20 : 599), at->file);
        add_entry(log, number, line != NULL, line == NULL, line ? hash(line, 600) : 0);
        at->after_read = line && *line;
        break;
    case FREAD:
        size = 1 + (size_t)step->a % 7;
        count = at->pushed + (size_t)step->b % (step->c % 8 ? 50 : 50000);
        memset(at->memory, 0, size * count);
        length = (ssize_t)fread(at->memory, size, count, at->file);
        add_entry(log, number, length, (size_t)length < count, hash(at->memory, size * count));
        at->after_read = false; /* as for fflush in SIDE(query) */
        break;
    case FSCANF:
        got = SIDE(scan)(at->file, step->a, &values);
        add_entry(log, number, got, got == EOF, values);
        at->after_read = false; /* fscanf may have pushed a byte back already */
        break;
    case GETW:
        got = getw(at->file);
        add_entry(log, number, got, false, 0);
        at->after_read = false;
        break;
    default:
        if (ferror(at->file))
            return; /* glibc's getdelim then fails at once, which POSIX does not require */
        length = step->call == GETLINE ? getline(&at->line, &at->room, at->file)
                                       : getdelim(&at->line, &at->room, " \n1z"[step->a % 4], at->file);
        add_entry(log, number, length, length < 0, length > 0 ? hash(at->line, (size_t)length + 1) : 0);
        at->after_read = length > 0;
    }
    at->pushed = at->pushed && step->call == FSCANF; /* fscanf may have pushed the byte back again */
}

static void SIDE(write)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    int64_t result;
    size_t size, count;
    bool failed;
    errno = 0;
    switch (step->call) {
    case FPUTC:
    case PUTC:
        result = step->call == FPUTC ? fputc(step->a, at->file) : putc(step->a, at->file);
        failed = result == EOF;
        break;
    case FPUTS:
        result = fputs(SIDE(text)(step->a), at->file) >= 0;
        failed = !result;
        break;
    case FWRITE:
        size = 1 + (size_t)step->a % 7;
        count = (size_t)step->b % (step->c % 8 ? 50 : 50000);
        memset(at->memory, 'A' + step->a % 26, size * count);
        for (size_t i = 0; i < size * count; i += 37)
            at->memory[i] = '\n';
        result = (int64_t)fwrite(at->memory, size, count, at->file);
        failed = (size_t)result < count;
        break;
    case PUTW:
        result = putw(step->a, at->file);
        failed = result != 0;
        break;
    default:
        result = SIDE(print)(at->file, step->a, step->b, step->c);
        failed = result < 0;
    }
    add_entry(log, number, result, failed, 0);
    at->after_read = false;
}

static int SIDE(seek)(struct SIDE(state) *at, const struct step *step)
{
    static const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    int whence = whences[step->a % 3];
    long offset = step->b % (step->c % 4 ? 100 : 10000);
    if (whence != SEEK_SET)
        offset = offset - (step->c % 4 ? 60 : 6000);
    else if (step->c % 50 == 0)
        offset = -1;
    if (at->pushed) { /* glibc's SEEK_CUR is wrong then, and a failed seek drops the byte */
        whence = whence == SEEK_CUR ? SEEK_SET : whence;
        offset = offset < 0 ? -offset : offset;
    }
    return step->call == FSEEK ? fseek(at->file, offset, whence) : fseeko(at->file, offset, whence);
}

static void SIDE(move)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    int result = 0;
    errno = 0;
    if (step->call == REWIND)
        rewind(at->file);
    else if (step->call == FSETPOS)
        result = at->has_position ? fsetpos(at->file, &at->position) : fseek(at->file, 3, SEEK_SET);
    else
        result = SIDE(seek)(at, step);
    add_entry(log, number, result, result != 0, 0);
    at->pushed = at->after_read = false;
}

/* Sets a buffer and its size, which the C library may ignore: only the calls after it are compared. */
static int SIDE(buffer)(struct SIDE(state) *at, const struct step *step)
{
    static const int kinds[] = {_IOFBF, _IOLBF, _IONBF};
    static const size_t sizes[] = {1, 2, 3, 7, 16, 64, 255, 1024, 4096, 65536};
    static char memory[65536];
    int kind = kinds[step->a % 3];
    size_t size = sizes[step->b % 10];
    if (step->c % 5 == 0) {
        setbuf(at->file, step->a % 2 ? memory : NULL);
        return 0;
    }
    return setvbuf(at->file, step->c % 2 ? memory : NULL, kind, kind == _IONBF ? 0 : size) != 0;
}

static void SIDE(open)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    at->mode = modes[step->a % MODES];
    errno = 0;
    if (step->call == FREOPEN) {
        FILE *same = freopen(at->path, at->mode, at->file);
        add_entry(log, number, same == at->file ? 1 : same ? 2 : 0, !same, 0);
        if (!same && CLOSE_AFTER_FAILED_FREOPEN)
            fclose(at->file);
        at->file = same;
    } else {
        int closed = fclose(at->file);
        add_entry(log, number, closed, closed != 0, 0);
        errno = 0;
        at->file = fopen(at->path, at->mode);
        if (!at->file)
            add_entry(log, number, 0, true, 0);
    }
    at->has_position = at->pushed = at->after_read = false;
}

static void SIDE(query)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    int64_t result = 0;
    errno = 0;
    switch (step->call) {
    case FTELL: result = ftell(at->file); break;
    case FTELLO: result = ftello(at->file); break;
    case FGETPOS:
        result = fgetpos(at->file, &at->position);
        at->has_position = result == 0;
        break;
    case FEOF: result = feof(at->file) != 0; break;
    case FERROR: result = ferror(at->file) != 0; break;
    case CLEARERR: clearerr(at->file); break;
    case FFLUSH:
        result = at->pushed ? 0 : fflush(at->file);
        at->after_read = false; /* ungetc after fflush may make glibc free a wrong pointer */
        break;
    case FFLUSH_ALL: result = fflush(NULL); break;
    case SETVBUF: result = SIDE(buffer)(at, step); break;
    case LOCK:
        flockfile(at->file);
        result = ftrylockfile(at->file);
        funlockfile(at->file);
        funlockfile(at->file);
        break;
    default: break;
    }
    add_entry(log, number, result, result < 0, 0);
}

static void SIDE(step)(struct SIDE(state) *at, struct step *step, int number, struct log *log)
{
    if (is_write(step->call)) {
        SIDE(write)(at, step, number, log);
    } else if (is_read(step->call)) {
        SIDE(read)(at, step, number, log);
    } else if (step->call == UNGETC) {
        if (!at->after_read || at->pushed)
            return;
        add_entry(log, number, ungetc(step->a % 256, at->file), false, 0);
        at->pushed = true;
    } else if (step->call == REOPEN || step->call == FREOPEN) {
        SIDE(open)(at, step, number, log);
    } else if (step->call >= FSEEK && step->call <= REWIND) {
        SIDE(move)(at, step, number, log);
    } else if (step->call == FSETPOS) {
        SIDE(move)(at, step, number, log);
    } else {
        SIDE(query)(at, step, number, log);
    }
}

static void SIDE(run)(struct plan *plan, const char *path, struct log *log)
{
    static char memory[400000];
    struct SIDE(state) at = {.path = path, .mode = plan->mode, .memory = memory};
    log->count = 0;
    errno = 0;
    at.file = fopen(path, plan->mode);
    add_entry(log, -1, at.file != NULL, !at.file, 0);
    for (int i = 0; i < plan->count && at.file; i++)
        SIDE(step)(&at, &plan->steps[i], i, log);
    if (at.file) {
        errno = 0;
        int result = fclose(at.file);
        add_entry(log, plan->count, result, result != 0, 0);
    }
    free(at.line);
}
