/* call_series.h: a series of random calls on a stream over a real file; each result is compared with a model. */
#ifndef WEIR_TESTS_CALL_SERIES_H
#define WEIR_TESTS_CALL_SERIES_H

#include "model.h"

enum {
    SERIES_READS = 1,
    SERIES_SEEKS = 2,
    SERIES_SETS_MODE = 4,
    SERIES_SKIPS_FILE_CHECK = 8, /* a flush does not compare the file */
};

struct call_series {
    weir_stream *s;
    struct model *model;
    struct random random;
    const char *path;
    unsigned flags;       /* SERIES_… */
    size_t largest_write;
    size_t position_limit;
    char *memory;         /* `largest_write` bytes and three pages, so that buffers also have unaligned addresses */
    /* Returns true if an injected error explains the unexpected result; it then removes the error, and the series
     * continues. NULL: no result is excused. */
    bool (*excuses)(struct call_series *series, const char *call, int64_t result);
};

/* Makes `steps` random calls. Returns false at the first failed check. */
bool run_series(struct call_series *cs, int steps);

#endif /* WEIR_TESTS_CALL_SERIES_H */
