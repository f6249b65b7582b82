/* direct_calls.h: counts the system calls of WEIR_DIRECT streams, direct and through the page cache; and a file to
 * test them on. */
#ifndef WEIR_TESTS_DIRECT_CALLS_H
#define WEIR_TESTS_DIRECT_CALLS_H

#include "model.h"
#include "test_dirs.h"

extern struct direct_calls {
    unsigned direct, plain, reads; /* writes with and without O_DIRECT; all reads */
    uint64_t direct_bytes, plain_bytes;
    const void *last_address;  /* of the last direct write, or the last read */
    const char *read_buffer;   /* the memory that reads should use */
    size_t read_buffer_bytes;
    unsigned reads_elsewhere;  /* reads into other memory */
    int direct_errno;          /* errno of all direct writes; 0: they succeed */
} calls;

extern char path[300]; /* of the file */
extern const char *test_dir;

/* Installs the counting system calls and makes the directory. Returns false if its file system has no O_DIRECT. */
bool direct_calls_install(void);
bool is_direct(int fd);
/* Opens a WEIR_DIRECT stream over the file, and resets `calls`. */
weir_stream *open_file(int oflags, struct weir_options options);
/* Writes a new file of `bytes` bytes and syncs it. */
void fill_file(size_t bytes);
size_t file_size(void);
/* Returns how many of the file's pages are in the page cache. */
size_t cached_pages(void);
/* Writes lines of odd lengths. Returns their bytes. */
size_t put_lines(weir_stream *s, size_t at_least);

#endif /* WEIR_TESTS_DIRECT_CALLS_H */
