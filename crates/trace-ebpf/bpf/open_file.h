/* open_file.h: open files of the current process. */
#ifndef WEIR_OPEN_FILE_H
#define WEIR_OPEN_FILE_H

#include "maps.h"

/* Returns the address of the struct file; 0 if the descriptor is not open. */
u64 file_of(u32 fd);

/* Fills `to` from a struct file at `address`. */
int read_open_file(struct open_file *to, u64 address);

static __always_inline void clear_open_file(struct open_file *file) { __builtin_memset(file, 0, sizeof *file); }

#endif
