/* open_file.h: open files of the current process. */
#ifndef WEIR_OPEN_FILE_H
#define WEIR_OPEN_FILE_H

#include "maps.h"

/* Returns the address of the struct file; 0 if the descriptor is not open. */
u64 file_of(u32 fd);

/* Fills `to` from a struct file at `address`. */
int read_open_file(struct open_file *to, u64 address);

/* Returns whether a struct file at `address` is open for reading only. */
static __always_inline u32 is_read_only(u64 address)
{
    return address && (BPF_CORE_READ((struct file *)address, f_flags) & 3) == 0; /* O_ACCMODE, O_RDONLY */
}

static __always_inline void clear_open_file(struct open_file *file) { __builtin_memset(file, 0, sizeof *file); }

#endif
