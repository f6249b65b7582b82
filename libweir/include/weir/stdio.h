/* weir/stdio.h: the functions of <stdio.h> over libweir. A program includes this header instead of <stdio.h>
 * in each of its files that uses a FILE, and links with -lweir. The header includes the system's <stdio.h>.
 *
 * A FILE is a weir_stream: the functions of weir.h accept it as well, for instance weir_sync(3) and
 * weir_getrec(3). Each function has the contract of C11 and POSIX and sets errno on failure. weir-stdio(7)
 * describes the following differences from the C library's stdio:
 *
 *  1. stdin, stdout and stderr are libweir's streams. Output of other code to the C library's streams (a
 *     library compiled without this header, assert(3), warn(3), error(3), std::cout) has no defined order
 *     relative to this program's output, unless both sides flush.
 *  2. The names are macros. After `#undef getc` the name is the C library's function, which does not know
 *     these streams. Members cannot be named stdin, stdout or stderr. Headers whose functions take or return
 *     the C library's FILE (mntent.h, pwd.h, readline) must be included before this one; the compiler then
 *     reports wrong uses. So must C++ headers with members or functions of these names (printf, rewind);
 *     headers of the C++ standard library may follow.
 *     With weir/compat (weir-stdio(7)) instead of this header the order does not matter.
 *  3. Wide characters are bytes in the encoding of the locale at each call. Wide and byte calls may alternate on a
 *     stream, except on one of open_wmemstream; fwide only stores which kind came first.
 *  4. A child of fork(2) inherits the read-ahead bytes of streams opened for reading only, as in stdio. Pending
 *     bytes stay in the parent and are not written twice. A stream opened for writing or for both is empty in
 *     the child, except those of fmemopen and open_memstream, which are private memory. The exit of a child
 *     does not move the parent's position in a file that both read. If the parent calls _exit after the fork, its
 *     pending bytes are lost: flush before. daemon(3) flushes.
 *  5. exec(3) flushes; stdio loses the pending bytes.
 *  6. Reads and writes may alternate without fseek or fflush.
 *  7. fclose returns the first write error since the opening or the last clearerr, even if later writes
 *     succeeded. Bytes that were accepted and could not be written stay in the buffer, in order; each later
 *     write tries again.
 *  8. Reads and writes continue after EINTR. fopen of a FIFO still fails with it.
 *  9. setvbuf and setbuf use the size and ignore the memory: the buffer is the stream's own, so a buffer on
 *     the stack of main does no harm. They may be called at any time. The default buffer of a file has
 *     128 KiB, more than BUFSIZ, so more bytes can be pending.
 * 10. ungetc accepts bytes until 1 GiB is unread. If more were put back than precede the position, ftell returns 0.
 *     With nothing buffered ftell returns the descriptor's position, also if the program has moved it.
 * 11. printf writes all of its text or, if it cannot be formatted, nothing. Conversions are those of C11 and
 *     of the C library, including %n.
 * 12. scanf is the C library's (as in C99: %a is a number), fed a few bytes at a time: the results are the
 *     same, but it is slower.
 * 13. fclose and fflush of a stream that reads a file move the descriptor's position to the stream's, as POSIX
 *     requires and not every C library does.
 * 14. The descriptor of popen is always close-on-exec. fclose of such a stream waits, as pclose does.
 * 15. A closed stdin, stdout or stderr can be used: each call fails with EBADF. A standard stream whose
 *     descriptor was closed at its first use stays closed until freopen.
 * 16. fopen knows the modes r w a + b x e; other letters and `,ccs=` are ignored.
 * 17. freopen with a NULL path reopens the file through /proc/self/fd; a mode of w truncates it.
 * 18. fmemopen and open_memstream update the memory, and open_memstream its address and length, at fflush, fclose or a
 *     seek, as POSIX says; fflush(NULL) and the exit do not store the address and length. The memory of open_memstream
 *     is larger than its length.
 * 19. After a failed freopen every call fails with EBADF, and fclose returns EOF, also for a stream in memory.
 * 20. Each call locks the stream while the process has several threads, including those named *_unlocked,
 *     except for single bytes. With musl the lock is taken in every process.
 */
#ifndef WEIR_STDIO_H
#define WEIR_STDIO_H

/* Included first, because the macros below would change their declarations. */
#include <stdio.h>
#include <stdio_ext.h>
#include <wchar.h>
#ifdef __cplusplus
#include <cstdio>
#include <cwchar>
#include <string>
#endif

#include "../weir.h"

#if defined(__GNUC__)
#define WEIR_STDIO_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#define WEIR_STDIO_SCANF(at, first) __attribute__((__format__(__scanf__, at, first)))
#define WEIR_STDIO_LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#else
#define WEIR_STDIO_PRINTF(at, first)
#define WEIR_STDIO_SCANF(at, first)
#define WEIR_STDIO_LOAD(p) (*(p))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening, closing, buffering -------------------------------------------------------------------- */

/* The variables stdin, stdout and stderr; NULL before their first use. */
extern weir_stream *weir_stdio_files[3];
/* Returns the variable of the descriptor `fd`. Opens the stream at the first call. */
weir_stream *weir_stdio_standard(int fd);
weir_stream *weir_stdio_fopen(const char *path, const char *mode);
weir_stream *weir_stdio_fdopen(int fd, const char *mode);
weir_stream *weir_stdio_freopen(const char *path, const char *mode, weir_stream *s);
weir_stream *weir_stdio_tmpfile(void);
weir_stream *weir_stdio_fmemopen(void *memory, size_t bytes, const char *mode);
weir_stream *weir_stdio_open_memstream(char **memory, size_t *bytes);
weir_stream *weir_stdio_open_wmemstream(wchar_t **memory, size_t *length);
#if defined(_GNU_SOURCE) || defined(__USE_GNU)
weir_stream *weir_stdio_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions);
#endif
weir_stream *weir_stdio_popen(const char *command, const char *mode);
int weir_stdio_pclose(weir_stream *s);
int weir_stdio_fclose(weir_stream *s);
int weir_stdio_fflush(weir_stream *s);
int weir_stdio_setvbuf(weir_stream *s, char *buffer, int mode, size_t bytes);
void weir_stdio_setbuffer(weir_stream *s, char *buffer, size_t bytes);
void weir_stdio_setbuf(weir_stream *s, char *buffer);
void weir_stdio_setlinebuf(weir_stream *s);

/* ---- reading ---------------------------------------------------------------------------------------- */

int weir_stdio_getc_slow(weir_stream *s);
int weir_stdio_ungetc(int c, weir_stream *s);
char *weir_stdio_fgets(char *to, int room, weir_stream *s);
ssize_t weir_stdio_getdelim(char **line, size_t *room, int delimiter, weir_stream *s);
ssize_t weir_stdio_getline(char **line, size_t *room, weir_stream *s);
size_t weir_stdio_fread(void *to, size_t size, size_t count, weir_stream *s);
int weir_stdio_getw(weir_stream *s);
int weir_stdio_scanf(const char *format, ...) WEIR_STDIO_SCANF(1, 2);
int weir_stdio_vscanf(const char *format, va_list arguments) WEIR_STDIO_SCANF(1, 0);
int weir_stdio_fscanf(weir_stream *s, const char *format, ...) WEIR_STDIO_SCANF(2, 3);
int weir_stdio_vfscanf(weir_stream *s, const char *format, va_list arguments) WEIR_STDIO_SCANF(2, 0);

/* ---- writing ---------------------------------------------------------------------------------------- */

int weir_stdio_putc_slow(int c, weir_stream *s);
int weir_stdio_fputs(const char *string, weir_stream *s);
int weir_stdio_puts(const char *string);
size_t weir_stdio_fwrite(const void *from, size_t size, size_t count, weir_stream *s);
int weir_stdio_putw(int word, weir_stream *s);
int weir_stdio_printf(const char *format, ...) WEIR_STDIO_PRINTF(1, 2);
int weir_stdio_vprintf(const char *format, va_list arguments) WEIR_STDIO_PRINTF(1, 0);
int weir_stdio_fprintf(weir_stream *s, const char *format, ...) WEIR_STDIO_PRINTF(2, 3);
int weir_stdio_vfprintf(weir_stream *s, const char *format, va_list arguments) WEIR_STDIO_PRINTF(2, 0);
/* As fprintf(s, "%s", string), which calls it. Used by the inline functions only. */
int weir_stdio_print_string(weir_stream *s, ...);
void weir_stdio_perror(const char *message);

/* ---- wide characters --------------------------------------------------------------------------------- */

int weir_stdio_fwide(weir_stream *s, int mode);
wint_t weir_stdio_fgetwc(weir_stream *s);
wint_t weir_stdio_fputwc(wchar_t c, weir_stream *s);
wint_t weir_stdio_ungetwc(wint_t c, weir_stream *s);
wchar_t *weir_stdio_fgetws(wchar_t *to, int room, weir_stream *s);
int weir_stdio_fputws(const wchar_t *string, weir_stream *s);
int weir_stdio_wprintf(const wchar_t *format, ...);
int weir_stdio_vwprintf(const wchar_t *format, va_list arguments);
int weir_stdio_fwprintf(weir_stream *s, const wchar_t *format, ...);
int weir_stdio_vfwprintf(weir_stream *s, const wchar_t *format, va_list arguments);
int weir_stdio_wscanf(const wchar_t *format, ...);
int weir_stdio_vwscanf(const wchar_t *format, va_list arguments);
int weir_stdio_fwscanf(weir_stream *s, const wchar_t *format, ...);
int weir_stdio_vfwscanf(weir_stream *s, const wchar_t *format, va_list arguments);

/* ---- position and state ----------------------------------------------------------------------------- */

int weir_stdio_fseek(weir_stream *s, long offset, int whence);
int weir_stdio_fseeko(weir_stream *s, off_t offset, int whence);
long weir_stdio_ftell(weir_stream *s);
off_t weir_stdio_ftello(weir_stream *s);
void weir_stdio_rewind(weir_stream *s);
int weir_stdio_fgetpos(weir_stream *s, fpos_t *position);
int weir_stdio_fsetpos(weir_stream *s, const fpos_t *position);
int weir_stdio_feof(weir_stream *s);
int weir_stdio_ferror(weir_stream *s);
void weir_stdio_clearerr(weir_stream *s);
int weir_stdio_fileno(weir_stream *s);
void weir_stdio_flockfile(weir_stream *s);
int weir_stdio_ftrylockfile(weir_stream *s);
void weir_stdio_funlockfile(weir_stream *s);

/* ---- stdio_ext(3), without the underscores ------------------------------------------------------- */

void weir_stdio_fpurge(weir_stream *s);
size_t weir_stdio_fpending(weir_stream *s);
size_t weir_stdio_fbufsize(weir_stream *s);
int weir_stdio_freadable(weir_stream *s);
int weir_stdio_fwritable(weir_stream *s);
int weir_stdio_freading(weir_stream *s);
int weir_stdio_fwriting(weir_stream *s);
int weir_stdio_flbf(weir_stream *s);
void weir_stdio_flushlbf(void);
int weir_stdio_fsetlocking(weir_stream *s, int type);
/* musl's additions: unread bytes, their address (NULL if there are none), consuming them; setting the indicator */
size_t weir_stdio_freadahead(weir_stream *s);
const char *weir_stdio_freadptr(weir_stream *s, size_t *bytes);
void weir_stdio_freadptrinc(weir_stream *s, size_t bytes);
void weir_stdio_fseterr(weir_stream *s);

/* ---- inline fast paths --------------------------------------------------------------------------- */

#if defined(__cplusplus) && defined(__GNUC__) /* as in weir.h */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif

/* Returns the variable stdin, stdout or stderr, which is never NULL when the function returns. */
WEIR_INLINE weir_stream **weir_stdio_variable(int fd)
{
    if (!WEIR_LIKELY(WEIR_STDIO_LOAD(&weir_stdio_files[fd]) != NULL))
        weir_stdio_standard(fd);
    return &weir_stdio_files[fd];
}
WEIR_INLINE weir_stream *weir_stdio_known(int fd)
{
    weir_stream *s = WEIR_STDIO_LOAD(&weir_stdio_files[fd]);
    return WEIR_LIKELY(s != NULL) ? s : weir_stdio_standard(fd);
}

WEIR_INLINE int weir_stdio_putc_unlocked(int c, weir_stream *s)
{
    uint64_t at = WEIR_LOAD(&s->head.written);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->held_limit))) {
        *(char *)(uintptr_t)at = (char)c;
        WEIR_PUBLISH(&s->head.written, at + 1);
        return (unsigned char)c;
    }
    return weir_stdio_putc_slow(c, s);
}

WEIR_INLINE int weir_stdio_getc_unlocked(weir_stream *s)
{
    uint64_t at = WEIR_LOAD(&s->read);
    if (WEIR_LIKELY(at < WEIR_LOAD(&s->held_read_limit))) {
        WEIR_STORE(&s->read, at + 1);
        return *(unsigned char *)(uintptr_t)at;
    }
    return weir_stdio_getc_slow(s);
}

WEIR_INLINE int weir_stdio_putc(int c, weir_stream *s)
{
    return WEIR_LIKELY(WEIR_ONE_THREAD()) ? weir_stdio_putc_unlocked(c, s) : weir_stdio_putc_slow(c, s);
}
WEIR_INLINE int weir_stdio_getc(weir_stream *s)
{
    return WEIR_LIKELY(WEIR_ONE_THREAD()) ? weir_stdio_getc_unlocked(s) : weir_stdio_getc_slow(s);
}
WEIR_INLINE int weir_stdio_putchar(int c) { return weir_stdio_putc(c, weir_stdio_known(1)); }
WEIR_INLINE int weir_stdio_putchar_unlocked(int c) { return weir_stdio_putc_unlocked(c, weir_stdio_known(1)); }
WEIR_INLINE int weir_stdio_getchar(void) { return weir_stdio_getc(weir_stdio_known(0)); }
WEIR_INLINE wint_t weir_stdio_getwchar(void) { return weir_stdio_fgetwc(weir_stdio_known(0)); }
WEIR_INLINE wint_t weir_stdio_putwchar(wchar_t c) { return weir_stdio_fputwc(c, weir_stdio_known(1)); }
WEIR_INLINE int weir_stdio_getchar_unlocked(void) { return weir_stdio_getc_unlocked(weir_stdio_known(0)); }

#ifndef WEIR_STDIO_NO_NAMES
#include "stdio_constant.h"
#endif

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#ifdef __cplusplus
} /* extern "C" */
#endif

#ifndef WEIR_STDIO_NO_NAMES
#include "stdio_names.h"
#endif
#endif /* WEIR_STDIO_H */
