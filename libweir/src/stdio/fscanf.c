/* fscanf.c: scanf's language by the C library. Its vfscanf reads, byte by byte, a FILE of its own whose bytes
 * are those of the stream; what it puts back there is put back into the stream afterwards. */
#include "stdio_private.h"

#include <pthread.h>

/* One a thread, made at its first scanf: opening it takes longer than most of them. */
struct scanner {
    FILE *file;
    weir_stream *from; /* NULL: the end, whatever the stream has */
};

static _Thread_local struct scanner scanner;
static pthread_key_t key;
static bool have_key;

/* One byte at most, so that the C library has never more of the stream than it wants. */
static ssize_t next_byte(void *cookie, char *to, size_t bytes)
{
    struct scanner *self = cookie;
    int there = self->from && bytes ? weir__stdio_fill(self->from) : 0;
    if (there > 0)
        *to = self->from->read_buffer[self->from->read++];
    return there;
}

static void close_scanner(void *self)
{
    struct scanner *mine = self;
    fclose(mine->file);
    mine->file = NULL;
}

static void make_key(void) { have_key = pthread_key_create(&key, close_scanner) == 0; }

static FILE *open_file(struct scanner *self)
{
    static const cookie_io_functions_t functions = {.read = next_byte};
    FILE *file = fopencookie(self, "r", functions);
    if (file) {
        setvbuf(file, NULL, _IONBF, 0);
        __fsetlocking(file, FSETLOCKING_BYCALLER);
    }
    return file;
}

static FILE *get_file(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (scanner.file)
        return scanner.file;
    pthread_once(&once, make_key);
    scanner.file = open_file(&scanner);
    if (scanner.file && have_key)
        pthread_setspecific(key, &scanner);
    return scanner.file;
}

/* After a real end of the file the indicators of `file` are set, and nothing was put back. Seldom more than
 * one byte was: the C library keeps it until it is read again. */
static void put_back(FILE *file, weir_stream *s)
{
    char bytes[16];
    size_t count = 0;
    int c;
    while (count < sizeof bytes && (c = getc_unlocked(file)) != EOF)
        bytes[count++] = (char)c;
    clearerr_unlocked(file);
    while (count > 0)
        weir_ungetc(s, (unsigned char)bytes[--count]);
}

/* The stream's source may be a function of the program that scans another stream. */
static int scan_held(weir_stream *s, const char *format, va_list arguments)
{
    struct scanner inner = {.file = NULL}, *self = scanner.from ? &inner : &scanner;
    FILE *file = self == &inner ? (inner.file = open_file(&inner)) : get_file();
    if (!file)
        return weir__stdio_fail(s, -ENOMEM);
    self->from = s;
    int result = vfscanf(file, format, arguments);
    int error = errno;
    self->from = NULL;
    put_back(file, s);
    if (inner.file)
        fclose(inner.file);
    errno = error;
    return result;
}

int weir_stdio_vfscanf(weir_stream *s, const char *format, va_list arguments)
{
    weir__enter(s);
    int result = weir__own(s)->can_read ? scan_held(s, format, arguments) : weir__stdio_fail(s, -EBADF);
    weir__leave(s);
    return result;
}

int weir_stdio_vscanf(const char *format, va_list arguments)
{
    return weir_stdio_vfscanf(weir_stdio_standard(0), format, arguments);
}

int weir_stdio_fscanf(weir_stream *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfscanf(s, format, arguments);
    va_end(arguments);
    return result;
}

int weir_stdio_scanf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = weir_stdio_vfscanf(weir_stdio_standard(0), format, arguments);
    va_end(arguments);
    return result;
}
