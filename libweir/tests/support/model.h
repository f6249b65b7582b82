/* model.h: what a file must hold after what a stream accepted, kept in memory; and a stream driven beside
 * it by random calls. */
#ifndef WEIR_TESTS_MODEL_H
#define WEIR_TESTS_MODEL_H

#include "../../src/private.h"
#include "check.h"

struct model {
    unsigned char *bytes;
    size_t size, room;
    int64_t at; /* the program's position */
    bool append;
};

void model_make(struct model *m, bool append);
void model_free(struct model *m);
void model_write(struct model *m, const void *from, size_t bytes);
/* Text with a line end now and then, the same for the same `r`. */
void model_text(struct random *r, char *to, size_t bytes);
/* Is the file what it must be? Says what is wrong. */
bool model_is_in(const struct model *m, const char *path);

enum { RIDE_READS = 1, RIDE_SEEKS = 2, RIDE_MODES = 4, RIDE_STAYS = 8 /* no flush compares the file */ };

struct ride {
    weir_stream *s;
    struct model *model;
    struct random random;
    const char *path;
    unsigned does;     /* RIDE_… */
    size_t largest;    /* of a write */
    size_t file_limit; /* positions stay below it */
    char *memory;      /* `largest` and three pages: what is written and read lies at odd addresses, too */
    /* A call returned something else than it should: was that an injected error's doing? Then all is healed
     * again and the ride goes on. NULL: never. */
    bool (*excuse)(struct ride *ride, const char *call, int64_t result);
};

/* `steps` random calls; false: something was wrong. */
bool ride(struct ride *r, int steps);

#endif /* WEIR_TESTS_MODEL_H */
