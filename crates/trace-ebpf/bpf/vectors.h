/* vectors.h: the parts of readv(2), writev(2) and messages. */
#ifndef WEIR_VECTORS_H
#define WEIR_VECTORS_H

#include "maps.h"

/* Sets `asked` and `buffer` of a call from its vector. */
#ifdef BEFORE_6_1
int read_current_vectors(u64 address, u64 parts);
#define read_vectors(transfer, ...) read_current_vectors(__VA_ARGS__)
#else
int read_vectors(struct transfer *t, u64 address, u64 parts);
#endif

#endif
