/* stdio_private.h: functions that the files of stdio/ share.
 *
 * A FILE is a weir_stream with three more fields in struct weir__config. stdio's semantics differ from a
 * stream's:
 * - An error does not stop later calls; it only sets ferror(3). weir__stdio_start_writing and _fill move
 *   the stream's sticky errors to the indicator, so that the call tries again. Pending bytes stay in order.
 * - feof(3) stays set after a write.
 * - errno is set on failure and unchanged at the end of the input.
 *
 * Each public function holds the stream's lock (weir__enter) throughout. */
#ifndef WEIR_STDIO_PRIVATE_H
#define WEIR_STDIO_PRIVATE_H

#include "../private.h"

#define WEIR_STDIO_NO_NAMES
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#include "../../include/weir/stdio.h"
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* Returns how many bytes a caller that holds the lock may store at *to and publish, without another step; 0 if the limit is
 * closed (LIMITS in private.h). The only thread of a process needs no lock for it. */
static inline size_t weir__stdio_open_room(const weir_stream *s, char **to)
{
    uint64_t at = WEIR_LOAD(&s->head.written), limit = WEIR_LOAD(&s->held_limit);
    *to = (char *)(uintptr_t)at;
    return at < limit ? (size_t)(limit - at) : 0;
}
static inline void weir__stdio_publish(weir_stream *s, const char *end)
{
    WEIR_PUBLISH(&s->head.written, (uint64_t)(uintptr_t)end);
}
/* Copies the bytes to the buffer. Returns false if there is no open room for them. */
static inline bool weir__stdio_copy_in(weir_stream *s, const void *from, size_t bytes)
{
    char *to;
    if (bytes > weir__stdio_open_room(s, &to))
        return false;
    memcpy(to, from, bytes);
    weir__stdio_publish(s, to + bytes);
    return true;
}

/* ferror.c; the caller holds the lock. `error` is a -errno. */
int weir__stdio_fail(weir_stream *s, int64_t error);       /* sets errno and the indicator, returns EOF */
int weir__stdio_fail_write(weir_stream *s, int64_t error); /* the same, and fclose(3) will report it */
void weir__stdio_take_errors(weir_stream *s); /* clears the stream's errors, sets the indicator */

/* fwrite.c; the caller holds the lock */
int weir__stdio_start_writing(weir_stream *s);
size_t weir__stdio_write(weir_stream *s, const struct iovec *iov, int count); /* fewer: errno is set */

/* fread.c; the caller holds the lock */
int weir__stdio_fill(weir_stream *s); /* 1: there are unread bytes, 0: the end, -1: errno is set */

/* wide.c; the caller holds the lock */
void weir__stdio_use_wide(weir_stream *s); /* gives the stream an orientation, if it has none */
/* Returns the next character and stores its bytes, at most MB_LEN_MAX. WEOF: the end of the input, or an error with the
 * indicator set; no byte is then consumed. */
wint_t weir__stdio_get_wide(weir_stream *s, char *bytes, size_t *count);
wint_t weir__stdio_unget_wide(weir_stream *s, wint_t c); /* WEOF on failure */
bool weir__stdio_put_wide(weir_stream *s, const wchar_t *from, size_t count); /* false: errno is set */

/* fopen.c */
struct weir__stdio_mode {
    int oflags;
    bool reads, writes;
    bool to_end; /* the descriptor's position is set to the end of the file */
};
/* Returns 0 or -EINVAL. */
int weir__stdio_parse_mode(struct weir__stdio_mode *mode, const char *string);
int weir__stdio_open(const char *path,
                     const struct weir__stdio_mode *mode); /* returns a descriptor or -errno */
struct weir_options weir__stdio_options(const struct weir__stdio_mode *mode);
/* Opens a stream over a descriptor, which stays open on failure. */
int weir__stdio_stream(weir_stream **s, int fd, const struct weir__stdio_mode *mode);
/* Returns s; if `result` is a -errno, sets errno and returns NULL. */
weir_stream *weir__stdio_result(weir_stream *s, int64_t result);

/* fmemopen.c: opens a stream over callbacks in the directions of `mode`, with a small buffer */
int weir__stdio_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                               const char *mode, enum weir_on_fork on_fork);
/* Returns the target of lseek(2) in a file of `end` bytes, or -EINVAL. */
int64_t weir__stdio_seek_target(int64_t offset, int whence, int64_t here, int64_t end);

/* standard.c */
/* Opens an unregistered stream without a descriptor. */
int weir__stdio_closed_stream(weir_stream **new_stream);

/* open_memstream.c: stores the address and length in the caller's variables, if s is such a stream */
void weir__stdio_publish_memstream(weir_stream *s);

/* fclose.c */
int weir__stdio_close_flush(weir_stream *s); /* flushes before a close; returns the first error so far */
/* Closes the file of s and moves `new_stream`, which is not registered, into s. Returns the errors of closing. */
int weir__stdio_replace(weir_stream *s, weir_stream *new_stream, bool keep_descriptor);

#endif /* WEIR_STDIO_PRIVATE_H */
