/* tail.h: declarations shared by the files of tail. */
#ifndef TAIL_H
#define TAIL_H

#include <stdbool.h>

#include "../example.h"

/* The command line: `count` lines or bytes from the end, or everything from that one on. */
struct request {
    uint64_t count;
    bool bytes, from_start, follow, headers;
};

struct source {
    const char *name;
    weir_stream *in; /* NULL: could not be opened, or is finished */
    bool regular;
    int64_t at;      /* of a regular file: printed up to this offset */
};

/* lines.c */
uint64_t count_newlines(const char *from, size_t bytes);
const char *nth_newline(const char *from, size_t bytes, uint64_t n);
int64_t start_of_last_lines(int fd, int64_t first, int64_t end, uint64_t count);

/* pipe.c */
int last_of_pipe(const struct request *request, weir_stream *in, weir_stream *out);

/* follow.c: returns only if there is nothing to follow */
void follow(struct source *sources, int count, const struct request *request, weir_stream *out);

/* source.c */
int64_t size_of(const struct source *source);
int copy_to_end(struct source *source, weir_stream *out);
int put_source(struct source *source, const struct request *request, weir_stream *out);
void put_header(const struct source *source, const struct request *request, weir_stream *out);

#endif /* TAIL_H */
