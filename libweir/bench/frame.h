/* frame.h: what the contenders of `make bench-lib` share: the work to do, and the clock around it. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

/* What to do once. Both files are opened within the measured time, by open_in and open_out, so that no
 * contender truncates: the pages of an output that is there are written over. */
struct work {
    const char *in, *out;
    long count;          /* of the lines or bytes to make where there is no input; of milliseconds */
    size_t buffer_bytes; /* of a hand-written loop, and of each call of those that move blocks */
};

/* One way to do one job. `run` returns how many bytes, lines or records it handled, or -1. */
struct contender {
    const char *job, *name;
    long (*run)(const struct work *work);
};

/* Those of the program that frame.c is linked with; ended by one without a name. */
extern const struct contender contenders[];

/* Memory at the beginning of a page, the same for everybody: how fast the kernel copies depends on where. */
char *make_block(size_t bytes);
int open_in(const struct work *work);  /* a descriptor; gives up when there is none */
int open_out(const struct work *work);

/* The fields of a formatted line: the same for every contender in every language. */
struct reading {
    const char *name;
    int number;
    double value;
};

static inline struct reading reading(long i)
{
    static const char *const names[] = { "pressure", "temperature", "humidity", "wind",
                                         "battery",  "rain",        "light",    "noise" };
    int number = (int)(i * 7919 & 0xfffff) - 500000;
    return (struct reading){ names[i & 7], number, number * 0.00123456789 };
}

#endif /* FRAME_H */
