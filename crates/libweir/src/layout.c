/* layout.c: sizes and offsets of the structures that ffi.rs declares, for its test. */
#include <stddef.h>
#include <weir.h>

#define SIZE(type) sizeof(type)
#define OFFSET(type, field) offsetof(type, field)

const size_t weir_rs_layout[] = {
    SIZE(struct weir_options),
    OFFSET(struct weir_options, flags),
    OFFSET(struct weir_options, separator),
    OFFSET(struct weir_options, stale_ms),
    OFFSET(struct weir_options, buffer_bytes),
    OFFSET(struct weir_options, buffer),
    OFFSET(struct weir_options, max_record_bytes),
    OFFSET(struct weir_options, spill),
    OFFSET(struct weir_options, reserved),
    SIZE(struct weir_stats),
    OFFSET(struct weir_stats, pending_bytes),
    OFFSET(struct weir_stats, written_bytes),
    OFFSET(struct weir_stats, writes),
    OFFSET(struct weir_stats, short_writes),
    OFFSET(struct weir_stats, stale_drains),
    OFFSET(struct weir_stats, shared_syncs),
    OFFSET(struct weir_stats, buffer_bytes),
    OFFSET(struct weir_stats, error),
    OFFSET(struct weir_stats, mode),
    OFFSET(struct weir_stats, durability),
    SIZE(struct weir_recovered),
    OFFSET(struct weir_recovered, repeated),
    OFFSET(struct weir_recovered, pid),
    OFFSET(struct weir_recovered, exact),
    OFFSET(struct weir_recovered, path),
};
const size_t weir_rs_layout_count = sizeof weir_rs_layout / sizeof *weir_rs_layout;
const int weir_rs_eof = WEIR_EOF;
