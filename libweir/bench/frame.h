/* frame.h: shared by the contenders of `make bench-lib`: the parameters of a job, and its input and output. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

/* The parameters of one pass. Contenders open both files within the measured time, by open_in and open_out. These do
 * not truncate: the pages of an existing output are overwritten. */
struct work {
    const char *in, *out;
    long count;          /* lines or bytes of jobs without input; milliseconds of a commit job */
    size_t buffer_bytes; /* of hand-written loops, and of each call of jobs that move blocks */
};

/* One implementation of a job. `run` returns the number of bytes, lines or records, or -1. */
struct contender {
    const char *job, *name;
    long (*run)(const struct work *work);
};

/* The contenders of the program; the last entry has no name. */
extern const struct contender contenders[];

/* Returns page-aligned memory, because the kernel's copy speed depends on the alignment. Exits on errors. */
char *make_block(size_t bytes);
/* Return a descriptor; exit on errors. */
int open_in(const struct work *work);
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
