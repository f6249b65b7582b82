/* memory_operations.h: random calls on fmemopen, open_memstream and fopencookie streams. Included twice, for the C
 * library's <stdio.h> and for weir/stdio.h; SIDE(x) gives the functions different names. Each appends the results of
 * the calls to `to`. */

static void SIDE(log)(char *to, const char *call, long result)
{
    sprintf(to + strlen(to), "%s %ld\n", call, result);
}

static void SIDE(show)(char *to, const char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        sprintf(to + strlen(to), memory[i] >= ' ' && memory[i] < 127 ? "%c" : "\\%02x", (unsigned char)memory[i]);
    strcat(to, "\n");
}

/* Makes a random call; `back` is the least distance from the end after SEEK_END. */
static void SIDE(fixed_step)(FILE *f, char *to, long back)
{
    static const char *const texts[] = {"a", "bcd", "efghijkl", "0123456789", "\n"};
    char text[16] = "";
    switch (below(8)) {
    case 0: SIDE(log)(to, "fputs", fputs(texts[below(5)], f) >= 0); break;
    case 1: SIDE(log)(to, "fflush", fflush(f)); break;
    case 2: SIDE(log)(to, "ftell", ftell(f)); break;
    case 3: SIDE(log)(to, "fseek SET", fseek(f, (long)below(20), SEEK_SET)); break;
    case 4: SIDE(log)(to, "fseek END", fseek(f, -back - (long)below(6), SEEK_END)); break;
    case 5: SIDE(log)(to, "fprintf", fprintf(f, "<%d>", (int)below(1000))); break;
    default:
        fseek(f, (long)below(8), SEEK_SET);
        SIDE(log)(to, "fread", (long)fread(text, 1, 1 + below(10), f));
        SIDE(show)(to, text, sizeof text);
        fseek(f, 0, SEEK_CUR);
    }
}

/* Makes random calls on an fmemopen stream. */
static void SIDE(fixed)(uint64_t number, char *to)
{
    static const char *const open_modes[] = {"r", "w", "a", "r+", "w+", "a+"};
    seed(number);
    char memory[400];
    memset(memory, '~', sizeof memory);
    strcpy(memory, "some text");
    const char *mode = open_modes[below(6)];
    size_t bytes = 1 + below(32);
    if (strchr(mode, '+')) /* excess bytes are lost in glibc, and stay pending in libweir: avoid them */
        bytes += 300;
    FILE *f = fmemopen(memory, bytes, mode);
    *to = '\0';
    SIDE(log)(to, mode, f != NULL);
    if (!f)
        return;
    bool reads = can_read(mode), writes = can_write(mode);
    for (int i = 0; i < 8; i++) {
        if (reads && writes) {
            SIDE(fixed_step)(f, to, *mode == 'r' ? 100 : 0);
        } else if (reads) {
            char text[16] = "";
            SIDE(log)(to, "fread", (long)fread(text, 1, 1 + below(10), f));
            SIDE(show)(to, text, sizeof text);
            SIDE(log)(to, "feof", feof(f) != 0);
            if (below(3) == 0)
                SIDE(log)(to, "fseek", fseek(f, (long)below((unsigned)bytes), SEEK_SET));
        } else {
            SIDE(log)(to, "fprintf", fprintf(f, "<%d>", (int)below(1000)) > 0);
            if (below(3) == 0)
                SIDE(log)(to, "fflush", fflush(f));
            if (below(5) == 0 && !ferror(f))
                SIDE(log)(to, "ftell", ftell(f));
        }
    }
    int failed = ferror(f) != 0; /* libweir's fclose then returns EOF */
    SIDE(log)(to, "fclose", fclose(f) | -failed);
    SIDE(show)(to, memory, sizeof memory);
}

static void SIDE(growing)(uint64_t number, char *to)
{
    char *memory = NULL;
    size_t bytes = 99;
    seed(number);
    FILE *f = open_memstream(&memory, &bytes);
    *to = '\0';
    for (int i = 0; i < 12; i++) {
        switch (below(6)) {
        case 0: SIDE(log)(to, "fputs", fputs("some text", f) >= 0); break;
        case 1: SIDE(log)(to, "fprintf", fprintf(f, "%*d", 1 + (int)below(3000), (int)below(1000))); break;
        case 2: SIDE(log)(to, "putc", putc('0' + (int)below(10), f)); break;
        case 3: SIDE(log)(to, "ftell", ftell(f)); break;
        case 4:
            if (below(4) == 0) { /* with a write: glibc pads with zeros even if nothing is written */
                SIDE(log)(to, "fseek", fseek(f, (long)below(100), SEEK_END));
                putc('!', f);
            }
            break;
        default:
            SIDE(log)(to, "fflush", fflush(f));
            SIDE(log)(to, "length", (long)bytes);
            SIDE(log)(to, "hash", (long)(hash(memory, bytes) & 0xffffff));
            SIDE(log)(to, "NUL", memory[bytes]);
        }
    }
    SIDE(log)(to, "fseek", fseek(f, 0, SEEK_END));
    SIDE(log)(to, "fclose", fclose(f));
    SIDE(log)(to, "length", (long)bytes);
    SIDE(log)(to, "hash", (long)(hash(memory, bytes) & 0xffffff));
    free(memory);
}

struct SIDE(source) {
    char data[64];
    long position, end;
    int closed;
};

static ssize_t SIDE(cookie_read)(void *cookie, char *to, size_t bytes)
{
    struct SIDE(source) *source = cookie;
    long left = source->end - source->position;
    if (left < 0)
        left = 0;
    bytes = (long)bytes < left ? bytes : (size_t)left;
    memcpy(to, source->data + source->position, bytes);
    source->position += (long)bytes;
    return (ssize_t)bytes;
}

static ssize_t SIDE(cookie_write)(void *cookie, const char *from, size_t bytes)
{
    struct SIDE(source) *source = cookie;
    if (source->position + (long)bytes > (long)sizeof source->data) {
        errno = EDQUOT;
        return 0;
    }
    memcpy(source->data + source->position, from, bytes);
    source->position += (long)bytes;
    source->end = source->position > source->end ? source->position : source->end;
    return (ssize_t)bytes;
}

static int SIDE(cookie_seek)(void *cookie, off_t *offset, int whence)
{
    struct SIDE(source) *source = cookie;
    long target = *offset + (whence == SEEK_CUR ? source->position : whence == SEEK_END ? source->end : 0);
    if (target < 0 || target > (long)sizeof source->data) {
        errno = EINVAL;
        return -1;
    }
    *offset = source->position = target;
    return 0;
}

static int SIDE(cookie_close)(void *cookie)
{
    ((struct SIDE(source) *)cookie)->closed++;
    errno = EDOM;
    return ((struct SIDE(source) *)cookie)->closed > 5 ? 0 : -1;
}

static void SIDE(cookies)(uint64_t number, char *to)
{
    cookie_io_functions_t functions = {SIDE(cookie_read), SIDE(cookie_write), SIDE(cookie_seek), SIDE(cookie_close)};
    struct SIDE(source) source = {.data = "what the cookie has", .end = 19, .closed = number % 3 ? 7 : 0};
    seed(number);
    if (below(4) == 0)
        functions.seek = NULL;
    FILE *f = fopencookie(&source, "r+", functions);
    *to = '\0';
    for (int i = 0; i < 6 && functions.seek; i++)
        SIDE(fixed_step)(f, to, 0);
    if (!functions.seek) {
        errno = 0;
        SIDE(log)(to, "getc", getc(f));
        SIDE(log)(to, "fseek", fseek(f, 3, SEEK_SET));
        SIDE(log)(to, "ftell", ftell(f));
    }
    errno = 0;
    SIDE(log)(to, "fclose", fclose(f));
    SIDE(log)(to, "errno", source.closed < 5 ? errno : 0);
    SIDE(show)(to, source.data, sizeof source.data);
}
