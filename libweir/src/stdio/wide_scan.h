/* wide_scan.h: what the files of wscanf share. */
#ifndef WEIR_WIDE_SCAN_H
#define WEIR_WIDE_SCAN_H

#include "stdio_private.h"

/* One directive of the format. */
struct directive {
    bool suppressed, allocates;
    int position; /* %n$: of the argument, from 1; 0: the next one */
    int width;    /* characters; 0: not given */
    char length;  /* 'H' for hh, 'Q' for ll, L and q, or h, l, j, z, t, or 0 */
    wchar_t conversion;
    const wchar_t *set, *set_end; /* of %[ */
    bool set_excludes;
};

struct scan {
    weir_stream *from;
    int64_t used; /* characters */
    int assigned;
    va_list next, first;
};

enum outcome { MATCHED, MISMATCH, NO_INPUT, NO_MEMORY };

/* ---- the result's memory ---- */

/* Bytes that grow, or the caller's memory, or nothing for a suppressed conversion. */
struct target {
    char *bytes;
    size_t used, room;
    bool grows, discards;
};

/* Returns false without memory. */
bool weir__wide_append(struct target *to, const void *from, size_t bytes);

/* wide_scan.c */
wint_t weir__wide_get(struct scan *scan);
void weir__wide_unget(struct scan *scan, wint_t c);
void *weir__wide_argument(struct scan *scan, const struct directive *directive);

/* wide_number.c */
enum outcome weir__wide_number(struct scan *scan, const struct directive *directive);
void weir__wide_store_integer(void *to, char length, unsigned long long value);

#endif /* WEIR_WIDE_SCAN_H */
