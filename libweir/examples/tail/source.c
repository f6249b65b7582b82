/* source.c: what is asked for of one file. */
#include <sys/stat.h>

#include "tail.h"

void put_header(const struct source *source, const struct order *order, weir_stream *out)
{
    static const struct source *told; /* the last file that was named */
    if (order->headers && told != source)
        check(weir_printf(out, "%s==> %s <==\n", told ? "\n" : "", source->name), STDOUT_NAME);
    told = source;
}

int64_t size_of(const struct source *source)
{
    struct stat status;
    return fstat(weir_fd(source->in), &status) == -1 ? -errno : (int64_t)status.st_size;
}

/* A regular file from source->at on, by pread(2) into the room of the output's own buffer. */
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

/* From a line or byte on, counted from the start. */
static int put_from(struct source *source, const struct order *order, weir_stream *out)
{
    char *from;
    uint64_t skip = order->count ? order->count - 1 : 0;
    int64_t here = order->bytes ? weir_skip(source->in, skip) : skip_lines(source->in, skip);
    if (here < 0)
        return (int)here;
    while ((here = weir_peek(source->in, &from, 1)) > 0) {
        put(out, from, (size_t)here, STDOUT_NAME);
        weir_skip(source->in, (size_t)here);
    }
    return (int)here;
}

/* Where the end that is asked for begins. -ENODATA: the file has to be read from its start to know. */
static int64_t find_start(const struct source *source, const struct order *order)
{
    int fd = weir_fd(source->in);
    int64_t first = lseek(fd, 0, SEEK_CUR), end = size_of(source);
    if (first < 0 || end < 0)
        return -errno;
    if (end <= first) /* empty, or one of those under /proc that do not know their size */
        return -ENODATA;
    if (!order->bytes)
        return start_of_last_lines(fd, first, end, order->count);
    return order->count < (uint64_t)(end - first) ? end - (int64_t)order->count : first;
}

/* 0, or -errno of reading; what cannot be written ends the program. */
int put_source(struct source *source, const struct order *order, weir_stream *out)
{
    put_header(source, order, out);
    int64_t start = source->regular && !order->from_start ? find_start(source, order) : -ENODATA;
    if (start >= 0) {
        source->at = start;
        return copy_to_end(source, out);
    }
    if (start != -ENODATA)
        return (int)start;
    int result = order->from_start ? put_from(source, order, out) : last_of_pipe(order, source->in, out);
    if (source->regular && result == 0)
        source->at = weir_tell(source->in);
    return result;
}
