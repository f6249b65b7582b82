/* mapped.h: files that the program has mapped: it sees what is written to them without a call. */
#ifndef WEIR_MAPPED_H
#define WEIR_MAPPED_H

#include <stdint.h>

/* True if the program has, or has had, a mapping of this file. */
int mapped_has(uint64_t dev, uint64_t ino);
#endif
