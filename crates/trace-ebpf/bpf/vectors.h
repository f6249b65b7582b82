/* vectors.h: the segments of readv(2), writev(2) and messages. */
#ifndef WEIR_VECTORS_H
#define WEIR_VECTORS_H

#include "maps.h"

/* Sets `requested_bytes` and the addresses of the bytes of a call from its vector. */
#ifdef BEFORE_6_1
int read_current_vectors(u64 address, u64 segments);
int read_current_messages(u64 address, u64 messages, u32 flags);
#define read_vectors(transfer, ...) read_current_vectors(__VA_ARGS__)
#define read_messages(transfer, ...) read_current_messages(__VA_ARGS__)
#else
int read_vectors(struct transfer *t, u64 address, u64 segments);

/* Sets `result` and `requested_bytes` of a call to the bytes of its first `messages` messages. `flags`: those of the call;
 * 0 for a send. */
int read_messages(struct transfer *t, u64 address, u64 messages, u32 flags);
#endif

/* Copies the first bytes of the current call, which is in several segments, to `head` of the scratch space. Returns their number. */
int gather_head(void);

/* The most segments of a vector that are read, and from which the first bytes are copied. */
enum { READ_SEGMENTS = 64, HEAD_SEGMENTS = 8 };

#define MSG_PEEK_ 2
#define MSG_TRUNC_ 0x20
#define MSG_ERRQUEUE_ 0x2000

#endif
