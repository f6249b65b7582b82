/* buffers.h: the user-space buffers of glibc's streams in the current process. */
#ifndef WEIR_BUFFERS_H
#define WEIR_BUFFERS_H

#include "maps.h"

/* Emits a buffer_event for each stream of the process; at MOMENT_SAMPLE only for streams with pending bytes and for the
 * stream of `call_fd`. `call_buffer` is the buffer of the call that triggered the walk, or 0. Returns whether a stream has
 * descriptor `call_fd`. */
#ifdef BEFORE_6_1
int walk_current_buffers(u32 moment, u32 call_fd, u64 call_buffer);
#define walk_buffers(process, ...) walk_current_buffers(__VA_ARGS__)
#else
int walk_buffers(const struct process_state *process, u32 moment, u32 call_fd, u64 call_buffer);
#endif

#endif
