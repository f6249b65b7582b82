/* direct_watch.h: what WEIR_DIRECT streams call in the kernel, counted by way; and files to try it on. */
#ifndef WEIR_TESTS_DIRECT_WATCH_H
#define WEIR_TESTS_DIRECT_WATCH_H

#include "model.h"
#include "places.h"

extern struct direct_seen {
    unsigned direct, plain, reads;
    uint64_t direct_bytes, plain_bytes;
    const void *last; /* address of the last direct call */
    const char *buffer; /* where reads should go to */
    size_t buffer_bytes;
    unsigned elsewhere; /* reads that did not */
    int fail_direct;  /* errno of all direct writes; 0: they go well */
} seen;

extern char path[300]; /* the file */
extern const char *place;

/* Sets all that up. False: the file system has no O_DIRECT. */
bool direct_watch(void);
bool is_direct(int fd);
/* A WEIR_DIRECT stream over the file; what was seen is forgotten. */
weir_stream *open_file(int oflags, struct weir_options options);
/* So many bytes are in it, and no page of the cache. */
void fill_file(size_t bytes);
size_t file_size(void);
size_t cached_pages(void);
/* Lines of odd lengths; returns how many bytes. */
size_t put_lines(weir_stream *s, size_t at_least);

#endif /* WEIR_TESTS_DIRECT_WATCH_H */
