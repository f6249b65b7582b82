/* source.c: prints the requested part of one file. */
#include <sys/stat.h>

#include "tail.h"

void put_header(const struct source *source, const struct request *request, weir_stream *out)
{
    static const struct source *last_printed; /* the file whose name was printed last */
    if (request->headers && last_printed != source)
        check(weir_printf(out, "%s==> %s <==\n", last_printed ? "\n" : "", source->name), STDOUT_NAME);
    last_printed = source;
}

int64_t size_of(const struct source *source)
{
    struct stat status;
    return fstat(weir_fd(source->in), &status) == -1 ? -errno : (int64_t)status.st_size;
}

/* Copies a regular file from source->at to its end, by pread(2) into the output's buffer. */
int copy_to_end(struct source *source, weir_stream *out)
{
    int fd = weir_fd(source->in);
    for (;;) {
        char *to;
        int64_t room = check(weir_reserve(out, &to, 1), STDOUT_NAME);
        ssize_t got = pread(fd, to, (size_t)room, source->at);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? 0 : -errno;
        check(weir_commit(out, (size_t)got), STDOUT_NAME);
        source->at += got;
    }
}

static int64_t skip_lines(weir_stream *in, uint64_t count)
{
    char *from;
    int64_t here = 0;
    while (count > 0 && (here = weir_peek(in, &from, 1)) > 0) {
        uint64_t lines = count_newlines(from, (size_t)here);
        if (lines >= count) {
            here = nth_newline(from, (size_t)here, count) - from + 1;
            lines = count;
        }
        count -= lines;
        if ((here = weir_skip(in, (size_t)here)) < 0)
            break;
    }
    return here < 0 ? here : 0;
}

/* Prints from a line or byte on, counted from the start. */
static int put_from(struct source *source, const struct request *request, weir_stream *out)
{
    char *from;
    uint64_t skip = request->count ? request->count - 1 : 0;
    int64_t here = request->bytes ? weir_skip(source->in, skip) : skip_lines(source->in, skip);
    if (here < 0)
        return (int)here;
    while ((here = weir_peek(source->in, &from, 1)) > 0) {
        put(out, from, (size_t)here, STDOUT_NAME);
        weir_skip(source->in, (size_t)here);
    }
    return (int)here;
}

/* Returns the offset of the first requested byte, -ENODATA if the file must be read from its start, or another -errno. */
static int64_t find_start(const struct source *source, const struct request *request)
{
    int fd = weir_fd(source->in);
    int64_t first = lseek(fd, 0, SEEK_CUR);
    if (first < 0)
        return -errno;
    int64_t end = size_of(source);
    if (end < 0)
        return end;
    char last;
    if (end <= first || pread(fd, &last, 1, end - 1) != 1) /* empty, or in /proc or /sys, where st_size is not the length */
        return -ENODATA;
    if (!request->bytes)
        return start_of_last_lines(fd, first, end, request->count);
    return request->count < (uint64_t)(end - first) ? end - (int64_t)request->count : first;
}

/* Returns 0 or a read error as -errno; exits on a write error. */
int put_source(struct source *source, const struct request *request, weir_stream *out)
{
    put_header(source, request, out);
    int64_t start = source->regular && !request->from_start ? find_start(source, request) : -ENODATA;
    if (start >= 0) {
        source->at = start;
        return copy_to_end(source, out);
    }
    if (start != -ENODATA)
        return (int)start;
    int result = request->from_start ? put_from(source, request, out) : last_of_pipe(request, source->in, out);
    if (source->regular && result == 0)
        source->at = weir_tell(source->in);
    return result;
}
