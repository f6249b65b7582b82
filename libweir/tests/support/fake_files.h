/* fake_files.h: files in memory and their descriptors, for fake_kernel.c. */
#ifndef WEIR_TESTS_FAKE_FILES_H
#define WEIR_TESTS_FAKE_FILES_H

#include <sys/types.h>
#include <sys/uio.h>

#include "fake_kernel.h"

/* Returns the file, or NULL if the descriptor is a real one. */
struct fake_file *fake_file_of(int fd);
int fake_oflags(int fd);
void fake_set_oflags(int fd, int oflags);
/* Forgets that the descriptor is a fake one; the caller closes the real one. */
void fake_release(int fd);

/* Return -1 with errno set on errors, as pwritev(2), pread(2) and lseek(2) do. If `offset` is NULL, they use and move
 * the descriptor's position. */
ssize_t fake_put(int fd, const struct iovec *iov, int count, size_t bytes, const off_t *offset);
ssize_t fake_get(int fd, void *to, size_t bytes, const off_t *offset);
int64_t fake_move(int fd, int64_t offset, int whence);

#endif /* WEIR_TESTS_FAKE_FILES_H */
