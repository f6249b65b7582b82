/* model.h: the expected content of a file, kept in memory: all bytes that a stream has accepted. */
#ifndef WEIR_TESTS_MODEL_H
#define WEIR_TESTS_MODEL_H

#include "../../src/private.h"
#include "check.h"

struct model {
    unsigned char *bytes;
    size_t size, capacity;
    int64_t position; /* the program's */
    bool append;
};

void model_init(struct model *m, bool append);
void model_free(struct model *m);
void model_write(struct model *m, const void *from, size_t bytes);
/* Fills `to` with text that has some newlines; equal states of `r` give equal text. */
void model_text(struct random *r, char *to, size_t bytes);
/* Compares the file with the model. Returns false, and prints the difference, if they differ. */
bool model_matches_file(const struct model *m, const char *path);

#endif /* WEIR_TESTS_MODEL_H */
