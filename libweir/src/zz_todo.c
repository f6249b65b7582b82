/* zz_todo.c: parts that are being written elsewhere; each goes when its file is there. */
#include "private.h"
int weir__direct_make(weir_stream *s) { (void)s; return -ENOTSUP; }
void weir__direct_free(weir_stream *s) { (void)s; }
int weir__uring_make(weir_stream *s, const struct weir_options *o) { (void)s; (void)o; return -ENOTSUP; }
void weir__uring_free(weir_stream *s) { (void)s; }
const struct weir__sink weir__sink_direct, weir__sink_uring;
