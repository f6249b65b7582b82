/* calls.h: read and write as the program's own, for calls that the C library makes inside itself. */
#ifndef WEIR_CALLS_H
#define WEIR_CALLS_H

#include <stddef.h>

/* Results are those of write(2) and read(2), with errno. A stream's own write is no write beside the stream: order.c
   has nothing to do with it. */
long calls_write(int fd, const void *from, size_t n);
long calls_read(int fd, void *to, size_t n);
/* jumps.c: once, glibc's stdio makes its calls through these. */
void jumps_start(void);
#endif
