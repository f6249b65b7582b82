/* target.h: what a test of streams writes to or reads from: a file in memory or on a disk, a pipe, a socket, a terminal, or
 * a path whose file is replaced. */
#ifndef WEIR_TESTS_TARGET_H
#define WEIR_TESTS_TARGET_H

#include <stdbool.h>
#include <stddef.h>

enum target_kind { TARGET_MEMORY_FILE, TARGET_DISK_FILE, TARGET_PIPE, TARGET_SOCKET, TARGET_TERMINAL, TARGET_REPLACED };

/* Makes the directory; call it once, first. */
void target_prepare(void);
const char *target_directory(void);
/* The path of the target; valid for TARGET_DISK_FILE and TARGET_REPLACED. */
const char *target_path(void);
/* Makes a new target and returns a descriptor for it. The file of TARGET_REPLACED is "old\n". */
int target_open(enum target_kind kind);
/* Makes a file, pipe or socket with these bytes to read, without a writer. */
int target_open_filled(enum target_kind kind, const char *from, size_t bytes);
/* Returns the number of unread bytes, for a file those after its position. Closes the descriptor. */
size_t target_unread(int fd);
/* Closes the descriptor, after all writers have ended. Returns a descriptor of a file with the bytes that were written; of
 * TARGET_REPLACED the file that the path now names. */
int target_file(int fd);
/* Returns whether the path still has the old file of TARGET_REPLACED. */
bool target_is_old(void);
/* Counts the temporary files beside the path, and deletes them if `remove`. */
int target_temporaries(bool remove);

#endif /* WEIR_TESTS_TARGET_H */
