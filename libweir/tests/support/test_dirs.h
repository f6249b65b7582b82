/* test_dirs.h: directories for tests: temporary ones on a disk, and new file systems on loop devices. */
#ifndef WEIR_TESTS_TEST_DIRS_H
#define WEIR_TESTS_TEST_DIRS_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a new directory, on a disk if there is one; exit(3) removes it. */
const char *test_dir_make(void);
/* Makes a file system of `type` (ext4, xfs, btrfs) in a file of `bytes` bytes and mounts it; exit(3) unmounts it.
 * Returns NULL if that is impossible here; *why is then the reason. */
const char *test_dir_mount(const char *type, size_t bytes, const char *options, const char **why);
/* Returns true if files in `dir` support O_DIRECT. Some kernels open them but report in statx(2) that they do not. */
bool supports_direct_io(const char *dir);

#endif /* WEIR_TESTS_TEST_DIRS_H */
