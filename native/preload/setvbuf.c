/* setvbuf.c: with force=1, setvbuf and its like do not change streams that have a configured mode. */
#include "streams.h"

EXPORT int setvbuf(struct file *stream, char *memory, int kind, size_t bytes);
EXPORT int setvbuf(struct file *stream, char *memory, int kind, size_t bytes) {
    int (*call)(struct file *, char *, int, size_t) = NEXT("setvbuf");
    return streams_forced(stream) || !call ? 0 : call(stream, memory, kind, bytes);
}

EXPORT void setbuf(struct file *stream, char *memory);
EXPORT void setbuf(struct file *stream, char *memory) {
    void (*call)(struct file *, char *) = NEXT("setbuf");
    if (!streams_forced(stream) && call) call(stream, memory);
}

EXPORT void setbuffer(struct file *stream, char *memory, size_t bytes);
EXPORT void setbuffer(struct file *stream, char *memory, size_t bytes) {
    void (*call)(struct file *, char *, size_t) = NEXT("setbuffer");
    if (!streams_forced(stream) && call) call(stream, memory, bytes);
}

EXPORT void setlinebuf(struct file *stream);
EXPORT void setlinebuf(struct file *stream) {
    void (*call)(struct file *) = NEXT("setlinebuf");
    if (!streams_forced(stream) && call) call(stream);
}
