/* fake_files.h: the files in memory and their descriptors, as fake_kernel.c uses them. */
#ifndef WEIR_TESTS_FAKE_FILES_H
#define WEIR_TESTS_FAKE_FILES_H

#include <sys/types.h>
#include <sys/uio.h>

#include "fake_kernel.h"

struct fake_file *fake_file_of(int fd); /* NULL: a real descriptor */
int fake_oflags(int fd);
void fake_set_oflags(int fd, int oflags);
void fake_let_go(int fd);

/* As the calls of the same kind: -1 and errno for an error. NULL: at the descriptor's position. */
ssize_t fake_put(int fd, const struct iovec *iov, int count, size_t bytes, const off_t *offset);
ssize_t fake_get(int fd, void *to, size_t bytes, const off_t *offset);
int64_t fake_move(int fd, int64_t offset, int whence);

#endif /* WEIR_TESTS_FAKE_FILES_H */
