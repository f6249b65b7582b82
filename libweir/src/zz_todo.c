/* zz_todo.c: parts that are being written elsewhere; each goes when its file is there. */
#include "private.h"
int weir__spill_make(weir_stream *s, const struct weir_options *o) { (void)s; (void)o; return -ENOTSUP; }
int weir__spill_renew(weir_stream *s) { (void)s; return 0; }
int weir__spill_grow(weir_stream *s, size_t c) { (void)s; (void)c; return 0; }
void weir__spill_before(weir_stream *s, uint64_t b) { (void)s; (void)b; }
void weir__spill_reset(weir_stream *s, uint64_t b) { (void)s; (void)b; }
void weir__spill_free(weir_stream *s, bool k) { (void)s; (void)k; }
void weir__spill_exit(weir_stream *s) { (void)s; }
int weir__direct_make(weir_stream *s) { (void)s; return -ENOTSUP; }
void weir__direct_free(weir_stream *s) { (void)s; }
int weir__uring_make(weir_stream *s, const struct weir_options *o) { (void)s; (void)o; return -ENOTSUP; }
void weir__uring_free(weir_stream *s) { (void)s; }
const struct weir__sink weir__sink_direct, weir__sink_uring;
