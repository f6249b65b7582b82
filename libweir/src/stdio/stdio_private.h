/* stdio_private.h: what the files of stdio/ share.
 *
 * A FILE is a weir_stream, with three fields of its own in weir__config. What stdio asks for and a stream alone
 * does not do:
 * - An error does not stop later calls, it only shows in ferror(3): the streams' sticky errors are taken over
 *   by weir__stdio_start_writing and _reading, so that the next call tries again. What waits stays in order.
 * - feof(3) survives writing.
 * - errno is set at failure and left alone at the end of the input.
 *
 * Each public function holds the stream's lock (weir__enter) from its first look to its last. */
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

/* ferror.c; all need the lock. `error` is a -errno. */
int weir__stdio_fail(weir_stream *s, int64_t error);       /* sets errno and the indicator; returns EOF */
int weir__stdio_fail_write(weir_stream *s, int64_t error); /* the same; fclose(3) will tell */
void weir__stdio_take_errors(weir_stream *s);              /* the stream's errors, so that it goes on */

/* fwrite.c; all need the lock */
int weir__stdio_start_writing(weir_stream *s);
size_t weir__stdio_write(weir_stream *s, const struct iovec *iov, int count); /* fewer: errno says why */

/* fread.c; needs the lock */
int weir__stdio_fill(weir_stream *s); /* 1: there are unread bytes, 0: the end, -1: errno says why */

/* fopen.c */
struct weir__stdio_mode {
    int oflags;
    bool reads, writes;
};
/* 0, or -EINVAL. */
int weir__stdio_parse_mode(struct weir__stdio_mode *mode, const char *string);
int weir__stdio_open(const char *path, const struct weir__stdio_mode *mode); /* a descriptor, or -errno */
struct weir_options weir__stdio_options(const struct weir__stdio_mode *mode);
/* Over an open descriptor, which stays open if it fails. */
int weir__stdio_stream(weir_stream **s, int fd, const struct weir__stdio_mode *mode);
/* For the functions that return a stream: NULL, and errno from a -errno. */
weir_stream *weir__stdio_result(weir_stream *s, int64_t result);

/* fmemopen.c: a stream over callbacks that the mode allows, with a small buffer */
int weir__stdio_open_callbacks(weir_stream **s, const struct weir_callbacks *callbacks, void *context,
                               const char *mode, enum weir_on_fork on_fork);
/* Where lseek(2) with `whence` goes in something of `end` bytes, or -EINVAL. */
int64_t weir__stdio_seek_target(int64_t offset, int whence, int64_t here, int64_t end);

/* standard.c: an unregistered stream that has no descriptor */
int weir__stdio_closed_stream(weir_stream **made);

/* fclose.c */
int weir__stdio_close_flush(
    weir_stream *s); /* the lock is held: what waits goes out; the first error so far */
/* s, in its place, closes and becomes `made`, which is not registered. Returns the errors of closing. */
int weir__stdio_replace(weir_stream *s, weir_stream *made, bool keep_descriptor);

#endif /* WEIR_STDIO_PRIVATE_H */
