/* streams.h: the modes and flushes of the program's stdio streams. */
#ifndef WEIR_STREAMS_H
#define WEIR_STREAMS_H

#include "config.h"
#include "libc.h"

/* Sets the configured modes of the three standard streams. */
void streams_start(void);
/* Flushes the known stdio streams of a descriptor, or all if `fd` is negative. */
void streams_flush(int fd);
/* In a forked child: notes the pending bytes, which belong to the parent. */
void streams_note_inherited(void);
/* Writes the pending bytes that a fork did not copy from the parent. */
void streams_flush_own(void);
/* Returns true if the stream has a mode that the program must not change. */
int streams_forced(struct file *stream);
#endif
