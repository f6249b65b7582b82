/* scenarios.h: the streams of interleavings.c, and what its thread does with each. */
#ifndef WEIR_TESTS_SCENARIOS_H
#define WEIR_TESTS_SCENARIOS_H

#include <stdbool.h>

#include "../../include/weir.h"
#include "target.h"

struct scenario {
    const char *name;
    struct weir_options options;
    bool by_putc;  /* only inline calls, then the timer or the close writes */
    bool closes;   /* the thread closes the stream */
    bool opens;    /* the thread also opens it */
    bool reads;
    bool fails;    /* of its writes, some are cut in the middle of a line, and the disk is full */
    bool zeroes;   /* the file system has no fallocate(2): zeros allocate the blocks of a shared mapping */
    bool reads_on; /* the thread begins with the second line */
    enum target_kind kind;
};

/* The one without a name is the last. */
extern const struct scenario scenarios[];

#endif /* WEIR_TESTS_SCENARIOS_H */
