/* places.h: directories to test in: one on a disk, and file systems of the test's own on loop devices. */
#ifndef WEIR_TESTS_PLACES_H
#define WEIR_TESTS_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/* A new directory of the test's, on a disk if there is one; removed at the end. */
const char *place_make(void);
/* A new file system of that type (ext4, xfs, btrfs) in a file of so many bytes, mounted; unmounted at the end.
 * NULL: that cannot be done here, and *why says why. */
const char *place_mount(const char *type, size_t bytes, const char *options, const char **why);
/* Are files there for O_DIRECT? Not so if the kernel opens them and says that they are not. */
bool place_takes_direct(const char *place);

#endif /* WEIR_TESTS_PLACES_H */
