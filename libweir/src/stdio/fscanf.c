/* fscanf.c: scanf by the C library's vfscanf. It reads a private FILE whose callback takes bytes from the
 * stream. Bytes that remain in the FILE afterwards are put back into the stream. */
#include "stdio_private.h"

#include <pthread.h>

/* Enough for most calls; musl reserves 8 bytes of it. */
enum { SCAN_BYTES = 40 };

/* One per thread, created at its first scanf: opening it takes longer than most calls. */
struct scanner {
    FILE *file;
    char buffer[SCAN_BYTES];
    weir_stream *from; /* NULL: reports the end of the input */
};

static _Thread_local struct scanner scanner;
static pthread_key_t key;
static bool have_key;

/* Returns unread bytes, or reads once. */
static ssize_t next_bytes(void *cookie, char *to, size_t bytes)
{
    struct scanner *self = cookie;
    weir_stream *s = self->from;
    int status = s && bytes ? weir__stdio_fill(s) : 0;
    if (status <= 0)
        return status;
    if (bytes > weir__unread(s))
        bytes = (size_t)weir__unread(s);
    memcpy(to, weir__next(s), bytes);
    WEIR_STORE(&s->read, s->read + bytes);
    return (ssize_t)bytes;
}

static void close_scanner(void *self)
{
    struct scanner *scanner_of_thread = self;
    fclose(scanner_of_thread->file);
    scanner_of_thread->file = NULL;
}

static void make_key(void) { have_key = pthread_key_create(&key, close_scanner) == 0; }

static FILE *open_file(struct scanner *self)
{
    static const cookie_io_functions_t functions = {.read = next_bytes};
    FILE *file = fopencookie(self, "r", functions);
    if (file) {
        setvbuf(file, self->buffer, _IOFBF, sizeof self->buffer);
        __fsetlocking(file, FSETLOCKING_BYCALLER);
    }
    return file;
}

static FILE *get_file(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (scanner.file)
        return scanner.file;
    weir__stay_loaded(); /* for close_scanner, when this thread ends */
    pthread_once(&once, make_key);
    scanner.file = open_file(&scanner);
    if (scanner.file && have_key)
        pthread_setspecific(key, &scanner);
    return scanner.file;
}

/* Puts the unread bytes back. Usually they are the stream's last bytes, unchanged, and moving the offset
 * suffices; a C library might also put back other bytes. */
static void return_unread(FILE *file, weir_stream *s)
{
    char bytes[2 * SCAN_BYTES];
    size_t count = fread_unlocked(bytes, 1, sizeof bytes, file);
    clearerr_unlocked(file);
    if (count <= s->read - (uint64_t)(uintptr_t)s->read_buffer && memcmp(weir__next(s) - count, bytes, count) == 0) {
        WEIR_STORE(&s->read, s->read - count);
        return;
    }
    while (count > 0)
        weir_ungetc(s, (unsigned char)bytes[--count]);
}

/* A callback of the stream may itself call scanf: that call gets a temporary scanner. */
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
    return_unread(file, s);
    if (inner.file)
        fclose(inner.file);
    errno = error;
    return result;
}

int weir_stdio_vfscanf(weir_stream *s, const char *format, va_list arguments)
{
    weir__enter(s);
    int result = weir__config(s)->can_read ? scan_held(s, format, arguments) : weir__stdio_fail(s, -EBADF);
    weir__leave(s);
    return result;
}

int weir_stdio_vscanf(const char *format, va_list arguments)
{
    return weir_stdio_vfscanf(weir_stdio_known(0), format, arguments);
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
    int result = weir_stdio_vfscanf(weir_stdio_known(0), format, arguments);
    va_end(arguments);
    return result;
}
