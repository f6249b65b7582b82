/* streams.h: the program's stdio streams, as far as the library has to do with them. */
#ifndef WEIR_STREAMS_H
#define WEIR_STREAMS_H

#include "config.h"
#include "libc.h"

/* Sets what WEIR_RUN asks for on the three standard streams. */
void streams_start(void);
/* Writes out what stdio streams over `fd` hold; all streams known here if `fd` is negative. */
void streams_flush(int fd);
/* In a fork's child: notes what is pending, which is the parent's. */
void streams_inherit(void);
/* Writes out what is pending and was not inherited. */
void streams_flush_own(void);
/* True if the stream has a mode that the program must not undo. */
int streams_forced(struct file *stream);
#endif
